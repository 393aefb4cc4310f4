"""Elastic quotas of Koordinator and scheduler-plugins as a tree, and which of them a job counts to.

Koordinator's quotas name the one above them with a label, and their names are unique in the cluster; a quota of
scheduler-plugins stands alone and bounds its namespace. Sources: koordinator apis/extension/elastic_quota.go, and
GetQuotaName of its elastic quota plugin; scheduler-plugins pkg/capacityscheduling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
from cockpit.backends.kubernetes.mapping.quantities import tres_amounts
from cockpit.backends.kubernetes.mapping.quota_levels import QuotaLevel
from cockpit.backends.kubernetes.mapping.waiting import causes_alone
from cockpit.backends.kubernetes.objects.elastic_quota import ElasticQuota
from cockpit.backends.kubernetes.objects.pod import Quantities
from cockpit.backends.kubernetes.resources import KOORDINATOR_QUOTAS, Resource
from cockpit.model.pod_reasons import QueueWaits
from cockpit.model.quota import SEPARATOR, Amounts
from cockpit.model.view import QueueKind, QueueRow

PREFIX = "quota.scheduling.koordinator.sh"
NAME, PARENT = f"{PREFIX}/name", f"{PREFIX}/parent"
NAMESPACES, RUNTIME = f"{PREFIX}/namespaces", f"{PREFIX}/runtime"
ROOT, DEFAULT = "koordinator-root-quota", "koordinator-default-quota"
"""Quotas that Koordinator makes: above all others, and of the pods that belong to none of them."""
MANAGER = "elastic quota"
_REFUSALS = (
    re.compile(r"Insufficient (?:non-preemptible )?quotas?, quotaName(?:Topo)?: \[?(?P<queue>[^\s,\]]+)"),
    re.compile(r"ElasticQuota (?P<queue>\S+) is more than Max"),
    re.compile(r"total ElasticQuota used is more than min"),
)
"""What the schedulers write of a pod that a quota refuses."""
_LONGEST = 400


class QuotaPlace(NamedTuple):
    """A quota with its position in the tree."""

    path: str
    """The names from the top, such as `research/nlp`; of scheduler-plugins the namespace and the name."""
    depth: int
    quota: ElasticQuota
    namespaces: tuple[str, ...]
    """The namespaces whose pods count to it without naming it."""
    parent: str
    """The path of the quota above; empty: there is none."""


class ElasticQuotas:
    """The quotas of a cluster, parents before their children."""

    def __init__(self, quotas: Iterable[tuple[Resource, ElasticQuota]]) -> None:
        koordinator: dict[str, ElasticQuota] = {}
        alone: list[ElasticQuota] = []
        for resource, each in quotas:
            if resource == KOORDINATOR_QUOTAS:
                koordinator[each.metadata.name] = each
            else:
                alone.append(each)
        self.places: dict[str, QuotaPlace] = {each.path: each for each in _tree(koordinator)}
        self._by_name = {each.quota.metadata.name: each for each in self.places.values()}
        self._of_namespace = {name: each for each in self.places.values() for name in each.namespaces}
        for each in sorted(alone, key=lambda each: (each.metadata.namespace, each.metadata.name)):
            path = f"{each.metadata.namespace}{SEPARATOR}{each.metadata.name}"
            place = QuotaPlace(path, 0, each, (each.metadata.namespace,), "")
            self.places[path] = place
            self._of_namespace.setdefault(each.metadata.namespace, place)

    def of(self, job: KubeJob) -> QuotaPlace | None:
        """Return the quota that the job counts to; None: none bounds it.

        The first of: the quota that its pods name; in Koordinator one that is called as the namespace; the quota of the
        namespace; Koordinator's default quota.
        """
        namespace = job.meta.namespace
        named = self._by_name.get(job.named(NAME)) or self._by_name.get(namespace)
        return named or self._of_namespace.get(namespace) or self._by_name.get(DEFAULT)

    def levels(self, place: QuotaPlace) -> Iterator[QuotaLevel]:
        """Yield the quota and those above it, with what each allows."""
        while True:
            used = tres_amounts(place.quota.status.used or {})
            yield QuotaLevel(place.path, used, _bounds(place.quota))
            if not place.parent:
                return
            place = self.places[place.parent]

    def rows(self, jobs: Iterable[KubeJob]) -> Iterator[QueueRow]:
        """Yield a row for each quota, with the jobs of it and of those below it."""
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        for job in jobs:
            if not job.is_live or (place := self.of(job)) is None:
                continue
            counted = running if job.placed else waiting
            for level in self.levels(place):
                counted[level.path] = counted.get(level.path, 0) + 1
        for path, place in self.places.items():
            least = tres_amounts(place.quota.spec.min or {})
            yield QueueRow(
                kind=QueueKind.QUOTA,
                path=path,
                name=place.quota.metadata.name,
                level=place.depth,
                since=place.quota.metadata.created_at or None,
                waiting=waiting.get(path, 0),
                running=running.get(path, 0),
                used=tres_amounts(place.quota.status.used or {}),
                min=least,
                max=tres_amounts(place.quota.spec.max or {}),
                projects=place.namespaces,
                bounded=tuple(least),
                by_name=not place.namespaces,
                alone=not place.depth and place.quota.metadata.name != ROOT,
            )


def quota_reason(job: KubeJob) -> QueueWaits | None:
    """Return that an elastic quota refuses the job's pods, in the scheduler's words; None: none does."""
    for pod in job.waiting:
        message = pod.unscheduled.message if pod.unscheduled is not None else ""
        # Before three patterns for each of thousands of pods.
        if "uota" not in message:
            continue
        for pattern in _REFUSALS:
            if (match := pattern.search(message)) is not None:
                # A quota of scheduler-plugins is that of the pod's namespace.
                queue = match.groupdict().get("queue", pod.metadata.namespace)
                return QueueWaits(MANAGER, queue, "Quota", causes_alone(message[match.start() :])[:_LONGEST])
    return None


def _tree(quotas: Mapping[str, ElasticQuota]) -> Iterator[QuotaPlace]:
    """Yield Koordinator's quotas, each behind the one that its label names. One in a circle is at the top."""
    below: dict[str, list[str]] = {}
    for name in sorted(quotas):
        below.setdefault(_parent(quotas, name), []).append(name)
    stack = [("", 0, name) for name in reversed(below.get("", []))]
    while stack:
        parent, depth, name = stack.pop()
        path = f"{parent}{SEPARATOR}{name}" if parent else name
        yield QuotaPlace(path, depth, quotas[name], _namespaces(quotas[name]), parent)
        stack += [(path, depth + 1, child) for child in reversed(below.get(name, []))]


def _parent(quotas: Mapping[str, ElasticQuota], name: str) -> str:
    """Return the name of the quota above; empty: there is none."""
    seen, above = {name}, name
    while True:
        said = quotas[above].metadata.label(PARENT) or (ROOT if above != ROOT else "")
        if said not in quotas:
            break
        if said in seen:
            return ""
        seen.add(said)
        above = said
    own = quotas[name].metadata.label(PARENT) or (ROOT if name != ROOT else "")
    return own if own in quotas else ""


def _namespaces(quota: ElasticQuota) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(quota.metadata.annotation(NAMESPACES) or "[]", type=tuple[str, ...])
    except msgspec.DecodeError:
        return ()


def _bounds(quota: ElasticQuota) -> Amounts:
    """Return the most that the quota may use: Koordinator lowers it, while others use what is theirs."""
    most = tres_amounts(quota.spec.max or {})
    try:
        said = msgspec.json.decode(quota.metadata.annotation(RUNTIME) or "{}", type=Quantities)
    except msgspec.DecodeError:
        return most
    lowered = {name: min(most.get(name, amount), amount) for name, amount in tres_amounts(said).items()}
    return {**most, **lowered}
