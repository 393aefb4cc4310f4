"""Names of card models: people and scripts for Slurm write `a100` and `rtx_4090` for an A100 and an RTX 4090."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NO_TYPE: Final = re.compile(r"[^a-z0-9._-]")


@lru_cache(maxsize=1024)
def gres_type(model: str) -> str:
    """A card's model as a type of Slurm's GRES, which has no capitals, blanks and the like: `rtx_4090`."""
    return _NO_TYPE.sub("_", model.lower())


def is_one_of(model: str, asked: tuple[str, ...]) -> bool:
    """Whether a card of this model is what is asked for, however that is spelled. Without a model any card is."""
    return not asked or model in asked or gres_type(model) in map(gres_type, asked)
