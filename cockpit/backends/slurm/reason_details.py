"""Finds what Slurm's reason codes leave out: the limit that is reached, and the nodes that are not available.

Slurm names a limit by a code alone (`QOSMaxGRESPerUser`, `AssocGrpCpuLimit`). Its holder, bound and use are found among
the limits of sacctmgr that bind the job; where the code may mean several, the fullest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cockpit.backends.slurm.mapping.cluster import ClusterLists
from cockpit.backends.slurm.mapping.hostlist import hosts
from cockpit.model.ids import NodeName
from cockpit.model.node import NodeState
from cockpit.model.reasons import LimitReached, Reason, SchedulerReason
from cockpit.sched.rules.holders import amounts_held
from cockpit.sched.rules.limits import JOBS, LimitScope
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.rules.tres import ONE, asked

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.sched.snapshot import Snapshot

UNAVAILABLE = ("ReqNodeNotAvail", "Nodes required for job", "NodeDown")
"""Beginnings of the codes of jobs whose nodes are not available."""
_CODE = re.compile(
    r"(?P<whose>Assoc|QOS|)(?P<scope>Grp|Max|Min)(?P<what>Jobs?|Cpu|CPU|Memory|Mem|Node|GRES|License|Billing)"
    r"(?:Per(?P<per>Job|User|Node|Account))?(?:Limit|NotSatisfied)?"
)
_RESOURCE = {"cpu": "cpu", "mem": "mem", "memory": "mem", "node": "node", "gres": "gres/", "license": "license/"}
_RESOURCES = _RESOURCE | {"billing": "billing", "job": JOBS, "jobs": JOBS}


def limit_of_code(snapshot: Snapshot, job: Job, code: str) -> LimitReached | None:
    """Return the limit that the code means; None: the code means no limit, or sacctmgr has no such limit."""
    match = _CODE.fullmatch(code.replace("_", "").replace(" ", ""))
    if match is None:
        return None
    rules = Rulebook(snapshot.cluster, snapshot.accounts, snapshot.rules_version, snapshot.quota)
    spec = job.spec
    wants = asked(spec.specs[0], spec.nodes) | {JOBS: ONE}
    limits = [
        each
        for partition in job.partitions or ("",)
        for each in _limits_named(match, snapshot, rules, rules.scope(job, partition), wants)
    ]
    return max(limits, key=lambda each: (each.used + each.asked) / each.allowed if each.allowed else 1e9, default=None)


def _limits_named(
    code: re.Match[str], snapshot: Snapshot, rules: Rulebook, scope: LimitScope, wants: dict[str, int]
) -> Iterator[LimitReached]:
    for limit in scope.standing:
        if _is(code, limit.holder, limit.limit, limit.resource):
            yield LimitReached(
                limit.holder, limit.limit, limit.resource, limit.allowed / ONE, 0, wants.get(limit.resource, 0) / ONE
            )
    for bound in scope.running:
        if _is(code, bound.holder, bound.limit, bound.resource):
            used = sum(held for _, held in amounts_held(snapshot, rules, {bound.counter}))
            resource = "" if bound.resource == JOBS else bound.resource
            sizes = (bound.allowed / ONE, used / ONE, wants.get(bound.resource, 0) / ONE)
            yield LimitReached(bound.holder, bound.limit, resource, *sizes)


def _is(code: re.Match[str], holder: str, limit: str, resource: str) -> bool:
    """Return whether the code may mean this limit. Codes that name neither QOS nor association mean a QOS."""
    of_qos = holder.startswith("qos ")
    one = f"Per{code['per']}" if code["per"] else ""
    each = limit.removeprefix(code["scope"])
    return (
        of_qos == (code["whose"] != "Assoc")
        and limit.startswith(code["scope"])
        and (each.endswith(one) if one else True)
        and resource.startswith(_RESOURCES[code["what"].lower()])
    )


def unavailable_nodes(reason: Reason, job: Job, everything: ClusterLists) -> Iterator[tuple[NodeName, str]]:
    """Return the nodes that the code lists, else those that the job requests by name, else those of its partitions."""
    if not isinstance(reason, SchedulerReason) or not reason.code.replace("_", " ").startswith(UNAVAILABLE):
        return
    _, listed, names = reason.code.partition("UnavailableNodes:")
    of_partitions = {name for each in everything.rules.partitions if each.name in job.partitions for name in each.nodes}
    nodes: set[NodeName] = (
        set(hosts(names) if listed else ()) or set(map(NodeName, job.spec.node_names)) or of_partitions
    )
    for seen in everything.nodes:
        if seen.node.name in nodes and seen.node.state is not NodeState.UP:
            yield seen.node.name, seen.node.why_out
