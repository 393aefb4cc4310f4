"""Slurm's lists of hosts and of numbers: `n[1-3,07],login`, `0,2-5`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from cockpit.model.ids import NodeName

MOST = 1 << 16
"""The largest number of names that Slurm itself expands from one list."""
_PIECE = re.compile(r"([^,\[]*(?:\[[^\]]*\][^,\[]*)*)(?:,|$)")
_RANGE = re.compile(r"\[([^\]]*)\]")


@lru_cache(maxsize=4096)
def hosts(value: str) -> tuple[NodeName, ...]:
    """Return all names in order, at most `MOST`."""
    names: list[NodeName] = []
    for piece in filter(None, _PIECE.findall(value)):
        for name in _expanded(piece):
            if len(names) == MOST:
                return tuple(names)
            names.append(NodeName(name))
    return tuple(names)


def _expanded(piece: str) -> Iterator[str]:
    match = _RANGE.search(piece)
    if match is None:
        yield piece
        return
    for each in _padded(match[1]):
        for rest in _expanded(piece[match.end() :]):
            yield piece[: match.start()] + each + rest


def _padded(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        low, dash, high = part.partition("-")
        if not dash or not (low.isdigit() and high.isdigit()):
            yield part
            continue
        for each in range(int(low), min(int(high), int(low) + MOST) + 1):
            yield str(each).zfill(len(low))


def numbers(value: str) -> tuple[int, ...]:
    """`0-3,8`, and steps as in `0-8:4`; at most `MOST`."""
    values: list[int] = []
    for part in value.split(","):
        span, _, step = part.partition(":")
        low, dash, high = span.partition("-")
        if low.isdigit() and (not dash or high.isdigit()):
            last = min(int(high or low), int(low) + MOST)
            values += range(int(low), last + 1, int(step) if step.isdigit() and int(step) else 1)
    return tuple(values[:MOST])
