"""Reads ended jobs out of sacct, with the resources that they held and used, and the steps that still run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.backends.slurm.mapping import states, values
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.listing import SEPARATOR
from cockpit.backends.slurm.mapping.outputs import of_step
from cockpit.backends.slurm.mapping.records import Record, blocks, split_records, words
from cockpit.backends.slurm.mapping.values import hosts
from cockpit.model.job import ENDED, Job
from cockpit.model.jobdetail import StepRow
from cockpit.model.node import first_cards
from cockpit.model.usage import ReplicaTotals

FIELDS = (
    "JobID",
    "JobIDRaw",
    "JobName",
    "User",
    "UID",
    "GID",
    "Account",
    "QOS",
    "Partition",
    "State",
    "ExitCode",
    "Priority",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "TimelimitRaw",
    "ElapsedRaw",
    "NNodes",
    "AllocTRES",
    "ReqTRES",
    "NodeList",
    "TotalCPU",
    "MaxRSS",
    "TRESUsageInAve",
    "WorkDir",
    "Comment",
    "SubmitLine",
    "StdOut",
)
"""The fields of a list. Slurm 20.11 does not know SubmitLine, 22.05 not StdOut."""
ENDED_STATES = "BF,CA,CD,DL,F,NF,OOM,PR,TO"
"""sacct's short names of the states in which a job has ended."""
UNKNOWN_USER = "Invalid user id"
"""sacct's error for a user whom its machine does not know."""
_IDS = "--format=JobID,End"
_RELATIVE = re.compile(r"now-([0-9]+)(hours|days)")
_UNIT_SECONDS = {"hours": 3600, "days": 86_400}
_MOVES_SECONDS = 60
FIELDS_OF_ONE = (*FIELDS, "NTasks", "StdErr")
"""The fields that are requested for a single job. Slurm 22.05 does not know the last one."""


class Past(NamedTuple):
    """An ended job out of accounting."""

    job: Job
    used: ReplicaTotals
    fields: Mapping[str, str]


def command(
    since: str, until: str = "now", *, user: str = "", during: bool = False, fields: Sequence[str] = FIELDS
) -> tuple[str, ...]:
    """Return the command that lists the jobs that ended between two times, each with its steps.

    `during`: list all jobs that were there between them, whenever they ended. Without named states sacct does just
    that, but leaves out jobs that never were eligible: held ones, and those with a dependency or a later begin.
    `since`, `until`: sacct's times, `now-1days` or an ISO time.
    """
    whose = ("--user", user) if user else ("--allusers",)
    which = () if during else ("--state", ENDED_STATES)
    return _sacct(fields, *whose, *which, "--starttime", since, "--endtime", until)


