"""Converts jobs of slurmrestd to the records of squeue, and to the output of `scontrol -d show job`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from cockpit.backends.slurm.mapping.rest import figures
from cockpit.backends.slurm.mapping.rest.figures import NONE, Record, at, count, figure, moment, raw, word

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
"""Flags that squeue prints in the place of the state itself."""


def state(value: object) -> str:
    """Return one word for a state, or for a state and its flags."""
    words = [word(each) for each in value] if isinstance(value, list) else [word(value)]
    return next((each for each in words if each in _OVER_THE_STATE), words[0] if words else "")


def _some(name: str) -> Callable[[Record], str]:
    return lambda job: figure(job.get(name)) if count(job.get(name)) else NONE


def _tasks(job: Record) -> str:
    """`4-9%2` of those that wait together; the one that started."""
    together = word(job.get("array_task_string"))
    return together or figure(job.get("array_task_id")) or NONE


def _limit(job: Record) -> str:
    return figures.minutes(job.get("time_limit")) or figures.ENDLESS


def _shared(job: Record) -> str:
    return "NO" if "none" in word(job.get("shared")).split(",") else "OK"


def _text(name: str) -> Callable[[Record], str]:
    return lambda job: raw(job.get(name))


def _number(name: str) -> Callable[[Record], str]:
    return lambda job: figure(job.get(name))


def _moment(name: str) -> Callable[[Record], str]:
    return lambda job: moment(job.get(name))


_FIELDS: Final[dict[str, Callable[[Record], str]]] = {
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
    "OverSubscribe": _shared,
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


def listed(jobs: Iterable[Record], fields: Sequence[str], wanted: str = "") -> tuple[dict[str, str], ...]:
    """Return the jobs with these fields of squeue; `wanted`: the id of one job or task. Fields that slurmrestd lacks
    are empty."""
    return tuple(
        {name: _FIELDS.get(name, _nothing)(job) for name in fields} for job in jobs if not wanted or _is(job, wanted)
    )


def _nothing(_: Record) -> str:
    return NONE


def _is(job: Record, wanted: str) -> bool:
    number, _, task = wanted.partition("_")
    mine = number in {figure(job.get("job_id")), figure(job.get("array_job_id"))}
    started = figure(job.get("array_task_id"))
    return mine and (not task or not started or started == task)


def placed(jobs: Iterable[Record]) -> str:
    """Return a block per job that holds resources, with one line per node."""
    return "".join(_block(job) for job in jobs)


def _block(job: Record) -> str:
    array = count(job.get("array_job_id"))
    task = figure(job.get("array_task_id"))
    head = f" ArrayJobId={array} ArrayTaskId={task}" if array and task else ""
    return "".join((f"JobId={figure(job.get('job_id'))}{head}\n", *_places(job)))


def _places(job: Record) -> Iterator[str]:
    gres = job.get("gres_detail")
    for place, (node, cpus, memory) in enumerate(_nodes(at(job, "job_resources"))):
        cards = word(gres[place]) if isinstance(gres, list) and place < len(gres) else ""
        yield f"     Nodes={node} CPU_IDs=0-{max(cpus, 1) - 1} Mem={memory} GRES={cards}\n"


def _nodes(resources: object) -> Iterator[tuple[str, int, int]]:
    """Name, CPUs and memory, as each version tells them."""
    for each in at(resources, "nodes", "allocation") or ():
        yield word(at(each, "name")), count(at(each, "cpus", "count")), count(at(each, "memory", "allocated"))
    old = at(resources, "allocated_nodes")
    for each in old if isinstance(old, list) else ():
        yield word(at(each, "nodename")), _cores(at(each, "sockets")), count(at(each, "memory_allocated"))


def _cores(sockets: object) -> int:
    socket_list = sockets.values() if isinstance(sockets, Mapping) else ()
    return sum(len(at(each, "cores") or ()) for each in socket_list)
