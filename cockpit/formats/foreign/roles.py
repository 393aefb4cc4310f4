"""The roles of a distributed Kubernetes job: how many replicas of which pod. Source: kubeflow.org/v1 ReplicaSpec and
RunPolicy, which all kinds of the training operator share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_template, take_priority_class, take_queue

PER_POOL = ("specs", "command", "image")
"""The fields that the replicas of each role may have of their own as worker pools."""


class Role(NamedTuple):
    """The replicas of one role, with what their pod says about the job."""

    name: str
    replicas: int
    values: dict[str, Any]
    restart_policy: str


def read_roles(
    replicas: Mapping[str, Any],
    known: Iterable[str],
    at: str,
    draft: Draft,
    given: Collection[str] = (),
    *,
    restarts: str = "Never",
) -> list[Role]:
    """Return the roles in the order of `known`; others are noted. `given`: names of variables that the mode sets.
    `restarts`: the restart policy that the kind's operator sets where a role has none."""
    left = dict(replicas)
    roles = [
        _role(name, dict(left.pop(name) or {}), f"{at}.{name}", draft, given, restarts)
        for name in known
        if name in left
    ]
    for name in left:
        draft.lacks(f"{at}.{name}")
    return roles


def _role(name: str, replica: dict[str, Any], at: str, draft: Draft, given: Collection[str], restarts: str) -> Role:
    """Return a role with its values; notes on them are added to `draft`."""
    # A draft of its own: only `merge` decides what of it becomes the job's.
    own = Draft()
    count = own.whole(replica.pop("replicas", None), f"{at}.replicas", missing=1)
    policy = str(replica.pop("restartPolicy", "") or restarts)
    read_template(replica.pop("template", None) or {}, at, own, given)
    for field in replica:
        own.lacks(f"{at}.{field}")
    # Roles mostly have equal templates, whose notes would all be there several times.
    draft.notes += [note for note in own.notes if note not in draft.notes]
    draft.errors += [error for error in own.errors if error not in draft.errors]
    return Role(name, count, own.values, policy)


def merge(roles: Sequence[Role], at: str, draft: Draft, besides: Collection[str] = ()) -> None:
    """Give the job what the first role has; note where another role differs, but for `besides`."""
    if not roles:
        return
    first, *others = roles
    # The job's own metadata may have given labels already; the first role adds its own.
    labels = {**draft.values.get("labels", {}), **first.values.get("labels", {})}
    draft.values |= {name: value for name, value in first.values.items() if name not in besides}
    if labels:
        draft.values["labels"] = labels
    for other in others:
        names = sorted({*other.values, *first.values} - {*besides})
        differing = [name for name in names if other.values.get(name) != first.values.get(name)]
        if differing:
            draft.lacks(f"{at}.{other.name}", f"all replicas get the {first.name.lower()}'s {', '.join(differing)}")


def pools_of(roles: Sequence[Role | None], draft: Draft) -> None:
    """Make worker pools of the roles, by position; None leaves one out."""
    first = next(role for role in roles if role is not None)
    pools: list[dict[str, Any]] = []
    for role in roles:
        if role is None:
            pools.append({})
            continue
        pool: dict[str, Any] = {"replicas": role.replicas}
        if specs := role.values.get("specs"):
            pool["spec"] = specs[0]
        pool |= {
            name: role.values[name]
            for name in ("command", "image")
            if name in role.values and role.values[name] != first.values.get(name)
        }
        pools.append(pool)
    # Pools have their sizes themselves.
    draft.values.pop("nodes", None)
    draft.values.pop("specs", None)
    draft.values |= {"mode": "worker-pools", "worker_pools": pools}


def read_policy(policy: Mapping[str, Any], roles: Sequence[Role], draft: Draft) -> None:
    """Read the deadlines, retries and waiting times of the job."""
    left, at = dict(policy), "spec.runPolicy"
    if (seconds := left.pop("activeDeadlineSeconds", None)) is not None:
        draft.values["time_limit"] = draft.whole(seconds, f"{at}.activeDeadlineSeconds")
    if left.pop("suspend", False):
        draft.values["hold"] = True
    limit = left.pop("backoffLimit", None)
    retries = draft.whole(limit, f"{at}.backoffLimit")
    if limit is not None and "elastic" in draft.values:
        draft.values["elastic"]["backoff_limit"] = retries
    elif retries:
        draft.values["restart"] = {"max_restarts": retries}
    take_restart_policies(roles, at, draft)
    _scheduling(dict(left.pop("schedulingPolicy", None) or {}), f"{at}.schedulingPolicy", roles, draft)
    for name, value in left.items():
        if value is not None:
            draft.lacks(f"{at}.{name}")


def take_restart_policies(roles: Sequence[Role], at: str, draft: Draft) -> None:
    """Read the restart policies: an elastic job replaces single workers, any other job restarts as a whole."""
    for role in roles:
        if role.restart_policy == "Never":
            continue
        if "elastic" in draft.values and role.name == "Worker":
            draft.values["elastic"]["worker_restart_policy"] = role.restart_policy
        # OnFailure together with a backoffLimit is what `restart` says, so nothing is lost.
        elif role.restart_policy != "OnFailure" or "restart" not in draft.values:
            path = f"{at.rpartition('.')[0]}…{role.name}.restartPolicy={role.restart_policy}"
            draft.lacks(path, "no container restarts by itself; `restart` says how often the whole job does")


def _scheduling(policy: dict[str, Any], at: str, roles: Sequence[Role], draft: Draft) -> None:
    take_queue(policy.pop("queue", None), f"{at}.queue", draft)
    take_priority_class(policy.pop("priorityClass", None), f"{at}.priorityClass", draft)
    least, count = policy.pop("minAvailable", None), sum(role.replicas for role in roles)
    if least is not None and draft.whole(least, f"{at}.minAvailable") != count:
        draft.lacks(f"{at}.minAvailable={least}", f"all {count} replicas start together or not at all")
    for name in policy:
        draft.lacks(f"{at}.{name}")
