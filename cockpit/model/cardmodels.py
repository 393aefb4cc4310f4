"""Names of card models: people and scripts for Slurm write `a100` and `rtx_4090` for an A100 and an RTX 4090."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final

from cockpit.model.spec import WHOLE_CARD

_NO_TYPE: Final = re.compile(r"[^a-z0-9._-]")


@lru_cache(maxsize=1024)
def gres_type(model: str) -> str:
    """Return a card's model as a type of Slurm's GRES, which has no capitals, blanks or punctuation: `rtx_4090`."""
    return _NO_TYPE.sub("_", model.lower())


def is_one_of(model: str, requested: tuple[str, ...]) -> bool:
    """Return whether a card of this model satisfies the requested model in any spelling. An empty request accepts every
    card."""
    # The exact spelling first: it is the usual case, and needs no conversion.
    return not requested or model in requested or gres_type(model) in map(gres_type, requested)


_PROFILE = re.compile(r"(?:^|[_.-])([1-7])g\.(\d+)gb", re.IGNORECASE)
_PER_CARD = {1: 7, 2: 3, 3: 2, 4: 1, 7: 1}
"""Instances per card by the profile's number of compute slices, on cards of seven slices such as A100 and H100. Source
of both tables: NVIDIA's MIG User Guide, "Supported MIG Profiles"."""
_FEWER_PER_CARD = {(1, 6): 4, (2, 12): 2, (1, 20): 4, (1, 24): 4, (1, 35): 4, (1, 45): 4}
"""Instances per card by compute slices and gigabytes: profiles of the A30, which has four slices, and profiles of one
slice with the memory of two. `1g.10gb` is such a profile on an A100 of 40 GB only; it counts as that of 80 GB."""


@cache
def instances_per_card(model: str) -> int:
    """Return how many instances of a MIG profile fit on one card; 0: the model is no profile."""
    profile = _PROFILE.search(model)
    if profile is None:
        return 0
    slices, gigabytes = int(profile[1]), int(profile[2])
    return _FEWER_PER_CARD.get((slices, gigabytes), _PER_CARD.get(slices, 0))


def counted_milli(milli: int, model: str) -> int:
    """Return the thousandths of cards to count for a request; an instance counts as a card."""
    instances = instances_per_card(model)
    # A request for instances is stored as thousandths of their cards.
    return WHOLE_CARD * (milli // (WHOLE_CARD // instances)) if instances else milli