def ids_command(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command that lists the ids and ends of the jobs that a command of `command` lists, without steps."""
    # --allocations leaves out the steps, and --parsable2 the separator at the end of a line, so that the lines of both
    # commands can be compared by id.
    which = (word for word in argv if not word.startswith(("sacct", "--parsable", "--delimiter=", "--format=")))
    return ("sacct", "--noheader", "--parsable2", "--allocations", *which, _IDS)


def ids_command_of_one(job: str) -> tuple[str, ...]:
    """Return the command that lists the ids and ends of a job and its steps."""
    return ("sacct", "--noheader", "--parsable2", "--jobs", job, _IDS)


def command_of_one(job: str, fields: Sequence[str]) -> tuple[str, ...]:
    """Return the command that asks for one job by Slurm's id, of any time."""
    return _sacct(fields, "--jobs", job)


def _sacct(fields: Sequence[str], *which: str) -> tuple[str, ...]:
    return ("sacct", "--parsable", f"--delimiter={SEPARATOR}", *which, f"--format={','.join(fields)}")


def compared_since(since: str, now: int) -> str:
    """Return the end, as sacct prints it in UTC, from which on jobs are expected in every list of `command`.

    A time such as `now-8hours` moves while commands run: jobs of its first minute are in one list and not in the next.
    """
    # An ISO time does not move.
    relative = _RELATIVE.fullmatch(since)
    if relative is None:
        return since
    begin = now // 1000 - int(relative[1]) * _UNIT_SECONDS[relative[2]] + _MOVES_SECONDS
    return _moment_text(begin)


def _moment_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def ids_of_ended(jobs: Iterable[Listed], begin: str) -> Iterator[str]:
    """Yield sacct's ids of jobs in squeue's list that ended at `begin` or later."""
    for each in jobs:
        # Both are ISO times in UTC, so that comparing the texts compares the times.
        at = each.at("EndTime") if each.kind in ENDED else None
        if at is None or _moment_text(at / 1000) < begin:
            continue
        if each.component is not None:
            yield f"{each.component[0]}+{each.component[1]}"
        # sacct lists tasks that were cancelled together as one record, `12_[4-9]`, whose id is not that of a job.
        elif not each.tasks:
            yield values.slurm_id(each.id)


def unknown_field(complaint: str) -> str | None:
    """Return the field that this version of sacct does not know, out of its message on stderr."""
    _, marker, rest = complaint.partition('Invalid field requested: "')
    return rest.partition('"')[0] if marker else None


def ended_jobs(records: Iterable[Record], zone: tzinfo | None, shards_per_card: int = 0) -> Iterator[Past]:
    """Yield the ended jobs in sacct's order; a job's use is taken from its steps, which follow it."""
    current: Past | None = None
    for record in records:
        # sacct prints a job's line before those of its steps, whose ids have a dot
        if "." in record["JobID"]:
            current = current._replace(used=_more(current.used, record)) if current is not None else None
            continue
        if current is not None:
            yield current
        # None for a state that is not an end: sacct lists a requeued job's present run beside its ended ones.
        job = _job(record, zone, shards_per_card)
        current = Past(job, ReplicaTotals(cpu_ms=_cpu_ms(record["TotalCPU"])), record) if job is not None else None
    if current is not None:
        yield current


def with_amounts(job: Job) -> Job:
    """Return the job with as many cards as it had on each node. Their numbers are made up: accounting has only sums."""
    if job.attempt is None or not job.spec.specs[0].card_milli:
        return job
    # AllocTRES has no card numbers, so the first ones are taken; only the amount is used, for GPU-hours.
    cards = first_cards(job.spec.specs[0].card_milli)
    placement = tuple(replace(part, slices=cards) for part in job.attempt.placement)
    return replace(job, attempt=replace(job.attempt, placement=placement))


def of_one(
    records: Iterable[Record], job: str, zone: tzinfo | None, shards_per_card: int = 0
) -> tuple[Past | None, tuple[StepRow, ...]]:
    """Return the record of the job with this id of Slurm (None until it has ended), and its steps.

    sacct prints a whole array or heterogeneous job when it is asked for its number. Of a requeued job the last run
    counts; an array's own number means its first task.
    """
    runs: list[list[Record]] = []
    for record in records:
        if "." not in record["JobID"]:
            runs.append([record])
        elif runs:
            runs[-1].append(record)
    if not runs:
        return None, ()
    # A requeued job may have one record for each run, the last run last.
    whole, *steps = _run_of(job, runs)
    past = next(ended_jobs((whole, *steps), zone, shards_per_card), None)
    return past, tuple(_step(step, zone) for step in steps)


def _run_of(job: str, runs: Sequence[list[Record]]) -> list[Record]:
    """Return the job's own records; the number of an array is also that of one of its tasks, mostly the last."""
    # The task, then the array's first task, then the number that Slurm gave to a single task (JobIDRaw).
    named = [run for run in runs if run[0]["JobID"] == job]
    numbered = [run for run in runs if run[0]["JobIDRaw"] == job]
    tasks = [run for run in runs if run[0]["JobID"].startswith(f"{job}_")]
    return (named[-1:] or tasks[:1] or numbered[-1:] or runs[-1:])[0]


def _step(record: Mapping[str, str], zone: tzinfo | None) -> StepRow:
    """Return the step of a record of sacct."""
    state = states.word(record["State"])
    ended_at = values.moment(record["End"], zone)
    how = states.exit_of(state, record["ExitCode"]) if ended_at is not None else None
    return StepRow(
        name=record["JobID"].rpartition(".")[2],
        command=record["JobName"],
        state=state.lower(),
        nodes=values.number(record["NNodes"]) or 1,
        tasks=values.number(record.get("NTasks", "")),
        started_at=values.moment(record["Start"], zone),
        ended_at=ended_at,
        exit_code=how.shell_code if how is not None else None,
        cpu_ms=_cpu_ms(record["TotalCPU"]),
        peak_memory_mib=values.memory_mib(record["MaxRSS"]) if record["MaxRSS"] else None,
        output=of_step(record.get("SubmitLine", "")),
    )


def read(printed: str, separator: str, fields: Sequence[str] = FIELDS) -> Iterator[Record]:
    """Yield the records that sacct printed, without the line that names the fields."""
    for record in split_records(printed, separator, len(fields)):
        # The first field of a job begins with a number, so that only the heading has the name of the field there.
        if record[0] != fields[0]:
            yield dict(zip(fields, record, strict=True))


def _job(fields: dict[str, str], zone: tzinfo | None, shards_per_card: int) -> Job | None:
    """Return the ended job of a record; None if it has not ended or its state is unknown."""
    state = states.word(fields["State"])
    if not states.is_known(state) or states.job_state(state, placed=True) not in ENDED:
        return None
    array, _, task = fields["JobID"].partition("_")
    minutes = values.number(fields["TimelimitRaw"])
    # In squeue's names, so that `Listed` reads it as it reads a live job.
    known = {
        "JobID": fields["JobIDRaw"],
        "Partition": fields["Partition"],
        "Name": fields["JobName"],
        "UserName": fields["User"],
        "UserID": fields["UID"],
        "GroupID": fields["GID"],
        "Account": fields["Account"],
        "QOS": fields["QOS"],
        "State": fields["State"],
        # An ended job waits for nothing; `Listed` requires the field.
        "Reason": "",
        # TimelimitRaw is minutes, or `UNLIMITED` or `Partition_Limit`.
        "TimeLimit": f"{minutes // 60}:{minutes % 60:02}:00" if minutes is not None else "UNLIMITED",
        # Counts only for a record whose resources have no `cpu` (tres-alloc).
        "NumCPUs": "1",
        "NumNodes": fields["NNodes"],
        # A job that never started has no allocation, only a request.
        "tres-alloc": fields["AllocTRES"] or fields["ReqTRES"],
        "StartTime": fields["Start"],
        "EndTime": fields["End"],
        "SubmitTime": fields["Submit"],
        "EligibleTime": fields["Eligible"],
        "NodeList": "" if fields["NodeList"] == "None assigned" else fields["NodeList"],
        "exit_code": fields["ExitCode"],
        "WorkDir": fields["WorkDir"],
        "Comment": fields["Comment"],
    }
    # Not for pending tasks that were cancelled together: their id is `12_[4-9]`.
    own = {"ArrayJobID": array, "ArrayTaskID": task} if task.isdigit() else {}
    leader, plus, offset = fields["JobID"].partition("+")
    own |= {"HetJobID": leader, "HetJobOffset": offset} if plus else {}
    return Listed(known | own, zone, shards_per_card).job


def _more(used: ReplicaTotals, fields: dict[str, str]) -> ReplicaTotals:
    """Return the use with that of one more step: the most memory of any step, and the CPU time if the job's own line
    has none."""
    peak = values.memory_mib(fields["MaxRSS"]) if fields["MaxRSS"] else None
    # Only where AccountingStorageTRES counts gres/gpuutil, for which gres.conf needs AutoDetect.
    cards = values.tres(fields["TRESUsageInAve"]).get("gres/gpuutil")
    return ReplicaTotals(
        cpu_ms=used.cpu_ms or _cpu_ms(fields["TotalCPU"]),
        peak_memory_mib=max((each for each in (peak, used.peak_memory_mib) if each is not None), default=None),
        card_percent=int(cards) if cards is not None else used.card_percent,
    )


def _cpu_ms(printed: str) -> int | None:
    """Return the CPU time of `1-02:03:04` or `03:04.567`; None where it was not counted."""
    whole, _, part = printed.partition(".")
    whole_seconds = values.seconds(whole)
    # sacct prints 00:00:00 for a job whose CPU time was not gathered, too.
    if not whole_seconds and not part.strip("0"):
        return None
    return 1000 * (whole_seconds or 0) + int((part + "000")[:3] or 0)


def beside(accounted: Sequence[StepRow], running: Sequence[StepRow]) -> tuple[StepRow, ...]:
    """Return the records of accounting, with running jobs that its database does not have."""
    known = {step.name for step in accounted}
    return (*accounted, *(step for step in running if step.name not in known))


def steps(printed: str, zone: tzinfo | None) -> Iterator[StepRow]:
    """Return the running steps; nothing where none runs and scontrol prints a sentence."""
    for block in blocks(printed, "StepId"):
        record = words(block)
        yield StepRow(
            name=record["StepId"].rpartition(".")[2].lower(),
            command=record.get("Name", ""),
            state=states.word(record.get("State", "")).lower(),
            nodes=max(1, len(hosts(values.text(record.get("NodeList", ""))))),
            tasks=values.number(record.get("Tasks", "")),
            started_at=values.moment(record.get("StartTime", ""), zone),
            ended_at=None,
        )
