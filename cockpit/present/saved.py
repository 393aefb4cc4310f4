"""Filters by name, as whoever keeps them gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

SAVED: Final = "@"
"""Before the name of a saved filter."""

Saved = Callable[[str], Mapping[str, str]]
"""The saved filters of a table of this name, by their names."""


def none_saved(_: str) -> Mapping[str, str]:
    """Where nothing is kept."""
    return {}
