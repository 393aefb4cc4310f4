"""Amounts of resources as Kubernetes writes them. Source: apimachinery, pkg/api/resource, Quantity."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from cockpit.backends.kubernetes.objects.pod import NO_RESOURCES, Container, PodSpec, Quantities
from cockpit.model.quota import MOST, RESOURCES, Amounts

_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")
_SCALE: dict[str, Fraction] = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)},
}
PER_CARD = {
    **dict.fromkeys(("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"), "nvidia.com/gpu"),
    **dict.fromkeys(
        ("volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores"),
        "volcano.sh/vgpu-number",
    ),
    **dict.fromkeys(("hygon.com/dcumem", "hygon.com/dcucores"), "hygon.com/dcunum"),
}
"""Resources that a container requests of each of its cards, by what counts these; everywhere else they are totals."""
CPU = "cpu"
MEMORY = "memory"
_MIB = 1024**2
_LONGEST = 40


@lru_cache(maxsize=4096)
def quantity(text: str | float | Fraction) -> Fraction:
    """Return the amount; 0 for a text that is none."""
    if not isinstance(text, str):
        return Fraction(text)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return Fraction(0)
    number, unit, exponent = match.groups()
    if exponent:
        return Fraction(number) * Fraction(10) ** int(exponent)
    return Fraction(number) * _SCALE.get(unit or "", Fraction(1))


class PodAmounts(NamedTuple):
    """What a pod requests of its node."""

    milli_cpus: int
    memory_mib: int
    others: tuple[tuple[str, int], ...]
    """Other resources by name, in whole units: cards, MIG instances, memory of cards."""

    @property
    def cpus(self) -> int:
        """Whole CPUs, rounded up."""
        return -(-self.milli_cpus // 1000)


NOTHING = PodAmounts(0, 0, ())


_Amounts = tuple[tuple[str, str | int | float], ...]


class _ContainerRequest(NamedTuple):
    """What of a container decides about the pod's request."""

    amounts: _Amounts
    is_sidecar: bool


def requested(spec: PodSpec) -> PodAmounts:
    """Return the pod's request, as the scheduler computes it."""
    # Thousands of pods have few different requests, and computing with fractions takes its time.
    return _amounts(*_parts(spec))


def _parts(spec: PodSpec) -> tuple[tuple[_ContainerRequest, ...], tuple[_ContainerRequest, ...], _Amounts]:
    return (
        tuple([_of_container(each) for each in spec.containers]),
        tuple([_of_container(each) for each in spec.init_containers or ()]),
        tuple((spec.overhead or {}).items()),
    )


def _of_container(container: Container) -> _ContainerRequest:
    resources = container.resources or NO_RESOURCES
    # A limit without a request is the request, too (core/v1 ResourceRequirements).
    wanted = {**(resources.limits or {}), **(resources.requests or {})}
    return _ContainerRequest(tuple(wanted.items()), container.restart_policy == "Always")


ExactAmounts = tuple[tuple[str, int], ...]
"""Amounts by resource as the scheduler counts them, sorted by name: thousandths of a CPU, bytes, whole units."""


def exact_request(spec: PodSpec) -> ExactAmounts:
    """Return the pod's request of every resource, rounded up as the scheduler does."""
    return _exact(*_parts(spec))


@lru_cache(maxsize=4096)
def _exact(
    containers: tuple[_ContainerRequest, ...], init_containers: tuple[_ContainerRequest, ...], overhead: _Amounts
) -> ExactAmounts:
    total = _request(containers, init_containers, overhead)
    return tuple(
        (name, math.ceil(amount * 1000 if name == CPU else amount)) for name, amount in sorted(total.items()) if amount
    )


def exact_amounts(given: Quantities | None) -> dict[str, int]:
    """Return what a node offers of every resource, in the units of `exact_request`."""
    found = _fractions((given or {}).items())
    return {name: int(amount * 1000 if name == CPU else amount) for name, amount in found.items()}


