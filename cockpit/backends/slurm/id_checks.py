"""Finds out whether an answer of sacct has every record, by a second, short answer that has ids alone.

A list of ended jobs that is cut exactly between two records looks like a shorter list, and no other command names the
jobs that it lacks. Therefore sacct is asked once more for the ids. A program that cuts after a number of bytes or lines
cuts both answers, but at different jobs: the second has short lines, no header, and of a list no steps. `IdCheck`
works in these steps:

1. An answer that was checked before is returned as it is.
2. An answer with all ids that are expected, because the previous answer or the controller had them, is complete. So a
   cockpit that stays open asks for the ids once.
3. Otherwise sacct is asked for the ids. If the answer lacks some of them, it is asked for again (`completed`).
4. If the ids lack some that the answer has, both are asked for again: one of them is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from cockpit.backends.slurm.list_checks import complete_list
from cockpit.backends.slurm.mapping.accounting import ids_command, ids_command_of_one, read
from cockpit.backends.slurm.mapping.cross_checks import CrossCheck
from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Garbled, Printed
from cockpit.errors import CockpitError

_ID = re.compile(r"[0-9]+(?:[_+][0-9]+)?(?:\.[a-z0-9]+)?")
"""Id of a job, a task, a component or a step. Ids of several pending tasks change while they are compared."""


class IdQuestion(NamedTuple):
    """A command of sacct, and the command that asks for the ids of the same records."""

    argv: tuple[str, ...]
    ids: tuple[str, ...]
    fresh_seconds: float
    records: Callable[[Printed], Collection[tuple[str, str]]]
    """Returns id and end of each record that `argv` prints; the end is a time as sacct prints it."""
    begin: str = ""
    """Records that ended before are not compared: they leave the time that is asked for while the two commands run."""


def ids_of_ended(argv: tuple[str, ...], fields: Sequence[str], fresh_seconds: float, begin: str) -> IdQuestion:
    """Return the question about a list of ended jobs with these fields; their steps are not compared."""

    def jobs(printed: Printed) -> list[tuple[str, str]]:
        return [(each["JobID"], each["End"]) for each in past_records(printed, fields) if "." not in each["JobID"]]

    return IdQuestion(argv, ids_command(argv), fresh_seconds, jobs, begin)


def ids_of_steps(job: str, argv: tuple[str, ...], fields: Sequence[str], fresh_seconds: float) -> IdQuestion:
    """Return the question about one job, by Slurm's id, and its steps."""

    def records(printed: Printed) -> list[tuple[str, str]]:
        return [(each["JobID"], each["End"]) for each in past_records(printed, fields)]

    return IdQuestion(argv, ids_command_of_one(job), fresh_seconds, records)


def past_records(printed: Printed, fields: Sequence[str]) -> Iterable[Record]:
    """Return the records of sacct's answer."""
    return printed.records if printed.records is not None else read(printed.stdout, printed.separator, fields)


class IdCheck:
    """Checks the answers of sacct of one cluster."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._checked: dict[tuple[str, ...], Printed] = {}
        """The last complete answer of each command."""

    def last(self, question: IdQuestion) -> Printed | None:
        """Return the last complete answer."""
        return self._checked.get(question.argv)

    async def complete(self, question: IdQuestion, printed: Printed, known: Collection[str] = ()) -> Printed:
        """Return the answer, or a second one that is complete. Raises `Garbled`.

        `known`: ids that the controller has; accounting may learn of them later.
        """
        before = self._checked.get(question.argv)
        if printed.verified or printed is before:  # step 1
            return printed
        expected = {*known, *(_ids(question, before) if before is not None else ())}
        if before is None or not expected <= _ids(question, printed):  # step 2
            printed = await self._compare_with_ids(question, printed)
        self._checked[question.argv] = printed
        return printed

    async def _compare_with_ids(self, question: IdQuestion, printed: Printed) -> Printed:
        """Compare an answer with the list of ids, and ask again for what it lacks. Raises `Garbled`."""
        try:
            listed = _parse_ids(question, await self._answers.ask(question.ids, question.fresh_seconds))
            printed = await self._with_all(question, printed, listed)  # step 3
            if not _ids(question, printed) - listed:
                return printed
            printed = await self._answers.ask_now(question.argv)  # step 4
            listed = _parse_ids(question, await self._answers.ask_now(question.ids))
        except Garbled:
            raise
        except CockpitError:
            return printed  # the answer itself came, and a check that is not possible must not hide it
        if cut := _ids(question, printed) - listed:
            error = Garbled("sacct", f"its list of ids leaves out {min(cut)}")
            self._answers.replace_by_error(question.argv, error)
            raise error
        return await self._with_all(question, printed, listed)

    async def _with_all(self, question: IdQuestion, printed: Printed, listed: set[str]) -> Printed:
        def lacks(text: str) -> set[str]:
            return listed - {head[0] for line in text.splitlines() if (head := _ID.match(line)) is not None}

        check = CrossCheck(lacks, lambda name: ids_command_of_one(name.partition(".")[0]))
        return await complete_list(self._answers, question.argv, printed, check, set())


def _ids(question: IdQuestion, printed: Printed) -> set[str]:
    """Return the ids of an answer's records."""
    return {name for name, end in question.records(printed) if end >= question.begin and _ID.fullmatch(name)}


def _parse_ids(question: IdQuestion, printed: Printed) -> set[str]:
    """Return the ids in the short answer, whose lines are `12_3|2026-11-21T08:00:00`."""
    pairs = (line.partition("|")[::2] for line in printed.stdout.splitlines())
    return {name for name, end in pairs if end >= question.begin and _ID.fullmatch(name)}
