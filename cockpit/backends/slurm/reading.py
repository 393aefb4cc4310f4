"""Reads the state of a Slurm cluster through its commands, each as seldom as `PollIntervals` says, and parses it.

Each list passes through these steps:

1. `Answers` runs the command or returns an answer that is still fresh.
2. The list is compared with other lists that name its entries (`list_checks`): a list that was cut exactly between two
   records looks like a shorter list. Where entries are missing the command runs again before they count as gone.
3. The text is parsed, only if it is another text than last time (`_once`).

Lists that the cluster may do without are read through `optional_lists`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from typing import Any, NamedTuple, TypeVar

from cockpit.backends.slurm.id_checks import IdCheck, ids_of_ended, ids_of_steps, past_records
from cockpit.backends.slurm.list_checks import (
    ListComparison,
    check_inventory,
    confirmed,
    is_doubtful,
    left_out,
    live_jobs,
)
from cockpit.backends.slurm.mapping import (
    accounting,
    accounts,
    cross_checks,
    licences,
    listing,
    memory,
    nodes,
    placements,
    priorities,
    reservations,
    rules,
    spreads,
    values,
)
from cockpit.backends.slurm.mapping.cluster import ClusterLists, shards_per_card
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.placements import NOTHING_KNOWN, Known
from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.spreads import NO_SPREADS, Spreads
from cockpit.backends.slurm.mapping.values import slurm_id
from cockpit.backends.slurm.optional_lists import OptionalLists
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Failed, Garbled, Printed
from cockpit.errors import CockpitError
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import Cluster, PriorityFlag, Reservation
from cockpit.model.ids import JobId, Millis, NodeName, task_of
from cockpit.model.jobdetail import StepRow
from cockpit.model.priority import Breakdown

T = TypeVar("T")
DENIED = "Access/permission denied"
NOTHING_SHOWN = Printed("", "", 1, verified=True)


NO_ACCOUNTING = (
    "This cluster has no accounting database (AccountingStorageType = {kind}): its accounts, QOS, limits and fair "
    "shares, and jobs that its controller has forgotten (MinJobAge after they ended), are unknown. Its administrator "
    "sets up slurmdbd."
)
SAME_MOMENT_MS = 2000
"""Jobs listed as waiting at most this long before or after sprio ran are expected in its output."""
_ACCOUNTING = "accounting"
"""Key of `Reading.trouble` for a cluster without an accounting database."""


_HOST = re.compile(r"[A-Za-z0-9_.-]{1,255}")


class PollIntervals(NamedTuple):
    """How old the answers of each kind may be before the command runs again, in seconds, and the time limit of one."""

    jobs: float = 10.0
    nodes: float = 20.0
    details: float = 30.0
    priorities: float = 20.0
    shares: float = 60.0
    reservations: float = 60.0
    accounting: float = 60.0
    settings: float = 300.0
    patience: float = 30.0
    """Time limit of one command: sacctmgr without its database would try for minutes."""

    @classmethod
    def every(cls, seconds: float, patience: float) -> PollIntervals:
        """List jobs every `seconds`, and everything else in the default proportion to that."""
        usual = cls()
        factor = seconds / usual.jobs
        jobs, nodes, *others = (factor * each for each in usual[:-1])
        return cls(jobs, nodes, *others)._replace(patience=patience)


class Reading:
    """State of one cluster, as its commands report it. Every method raises `Unreachable` when Slurm does not answer."""

    def __init__(self, answers: Answers, now: Callable[[], Millis], intervals: PollIntervals | None = None) -> None:
        self._answers, self._now = answers, now
        self._ids = IdCheck(answers)
        self.intervals = intervals or PollIntervals()
        answers.patience = self.intervals.patience
        self._optional = OptionalLists(answers, self.intervals.patience / 3)
        self.trouble = self._optional.trouble
        self._fields: tuple[str, ...] = listing.FIELDS
        self._past_fields: tuple[str, ...] = accounting.FIELDS_OF_ONE
        self._parsed: dict[str, tuple[object, Any]] = {}
        self._records: dict[str, Listed] = {}
        self._looked_at = Millis(0)
        self._verified_list: Printed | None = None
        """The last list of jobs that was found to be complete."""
        self._inventory: tuple[Printed, Printed] | None = None
        """The last lists of nodes and of partitions that agree."""
        self._detailed: tuple[Printed, Printed | None] | None = None
        """The last details of jobs that were checked, and the list of jobs that they were compared with."""
        self.hidden: dict[str, str] = {}
        """Sentences about lists that the cluster hides from the user (PrivateData): keys `nodes`, `partitions`."""

    async def config(self) -> Record:
        """Return the settings of the cluster, as far as `scontrol show config` or slurmrestd reports them."""
        printed = await self._answers.ask(rules.CONFIG, self.intervals.settings)
        return self._once("config", printed, printed.settings)

    async def rules(self) -> Cluster:
        conf = await self.config()
        partitions = await self._visible_list("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        await self._check_inventory(
            await self._visible_list("nodes", nodes.COMMAND, self.intervals.settings), partitions
        )
        source = (conf, partitions)
        return self._once("rules", source, lambda: rules.cluster(conf, partitions.blocks(rules.PARTITION_KEY)))

    async def memory(self) -> memory.MemoryRules:
        conf = await self.config()
        printed = await self._visible_list("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        return self._once(
            "memory", (conf, printed), lambda: memory.memory_rules(conf, printed.blocks(rules.PARTITION_KEY))
        )

    async def nodes(self, fresh_seconds: float | None = None) -> tuple[nodes.SlurmNode, ...]:
        printed = await self._visible_list("nodes", nodes.COMMAND, fresh_seconds or self.intervals.nodes)
        await self._check_inventory(
            printed, await self._visible_list("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        )
        return self._once("nodes", printed, lambda: tuple(nodes.slurm_nodes(printed.blocks(nodes.KEY))))

    async def jobs(self) -> tuple[Listed, ...]:
        """Return all jobs that squeue lists; jobs that have not changed are the same objects as before.

        1. Run squeue, or take its last answer while that is fresh.
        2. A list that was found complete before, or that the transport made itself, is returned as it is.
        3. Otherwise check it against the previous list and the controller's counts (`_verify_jobs`).
        4. If it is still incomplete, restore the previous records, so that the next list is compared with them.
        """
        shards = shards_per_card(await self.nodes(self.intervals.settings))
        printed, before = await self._list(), (self._records, self._looked_at)  # step 1
        if printed is self._verified_list or printed.verified:  # step 2
            return self._jobs_in(printed, shards)
        jobs = self._jobs_in(printed, shards)
        try:
            jobs = await self._verify_jobs(jobs, before, shards)  # step 3
        except CockpitError as error:  # step 4
            self._records, self._looked_at = before
            self._parsed.pop("jobs", None)
            self._answers.replace_by_error(listing.command(self._fields), error)
            raise
        return jobs

    def _jobs_in(self, printed: Printed, shards: int) -> tuple[Listed, ...]:
        return self._once("jobs", (printed, shards), lambda: tuple(self._listed(printed, shards)))

    async def _verify_jobs(
        self, jobs: tuple[Listed, ...], before: tuple[dict[str, Listed], Millis], shards: int
    ) -> tuple[Listed, ...]:
        """Return the list, or a second one when jobs may be missing. Raises `Garbled` when the second lacks some, too.

        `before`: the records of the previous list and its time. scontrol's list of live jobs decides what is missing.
        """
        records, looked_at = before
        question = listing.command(self._fields)
        self._looked_at = self._now()
        look = ListComparison(self._records, records, (self._looked_at - looked_at) / 1000)
        if not self.hidden and await is_doubtful(self._answers, look, await self.config()):
            live = await live_jobs(self._answers, self._names())
            # scontrol was asked first: a job that it has and that a later squeue lacks is missing, not merely new.
            jobs = self._jobs_in(await self._answers.ask_now(question), shards)
            lost = live - self._records.keys()
            if lost and (lost := await confirmed(self._answers, lost)):
                raise left_out(lost)
        self._verified_list = self._answers.last(question)
        return jobs

    async def _check_inventory(self, nodes_list: Printed, partitions_list: Printed) -> None:
        """Compare the lists of nodes and partitions, once for each pair of answers. Raises `Garbled`."""
        pair = (nodes_list, partitions_list)
        if self._inventory is None or any(one is not other for one, other in zip(pair, self._inventory, strict=True)):
            if not (nodes_list.verified or partitions_list.verified):
                await check_inventory(self._answers, nodes_list.stdout, partitions_list.stdout, self.intervals.settings)
            self._inventory = pair

    async def jobs_now(self, job: JobId) -> tuple[Listed, ...]:
        """Run squeue now for one job, with its whole array or heterogeneous job: changes are decided by it.

        Empty when the controller does not know the job.
        """
        shards = shards_per_card(await self.nodes(self.intervals.settings))
        try:
            printed = await self._list(slurm_id(task_of(job)[0]))
        except Failed as failed:
            if listing.UNKNOWN_JOB in failed.printed.stderr:
                return ()
            raise
        records = tuple(_jobs(printed, self._fields))
        self._expect(slurm_id(task_of(job)[0]), printed, records)
        return tuple(Listed(fields, UTC, shards) for fields in records)

    def _expect(self, job: str, printed: Printed, records: Collection[Record]) -> None:
        """Raise `Garbled` if squeue's answer for one job is empty although its list has the job.

        For a job that the controller has forgotten squeue prints an error instead.
        """
        number = re.split(r"[_+]", job)[0]
        names = ("JobID", "ArrayJobID", "HetJobID")
        if printed.verified or records:
            return
        if any(number in map(each.fields.get, names) for each in self._records.values()):
            raise Garbled("squeue", f"it leaves out job {job}")

    @property
    def listed_at(self) -> Millis | None:
        """Time of the last list of jobs."""
        return self._answers.given_at(listing.command(self._fields))

    async def details(self) -> Known:
        """Return CPUs, memory and cards of each running job on each node, out of `scontrol -d show job`.

        Empty where nodes or partitions are hidden: there the scontrol of 22.05 crashes on this question.
        """
        gres = {each.node.name: each.gres for each in await self.nodes(self.intervals.settings)}
        if self.hidden:
            return NOTHING_KNOWN
        printed = await self._detailed_jobs()
        return self._once("details", printed, lambda: placements.details(self._allocations(printed), gres))

    async def spreads(self) -> Spreads:
        """Return the tasks of waiting jobs whose tasks are spread over nodes; empty where `details` is empty."""
        if self.hidden:
            return NO_SPREADS
        printed = await self._detailed_jobs()
        return self._once("spreads", printed, lambda: spreads.spreads(printed.stdout, self._names()))

    def _allocations(self, printed: Printed) -> Iterable[Record]:
        """Return the allocations of jobs in the answer of `placements.DETAIL`."""
        if printed.records is not None:
            return printed.records
        return placements.allocation_records(printed.stdout, self._names())

    def _names(self) -> Iterator[str]:
        """Yield the names of jobs in squeue's last list."""
        return (each.fields["Name"] for each in self._records.values())

    async def _detailed_jobs(self) -> Printed:
        """Return `scontrol -d show job`, checked to have the live jobs of squeue's list that it should have."""
        what = "scontrol show job"
        printed = await self._answers.ask(placements.DETAIL, self.intervals.details)
        if self._detailed is not None and self._detailed[0] is printed and self._detailed[1] is self._verified_list:
            return printed
        asked_at = self._answers.given_at(placements.DETAIL) or self._now()
        check = cross_checks.of_details(self._records.values(), asked_at)
        printed = await self._optional.completed(what, placements.DETAIL, printed, check)
        self._detailed = printed, self._verified_list
        return printed

    async def reservations(self) -> tuple[Reservation, ...]:
        what = "scontrol show reservation"
        printed = await self._optional.ask(what, reservations.COMMAND, self.intervals.reservations)
        names = reservations.names(
            await self._optional.beside(printed, reservations.NAMES, self.intervals.reservations)
        )
        check = cross_checks.of_reservations(self._records.values(), names)
        printed = await self._optional.completed(what, reservations.COMMAND, printed, check)
        records = printed.blocks(reservations.KEY)
        return self._once("reservations", printed, lambda: tuple(reservations.reservations(records, UTC)))

    async def licences(self) -> tuple[licences.Licence, ...]:
        what = "scontrol show licenses"
        printed = await self._optional.ask(what, licences.COMMAND, self.intervals.nodes)
        check = cross_checks.of_licences(await self.config())
        printed = await self._optional.completed(what, licences.COMMAND, printed, check)
        return self._once("licences", printed, lambda: tuple(licences.licences(printed.blocks(licences.KEY))))

    async def shares(self) -> tuple[accounts.ShareLine, ...]:
        printed = await self._of_accounting("sshare", accounts.SHARES, self.intervals.shares)
        return self._once("shares", printed, lambda: tuple(accounts.shared(printed.rows())))

    async def accounts(self) -> Accounts:
        shares = await self._of_accounting("sshare", accounts.SHARES, self.intervals.shares)
        qos = await self._of_accounting("sacctmgr list qos", accounts.QOS, self.intervals.settings)
        assoc = await self._of_accounting("sacctmgr list assoc", accounts.ASSOCIATIONS, self.intervals.settings)
        name = rules.cluster_name(await self.config())
        if assoc.stdout and shares.stdout:
            check = cross_checks.of_shares(assoc.stdout, name)
            shares = await self._optional.completed("sshare", accounts.SHARES, shares, check)
            check = cross_checks.of_associations(shares.stdout, name)
            assoc = await self._optional.completed("sacctmgr list assoc", accounts.ASSOCIATIONS, assoc, check)
        if assoc.stdout:
            names = await self._optional.beside(qos, accounts.QOS_NAMES, self.intervals.settings)
            check = cross_checks.of_qos(assoc.stdout, name, names.splitlines())
            qos = await self._optional.completed("sacctmgr list qos", accounts.QOS, qos, check)

        def made() -> Accounts:
            if not assoc.stdout and not assoc.records:
                return accounts.of_shares(shares.rows())
            return accounts.accounts(assoc.rows(), qos.rows(), shares.rows(), name)

        return self._once("accounts", (shares, qos, assoc), made)

    async def priorities(self) -> Mapping[int, tuple[Breakdown, ...]]:
        """Return the priorities that sprio prints, by Slurm's id of the job or array; the highest partition first."""
        weights = (await self.rules()).priority.weights
        printed = await self._optional.ask("sprio", priorities.COMMAND, self.intervals.priorities)
        check = cross_checks.of_priorities(self._records.values())
        if check.lacks(printed.stdout) and not self._same_moment(priorities.COMMAND):
            # Jobs of an older list may have started since, and those of a newer one were not there yet: read both anew.
            await self._answers.ask_now(listing.command(self._fields))
            await self.jobs()
            printed = await self._optional.ask("sprio", priorities.COMMAND, 0.0)
            check = cross_checks.of_priorities(self._records.values())
        printed = await self._optional.completed("sprio", priorities.COMMAND, printed, check)

        def made() -> dict[int, tuple[Breakdown, ...]]:
            by_job: dict[int, tuple[Breakdown, ...]] = {}
            for each in priorities.breakdowns(printed.stdout, weights):
                by_job[each.job] = tuple(sorted((*by_job.get(each.job, ()), each), key=lambda one: -one.total))
            return by_job

        return self._once("priorities", (printed, weights), made)

    def _same_moment(self, argv: tuple[str, ...]) -> bool:
        """Return whether the last answer of the command and the last list of jobs are of about the same time."""
        listed_at, given_at = self.listed_at, self._answers.given_at(argv)
        return listed_at is not None and given_at is not None and abs(listed_at - given_at) < SAME_MOMENT_MS

    async def ended(
        self, since: str, until: str = "now", *, user: str = "", during: bool = False
    ) -> Sequence[accounting.Past]:
        """Return the jobs that ended in this time out of accounting (sacct), in its order.

        `during`: also those that were there in this time and ended later.
        When accounting does not answer: its last answer, or nothing; `trouble` and `missing` then say so.
        """
        # one turn for each field that this version of sacct does not know; it names only the first of them
        while True:
            fields = tuple(name for name in accounting.FIELDS if name in self._past_fields)
            argv = accounting.command(since, until, user=user, during=during, fields=fields)
            printed = await self._of_accounting("sacct", argv, self.intervals.accounting, accounting.UNKNOWN_USER)
            if not printed.code:
                break
            if not self._leave_out_past_field(printed.stderr):
                return ()
        printed = await self._with_all_ended(argv, fields, printed, since, user, during=during)
        shards = shards_per_card(await self.nodes(self.intervals.settings))
        source = (printed, shards)
        return self._once(
            f"ended for {user}, {during}",
            source,
            lambda: tuple(accounting.ended(past_records(printed, fields), UTC, shards)),
        )

    async def _with_all_ended(
        self, argv: tuple[str, ...], fields: Sequence[str], printed: Printed, since: str, user: str, *, during: bool
    ) -> Printed:
        """Return sacct's list, checked to have every job; its last answer, with `trouble`, if a new one lacks some.

        Raises `Garbled` when there is no last answer.
        """
        if "sacct" in self.trouble:  # it is the last answer already
            return printed
        begin = accounting.compared_since(since, self._now())
        question = ids_of_ended(argv, fields, self.intervals.accounting, begin)
        whose = (each for each in self._records.values() if user in {"", each.fields["UserName"]})
        known = () if during else accounting.ids_of_ended(whose, begin)
        try:
            return await self._ids.complete(question, printed, tuple(known))
        except Garbled as error:
            last = self._ids.last(question)
            if last is None:
                raise
            self.trouble["sacct"] = f"sacct is not available at the moment: {error} Its last answer is shown."
            return last

    async def accounted(self, job: str) -> tuple[accounting.Past | None, tuple[StepRow, ...]]:
        """Return the record of a job in accounting (None until it has ended) and its steps; `job` is Slurm's id.

        Raises `Unreachable` when accounting does not answer: then it is unknown whether there was such a job.
        """
        while True:
            argv = accounting.command_of_one(job, self._past_fields)
            try:
                printed = await self._answers.ask(argv, self.intervals.details, seconds=self.intervals.patience / 3)
            except Failed as failed:
                if not self._leave_out_past_field(failed.printed.stderr):
                    return None, ()
            else:
                question = ids_of_steps(job, argv, self._past_fields, self.intervals.details)
                printed = await self._ids.complete(question, printed)
                shards = shards_per_card(await self.nodes(self.intervals.settings))
                return accounting.of_one(past_records(printed, self._past_fields), job, UTC, shards)

    def _leave_out_past_field(self, complaint: str) -> bool:
        """Leave out the field of sacct that this version of it does not know; False: it complains about another thing.

        Each Slurm version lacks other fields.
        """
        unknown = accounting.unknown_field(complaint)
        known = unknown in self._past_fields
        self._past_fields = tuple(name for name in self._past_fields if name != unknown)
        return known

    async def admin_level(self, user: str) -> str:
        """Return the user's AdminLevel, `None`, `Operator` or `Administrator`; empty when it is unknown."""
        argv = ("sacctmgr", "-n", "-P", "--readonly", "list", "user", f"name={user}", "format=adminlevel")
        printed = await self._of_accounting("sacctmgr list user", argv, self.intervals.settings)
        if printed.records is not None:
            return "".join(each["AdminLevel"] for each in printed.records)
        return printed.stdout.strip()

    def forget(self, programs: Collection[str]) -> None:
        """Discard the answers of these programs, because something that they report was changed."""
        self._answers.forget(programs)

    async def output_files(self, job: str) -> dict[str, str]:
        """Return a job's output files: `stdout`, `stderr`, and `folder`, its working folder; `job` is Slurm's id.

        Empty when Slurm has forgotten the job.
        """
        try:
            printed = await self._answers.ask(listing.output_command(job), self.intervals.details)
        except Failed:
            return {}
        records = tuple(_jobs(printed, listing.OUTPUT_FIELDS))
        self._expect(job, printed, records)
        if not records:
            return {}
        (record, *_) = records
        return {"stdout": record["STDOUT"], "stderr": record["STDERR"], "folder": record["WorkDir"]}

    async def host_of(self, node: NodeName) -> str:
        """Return the host name of a node's machine; `localhost` is replaced by the name of the commands' machine."""
        seen = next((each for each in await self.nodes(self.intervals.settings) if each.node.name == node), None)
        host = (seen.host if seen is not None else "") or node
        if host == "localhost":
            with suppress(CockpitError):
                named = (await self._answers.ask(("uname", "-n"), self.intervals.settings)).stdout.strip()
                host = named if _HOST.fullmatch(named) else host
        return host

    async def lacks_accounting(self) -> str:
        """Return a sentence about what is unknown on a cluster without an accounting database.

        Empty where there is one, and where the configuration does not say (slurmrestd).
        """
        kind = (await self.config()).get("AccountingStorageType")
        return "" if kind is None or "slurmdbd" in kind else NO_ACCOUNTING.format(kind=kind)

    async def version(self) -> tuple[int, ...]:
        """Return the controller's version, such as `(22, 5, 8)`."""
        return tuple(int(each) for each in rules.version(await self.config()).split(".") if each.isdigit())

    async def script(self, job: str) -> str:
        """Return a job's batch script; empty where accounting does not store it or does not show it."""
        try:
            printed = await self._answers.ask(("sacct", "--batch-script", "--jobs", job), self.intervals.settings)
        except CockpitError:
            return ""
        # sacct prints a heading of its own before the script, and NONE where it has none
        head, mark, script = printed.stdout.partition("#!")
        return mark + script if not head.startswith("NONE") else ""

    async def running_steps(self, number: int) -> tuple[StepRow, ...]:
        """Return the steps of a running job that the controller lists."""
        try:
            printed = await self._answers.ask(("scontrol", "show", "step", str(number)), self.intervals.details)
        except CockpitError:
            return ()
        return tuple(accounting.steps(printed.stdout, UTC))

    async def comment(self, job: str) -> str:
        """Return a job's comment (by Slurm's id) from the controller, or from accounting once that forgot it."""
        live = ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%k")
        past = ("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=Comment")
        try:
            return (await self._answers.ask_now(live)).stdout.strip()
        except Failed:
            return (await self._optional.ask("sacct", past, 0.0)).stdout.strip()

    async def everything(self, *, closely: bool) -> ClusterLists:
        """Return all that the embedded scheduler needs; `closely`: also which cards of which node each job has."""
        everything = ClusterLists(
            at=self._now(),
            rules=await self.rules(),
            nodes=await self.nodes(),
            jobs=await self.jobs(),
            accounts=await self.accounts(),
            shares=await self.shares(),
            reservations=await self.reservations(),
            details=await self.details() if closely else NOTHING_KNOWN,
            spreads=await self.spreads() if closely else NO_SPREADS,
            memory=await self.memory(),
        )
        if any(each.waits and values.text(each.fields.get("Licenses", "")) for each in everything.jobs):
            everything = everything._replace(licences=await self.licences())
        rules = everything.rules
        if PriorityFlag.NO_NORMAL_ALL not in rules.priority.flags:
            return everything
        from cockpit.backends.slurm.normalization_flags import normalization_flags, with_priority_flags

        printed = await self.priorities()
        flags = self._once("flags", (rules, printed), lambda: normalization_flags(everything, printed))
        return everything._replace(
            rules=self._once("flagged", (rules, flags), lambda: with_priority_flags(rules, flags))
        )

    async def _list(self, job: str = "") -> Printed:
        """Run squeue without the fields that this version of it does not know. `job`: only for that job, and now."""
        while True:
            try:
                if job:
                    return await self._answers.ask_now(listing.command(self._fields, job))
                return await self._answers.ask(listing.command(self._fields), self.intervals.jobs)
            except Failed as failed:
                unknown = listing.unknown_field(failed.printed.stderr)
                if unknown is None or unknown not in self._fields:
                    raise
                self._fields = tuple(name for name in self._fields if name != unknown)

    def _listed(self, printed: Printed, shards: int) -> Iterator[Listed]:
        """Yield the records of squeue's list; a record that has not changed is the object of the previous list."""
        known, self._records = self._records, {}
        for fields in _jobs(printed, self._fields):
            if not fields["JobID"].isdigit():
                raise Garbled("squeue", f"{fields['JobID'][:20]!r} is not a job id")
            # the same object for an unchanged record: its parsed values, and rows made of it, need not be made again
            listed = known.get(fields["JobID"])
            if listed is None or listed.fields != fields or listed.shards != shards:
                listed = Listed(fields, UTC, shards)
            self._records[fields["JobID"]] = listed
            yield listed

    async def _visible_list(self, what: str, argv: tuple[str, ...], fresh_seconds: float) -> Printed:
        """Return a list; an empty one where PrivateData hides it from the user, who still sees their own jobs."""
        try:
            printed = await self._answers.ask(argv, fresh_seconds)
        except Failed as failed:
            if DENIED not in str(failed):
                raise
            self.trouble[what] = self.hidden[what] = f"This cluster does not show its {what} to you (PrivateData)."
            return NOTHING_SHOWN
        self.trouble.pop(what, None)
        self.hidden.pop(what, None)
        return printed

    async def _of_accounting(
        self, what: str, argv: tuple[str, ...], fresh_seconds: float, means_none: str = ""
    ) -> Printed:
        """Run a command that needs the accounting database; without one, return nothing and do not run it.

        `means_none`: part of an error that means that there is nothing to report.
        """
        if lacking := await self.lacks_accounting():
            self.trouble[_ACCOUNTING] = lacking
            return Printed("", "", 1)
        return await self._optional.ask(what, argv, fresh_seconds, means_none)

    def missing(self, *commands: str) -> str:
        """Return the sentences that say why what these commands report is unknown; empty where they answered."""
        return " ".join(sentence for what, sentence in self.trouble.items() if what in (*commands, _ACCOUNTING))

    def _once(self, what: str, source: object, make: Callable[[], T]) -> T:
        """Return the result of `make`, which is called again only when `source`, what it is made of, has changed."""
        # compared by value: a command that ran again mostly prints what it printed before
        known = self._parsed.get(what)
        if known is None or known[0] != source:
            known = self._parsed[what] = (source, make())
        made: T = known[1]
        return made


def _jobs(printed: Printed, fields: Sequence[str]) -> Iterable[Record]:
    """Return the records of squeue's answer."""
    return printed.records if printed.records is not None else listing.read(printed.stdout, printed.separator, fields)
