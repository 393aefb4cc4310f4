"""Models of cards that are parts of a card: MIG profiles such as `a100_1g.5gb`. Each instance counts as a card.

Source: NVIDIA's MIG user guide.
"""

from __future__ import annotations

import re
from functools import cache

from cockpit.model.spec import WHOLE_CARD

_PROFILE = re.compile(r"(?:^|[_.-])([1-7])g\.\d+gb", re.IGNORECASE)
_PER_CARD = {1: 7, 2: 3, 3: 2, 4: 1, 7: 1}
"""By the profile's compute slices."""


@cache
def instances_per_card(model: str) -> int:
    """For how many instances of a profile one card has room; 0: the model is no profile."""
    profile = _PROFILE.search(model)
    return _PER_CARD.get(int(profile[1]), 0) if profile is not None else 0


def counted_milli(milli: int, model: str) -> int:
    """So many thousandths of cards of a model, as they are counted: an instance as a card."""
    instances = instances_per_card(model)
    return WHOLE_CARD * (milli // (WHOLE_CARD // instances)) if instances else milli
