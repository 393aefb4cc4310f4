"""Converts jobs of slurmrestd to the records of squeue, and to those of allocations (`mapping.placements`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from cockpit.backends.slurm.mapping.records import Record
from cockpit.backends.slurm.mapping.rest import figures
from cockpit.backends.slurm.mapping.rest.figures import NONE, Json, at, count, figure, moment, raw, word

_OVER_THE_STATE: Final = (
    "COMPLETING",
    "CONFIGURING",
    "RESIZING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "SPECIAL_EXIT",
    "STOPPED",
    "REVOKED",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "STAGE_OUT",
)
"""Flags that squeue prints instead of the state."""


def state(value: object) -> str:
    """Return one word for a state, or for a state and its flags."""
    words = [word(each) for each in value] if isinstance(value, list) else [word(value)]
    return next((each for each in words if each in _OVER_THE_STATE), words[0] if words else "")


def _some(name: str) -> Callable[[Json], str]:
    return lambda job: figure(job.get(name)) if count(job.get(name)) else NONE


def _tasks(job: Json) -> str:
    """Return the tasks that wait together, `4-9%2`, or the index of the one that started."""
    together = word(job.get("array_task_string"))
    return together or figure(job.get("array_task_id")) or NONE


def _limit(job: Json) -> str:
    return figures.minutes(job.get("time_limit")) or figures.ENDLESS


def _over_subscribe(job: Json) -> str:
    return "NO" if "none" in word(job.get("shared")).split(",") else "OK"


def _text(name: str) -> Callable[[Json], str]:
    return lambda job: raw(job.get(name))


def _number(name: str) -> Callable[[Json], str]:
    return lambda job: figure(job.get(name))


def _moment(name: str) -> Callable[[Json], str]:
    return lambda job: moment(job.get(name))


_FIELDS: Final[dict[str, Callable[[Json], str]]] = {
    "JobID": _number("job_id"),
    "ArrayJobID": _some("array_job_id"),
    "ArrayTaskID": _tasks,
    "HetJobID": _some("het_job_id"),
    "HetJobOffset": lambda job: figure(job.get("het_job_offset")) if count(job.get("het_job_id")) else NONE,
    "Partition": _text("partition"),
    "Name": _text("name"),
    "UserName": _text("user_name"),
    "UserID": _number("user_id"),
    "GroupID": _number("group_id"),
    "Account": _text("account"),
    "QOS": _text("qos"),
    "State": lambda job: state(job.get("job_state")),
    "Reason": _text("state_reason"),
    "PriorityLong": _number("priority"),
    "TimeLimit": _limit,
    "NumCPUs": _number("cpus"),
    "NumNodes": _number("node_count"),
    # A pending job has a request only.
    "tres-alloc": lambda job: word(job.get("tres_alloc_str")) or word(job.get("tres_req_str")),
    "StartTime": _moment("start_time"),
    "EndTime": _moment("end_time"),
    "SubmitTime": _moment("submit_time"),
    "EligibleTime": _moment("eligible_time"),
    "AccrueTime": _moment("accrue_time"),
    "NodeList": _text("nodes"),
    "Nice": lambda job: figure(job.get("nice")) or "0",
    "Dependency": _text("dependency"),
    "Reservation": _text("resv_name"),
    "Feature": _text("features"),
    "ReqNodes": _text("required_nodes"),
    "OverSubscribe": _over_subscribe,
    "exit_code": lambda job: figures.exit_code(job.get("exit_code")),
    "RestartCnt": _number("restart_cnt"),
    "WorkDir": _text("current_working_directory"),
    "Command": _text("command"),
    "STDOUT": _text("standard_output"),
    "STDERR": _text("standard_error"),
    "Comment": _text("comment"),
    "Licenses": _text("licenses"),
    "tres-per-node": _text("tres_per_node"),
}


def records_of_listed(jobs: Iterable[Json], fields: Sequence[str], wanted: str = "") -> tuple[Record, ...]:
    """Return the jobs with these fields of squeue; those that slurmrestd lacks are not set.

    `wanted`: the id of one job or task; empty: all jobs.
    """
    return tuple(
        {name: _FIELDS.get(name, _nothing)(job) for name in fields} for job in jobs if not wanted or _is(job, wanted)
    )


def _nothing(_: Json) -> str:
    return NONE


def _is(job: Json, wanted: str) -> bool:
    number, _, task = wanted.partition("_")
    mine = number in {figure(job.get("job_id")), figure(job.get("array_job_id"))}
    # The record of pending tasks has no task id and describes all of them.
    started = figure(job.get("array_task_id"))
    return mine and (not task or not started or started == task)


def allocations(jobs: Iterable[Json]) -> tuple[Record, ...]:
    """Return a record of each node on which a job holds resources."""
    return tuple(each for job in jobs for each in _allocations(job))


def _allocations(job: Json) -> Iterator[Record]:
    """Yield what a job has on each node, in the form of `scontrol -d show job`."""
    gres = job.get("gres_detail")
    array, task = count(job.get("array_job_id")), figure(job.get("array_task_id"))
    own = {"JobId": figure(job.get("job_id")), "ArrayJobId": "", "ArrayTaskId": ""}
    if array and task:
        own |= {"ArrayJobId": str(array), "ArrayTaskId": task}
    # gres_detail has one text for each node, in the order of the nodes.
    for place, (node, cpus, memory) in enumerate(_nodes(at(job, "job_resources"))):
        cards = word(gres[place]) if isinstance(gres, list) and place < len(gres) else ""
        yield {**own, "Nodes": node, "CPUs": str(max(cpus, 1)), "Mem": str(memory), "GRES": cards}


def _nodes(resources: object) -> Iterator[tuple[str, int, int]]:
    """Yield name, CPUs and memory of each node, out of the JSON of later versions or of v0.0.38."""
    for each in at(resources, "nodes", "allocation") or ():
        yield word(at(each, "name")), count(at(each, "cpus", "count")), count(at(each, "memory", "allocated"))
    # v0.0.38
    old = at(resources, "allocated_nodes")
    for each in old if isinstance(old, list) else ():
        yield word(at(each, "nodename")), _cores(at(each, "sockets")), count(at(each, "memory_allocated"))


def _cores(sockets: object) -> int:
    socket_list = sockets.values() if isinstance(sockets, Mapping) else ()
    return sum(len(at(each, "cores") or ()) for each in socket_list)
