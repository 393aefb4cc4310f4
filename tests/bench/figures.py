"""Figures beside their bars: what `make bench` prints and writes.

A benchmark measures with pytest-benchmark's `benchmark` fixture or its own clock, and hands each result to `figure`
under the id and name that bars.toml gives it. A bar that nothing measured is shown as such.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

BARS = Path(__file__).with_name("bars.toml")


class Bar(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to reach."""

    id: str
    figure: str
    bar: float
    unit: str
    better: Literal["lower", "higher"] = "lower"
    then: float | None = None
    peer: str = ""

    def reached(self, value: float) -> bool:
        return value >= self.bar if self.better == "higher" else value <= self.bar


class Key(NamedTuple):
    id: str
    figure: str


def read_bars(text: str) -> dict[Key, Bar]:
    """In the order of the file; ValueError for two bars of one figure."""
    listed = msgspec.convert(tomllib.loads(text)["bar"], list[Bar])
    bars = {Key(bar.id, bar.figure): bar for bar in listed}
    if len(bars) != len(listed):
        raise ValueError("two bars share an id and a figure")
    return bars


class Peer(NamedTuple):
    """Another program that was measured in the same run."""

    name: str
    value: float


class Figures:
    """What one run measured."""

    def __init__(self, bars: dict[Key, Bar]) -> None:
        self.bars = bars
        self.values: dict[Key, float] = {}
        self.peers: dict[Key, Peer] = {}

    def __call__(self, requirement: str, figure: str, value: float, *, peer: Peer | None = None) -> None:
        """Record one value in its bar's unit, and what a peer reached just now."""
        key = Key(requirement, figure)
        if key not in self.bars:
            raise KeyError(f"bars.toml has no {figure!r} under {requirement}")
        self.values[key] = value
        if peer:
            self.peers[key] = peer

    def beside(self, requirement: str, figure: str, peer: Peer) -> None:
        """What a peer reached, measured in a test of its own."""
        self.peers[Key(requirement, figure)] = peer

    def spread(self, requirement: str, figure: str, samples: Sequence[float]) -> None:
        """Record the median and the 95th percentile of samples, as `<figure>, median` and `<figure>, p95`."""
        self(requirement, f"{figure}, median", median(samples))
        self(requirement, f"{figure}, p95", quantiles(samples, n=20, method="inclusive")[-1])

    def lines(self) -> list[str]:
        """The table that people read."""
        return [self._line(key, bar) for key, bar in self.bars.items()]

    def _line(self, key: Key, bar: Bar) -> str:
        value = self.values.get(key)
        mark = " " if value is None else "✓" if bar.reached(value) else "✗"
        shown = "–" if value is None else amount(value, bar.unit)
        goal = f"bar {amount(bar.bar, bar.unit)}" + (f", then {number(bar.then)}" if bar.then is not None else "")
        return f"{mark} {bar.id}  {bar.figure:<45}{shown:>16}   {goal:<32}{self._beside(key, bar)}".rstrip()

    def _beside(self, key: Key, bar: Bar) -> str:
        peer = self.peers.get(key)
        if peer is None or key not in self.values:
            return bar.peer
        return f"{peer.name} {number(peer.value)} just now: {self.values[key] / peer.value:.2g} times that"

    def as_json(self) -> bytes:
        """Version 1: every bar; what was not measured is null."""
        rows = [msgspec.to_builtins(bar) | self._result(key, bar) for key, bar in self.bars.items()]
        return msgspec.json.format(msgspec.json.encode({"version": 1, "figures": rows}))

    def _result(self, key: Key, bar: Bar) -> dict[str, object]:
        value, peer = self.values.get(key), self.peers.get(key)
        return {
            "value": value,
            "reached": None if value is None else bar.reached(value),
            "measured_peer": peer._asdict() if peer else None,
        }


def number(value: float) -> str:
    """Three significant digits below a hundred, grouped whole numbers above."""
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 100 else f"{value:.3g}"


def amount(value: float, unit: str) -> str:
    return f"{number(value)}{unit}" if unit.startswith("/") else f"{number(value)} {unit}"
