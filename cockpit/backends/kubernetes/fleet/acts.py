"""Submits jobs to a fleet's host with their policies, and lifts what a policy suspends.

1. The policy is created before the job: else a policy of all jobs could claim the job first, and keep it.
2. Then the job is. From then on the policy belongs to the job, so that the server deletes it with the job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.backends.kubernetes.editing import job_name
from cockpit.backends.kubernetes.mapping.fleet_placement import fleet_reason
from cockpit.backends.kubernetes.objects.fleet import BINDINGS, KARMADA_POLICIES, POLICIES
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.writing import DRY_RUN, STRICT, refuse
from cockpit.errors import RequestRefused
from cockpit.formats.foreign.propagation import AT_ONCE, submission_policy
from cockpit.model.fleet_placement import FleetStep
from cockpit.model.refusal import RefusalKind
from cockpit.model.spec import Failover

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cockpit.backends.kubernetes.fleet_host import FleetHost
    from cockpit.backends.kubernetes.mapping.fleet_job import HeldPolicy
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.writing import ObjectWriter
    from cockpit.model.ids import JobId
    from cockpit.model.spec import JobSpec

_SUSPENDED = (FleetStep.SUSPENDED, FleetStep.NOT_SENT)


class FleetActs:
    """Carries out the changes of one user on a fleet's host. Its methods raise `RequestRefused`."""

    def __init__(self, writer: ObjectWriter, host: FleetHost, find: Callable[[str], KubeJob | None]) -> None:
        """`find`: returns the job of a uid as it is now."""
        self._writer, self._host, self._find = writer, host, find

    @property
    def is_host(self) -> bool:
        return self._host.is_host

    async def policy(self, spec: JobSpec, resource: Resource, job: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the policy with which a job is submitted, as the server would accept it.

        None: the user may make none, and another one selects the job. `job`: the job's manifest.
        """
        kind = next((each for each in POLICIES if each in self._host.kinds), None)
        if kind is None:
            refuse(f"This fleet serves no PropagationPolicies ({KARMADA_POLICIES.shown}).", RefusalKind.UNAVAILABLE)
        karmada = kind == KARMADA_POLICIES
        if karmada and spec.divide_over_clusters:
            message = (
                "divide_over_clusters: Karmada's policies have no customSchedulingType: Gang, so that one part of the "
                "job could run without the others. Remove the field."
            )
            refuse(message, RefusalKind.INVALID)
        manifest = submission_policy(spec, job, karmada=karmada)
        try:
            return await self._accepted(kind, manifest)
        except RequestRefused as refused:
            is_plain = not spec.suspension.scheduling and spec.failover == Failover()
            if refused.refusal.kind is RefusalKind.DENIED and is_plain and self._is_selected(resource, job):
                return None
            raise

    async def create(self, manifest: dict[str, Any]) -> tuple[Resource, ObjectMeta]:
        """Create a policy; return its kind and metadata."""
        kind = next(each for each in POLICIES if each.api_version == manifest["apiVersion"])
        return kind, await self._writer.create(kind, manifest)

    async def give(self, policy: tuple[Resource, ObjectMeta], resource: Resource, job: ObjectMeta) -> None:
        """Have the server delete a policy with its job."""
        kind, meta = policy
        owner = {"apiVersion": resource.api_version, "kind": resource.kind, "name": job.name, "uid": job.uid}
        patch = {"metadata": {"ownerReferences": [owner]}}
        await self._writer.patch(kind, meta.namespace, meta.name, patch)

    async def remove_policy(self, job: KubeJob) -> None:
        """Remove the policy that belongs to a job which was deleted. The server does so too, later."""
        held = job.fleet.held if job.fleet is not None else None
        if held is None or all(each.uid != job.meta.uid for each in held.policy.metadata.owner_references or ()):
            return
        try:
            await self._writer.delete(held.resource, held.policy.metadata)
        except RequestRefused as refused:
            if refused.refusal.kind is not RefusalKind.NOT_FOUND:
                raise

    def is_suspended(self, job: KubeJob) -> bool:
        """Return whether a policy keeps a job from being bound or sent until that is lifted."""
        reason = fleet_reason(job, job.fleet) if job.fleet is not None else None
        return reason is not None and reason.step in _SUSPENDED

    async def dequeue(self, number: JobId, job: KubeJob) -> None:
        """Lift the suspension of a job's scheduling or dispatching, at its binding and at its own policy."""
        assert job.fleet is not None
        held, binding, lifted = job.fleet.held, job.fleet.binding, {"spec": {"suspension": None}}
        own = held is not None and _is_only_for(held, job)
        if held is not None and own:
            meta = held.policy.metadata
            written = await self._writer.patch(held.resource, meta.namespace, meta.name, lifted)
            await self._writer.until_seen(written)
        if binding is not None and binding.spec.suspension is not None:
            meta = binding.metadata
            await self._writer.patch(BINDINGS, meta.namespace, meta.name, lifted)
        elif not own:
            message = f"The fleet has not made the binding of job {job_name(number, job)} yet; try again."
            refuse(message, RefusalKind.CONFLICT)
        await self._writer.until(lambda: (now := self._find(job.meta.uid)) is None or not self.is_suspended(now))

    def _is_selected(self, resource: Resource, job: Mapping[str, Any]) -> bool:
        """Return whether a policy of others selects a job that is not created yet. `job`: its manifest."""
        return self._host.selecting(resource, msgspec.convert(job["metadata"], ObjectMeta)) is not None

    async def _accepted(self, kind: Resource, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return the policy in the form that the server would accept: Karmada has changed the words of purgeMode."""
        try:
            await self._writer.create(kind, manifest, (STRICT, DRY_RUN))
        except RequestRefused as refused:
            if kind != KARMADA_POLICIES or "purgeMode" not in refused.refusal.message:
                raise
            manifest["spec"]["failover"]["application"]["purgeMode"] = AT_ONCE
            await self._writer.create(kind, manifest, (STRICT, DRY_RUN))
        return manifest


def _is_only_for(held: HeldPolicy, job: KubeJob) -> bool:
    """Return whether a policy of the namespace selects this job alone."""
    selectors = held.policy.spec.resource_selectors
    return held.resource.namespaced and len(selectors) == 1 and selectors[0].name == job.meta.name
