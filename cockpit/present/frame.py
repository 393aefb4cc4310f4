"""The frame around every view: the top bar with the cluster's figures, the row of views, the row of keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cockpit.model.job import JobState
from cockpit.model.view import Overview
from cockpit.present import units
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line_width
from cockpit.present.states import GLYPHS

BAR_COLUMNS = 10


class Standing(NamedTuple):
    """How the face stands to the cluster."""

    cluster: str
    access: str
    """`rw` or `ro`."""
    user: str
    age: str = ""
    """How old the data is; empty while it is fresh."""
    trouble: str = ""
    """Why it is stale; empty while it is not."""
    badge: str = ""
    """`DEMO 60×`; empty on a real cluster."""


class Key(NamedTuple):
    """A key as the bottom row shows it."""

    key: str
    label: str
    enabled: bool = True


def top_bar(standing: Standing, overview: Overview | None, columns: int) -> Line:
    """Who and where at the left; figures at the right, the least important left out first."""
    left: list[Span] = [Span(" cockpit  ", ACCENT)]
    if standing.badge:
        left.append(Span(f"{standing.badge}  ", "demo"))
    left += [Span(safe(standing.cluster), STRONG), Span(f"  {standing.access} · {safe(standing.user)}", MUTED)]
    right = [Span(f"⚠ {standing.trouble} ", "warning")] if standing.trouble else []
    parts = [*_figures(overview), *([(Span(f"{standing.age} ", MUTED),)] if standing.age else [])]
    while parts and line_width((*left, *right, *_joined(parts))) + 2 > columns:
        parts.pop(0)
    right = [*_joined(parts), *right]
    blanks = columns - line_width(tuple(left)) - line_width(tuple(right))
    return (*left, Span(" " * max(1, blanks)), *right)


def _joined(parts: list[Line]) -> list[Span]:
    return [span for part in parts for span in (*part, Span("   "))]


def _figures(overview: Overview | None) -> list[Line]:
    if overview is None:
        return []
    shown: list[Line] = []
    for state in (JobState.QUEUED, JobState.RUNNING):
        number = overview.jobs_by_state.get(state, 0)
        shown.append((Span(f"{GLYPHS[state]} {number} {state}", str(state) if number else MUTED),))
    if overview.held:
        shown.append((Span(f"✗ {overview.held} kept", "held"),))
    if overview.card_milli:
        used, total = units.cards(overview.used_card_milli), units.cards(overview.card_milli)
        shown.append(_fraction("cards", f"{used}/{total}", overview.used_card_milli / overview.card_milli))
    else:
        part = overview.used_cpus / max(overview.cpus, 1)
        shown.append(_fraction("CPUs", f"{overview.used_cpus}/{overview.cpus}", part))
    return shown


def _fraction(label: str, text: str, part: float) -> Line:
    filled = units.bar(part, BAR_COLUMNS).ljust(BAR_COLUMNS, "·")
    return (Span(f"{label} ", MUTED), Span(f"{text} "), Span(filled, "running"))


def view_row(views: Iterable[tuple[str, str]], current: str, note: str, columns: int) -> Line:
    """` 1 Jobs   2 Nodes` with the current one in the accent; at the right what filters or sorts it."""
    left: list[Span] = []
    for number, name in views:
        chosen = name == current
        left += [Span(f" {number} ", ACCENT if chosen else MUTED), Span(f"{name}  ", STRONG if chosen else MUTED)]
    blanks = columns - line_width(tuple(left)) - line_width((Span(note),)) - 1
    return (*left, Span(" " * max(1, blanks)), Span(f"{note} ", ACCENT))


def key_row(keys: Iterable[Key], columns: int) -> Line:
    """As many keys as fit, in their order; the dimmed ones would say why they cannot be used."""
    shown: list[Span] = []
    for key in keys:
        part = (
            Span(f" {key.key}", ACCENT if key.enabled else MUTED),
            Span(f" {key.label} ", "text" if key.enabled else MUTED),
        )
        if line_width((*shown, *part)) > columns:
            break
        shown += part
    return tuple(shown)
