"""`sacct` as jobs that have ended, with what they held and used."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from cockpit.backends.slurm.mapping import states, values
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.mapping.listing import SEPARATOR
from cockpit.backends.slurm.mapping.records import separated
from cockpit.model.job import ENDED, Job
from cockpit.model.usage import Used

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
)


def command(since: str, until: str = "now", *, user: str = "", job: str = "") -> tuple[str, ...]:
    """Jobs and their steps. `since`, `until`: as sacct takes them, `now-1days` or an ISO time of the cluster's zone."""
    whose = ("--user", user) if user else ("--allusers",)
    which = ("--jobs", job) if job else (*whose, "--starttime", since, "--endtime", until)
    return ("sacct", "--parsable", "--noheader", f"--delimiter={SEPARATOR}", *which, f"--format={','.join(FIELDS)}")


def ended(printed: str, separator: str, zone: tzinfo | None) -> Iterator[tuple[Job, Used]]:
    """In sacct's order. A job's steps, which follow it, say what was used."""
    current: tuple[Job, Used] | None = None
    for record in separated(printed, separator, len(FIELDS)):
        fields = dict(zip(FIELDS, record, strict=True))
        if "." in fields["JobID"]:
            current = (current[0], _more(current[1], fields)) if current is not None else None
            continue
        if current is not None:
            yield current
        job = _job(fields, zone)
        current = (job, Used(cpu_ms=_cpu_ms(fields["TotalCPU"]))) if job is not None else None
    if current is not None:
        yield current


def _job(fields: dict[str, str], zone: tzinfo | None) -> Job | None:
    """None for one that has not ended, or that nobody knows the state of."""
    state = states.word(fields["State"])
    if not states.known(state) or states.job_state(state, placed=True) not in ENDED:
        return None
    array, _, task = fields["JobID"].partition("_")
    minutes = values.number(fields["TimelimitRaw"])
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
        "Reason": "",
        "TimeLimit": f"{minutes // 60}:{minutes % 60:02}:00" if minutes is not None else "UNLIMITED",
        "NumCPUs": "1",
        "NumNodes": fields["NNodes"],
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
    own = {"ArrayJobID": array, "ArrayTaskID": task} if task.isdigit() else {}
    return Listed(known | own, zone).job


def _more(used: Used, fields: dict[str, str]) -> Used:
    """The most memory of any step, and the CPU time of all where the job's own line says none."""
    peak = values.memory_mib(fields["MaxRSS"]) if fields["MaxRSS"] else None
    cards = values.tres(fields["TRESUsageInAve"]).get("gres/gpuutil")
    return Used(
        cpu_ms=used.cpu_ms or _cpu_ms(fields["TotalCPU"]),
        peak_memory_mib=max((each for each in (peak, used.peak_memory_mib) if each is not None), default=None),
        card_percent=int(cards) if cards is not None else used.card_percent,
    )


def _cpu_ms(printed: str) -> int | None:
    """`1-02:03:04`, `03:04.567`; nothing where nobody counted."""
    whole, _, part = printed.partition(".")
    found = values.seconds(whole)
    if not found and not part.strip("0"):
        return None
    return 1000 * (found or 0) + int((part + "000")[:3] or 0)
