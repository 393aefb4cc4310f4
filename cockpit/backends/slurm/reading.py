"""Reads a cluster through its commands, each as often as the manners allow, and knows what was read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from typing import Any, NamedTuple, TypeVar

from cockpit.backends.slurm.mapping import (
    accounting,
    accounts,
    cross_checks,
    licences,
    listing,
    nodes,
    placements,
    priorities,
    reservations,
    rules,
    running,
    spreads,
)
from cockpit.backends.slurm.mapping.cluster import Everything, shards_per_card
from cockpit.backends.slurm.mapping.cross_checks import CrossCheck
from cockpit.backends.slurm.mapping.ids import slurm_id
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.records import settings
from cockpit.backends.slurm.mapping.spreads import NO_SPREADS, Spreads
from cockpit.backends.slurm.mapping.unattributed_gpus import NOTHING_KNOWN, Known
from cockpit.backends.slurm.vouching import Look, check_inventory, completed, is_doubtful, left_out, live_jobs
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
"""Jobs that waited for their turn so long before priorities were printed still did, as a rule."""
_ACCOUNTING = "accounting"
"""What stands for the database among the troubles."""


class PollIntervals(NamedTuple):
    """How old an answer may be before it is asked for again, in seconds; and how long one is waited for."""

    jobs: float = 10.0
    nodes: float = 20.0
    details: float = 30.0
    priorities: float = 20.0
    shares: float = 60.0
    reservations: float = 60.0
    accounting: float = 60.0
    settings: float = 300.0
    patience: float = 30.0
    """For one call. sacctmgr without its database would go on for minutes."""

    @classmethod
    def every(cls, seconds: float, patience: float) -> PollIntervals:
        """Jobs so often at most, and everything else as much less often as by default."""
        usual = cls()
        factor = seconds / usual.jobs
        jobs, nodes, *others = (factor * each for each in usual[:-1])
        return cls(jobs, nodes, *others)._replace(patience=patience)


class Reading:
    """What is known of one cluster. Every method raises `Unreachable` where nobody answers."""

    def __init__(self, answers: Answers, now: Callable[[], Millis], intervals: PollIntervals | None = None) -> None:
        self._answers, self._now = answers, now
        self.intervals = intervals or PollIntervals()
        answers.patience = self.intervals.patience
        self._fields: tuple[str, ...] = listing.FIELDS
        self._past_fields: tuple[str, ...] = accounting.FIELDS_OF_ONE
        self._made: dict[str, tuple[object, Any]] = {}
        self._records: dict[str, Listed] = {}
        self._looked_at = Millis(0)
        self._vouched: Printed | None = None
        """The last list of jobs of which nothing is missing."""
        self._absent: dict[str, set[str]] = {}
        """By list the names that it leaves out on purpose, though others name them."""
        self._inventory: tuple[Printed, Printed] | None = None
        """The last lists of nodes and of partitions that agree."""
        self.trouble: dict[str, str] = {}
        """What could not be read though the cluster answers, by what it is: a sentence each."""
        self.hidden: dict[str, str] = {}
        """What the cluster keeps from the asker, `nodes` or `partitions`: a sentence each."""

    async def config(self) -> str:
        return (await self._answers.ask(rules.CONFIG, self.intervals.settings)).stdout

    async def rules(self) -> Cluster:
        config = await self._answers.ask(rules.CONFIG, self.intervals.settings)
        partitions = await self._shown("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        await self._check_inventory(await self._shown("nodes", nodes.COMMAND, self.intervals.settings), partitions)
        return self._once("rules", (config, partitions), lambda: rules.cluster(config.stdout, partitions.stdout))

    async def nodes(self, fresh_seconds: float | None = None) -> tuple[nodes.Seen, ...]:
        printed = await self._shown("nodes", nodes.COMMAND, fresh_seconds or self.intervals.nodes)
        await self._check_inventory(
            printed, await self._shown("partitions", rules.PARTITIONS, self.intervals.settings / 5)
        )
        return self._once("nodes", printed, lambda: tuple(nodes.seen(printed.stdout)))

    async def jobs(self) -> tuple[Listed, ...]:
        """All that squeue knows; those of which nothing has changed are the same objects as before."""
        shards = shards_per_card(await self.nodes(self.intervals.settings))
        printed, before = await self._list(), (self._records, self._looked_at)
        if printed is self._vouched or printed.verified:
            return self._jobs_in(printed, shards)
        found = self._jobs_in(printed, shards)
        try:
            found = await self._vouch(found, before, shards)
        except CockpitError as error:
            self._records, self._looked_at = before
            self._made.pop("jobs", None)
            self._answers.disbelieve(listing.command(self._fields), error)
            raise
        return found

    def _jobs_in(self, printed: Printed, shards: int) -> tuple[Listed, ...]:
        return self._once("jobs", (printed, shards), lambda: tuple(self._listed(printed, shards)))

    async def _vouch(
        self, found: tuple[Listed, ...], before: tuple[dict[str, Listed], Millis], shards: int
    ) -> tuple[Listed, ...]:
        """The list, or one that is asked for once more where it may lack something. Raises `Garbled` where it does."""
        records, looked_at = before
        question = listing.command(self._fields)
        self._looked_at = self._now()
        look = Look(self._records, records, (self._looked_at - looked_at) / 1000)
        if not self.hidden and await is_doubtful(self._answers, look, await self.config()):
            live = await live_jobs(self._answers)
            found = self._jobs_in(await self._answers.ask_now(question), shards)
            if lost := live - self._records.keys():
                raise left_out(lost)
        self._vouched = self._answers.last(question)
        return found

    async def _check_inventory(self, nodes_told: Printed, partitions_told: Printed) -> None:
        """Once for each pair of answers."""
        pair = (nodes_told, partitions_told)
        if self._inventory is None or any(one is not other for one, other in zip(pair, self._inventory, strict=True)):
            if not (nodes_told.verified or partitions_told.verified):
                await check_inventory(self._answers, nodes_told.stdout, partitions_told.stdout, self.intervals.settings)
            self._inventory = pair

    async def jobs_now(self, job: JobId) -> tuple[Listed, ...]:
        """The records of the job of this id, or of its whole array or heterogeneous job, asked for anew: acts decide by
        them. Nothing where the controller does not know it."""
        shards = shards_per_card(await self.nodes(self.intervals.settings))
        try:
            printed = await self._list(slurm_id(task_of(job)[0]))
        except Failed as failed:
            if listing.UNKNOWN_JOB in failed.printed.stderr:
                return ()
            raise
        records = listing.read(printed.stdout, printed.separator, self._fields)
        return tuple(Listed(fields, UTC, shards) for fields in records)

    @property
    def listed_at(self) -> Millis | None:
        """When jobs were last listed."""
        return self._answers.given_at(listing.command(self._fields))

    async def details(self) -> Known:
        """Nothing where nodes or partitions are hidden: the scontrol of 22.05 crashes there when it is asked."""
        gres = {each.node.name: each.gres for each in await self.nodes(self.intervals.settings)}
        if self.hidden:
            return NOTHING_KNOWN
        printed = await self._answers.ask(placements.DETAIL, self.intervals.details)
        return self._once("details", printed, lambda: placements.details(printed.stdout, gres))

    async def spreads(self) -> Spreads:
        """Tasks of waiting jobs; nothing where `details` says nothing."""
        if self.hidden:
            return NO_SPREADS
        printed = await self._answers.ask(placements.DETAIL, self.intervals.details)
        return self._once("spreads", printed, lambda: spreads.spreads(printed.stdout))

    async def reservations(self) -> tuple[Reservation, ...]:
        what = "scontrol show reservation"
        printed = await self._optional(what, reservations.COMMAND, self.intervals.reservations)
        check = cross_checks.of_reservations(self._records.values())
        printed = await self._completed(what, reservations.COMMAND, printed, check)
        return self._once("reservations", printed, lambda: tuple(reservations.reservations(printed.stdout, UTC)))

    async def licences(self) -> tuple[licences.Licence, ...]:
        what = "scontrol show licenses"
        printed = await self._optional(what, licences.COMMAND, self.intervals.nodes)
        check = cross_checks.of_licences(await self.config())
        printed = await self._completed(what, licences.COMMAND, printed, check)
        return self._once("licences", printed, lambda: tuple(licences.licences(printed.stdout)))

    async def shares(self) -> tuple[accounts.Shared, ...]:
        printed = await self._of_accounting("sshare", accounts.SHARES, self.intervals.shares)
        return self._once("shares", printed, lambda: tuple(accounts.shared(printed.stdout)))

    async def accounts(self) -> Accounts:
        shares = await self._of_accounting("sshare", accounts.SHARES, self.intervals.shares)
        qos = await self._of_accounting("sacctmgr list qos", accounts.QOS, self.intervals.settings)
        assoc = await self._of_accounting("sacctmgr list assoc", accounts.ASSOCIATIONS, self.intervals.settings)
        name = rules.cluster_name(await self.config())
        if assoc.stdout and shares.stdout:
            check = cross_checks.of_shares(assoc.stdout, name)
            shares = await self._completed("sshare", accounts.SHARES, shares, check)
            check = cross_checks.of_associations(shares.stdout, name)
            assoc = await self._completed("sacctmgr list assoc", accounts.ASSOCIATIONS, assoc, check)

        def made() -> Accounts:
            if not assoc.stdout:
                return accounts.of_shares(shares.stdout)
            return accounts.accounts(assoc.stdout, qos.stdout, shares.stdout, name)

        return self._once("accounts", (shares, qos, assoc), made)

    async def priorities(self) -> Mapping[int, tuple[Breakdown, ...]]:
        """What sprio prints, by Slurm's own id of the job or array, the best first."""
        weights = (await self.rules()).priority.weights
        printed = await self._optional("sprio", priorities.COMMAND, self.intervals.priorities)
        listed_at, given_at = self.listed_at, self._answers.given_at(priorities.COMMAND)
        if listed_at is not None and given_at is not None and listed_at > given_at - SAME_MOMENT_MS:
            check = cross_checks.of_priorities(self._records.values())
            printed = await self._completed("sprio", priorities.COMMAND, printed, check)

        def made() -> dict[int, tuple[Breakdown, ...]]:
            found: dict[int, tuple[Breakdown, ...]] = {}
            for each in priorities.breakdowns(printed.stdout, weights):
                found[each.job] = tuple(sorted((*found.get(each.job, ()), each), key=lambda one: -one.total))
            return found

        return self._once("priorities", (printed, weights), made)

    async def ended(self, since: str, until: str = "now", *, user: str = "") -> Sequence[accounting.Past]:
        """Out of accounting, in its order. Where it does not answer, what it answered last, else nothing; `trouble`
        says so, and `missing`."""
        argv = accounting.command(since, until, user=user)
        printed = await self._of_accounting("sacct", argv, self.intervals.accounting)
        if printed.code:
            return ()
        shards = shards_per_card(await self.nodes(self.intervals.settings))
        of = (printed, shards)
        return self._once(f"ended for {user}", of, lambda: self._ended(printed, accounting.FIELDS, shards))

    async def accounted(self, job: str) -> tuple[accounting.Past | None, tuple[StepRow, ...]]:
        """What accounting has of the job of Slurm's id: itself, once it has ended, and its steps. Raises `Unreachable`
        where accounting does not answer: nobody knows then whether there was such a job."""
        while True:
            argv = accounting.command_of_one(job, self._past_fields)
            try:
                printed = await self._answers.ask(argv, self.intervals.details, seconds=self.intervals.patience / 3)
            except Failed as failed:
                unknown = accounting.unknown_field(failed.printed.stderr)
                if unknown not in self._past_fields:
                    return None, ()
                self._past_fields = tuple(name for name in self._past_fields if name != unknown)
            else:
                shards = shards_per_card(await self.nodes(self.intervals.settings))
                past = self._ended(printed, self._past_fields, shards)
                steps = accounting.steps(printed.stdout, printed.separator, UTC, self._past_fields)
                return (past[-1] if past else None), tuple(steps)

    def _ended(self, printed: Printed, fields: Sequence[str], shards: int) -> tuple[accounting.Past, ...]:
        return tuple(accounting.ended(printed.stdout, printed.separator, UTC, fields, shards))

    async def admin_level(self, user: str) -> str:
        """`None`, `Operator` or `Administrator`; empty where nobody can say."""
        argv = ("sacctmgr", "-n", "-P", "--readonly", "list", "user", f"name={user}", "format=adminlevel")
        return (await self._of_accounting("sacctmgr list user", argv, self.intervals.settings)).stdout.strip()

    def forget(self, programs: Collection[str]) -> None:
        """Something was changed that these programs report: what was read of them is of before."""
        self._answers.forget(programs)

    async def output_files(self, job: str) -> dict[str, str]:
        """Where the job of Slurm's id writes: by stream, and its `folder`. Empty where Slurm has forgotten it."""
        try:
            printed = await self._answers.ask(listing.output_command(job), self.intervals.details)
        except Failed:
            return {}
        record = next(listing.read(printed.stdout, printed.separator, listing.OUTPUT_FIELDS), None)
        if record is None:
            return {}
        return {"stdout": record["STDOUT"], "stderr": record["STDERR"], "folder": record["WorkDir"]}

    async def host_of(self, node: NodeName) -> str:
        """What the node's machine calls itself. `localhost` is the one that runs Slurm's commands, too."""
        seen = next((each for each in await self.nodes(self.intervals.settings) if each.node.name == node), None)
        host = (seen.host if seen is not None else "") or node
        if host == "localhost":
            with suppress(CockpitError):
                host = (await self._answers.ask(("uname", "-n"), self.intervals.settings)).stdout.strip() or host
        return host

    async def lacks_accounting(self) -> str:
        """What cannot be known on a cluster without an accounting database; empty where there is one, or where nothing
        says that there is none (slurmrestd)."""
        kind = settings(await self.config()).get("AccountingStorageType")
        return "" if kind is None or "slurmdbd" in kind else NO_ACCOUNTING.format(kind=kind)

    async def version(self) -> tuple[int, ...]:
        """The controller's: `(22, 5, 8)`."""
        return tuple(int(each) for each in rules.version(await self.config()).split(".") if each.isdigit())

    async def script(self, job: str) -> str:
        """The batch script, where accounting keeps scripts and shows them to the asker; else empty."""
        try:
            printed = await self._answers.ask(("sacct", "--batch-script", "--jobs", job), self.intervals.settings)
        except CockpitError:
            return ""
        head, mark, script = printed.stdout.partition("#!")
        return mark + script if not head.startswith("NONE") else ""

    async def running_steps(self, number: int) -> tuple[StepRow, ...]:
        """What the controller itself says runs within the job."""
        try:
            printed = await self._answers.ask(("scontrol", "show", "step", str(number)), self.intervals.details)
        except CockpitError:
            return ()
        return tuple(running.steps(printed.stdout, UTC))

    async def comment(self, job: str) -> str:
        """Of the job of Slurm's id: as it is now, else as accounting remembers it."""
        live = ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%k")
        past = ("sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=Comment")
        try:
            return (await self._answers.ask_now(live)).stdout.strip()
        except Failed:
            return (await self._optional("sacct", past, 0.0)).stdout.strip()

    async def everything(self, *, closely: bool) -> Everything:
        """All that the embedded core needs; `closely`: also which cards of which node each job has."""
        found = Everything(
            at=self._now(),
            rules=await self.rules(),
            nodes=await self.nodes(),
            jobs=await self.jobs(),
            accounts=await self.accounts(),
            shares=await self.shares(),
            reservations=await self.reservations(),
            details=await self.details() if closely else NOTHING_KNOWN,
            spreads=await self.spreads() if closely else NO_SPREADS,
        )
        if PriorityFlag.NO_NORMAL_ALL not in found.rules.priority.flags:
            return found
        from cockpit.backends.slurm.normalised import flagged, flags_told

        printed = await self.priorities()
        flags = self._once("flags", (found.rules, printed), lambda: flags_told(found, printed))
        return found._replace(rules=self._once("flagged", (found.rules, flags), lambda: flagged(found.rules, flags)))

    async def _list(self, job: str = "") -> Printed:
        """Without the fields that this version of squeue does not know. `job`: only that one, asked for anew."""
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
        known, self._records = self._records, {}
        for fields in listing.read(printed.stdout, printed.separator, self._fields):
            if not fields["JobID"].isdigit():
                raise Garbled("squeue", f"{fields['JobID'][:20]!r} is no number of a job")
            listed = known.get(fields["JobID"])
            if listed is None or listed.fields != fields or listed.shards != shards:
                listed = Listed(fields, UTC, shards)
            self._records[fields["JobID"]] = listed
            yield listed

    async def _shown(self, what: str, argv: tuple[str, ...], fresh_seconds: float) -> Printed:
        """The list; an empty one where PrivateData keeps all of it from the asker, who still sees their jobs."""
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

    async def _of_accounting(self, what: str, argv: tuple[str, ...], fresh_seconds: float) -> Printed:
        """Nothing, and no call, where there is no database to be asked."""
        if lacking := await self.lacks_accounting():
            self.trouble[_ACCOUNTING] = lacking
            return Printed("", "", 1)
        return await self._optional(what, argv, fresh_seconds)

    def missing(self, *commands: str) -> str:
        """Why what these commands report is unknown; empty where they answered."""
        return " ".join(said for what, said in self.trouble.items() if what in (*commands, _ACCOUNTING))

    async def _optional(self, what: str, argv: tuple[str, ...], fresh_seconds: float) -> Printed:
        """The last answer while there is no other, with its trouble. Nothing where the cluster does without it, or its
        database is away: everything else goes on. Raises `Garbled` for a wrong answer where there was no other."""
        try:
            printed = await self._answers.ask(argv, fresh_seconds, seconds=self.intervals.patience / 3)
        except CockpitError as error:
            last = self._answers.last(argv)
            if last is None and isinstance(error, Garbled):
                raise
            older = " What is shown of it is older." if last is not None else ""
            self.trouble[what] = f"{what} tells nothing just now: {error}{older}"
            return last or Printed("", "", 1)
        self.trouble.pop(what, None)
        return printed

    async def _completed(self, what: str, argv: tuple[str, ...], printed: Printed, check: CrossCheck) -> Printed:
        """An optional answer once something else that was read vouches for it. Raises `Garbled`."""
        if printed.code or printed.verified or what in self.trouble:
            return printed
        return await completed(self._answers, argv, printed, check, self._absent.setdefault(what, set()))

    def _once(self, what: str, of: object, make: Callable[[], T]) -> T:
        """Made anew only where what it is made of is another."""
        known = self._made.get(what)
        if known is None or known[0] != of:
            known = self._made[what] = (of, make())
        made: T = known[1]
        return made
