"""The copy of what a fleet's host keeps: policies, bindings and members, and what of it belongs to a job.

A binding names its job by kind and name, and a policy selects jobs by them, so that either may be read before the job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from cockpit.backends.kubernetes.kube_queue import JobKey
from cockpit.backends.kubernetes.mapping.fleet_job import FleetJob, HeldPolicy
from cockpit.backends.kubernetes.mapping.pod_needs import matches
from cockpit.backends.kubernetes.objects.fleet import (
    BINDINGS,
    CLUSTERS,
    FLEET_KINDS,
    POLICIES,
    MemberCluster,
    PropagationPolicy,
    ResourceBinding,
    ResourceSelector,
)

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.backends.kubernetes.resources import Resource

_POLICY_NAME = "propagationpolicy.karmada.io/name"
"""End of the annotation with which a fleet notes the policy that it has applied to an object."""


class FleetHost:
    """The fleet whose host the cluster is."""

    def __init__(self, mark: Callable[[str], None], notify: Callable[[], None]) -> None:
        """`mark`: called with the uid of each job of which something has changed; `notify`: after each change."""
        self._mark, self._notify = mark, notify
        self.kinds: frozenset[Resource] = frozenset()
        """The kinds of a fleet that the cluster serves."""
        self.absent: Callable[[], Mapping[Resource, str]] = dict
        """Returns why kinds cannot be read, in the server's words."""
        self.members: dict[str, MemberCluster] = {}
        self.policies: dict[str, HeldPolicy] = {}
        """The policies by uid."""
        self._bindings: dict[JobKey, ResourceBinding] = {}
        self._jobs: dict[JobKey, str] = {}

    @property
    def is_host(self) -> bool:
        """Whether the cluster sends jobs to members instead of running them."""
        return {BINDINGS, CLUSTERS} <= self.kinds

    @property
    def silent_members(self) -> tuple[str, ...]:
        """A sentence about each member that the fleet does not reach."""
        every = ((name, each.ready) for name, each in sorted(self.members.items()))
        return tuple(
            f"The fleet does not reach {name}{f': {ready.message}' if ready is not None and ready.message else ''}"
            for name, ready in every
            if ready is None or not ready.is_true
        )

    def reader(self, resource: Resource) -> tuple[type, Callable[[Any, Any], None]]:
        """Return how a kind of `FLEET_KINDS` is read."""
        assert resource in FLEET_KINDS
        if resource == BINDINGS:
            return ResourceBinding, self.binding_changed
        if resource == CLUSTERS:
            return MemberCluster, self.member_changed
        return PropagationPolicy, partial(self.policy_changed, resource)

    def of(self, resource: Resource, meta: ObjectMeta) -> FleetJob | None:
        """Return what is kept of a job; None: the cluster is no host."""
        if not self.is_host:
            return None
        binding = self._bindings.get(_key(resource, meta))
        held = self._policy_of(resource, meta)
        unread = self.absent()
        missing = (*((BINDINGS,) if binding is None else ()), *(POLICIES if held is None else ()))
        hidden = next((f"{each.shown} cannot be read: {unread[each]}" for each in missing if each in unread), "")
        return FleetJob(resource.kind, held, binding, self.members, hidden)

    def selecting(self, resource: Resource, meta: ObjectMeta) -> HeldPolicy | None:
        """Return the policy that the fleet would apply to an object (PropagationSpec.Priority).

        The highest priority wins; then a policy of the namespace, then a selector by name, by label, by kind; then the
        name of the policy.
        """
        found = [
            ((-(held.policy.spec.priority or 0), not held.resource.namespaced, -how, held.policy.metadata.name), held)
            for held in self.policies.values()
            if (
                how := max(
                    (_selects(each, held, resource, meta) for each in held.policy.spec.resource_selectors), default=0
                )
            )
        ]
        return min(found, key=lambda pair: pair[0])[1] if found else None

    def note_job(self, resource: Resource, meta: ObjectMeta, *, present: bool) -> None:
        """Note that there is this job, or no longer is."""
        key = _key(resource, meta)
        if present:
            self._jobs[key] = meta.uid
        elif self._jobs.get(key) == meta.uid:
            del self._jobs[key]

    def find(self, uid: str) -> PropagationPolicy | None:
        """Return the policy with this uid."""
        held = self.policies.get(uid)
        return held.policy if held is not None else None

    def binding_changed(self, old: ResourceBinding | None, new: ResourceBinding | None) -> None:
        for each, is_there in ((old, False), (new, True)):
            if each is None:
                continue
            about = each.spec.resource
            key = JobKey(about.group, about.kind, about.namespace or each.metadata.namespace, about.name)
            if is_there:
                self._bindings[key] = each
            else:
                self._bindings.pop(key, None)
            if (uid := self._jobs.get(key)) is not None:
                self._mark(uid)
        self._notify()

    def policy_changed(self, resource: Resource, old: PropagationPolicy | None, new: PropagationPolicy | None) -> None:
        if old is not None:
            self.policies.pop(old.metadata.uid, None)
        if new is not None:
            self.policies[new.metadata.uid] = HeldPolicy(resource, new)
        # Policies change seldom, and a new one may take jobs from another.
        self._mark_all()

    def member_changed(self, old: MemberCluster | None, new: MemberCluster | None) -> None:
        if old is not None:
            self.members.pop(old.metadata.name, None)
        if new is not None:
            self.members[new.metadata.name] = new
        if old is None or new is None or (old.spec, old.status) != (new.spec, new.status):
            self._mark_all()

    def _mark_all(self) -> None:
        for uid in self._jobs.values():
            self._mark(uid)
        self._notify()

    def _policy_of(self, resource: Resource, meta: ObjectMeta) -> HeldPolicy | None:
        """Return the policy that the fleet has noted at the object, or else the one that it would apply."""
        for key, name in (meta.annotations or {}).items():
            if key.endswith(_POLICY_NAME):
                named = (each for each in self.policies.values() if each.policy.metadata.name == name)
                return next((each for each in named if each.policy.metadata.namespace in {"", meta.namespace}), None)
        return self.selecting(resource, meta)


def _key(resource: Resource, meta: ObjectMeta) -> JobKey:
    return JobKey(resource.group, resource.kind, meta.namespace, meta.name)


def _selects(selector: ResourceSelector, held: HeldPolicy, resource: Resource, meta: ObjectMeta) -> int:
    """Return how precisely a selector selects an object: 3 by name, 2 by labels, 1 by its kind; 0: not at all."""
    inside = selector.namespace or held.policy.metadata.namespace or meta.namespace
    if (selector.api_version, selector.kind, inside) != (resource.api_version, resource.kind, meta.namespace):
        return 0
    if selector.name:
        return 3 if selector.name == meta.name else 0
    if selector.label_selector is not None:
        return 2 if matches(selector.label_selector, meta.labels or {}) else 0
    return 1
