"""What `squeue` is asked for every job, and how it answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.backends.slurm.mapping.records import separated

SEPARATOR = "{separator}"
"""Stands in a command for a word that nobody who names a job can know; `wire` puts it in."""

FIELDS = (
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "HetJobID",
    "HetJobOffset",
    "Partition",
    "Name",
    "UserName",
    "UserID",
    "GroupID",
    "Account",
    "QOS",
    "State",
    "Reason",
    "PriorityLong",
    "TimeLimit",
    "NumCPUs",
    "NumNodes",
    "tres-alloc",
    "tres-per-node",
    "tres-per-job",
    "tres-per-task",
    "Licenses",
    "StartTime",
    "EndTime",
    "SubmitTime",
    "EligibleTime",
    "AccrueTime",
    "NodeList",
    "Nice",
    "Dependency",
    "Reservation",
    "Feature",
    "ReqNodes",
    "OverSubscribe",
    "Exclusive",
    "exit_code",
    "RestartCnt",
    "WorkDir",
    "Command",
    "STDOUT",
    "Comment",
)
"""By the names that 20.11 and later take for -O, `Exclusive` from 26.05 on. A version that lacks one is asked without
it."""


UNKNOWN_JOB = "Invalid job id"
"""What squeue says of a job that the controller has forgotten."""


def command(fields: Sequence[str] = FIELDS, job: str = "") -> tuple[str, ...]:
    """Every job of the cluster, pending array tasks folded as Slurm keeps them; nothing cut to a width. `job`: only
    that one by Slurm's id, with the rest of its array or heterogeneous job."""
    wanted = ",".join(f"{name}:{SEPARATOR}" for name in fields)
    which = (f"--jobs={job}",) if job else ()
    return ("squeue", "--all", "--states=all", *which, f"--Format={wanted}")


OUTPUT_FIELDS = ("STDOUT", "STDERR", "WorkDir")


def output_command(job: str) -> tuple[str, ...]:
    """Where one job's output goes."""
    return command(OUTPUT_FIELDS, job)


def unknown_field(complaint: str) -> str | None:
    """The field that this version of squeue does not know, out of what it says on stderr."""
    _, found, rest = complaint.partition("Invalid job format specification: ")
    return rest.split()[0] if found and rest.split() else None


def read(printed: str, separator: str, fields: Sequence[str] = FIELDS) -> Iterator[dict[str, str]]:
    """One record a job, by field; without the first line where that only names the fields."""
    records = separated(printed, separator, len(fields))
    first = next(records, None)
    if first is not None and first[0].replace("_", "").upper() != fields[0].upper():
        yield dict(zip(fields, first, strict=True))
    for record in records:
        yield dict(zip(fields, record, strict=True))
