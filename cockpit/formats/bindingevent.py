"""Reads and writes the event in which a fleet's scheduler reports a job's clusters, in the form that the job shows:

    Normal  ScheduleBindingSucceed  …  Binding has been scheduled successfully. Result: {cn-1:0,[{master 1} {worker 2}]}

Source: Alibaba Cloud's manual on scheduling PyTorchJobs over several clusters of a fleet. Karmada writes the
clusters in the braces with a comma between them (`targetClustersToString`); the `0` is its count of replicas, which a
job that is bound by its roles leaves at 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

REASON = "ScheduleBindingSucceed"
SENTENCE = "Binding has been scheduled successfully. Result: "
MASTER, WORKER = "master", "worker"

_CLUSTER = re.compile(r"(?P<name>[^\s:,{}\[\]]+):(?P<count>\d+)(?:,\[(?P<roles>[^\]]*)\])?")
_ROLE = re.compile(r"\{(?P<role>[^\s{}]+) (?P<count>\d+)\}")
_RESULT = re.compile(re.escape(SENTENCE) + r"\{(?P<clusters>.*)\}\s*$")


class BoundRoles(msgspec.Struct, frozen=True):
    """The replicas that one cluster got, by role."""

    cluster: str
    roles: tuple[tuple[str, int], ...]
    """Role and number of replicas, in their order."""


def bindings_of(members: Sequence[str]) -> tuple[BoundRoles, ...]:
    """Return how many replicas of each role are bound to each cluster.

    `members`: by rank, the cluster of each replica. Rank 0 is the master, as in a PyTorchJob.
    """
    bindings = []
    # In the order in which the ranks name them.
    for cluster in dict.fromkeys(members):
        master = 1 if members[0] == cluster else 0
        workers = members.count(cluster) - master
        bindings.append(BoundRoles(cluster, tuple(each for each in ((MASTER, master), (WORKER, workers)) if each[1])))
    return tuple(bindings)


def binding_message(bindings: Iterable[BoundRoles]) -> str:
    """Return the event's message."""
    return f"{SENTENCE}{{{', '.join(map(_binding_text, bindings))}}}"


def read_binding(text: str) -> tuple[BoundRoles, ...] | None:
    """Return the binding that a message reports, or a whole line with type, reason and age before the message; None
    where it is another event. A cluster without roles has no replicas."""
    match = _RESULT.search(text)
    if match is None:
        return None
    # Only separators may be left: anything else means that the text is of another form.
    rest = _CLUSTER.sub("", match["clusters"])
    clusters = tuple(_read(each) for each in _CLUSTER.finditer(match["clusters"]))
    return clusters if not rest.strip(" ,") else None


def _binding_text(bound: BoundRoles) -> str:
    roles = " ".join(f"{{{role} {count}}}" for role, count in bound.roles)
    return f"{bound.cluster}:0,[{roles}]"


def _read(match: re.Match[str]) -> BoundRoles:
    roles = _ROLE.finditer(match["roles"] or "")
    return BoundRoles(match["name"], tuple((each["role"], int(each["count"])) for each in roles))
