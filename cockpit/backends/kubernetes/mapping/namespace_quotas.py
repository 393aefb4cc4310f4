"""Which quotas of a namespace keep a controller from creating a job's pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from cockpit.backends.kubernetes.mapping.pod_needs import PodNeeds
from cockpit.backends.kubernetes.mapping.quantities import CPU, quantity
from cockpit.backends.kubernetes.objects.surroundings import ResourceQuota
from cockpit.model.pod_reasons import QuotaUse

_REQUESTS = "requests."
_PODS = frozenset({"pods", "count/pods"})


class QuotaLine(NamedTuple):
    """One resource of one quota, in the units of `exact_request`."""

    quota: str
    resource: str
    """As pods request it, such as `nvidia.com/gpu`; `pods`: the number of pods."""
    most: int
    used: int

    @property
    def left(self) -> int:
        return max(0, self.most - self.used)


def quota_lines(quotas: Iterable[ResourceQuota]) -> tuple[QuotaLine, ...]:
    """Return the lines that count requests or pods. Quotas of some pods alone, by scopes, and limits are left out."""
    return tuple(line for each in quotas if not (each.spec.scopes or each.spec.scope_selector) for line in _lines(each))


def _lines(quota: ResourceQuota) -> Iterator[QuotaLine]:
    used: Mapping[str, str | int | float] = quota.status.used or {}
    for name, most in (quota.status.hard or {}).items():
        resource = "pods" if name in _PODS else name.removeprefix(_REQUESTS)
        # What is left counts other objects or limits.
        if name.startswith(("limits.", "count/")) and name not in _PODS:
            continue
        yield QuotaLine(
            quota.metadata.name,
            resource,
            _units(resource, quantity(most)),
            _units(resource, quantity(used.get(name, 0))),
        )


def _units(resource: str, amount: Fraction) -> int:
    return int(amount * 1000 if resource == CPU else amount)


def short_quotas(pods: Sequence[PodNeeds], lines: Iterable[QuotaLine]) -> tuple[QuotaUse, ...]:
    """Return the quotas of which too little is left for all these pods."""
    return tuple(
        QuotaUse(each.quota, each.resource, wanted, each.used, each.most)
        for each in lines
        if (wanted := _wanted(pods, each.resource)) > each.left
    )


def _wanted(pods: Sequence[PodNeeds], resource: str) -> int:
    return len(pods) if resource == "pods" else sum(each.amount(resource) for each in pods)