@lru_cache(maxsize=4096)
def _amounts(
    containers: tuple[_ContainerRequest, ...], init_containers: tuple[_ContainerRequest, ...], overhead: _Amounts
) -> PodAmounts:
    return amounts(_request(containers, init_containers, overhead))


@lru_cache(maxsize=4096)
def _request(
    containers: tuple[_ContainerRequest, ...], init_containers: tuple[_ContainerRequest, ...], overhead: _Amounts
) -> dict[str, Fraction]:
    """Compute the request. Source: k8s.io/component-helpers/resource, PodRequests.

    1. All containers and sidecars run together. 2. An init container runs alone beside the sidecars before it, so of
    these the largest counts. 3. Overhead is added.
    """
    main = _sum(_of_all_cards(each.amounts) for each in containers)
    sidecars: dict[str, Fraction] = {}
    largest: dict[str, Fraction] = {}
    for each in init_containers:
        own = _of_all_cards(each.amounts)
        if each.is_sidecar:
            sidecars = _sum((sidecars, own))
            own = sidecars
        else:
            own = _sum((sidecars, own))
        largest = {name: max(largest.get(name, Fraction(0)), own.get(name, Fraction(0))) for name in {*largest, *own}}
    main = _sum((main, sidecars))
    names = {*main, *largest}
    total = {name: max(main.get(name, Fraction(0)), largest.get(name, Fraction(0))) for name in names}
    return _sum((total, _fractions(overhead)))


def amounts(given: dict[str, Fraction]) -> PodAmounts:
    """Return amounts in the units that cockpit counts in, rounded up."""
    others = tuple(
        (name, math.ceil(amount)) for name, amount in sorted(given.items()) if "/" in name and not _is_storage(name)
    )
    return PodAmounts(
        math.ceil(given.get(CPU, Fraction(0)) * 1000), math.ceil(given.get(MEMORY, Fraction(0)) / _MIB), others
    )


def offered(given: Quantities | None) -> PodAmounts:
    """Return a node's allocatable amounts, rounded down to whole MiB."""
    # A cluster's nodes have few different amounts.
    return _offer(tuple((given or {}).items()))


@lru_cache(maxsize=1024)
def _offer(given: _Amounts) -> PodAmounts:
    fractions = _fractions(given)
    fractions[MEMORY] = Fraction(fractions.get(MEMORY, Fraction(0)) // _MIB * _MIB)
    return amounts(fractions)


def tres_amounts(given: Mapping[str, str | int | float | Fraction]) -> Amounts:
    """Return the amounts of those resources that quotas count: in thousandths of a CPU, a MiB, a card or a job, rounded
    up. Larger ones than are counted mean unlimited."""
    counted = {name: quantity(amount) for name, amount in given.items() if name in RESOURCES}
    in_units = {name: amount / _MIB if name == MEMORY else amount for name, amount in counted.items()}
    return {RESOURCES[name]: min(math.ceil(1000 * amount), MOST) for name, amount in in_units.items()}


def pod_tres(pod: PodAmounts) -> Amounts:
    """Return a pod's request in the same way."""
    others = {RESOURCES[name]: 1000 * amount for name, amount in pod.others if name in RESOURCES}
    return {RESOURCES[CPU]: pod.milli_cpus, RESOURCES[MEMORY]: 1000 * pod.memory_mib, **others}


def _fractions(given: Iterable[tuple[str, str | int | float]]) -> dict[str, Fraction]:
    return {name: quantity(amount) for name, amount in given}


def _of_all_cards(given: Iterable[tuple[str, str | int | float]]) -> dict[str, Fraction]:
    """Return a container's amounts, with those of each card added up over its cards."""
    own = _fractions(given)
    return {
        name: amount * max(own.get(PER_CARD.get(name, ""), Fraction(1)), Fraction(1)) for name, amount in own.items()
    }


def _sum(given: Iterable[dict[str, Fraction]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for each in given:
        for name, amount in each.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _is_storage(name: str) -> bool:
    return name.startswith(("hugepages-", "attachable-volumes-", "ephemeral-storage"))
