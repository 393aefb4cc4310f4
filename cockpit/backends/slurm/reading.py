"""Reads the state of a Slurm cluster through its commands, each as seldom as `PollIntervals` says, and parses it.

Each list passes through these steps:

1. `Answers` runs the command or returns an answer that is still fresh.
2. The list is compared with other lists that name its entries (`list_checks`): a list that was cut exactly between two
   records looks like a shorter list. Where entries are missing the command runs again before they count as gone.
3. The text is parsed, only if it is another text than last time (`ParsedAnswers`).

Lists that the cluster may do without are read through `optional_lists`, ended jobs through `sacct_reading`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from typing import TypeVar

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
from cockpit.backends.slurm.sacct_reading import SacctReading
from cockpit.backends.slurm.wire.answers import Answers, ParsedAnswers, PollIntervals
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


class Reading:
    """State of one cluster, as its commands report it. Every method raises `Unreachable` when Slurm does not answer."""

    def __init__(self, answers: Answers, now: Callable[[], Millis], intervals: PollIntervals | None = None) -> None:
        self._answers, self._now = answers, now
        self.intervals = intervals or PollIntervals()
        # The commands that are needed may take the whole time limit; those of `OptionalLists` a third of it.
        answers.patience = self.intervals.patience
        self._optional = OptionalLists(answers, self.intervals.patience / 3)
        self.trouble = self._optional.trouble
        self.sacct = SacctReading(self, answers, now)
        self._fields: tuple[str, ...] = listing.FIELDS
        self._parsed = ParsedAnswers()
        # By Slurm's own number of the record, as squeue prints it (JobID).
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
        return self._parsed.once("config", printed, printed.settings)

    async def rules(self) -> Cluster:
        """Return the cluster's rules and partitions."""
        conf = await self.config()
        # A fifth of the configuration's interval: partitions are opened and closed while the cluster runs.
        partitions = await self._visible_list("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        await self._check_inventory(
            await self._visible_list("nodes", nodes.COMMAND, self.intervals.settings), partitions
        )
        source = (conf, partitions)
        return self._parsed.once("rules", source, lambda: rules.cluster(conf, partitions.blocks(rules.PARTITION_KEY)))

    async def memory(self) -> memory.MemoryRules:
        conf = await self.config()
        printed = await self._visible_list("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        return self._parsed.once(
            "memory", (conf, printed), lambda: memory.memory_rules(conf, printed.blocks(rules.PARTITION_KEY))
        )

    async def nodes(self, fresh_seconds: float | None = None) -> tuple[nodes.SlurmNode, ...]:
        printed = await self._visible_list("nodes", nodes.COMMAND, fresh_seconds or self.intervals.nodes)
        await self._check_inventory(
            printed, await self._visible_list("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        )
        return self._parsed.once("nodes", printed, lambda: tuple(nodes.slurm_nodes(printed.blocks(nodes.KEY))))

    async def shards_per_card(self) -> int:
        """Return into how many shards a card of this cluster is cut (gres/shard); 0 where cards are not cut."""
        return shards_per_card(await self.nodes(self.intervals.settings))

    @property
    def listed_jobs(self) -> Iterable[Listed]:
        """The jobs of squeue's last list."""
        return self._records.values()

    async def jobs(self) -> tuple[Listed, ...]:
        """Return all jobs that squeue lists; jobs that have not changed are the same objects as before.

        1. Run squeue, or take its last answer while that is fresh.
        2. A list that was found complete before, or that the transport made itself, is returned as it is.
        3. Otherwise check it against the previous list and the controller's counts (`_verify_jobs`).
        4. If it is still incomplete, restore the previous records, so that the next list is compared with them.
        """
        shards = await self.shards_per_card()
        printed, before = await self._list(), (self._records, self._looked_at)  # step 1
        if printed is self._verified_list or printed.verified:  # step 2
            return self._jobs_in(printed, shards)
        jobs = self._jobs_in(printed, shards)
        try:
            jobs = await self._verify_jobs(jobs, before, shards)  # step 3
        except CockpitError as error:  # step 4
            self._records, self._looked_at = before
            self._parsed.forget("jobs")
            # Else the incomplete list would be returned as the last answer until it is stale.
            self._answers.replace_by_error(listing.command(self._fields), error)
            raise
        return jobs

    def _jobs_in(self, printed: Printed, shards: int) -> tuple[Listed, ...]:
        return self._parsed.once("jobs", (printed, shards), lambda: tuple(self._parse_listed(printed, shards)))

    async def _verify_jobs(
        self, jobs: tuple[Listed, ...], before: tuple[dict[str, Listed], Millis], shards: int
    ) -> tuple[Listed, ...]:
        """Return the list, or a second one when jobs may be missing. Raises `Garbled` when the second lacks some, too.

        `before`: the records of the previous list and its time. scontrol's list of live jobs decides what is missing.
        """
        records, looked_at = before
        question = listing.command(self._fields)
        # The time between two lists decides whether Slurm may have forgotten a job in between (MinJobAge).
        self._looked_at = self._now()
        look = ListComparison(self._records, records, (self._looked_at - looked_at) / 1000)
        # Not where nodes or partitions are hidden: the question of `live_jobs` crashes scontrol of 22.05 there
        # (`details`).
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
        # By identity: an answer from the cache is the same object, so each pair is compared once.
        pair = (nodes_list, partitions_list)
        if self._inventory is None or any(one is not other for one, other in zip(pair, self._inventory, strict=True)):
            if not (nodes_list.verified or partitions_list.verified):
                await check_inventory(self._answers, nodes_list.stdout, partitions_list.stdout, self.intervals.settings)
            self._inventory = pair

    async def jobs_now(self, job: JobId) -> tuple[Listed, ...]:
        """Run squeue now for one job, with its whole array or heterogeneous job: changes are decided by it.

        Empty when the controller does not know the job.
        """
        shards = await self.shards_per_card()
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
        # Card models and shards change with slurm.conf only, so an old list of nodes is good enough.
        gres = {each.node.name: each.gres for each in await self.nodes(self.intervals.settings)}
        if self.hidden:
            return NOTHING_KNOWN
        printed = await self._detailed_jobs()
        return self._parsed.once("details", printed, lambda: placements.details(self._allocations(printed), gres))

    async def spreads(self) -> Spreads:
        """Return the tasks of waiting jobs whose tasks are spread over nodes; empty where `details` is empty."""
        if self.hidden:
            return NO_SPREADS
        printed = await self._detailed_jobs()
        return self._parsed.once("spreads", printed, lambda: spreads.spreads(printed.stdout, self._names()))

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
        # Also read again when squeue's list is another one: it may name jobs that the details should have.
        if self._detailed is not None and self._detailed[0] is printed and self._detailed[1] is self._verified_list:
            return printed
        asked_at = self._answers.given_at(placements.DETAIL) or self._now()
        check = cross_checks.of_details(self._records.values(), asked_at)
        printed = await self._optional.completed(what, placements.DETAIL, printed, check)
        self._detailed = printed, self._verified_list
        return printed

    async def reservations(self) -> tuple[Reservation, ...]:
        """Return the reservations that this user may see."""
        what = "scontrol show reservation"
        printed = await self._optional.ask(what, reservations.COMMAND, self.intervals.reservations)
        names = reservations.names(
            await self._optional.beside(printed, reservations.NAMES, self.intervals.reservations)
        )
        check = cross_checks.of_reservations(self._records.values(), names)
        printed = await self._optional.completed(what, reservations.COMMAND, printed, check)
        records = printed.blocks(reservations.KEY)
        return self._parsed.once("reservations", printed, lambda: tuple(reservations.reservations(records, UTC)))

    async def licences(self) -> tuple[licences.Licence, ...]:
        what = "scontrol show licenses"
        printed = await self._optional.ask(what, licences.COMMAND, self.intervals.nodes)
        check = cross_checks.of_licences(await self.config())
        printed = await self._optional.completed(what, licences.COMMAND, printed, check)
        return self._parsed.once("licences", printed, lambda: tuple(licences.licences(printed.blocks(licences.KEY))))

    async def shares(self) -> tuple[accounts.ShareLine, ...]:
        printed = await self.of_accounting("sshare", accounts.SHARES, self.intervals.shares)
        return self._parsed.once("shares", printed, lambda: tuple(accounts.share_lines(printed.rows())))

    async def accounts(self) -> Accounts:
        """Return the tree of accounts, of as much as the database and the controller report."""
        shares = await self.of_accounting("sshare", accounts.SHARES, self.intervals.shares)
        qos = await self.of_accounting("sacctmgr list qos", accounts.QOS, self.intervals.settings)
        assoc = await self.of_accounting("sacctmgr list assoc", accounts.ASSOCIATIONS, self.intervals.settings)
        name = rules.cluster_name(await self.config())
        # Each list is compared with the other, in both directions. Answers of slurmrestd have records and no text, and
        # are complete.
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
            # sshare asks the controller, which knows shares even while the database is away.
            if not assoc.stdout and not assoc.records:
                return accounts.of_shares(shares.rows())
            return accounts.accounts(assoc.rows(), qos.rows(), shares.rows(), name)

        return self._parsed.once("accounts", (shares, qos, assoc), made)

    async def priorities(self) -> Mapping[int, tuple[Breakdown, ...]]:
        """Return the priorities that sprio prints, by Slurm's id of the job or array; the highest partition first."""
        weights = (await self.rules()).priority.weights
        printed = await self._optional.ask("sprio", priorities.COMMAND, self.intervals.priorities)
        check = cross_checks.of_priorities(self._records.values())
        if check.lacks(printed.stdout) and not self._same_moment(priorities.COMMAND):
            # Jobs of an older list may have started since, and those of a newer one were not there yet: both lists are
            # read again.
            await self._answers.ask_now(listing.command(self._fields))
            await self.jobs()
            printed = await self._optional.ask("sprio", priorities.COMMAND, 0.0)
            check = cross_checks.of_priorities(self._records.values())
        printed = await self._optional.completed("sprio", priorities.COMMAND, printed, check)

        def made() -> dict[int, tuple[Breakdown, ...]]:
            by_job: dict[int, tuple[Breakdown, ...]] = {}
            for each in priorities.breakdowns(printed.stdout, weights):
                # A job that waits in several partitions has a line for each.
                by_job[each.job] = tuple(sorted((*by_job.get(each.job, ()), each), key=lambda one: -one.total))
            return by_job

        return self._parsed.once("priorities", (printed, weights), made)

    def _same_moment(self, argv: tuple[str, ...]) -> bool:
        """Return whether the last answer of the command and the last list of jobs are of about the same time."""
        listed_at, given_at = self.listed_at, self._answers.given_at(argv)
        return listed_at is not None and given_at is not None and abs(listed_at - given_at) < SAME_MOMENT_MS

    async def admin_level(self, user: str) -> str:
        """Return the user's AdminLevel, `None`, `Operator` or `Administrator`; empty when it is unknown."""
        argv = ("sacctmgr", "-n", "-P", "--readonly", "list", "user", f"name={user}", "format=adminlevel")
        printed = await self.of_accounting("sacctmgr list user", argv, self.intervals.settings)
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
        # The first of an array's records: all tasks share their patterns.
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
        # Other kinds keep no associations: accounting_storage/none, and filetxt of old versions.
        return "" if kind is None or "slurmdbd" in kind else NO_ACCOUNTING.format(kind=kind)

    async def version(self) -> tuple[int, ...]:
        """Return the controller's version, such as `(22, 5, 8)`."""
        return tuple(int(each) for each in rules.version(await self.config()).split(".") if each.isdigit())

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
        # Only this word hides which flags are meant (`normalization_flags`), and finding out needs sprio.
        if PriorityFlag.NO_NORMAL_ALL not in rules.priority.flags:
            return everything
        from cockpit.backends.slurm.normalization_flags import normalization_flags, with_priority_flags

        printed = await self.priorities()
        flags = self._parsed.once("flags", (rules, printed), lambda: normalization_flags(everything, printed))
        return everything._replace(
            rules=self._parsed.once("flagged", (rules, flags), lambda: with_priority_flags(rules, flags))
        )

    async def _list(self, job: str = "") -> Printed:
        """Run squeue without the fields that this version of it does not know. `job`: only for that job, and now."""
        while True:
            try:
                if job:
                    return await self._answers.ask_now(listing.command(self._fields, job))
                return await self._answers.ask(listing.command(self._fields), self.intervals.jobs)
            except Failed as failed:
                # squeue names one unknown field at a time, so the loop takes one turn for each.
                unknown = listing.unknown_field(failed.printed.stderr)
                if unknown is None or unknown not in self._fields:
                    raise
                self._fields = tuple(name for name in self._fields if name != unknown)

    def _parse_listed(self, printed: Printed, shards: int) -> Iterator[Listed]:
        """Yield the records of squeue's list; a record that has not changed is the object of the previous list."""
        known, self._records = self._records, {}
        for fields in _jobs(printed, self._fields):
            # The records are split by a random separator, so a wrong number here means that the answer is damaged.
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

    async def of_accounting(
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


def _jobs(printed: Printed, fields: Sequence[str]) -> Iterable[Record]:
    """Return the records of squeue's answer."""
    return printed.records if printed.records is not None else listing.read(printed.stdout, printed.separator, fields)
