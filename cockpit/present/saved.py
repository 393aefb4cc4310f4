"""Saved filters of a user, by table and name. Commands without filters load only this module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

SAVED: Final = "@"
"""The character before the name of a saved filter."""

Saved = Callable[[str], Mapping[str, str]]
"""A function that returns the saved filters of the table with this name, by their names."""


def none_saved(_: str) -> Mapping[str, str]:
    """Return no filters, where none can be saved."""
    return {}
