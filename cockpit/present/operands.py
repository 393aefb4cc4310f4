"""What a filter compares with: a number of the column's unit, read from what a person wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from cockpit.model.quantity import parse_duration, parse_memory
from cockpit.present.columns import FRACTIONS, ValueKind
from cockpit.present.moments import parse_moment


class Operand(msgspec.Struct, frozen=True):
    """The wanted number, in the unit of the column's facts."""

    wanted: float
    of_totals: bool = False
    """The column's facts are fractions."""

    def numbers(self, facts: list[Any]) -> list[float | None]:
        """What is compared of each fact: of a fraction the total. None: nothing to compare."""
        return [None if fact is None else fact.total for fact in facts] if self.of_totals else facts


def read_operand(kind: ValueKind, text: str) -> Operand | str:
    """The operand, or what this kind of column wants instead."""
    if kind not in _READERS:
        return "a word after : or ~"
    read, wants = _READERS[kind]
    number = read(text)
    return Operand(number, kind in FRACTIONS) if isinstance(number, int | float) else wants


def _number(text: str) -> float | None:
    """Not all that Python takes: 1_2 is no twelve, and nothing is larger than nan."""
    return float(text) if _FIGURE.fullmatch(text) else None


_FIGURE: Final = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?", re.ASCII)
_NUMBER: Final = (_number, "a number")
_MEMORY: Final = (parse_memory, "memory such as 512M or 4G")

_READERS: Final[dict[ValueKind, tuple[Callable[[str], float | str | None], str]]] = {
    ValueKind.INTEGER: _NUMBER,
    ValueKind.NUMBER: _NUMBER,
    ValueKind.FRACTION: _NUMBER,
    ValueKind.MIB: _MEMORY,
    ValueKind.MEMORY_FRACTION: _MEMORY,
    ValueKind.SECONDS: (parse_duration, "a duration such as 90s, 10m, 2h or 1d"),
    ValueKind.MOMENT: (parse_moment, "a moment such as 2026-10-05 or 2026-10-05T09:30"),
}
