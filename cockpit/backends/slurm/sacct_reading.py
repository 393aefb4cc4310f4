"""Reads ended jobs and their steps out of accounting with sacct.

sacct differs from the other commands in three ways, which this module deals with:

1. Each version knows other fields. The ones that it refuses are left out, and the command is run again.
2. No other command lists the jobs that ended. A list that was cut is recognised by a list of their ids (`id_checks`).
3. It needs the accounting database, which a cluster may not have, and which may be away for hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from typing import Protocol

from cockpit.backends.slurm.id_checks import IdCheck, ids_of_ended, ids_of_steps, past_records
from cockpit.backends.slurm.mapping import accounting
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.wire.answers import Answers, ParsedAnswers, PollIntervals
from cockpit.backends.slurm.wire.calls import Failed, Garbled, Printed
from cockpit.errors import CockpitError
from cockpit.model.ids import Millis
from cockpit.model.jobdetail import StepRow


class OtherLists(Protocol):
    """The parts of `reading.Reading` that are needed to read ended jobs."""

    intervals: PollIntervals
    trouble: dict[str, str]

    @property
    def listed_jobs(self) -> Iterable[Listed]: ...

    async def shards_per_card(self) -> int: ...

    async def of_accounting(
        self, what: str, argv: tuple[str, ...], fresh_seconds: float, means_none: str = ""
    ) -> Printed: ...


class SacctReading:
    """Ended jobs of one cluster, as its accounting has them."""

    def __init__(self, lists: OtherLists, answers: Answers, now: Callable[[], Millis]) -> None:
        self._lists, self._answers, self._now = lists, answers, now
        self._ids = IdCheck(answers)
        self._parsed = ParsedAnswers()
        self._fields: tuple[str, ...] = accounting.FIELDS_OF_ONE
        """The fields that this cluster's sacct knows, as far as it was run."""

    async def ended(
        self, since: str, until: str = "now", *, user: str = "", during: bool = False
    ) -> Sequence[accounting.Past]:
        """Return the jobs that ended in this time out of accounting (sacct), in its order.

        `during`: also those that were there in this time and ended later.
        When accounting does not answer: its last answer, or nothing; `trouble` and `missing` then say so.
        """
        # one turn for each field that this version of sacct does not know; it names only the first of them
        while True:
            fields = tuple(name for name in accounting.FIELDS if name in self._fields)
            argv = accounting.command(since, until, user=user, during=during, fields=fields)
            printed = await self._lists.of_accounting(
                "sacct", argv, self._lists.intervals.accounting, accounting.UNKNOWN_USER
            )
            if not printed.code:
                break
            if not self._leave_out_field(printed.stderr):
                return ()
        printed = await self._with_all_ended(argv, fields, printed, since, user, during=during)
        shards = await self._lists.shards_per_card()
        source = (printed, shards)
        return self._parsed.once(
            f"ended for {user}, {during}",
            source,
            lambda: tuple(accounting.ended_jobs(past_records(printed, fields), UTC, shards)),
        )

    async def _with_all_ended(
        self, argv: tuple[str, ...], fields: Sequence[str], printed: Printed, since: str, user: str, *, during: bool
    ) -> Printed:
        """Return sacct's list, checked to have every job; its last answer, with `trouble`, if a new one lacks some.

        Raises `Garbled` when there is no last answer.
        """
        if "sacct" in self._lists.trouble:  # it is the last answer already
            return printed
        begin = accounting.compared_since(since, self._now())
        question = ids_of_ended(argv, fields, self._lists.intervals.accounting, begin)
        # slurmdbd may not have heard yet of a job that squeue lists as ended: then the list of ids decides (`IdCheck`).
        whose = (each for each in self._lists.listed_jobs if user in {"", each.fields["UserName"]})
        known = () if during else accounting.ids_of_ended(whose, begin)
        try:
            return await self._ids.complete(question, printed, tuple(known))
        except Garbled as error:
            last = self._ids.last(question)
            if last is None:
                raise
            self._lists.trouble["sacct"] = f"sacct is not available at the moment: {error} Its last answer is shown."
            return last

    async def accounted(self, job: str) -> tuple[accounting.Past | None, tuple[StepRow, ...]]:
        """Return the record of a job in accounting (None until it has ended) and its steps; `job` is Slurm's id.

        Raises `Unreachable` when accounting does not answer: then it is unknown whether there was such a job.
        """
        while True:
            argv = accounting.command_of_one(job, self._fields)
            try:
                printed = await self._answers.ask(
                    argv, self._lists.intervals.details, seconds=self._lists.intervals.patience / 3
                )
            # Any other refusal counts as no record.
            except Failed as failed:
                if not self._leave_out_field(failed.printed.stderr):
                    return None, ()
            else:
                question = ids_of_steps(job, argv, self._fields, self._lists.intervals.details)
                printed = await self._ids.complete(question, printed)
                shards = await self._lists.shards_per_card()
                return accounting.of_one(past_records(printed, self._fields), job, UTC, shards)

    def _leave_out_field(self, complaint: str) -> bool:
        """Leave out the field of sacct that this version of it does not know; False: it complains about another thing.

        Each Slurm version lacks other fields.
        """
        unknown = accounting.unknown_field(complaint)
        known = unknown in self._fields
        self._fields = tuple(name for name in self._fields if name != unknown)
        return known

    async def script(self, job: str) -> str:
        """Return a job's batch script; empty where accounting does not store it or does not show it."""
        try:
            printed = await self._answers.ask(
                ("sacct", "--batch-script", "--jobs", job), self._lists.intervals.settings
            )
        except CockpitError:
            return ""
        # sacct prints a heading of its own before the script, and NONE where it has none
        head, mark, script = printed.stdout.partition("#!")
        return mark + script if not head.startswith("NONE") else ""
