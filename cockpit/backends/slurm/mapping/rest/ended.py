"""Converts jobs of slurmrestd's accounting to the records of sacct, each job followed by its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.rest.figures import Json, at, count, exit_code, figure, moment, raw, tres, word


def _job_id(job: Json) -> str:
    array = count(at(job, "array", "job_id"))
    task = figure(at(job, "array", "task_id")) or f"[{word(at(job, 'array', 'task'))}]"
    # 0 means no array and no heterogeneous job; task 0 is a real task, hence the text.
    leader = count(at(job, "het", "job_id"))
    if leader:
        return f"{leader}+{count(at(job, 'het', 'job_offset'))}"
    return f"{array}_{task}" if array else figure(job.get("job_id"))


def _cpu(of: object) -> str:
    """Return seconds and microseconds as `3.017` seconds."""
    return f"{count(at(of, 'seconds'))}.{count(at(of, 'microseconds')) // 1000:03}"


def _peak(step: Json) -> str:
    """Return the most memory of any task, in KiB."""
    maxima = at(step, "tres", "requested", "max")
    sizes = [count(each.get("count")) for each in maxima if word(each.get("type")) == "mem"] if maxima else []
    # slurmrestd has bytes here; sacct prints KiB.
    return f"{max(sizes) // 1024}K" if sizes else ""


_FIELDS: Final[dict[str, Callable[[Any], str]]] = {
    "JobID": _job_id,
    "JobIDRaw": lambda job: figure(job.get("job_id")),
    "JobName": lambda job: raw(job.get("name")),
    "User": lambda job: raw(job.get("user")) or word(at(job, "association", "user")),
    "Account": lambda job: raw(job.get("account")),
    "QOS": lambda job: raw(job.get("qos")),
    "Partition": lambda job: raw(job.get("partition")),
    "State": lambda job: word(at(job, "state", "current")).split(",")[0],
    "ExitCode": lambda job: _exit(job.get("exit_code")),
    "Priority": lambda job: figure(job.get("priority")),
    "Submit": lambda job: moment(at(job, "time", "submission")),
    "Eligible": lambda job: moment(at(job, "time", "eligible")),
    "Start": lambda job: moment(at(job, "time", "start")),
    "End": lambda job: moment(at(job, "time", "end")),
    "TimelimitRaw": lambda job: figure(at(job, "time", "limit")),
    "ElapsedRaw": lambda job: figure(at(job, "time", "elapsed")),
    "NNodes": lambda job: figure(job.get("allocation_nodes")),
    "AllocTRES": lambda job: tres(at(job, "tres", "allocated")),
    "ReqTRES": lambda job: tres(at(job, "tres", "requested")),
    "NodeList": lambda job: word(job.get("nodes")),
    "TotalCPU": lambda job: _cpu(at(job, "time", "total")),
    "WorkDir": lambda job: raw(job.get("working_directory")),
    "Comment": lambda job: raw(at(job, "comment", "job")),
    "SubmitLine": lambda job: raw(job.get("submit_line")),
    "StdOut": lambda job: raw(job.get("stdout")),
}
_OF_STEP: Final[dict[str, Callable[[Any], str]]] = {
    "JobName": lambda step: word(at(step, "step", "name")),
    "State": lambda step: word(step.get("state")).split(",")[0],
    "ExitCode": lambda step: _exit(step.get("exit_code")),
    "Start": lambda step: moment(at(step, "time", "start")),
    "End": lambda step: moment(at(step, "time", "end")),
    "ElapsedRaw": lambda step: figure(at(step, "time", "elapsed")),
    "NNodes": lambda step: figure(at(step, "nodes", "count")),
    "NTasks": lambda step: figure(at(step, "tasks", "count")),
    "AllocTRES": lambda step: tres(at(step, "tres", "allocated")),
    "NodeList": lambda step: word(at(step, "nodes", "range")),
    "TotalCPU": lambda step: _cpu(at(step, "time", "total")),
    "MaxRSS": _peak,
}


def _exit(value: object) -> str:
    code = exit_code(value)
    return code if ":" in code else f"{code or 0}:0"


def records_of_ended(jobs: Iterable[Json], fields: Sequence[str], user: str = "") -> tuple[Record, ...]:
    """Return the jobs and their steps with these fields of sacct; `user`: only that user's jobs."""
    return tuple(record for job in jobs if not user or _FIELDS["User"](job) == user for record in _records(job, fields))


def _records(job: Json, fields: Sequence[str]) -> Iterator[Record]:
    """Yield the records of a job and of its steps, with the fields that sacct would print."""
    yield {name: _FIELDS.get(name, _nothing)(job) for name in fields}
    steps = job.get("steps")
    for step in steps if isinstance(steps, list) else ():
        name = word(at(step, "step", "id")).rpartition(".")[2]
        own = {field: _OF_STEP.get(field, _nothing)(step) for field in fields} if isinstance(step, Mapping) else {}
        # A step's id has Slurm's number of the task; records have the array's id before the dot, as sacct prints it.
        own["JobID"] = f"{_job_id(job)}.{name}"
        # Fields of sacct that a step does not have, such as WorkDir, are empty.
        yield {field: own.get(field, "") for field in fields}


def _nothing(_: Json) -> str:
    return ""
