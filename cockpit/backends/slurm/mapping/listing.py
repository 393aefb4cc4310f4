"""The squeue command that lists all jobs, and the parser of its output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.backends.slurm.mapping.records import Record, split_records

SEPARATOR = "{separator}"
"""Placeholder in a command for the field separator; `wire.answers` puts a random word in, which no job can contain."""

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
"""Field names of squeue's --Format since Slurm 20.11, `Exclusive` since 26.05. `Reading` leaves unknown ones out."""


UNKNOWN_JOB = "Invalid job id"
"""squeue's message for a job that the controller has forgotten."""


def command(fields: Sequence[str] = FIELDS, job: str = "") -> tuple[str, ...]:
    """Return the command that lists every job of the cluster, with no field cut to a width.

    Pending tasks of an array are one record, as Slurm stores them. `job`: list only the job of this Slurm id, with the
    rest of its array or heterogeneous job.
    """
    # squeue(1), --Format: text behind the colon that is no size is printed after the field. Without a size the field is
    # not cut.
    wanted = ",".join(f"{name}:{SEPARATOR}" for name in fields)
    which = (f"--jobs={job}",) if job else ()
    # --all: also partitions that are hidden. --states=all: also jobs that have just ended, which squeue leaves out by
    # default.
    return ("squeue", "--all", "--states=all", *which, f"--Format={wanted}")


OUTPUT_FIELDS = ("STDOUT", "STDERR", "WorkDir")


def output_command(job: str) -> tuple[str, ...]:
    """Return the command that asks for the output files of one job."""
    return command(OUTPUT_FIELDS, job)


def unknown_field(complaint: str) -> str | None:
    """Return the field that this version of squeue does not know, out of its message on stderr; None if it is other."""
    _, mark, rest = complaint.partition("Invalid job format specification: ")
    return rest.split()[0] if mark and rest.split() else None


def read(printed: str, separator: str, fields: Sequence[str] = FIELDS) -> Iterator[Record]:
    """Yield one record for each job, by field name; the line with the field names is left out."""
    records = split_records(printed, separator, len(fields))
    first = next(records, None)
    # The header has names of its own (ARRAY_JOB_ID), so it is recognised by the first field. Recordings have no header.
    if first is not None and first[0].replace("_", "").upper() != fields[0].upper():
        yield dict(zip(fields, first, strict=True))
    for record in records:
        yield dict(zip(fields, record, strict=True))
