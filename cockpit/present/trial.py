"""Weights that are tried out: changing them step by step, and comparing them with the cluster's own."""

from __future__ import annotations

from typing import Final

from cockpit.model.cluster import Weights
from cockpit.model.priority import FactorName, WeightChanges
from cockpit.present.priority_parts import weight_of

FIRST_STEP: Final = 100
"""First value of a weight that is increased from 0."""
MOST: Final = (1 << 32) - 1
_LADDER: Final = (1, 2, 5, 10)


def stepped(weight: float, direction: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50 … above or below the weight; below 1 the result is 0, and upwards
    `FIRST_STEP`."""
    if weight < 1:
        return FIRST_STEP if direction > 0 else 0
    base: int = 10 ** (len(str(int(weight))) - 1)
    if direction > 0:
        return min(next(step * base for step in _LADDER if step * base > weight), MOST)
    lower = [step * base for step in _LADDER if step * base < weight] or [base // 2]
    return max(lower[-1], 0)


def with_step(weights: Weights, factor: FactorName, direction: int) -> WeightChanges:
    """Return the weights with one of them a step larger or smaller; for resources each of theirs. The site's factor has
    no weight."""
    if factor is FactorName.SITE:
        return whole(weights)
    if factor is FactorName.TRES:
        return whole(weights, tres={name: float(stepped(each, direction)) for name, each in weights.tres.items()})
    return whole(weights, **{factor.value: stepped(weight_of(weights, factor), direction)})


def whole(weights: Weights, **changed: object) -> WeightChanges:
    """Return all weights by name, with the given ones changed."""
    named = {name: getattr(weights, name) for name in WeightChanges.__struct_fields__}
    return WeightChanges(**(named | changed))
