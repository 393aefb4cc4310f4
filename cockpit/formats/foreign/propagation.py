"""Reads and writes the PropagationPolicy of a job on a fleet: how it waits, and what happens when a placement fails.

Sources: ACK One's `policy.one.alibabacloud.com/v1alpha1`, and `policy.karmada.io/v1alpha1`, which has no gang
(`customSchedulingType`) and no `suspension.scheduling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from cockpit.model.spec import Failover

if TYPE_CHECKING:
    from cockpit.formats.foreign.draft import Draft
    from cockpit.model.spec import JobSpec

_KIND: Final = "PropagationPolicy"
_DIVIDED: Final = "Divided"
_GANG: Final = "Gang"
AT_ONCE: Final = "Immediately"
KARMADA_AT_ONCE: Final = "Directly"
"""The word of Karmada 1.15 and later for `Immediately`."""
ACK_POLICY: Final = "policy.one.alibabacloud.com/v1alpha1"
KARMADA_POLICY: Final = "policy.karmada.io/v1alpha1"
_OF_NO_CONCERN: Final = frozenset({"resourceSelectors", "propagateDeps"})
"""Fields that mean nothing here: the job that the policy is about is in the same file."""


def is_policy(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict) and value.get("kind") == _KIND


def take_policy(value: Mapping[str, Any], draft: Draft) -> None:
    """Read what the policy says about the job beside it."""
    spec = {name: each for name, each in dict(value.get("spec") or {}).items() if name not in _OF_NO_CONCERN}
    if (spec.pop("suspension", None) or {}).get("scheduling"):
        draft.values["suspension"] = {"scheduling": True}
    _take_failover(dict((spec.pop("failover", None) or {}).get("application") or {}), draft)
    _take_placement(dict(spec.pop("placement", None) or {}), draft)
    for name in spec:
        draft.lacks(f"{_KIND} spec.{name}")


def _take_failover(application: dict[str, Any], draft: Draft) -> None:
    """Read how long a failure is tolerated."""
    conditions = dict(application.pop("decisionConditions", None) or {})
    if (seconds := conditions.pop("tolerationSeconds", None)) is not None:
        draft.values["failover"] = {
            "toleration_seconds": draft.whole(
                seconds, f"{_KIND} spec.failover.application.decisionConditions.tolerationSeconds"
            )
        }
    # The only way here: a placement that is given up is removed at once.
    if application.get("purgeMode") == AT_ONCE:
        del application["purgeMode"]
    for name in (*application, *conditions):
        draft.lacks(f"{_KIND} spec.failover.application…{name}")


def _take_placement(placement: dict[str, Any], draft: Draft) -> None:
    """Read how replicas are divided; note what has no counterpart."""
    how = dict(placement.pop("replicaScheduling", None) or {})
    if how.pop("replicaSchedulingType", "") == _DIVIDED:
        draft.lacks(
            f"replicaSchedulingType: {_DIVIDED}", "a PyTorchJob lies in one cluster: replicas of two do not meet"
        )
    for each in (placement, how):
        if each.get("customSchedulingType") == _GANG:  # as all jobs are here
            del each["customSchedulingType"]
    for name in (*placement, *how):
        draft.lacks(f"{_KIND} spec.placement…{name}")


def policy_of(spec: JobSpec) -> dict[str, Any] | None:
    """Return the policy for a job; None: the job has none of its fields."""
    body: dict[str, Any] = {}
    if spec.suspension.scheduling:
        body["suspension"] = {"scheduling": True}
    # A policy with defaults alone would say nothing.
    if spec.failover != Failover():
        conditions = {"tolerationSeconds": spec.failover.toleration_seconds}
        body["failover"] = {"application": {"decisionConditions": conditions, "purgeMode": AT_ONCE}}
    if spec.divide_over_clusters:
        body["placement"] = {"replicaScheduling": {"replicaSchedulingType": _DIVIDED, "customSchedulingType": _GANG}}
    if not body:
        return None
    selectors = [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": spec.name}]
    return {
        "apiVersion": ACK_POLICY,
        "kind": _KIND,
        "metadata": {"name": spec.name},
        "spec": {**body, "resourceSelectors": selectors},
    }


def submission_policy(spec: JobSpec, job: Mapping[str, Any], *, karmada: bool = False) -> dict[str, Any]:
    """Return the policy with which a job is submitted to a fleet's host. `job`: the job's manifest.

    Each job names one cluster, unless it may be divided: without a bound Karmada sends what it can count no replicas
    of to every cluster. Of Karmada's dialect a job that waits for a dequeue is bound at once, and not sent.
    """
    metadata = job["metadata"]
    division = {"replicaDivisionPreference": "Aggregated"} if karmada else {"customSchedulingType": _GANG}
    placement: dict[str, Any] = {"replicaScheduling": {"replicaSchedulingType": _DIVIDED, **division}}
    if not spec.divide_over_clusters:
        placement["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    application = {
        "decisionConditions": {"tolerationSeconds": spec.failover.toleration_seconds},
        "purgeMode": KARMADA_AT_ONCE if karmada else AT_ONCE,
    }
    suspended = {"suspension": {"dispatching" if karmada else "scheduling": True}} if spec.suspension.scheduling else {}
    return {
        "apiVersion": KARMADA_POLICY if karmada else ACK_POLICY,
        "kind": _KIND,
        "metadata": {key: metadata[key] for key in ("name", "namespace") if key in metadata},
        "spec": {
            **suspended,
            "propagateDeps": True,
            "failover": {"application": application},
            "placement": placement,
            "resourceSelectors": [
                {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"]},
            ],
        },
    }
