"""The frame around every view: the top bar with the cluster's figures, the row of views, the row of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from cockpit.model.job import BEGINNING, JobState
from cockpit.model.view import Overview
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.load_history import LoadCharts
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, fitted, line, line_width, spread
from cockpit.present.states import GLYPHS

BAR_COLUMNS = 10
HISTORY_FROM = 160
"""Width of the screen in columns from which the top bar has charts of the last hours."""
APART = Span("   ")
LIVE = "live"
"""The word that says that the data is at most two seconds old."""
IN_TROUBLE = "engine in trouble"
NOT_ALL = "not all is shown"
NO_CONTAINERS = "no containers"


class TopBar(NamedTuple):
    """The contents of the top bar: cluster, user, access, and how fresh the data is."""

    cluster: str
    access: str
    """`rw` where the user may change things, else `ro`."""
    user: str
    age: str = ""
    """The age of the data; empty while it is fresh."""
    trouble: str = ""
    """The reason why the data is old; empty while it is fresh."""
    badge: str = ""
    """A badge such as `DEMO 60×` or `paused`; empty: none."""
    heard: str = ""
    """The time of the cluster's last answer; empty while the data is fresh."""
    fresh: bool = False
    """Whether the cluster has just answered."""
    history: LoadCharts | None = None
    """The load over the last hours, for wide screens; None: there is none."""


class Key(NamedTuple):
    """A key of the bottom row."""

    key: str
    label: str
    enabled: bool = True
    action: str = ""
    """The id of the action that a click on it performs."""


def top_bar(contents: TopBar, overview: Overview | None, columns: int) -> Line:
    """Return the top bar: cluster, access and user at the left, the cluster's figures and their age at the right.

    On narrow screens the figures first have fewer words, and then there are fewer figures.
    """
    left = _left_side(contents)
    amiss = _amiss(contents, overview)
    alive = [line(Span(LIVE, MUTED))] if contents.fresh and not amiss else []
    # The longest form that fits. What is wrong is in all of them: it is the last thing to leave out.
    for figures in _figures(overview, contents.history if columns >= HISTORY_FROM else None):
        right = _joined([*figures, *alive, *amiss])
        if line_width(left) + line_width(right) + 2 <= columns:
            return spread(left, right, columns)
    return fitted((*left, APART, *_joined(amiss)), columns)


def _left_side(contents: TopBar) -> Line:
    badge = [Span(f"  {contents.badge}", "demo")] if contents.badge else []
    access = Span(f"  {contents.access}", "warning" if contents.access == "ro" else MUTED)
    where = Span(safe(contents.cluster), STRONG)
    return line(Span(" cockpit  ", ACCENT), where, access, Span(f" · {safe(contents.user)}", MUTED), *badge)


def _amiss(contents: TopBar, overview: Overview | None) -> list[Line]:
    """Return the warning: the data is old; else the engine has a problem; else the machine lacks something."""
    heard = f"heard {contents.heard}" if contents.heard else ""
    # Of several troubles the one that makes the others uncertain: old data says nothing about the engine of now.
    words = " · ".join(filter(None, (safe(contents.trouble), contents.age, heard)))
    if not words and overview is not None:
        ill = NOT_ALL if overview.hidden else IN_TROUBLE
        words = ill if overview.trouble else NO_CONTAINERS if overview.plain else ""
    return [line(Span(f"⚠ {words}", "warning"))] if words else []


def _joined(parts: list[Line]) -> Line:
    """Join the parts with gaps and leave one column before the edge."""
    spans = [span for part in parts for span in (*part, APART)]
    return (*spans[:-1], Span(" ")) if spans else ()


def _figures(overview: Overview | None, history: LoadCharts | None) -> Iterator[list[Line]]:
    """Yield the figures in shorter and shorter forms, and at last none."""
    if overview is not None:
        if history is not None:
            used = (*_use_of_cluster(overview, BAR_COLUMNS), Span(f" {history.used}", "running"))
            yield [*_counts(overview, words=True, queue=history.queued), used]
        # First the words go, since the signs say the same, then the bar, since the figures do.
        for words, bar_columns in ((True, BAR_COLUMNS), (False, BAR_COLUMNS), (False, 0)):
            yield [*_counts(overview, words=words), _use_of_cluster(overview, bar_columns)]
        yield list(_counts(overview, words=False))
    yield []


def _counts(overview: Overview, *, words: bool, queue: str = "") -> Iterator[Line]:
    """Yield the number of jobs in each state, and of held jobs. `words`: whether the states are named; `queue`: the
    chart of the queue."""
    count = overview.jobs_by_state.get
    for state in (JobState.RUNNING, JobState.QUEUED):
        number = count(state, 0)
        shown = _count(GLYPHS[state], number, str(state) if words else "", str(state) if number else MUTED)
        yield (*shown, Span(f" {queue}", "queued")) if queue and state is JobState.QUEUED else shown
    # Shown only where there are some: most of the time a header has neither.
    starting, suspended = sum(count(state, 0) for state in BEGINNING), count(JobState.SUSPENDED, 0)
    for state, number in ((JobState.STARTING, starting), (JobState.SUSPENDED, suspended)):
        if number:
            yield _count(GLYPHS[state], number, str(state) if words else "", str(state))
    if overview.held:
        yield _count(GLYPHS[JobState.ERROR], overview.held, "held" if words else "", "held")


def _count(shape: str, number: int, word: str, role: str) -> Line:
    return line(Span(f"{shape} {number} {word}".rstrip(), role))


def _use_of_cluster(overview: Overview, bar_columns: int) -> Line:
    """Return the use of the cards, or of the CPUs of a cluster without cards."""
    if overview.card_milli:
        label, used, total = "cards", units.cards(overview.used_card_milli), units.cards(overview.card_milli)
    else:
        label, used, total = "CPUs", overview.used_cpus, overview.cpus
    text = line(Span(f"{label} ", MUTED), Span(f"{used}/{total}"))
    return (*text, Span(" "), *bar(used / max(total, 1), bar_columns, "running")) if bar_columns else text


ROOMY = 100
"""Width in columns from which the names of the views are further apart, if they fit."""
WIDE, CLOSE = "  ", " "
"""Gaps between the names of the views."""


def view_row(views: Sequence[tuple[str, str]], current: str, note: Line, columns: int) -> Line:
    """Return the row of views, ` 1 Jobs   2 Nodes`, with the note at the right where it fits (`note_fits`)."""
    gap, shown = _beside(views, current, note, columns)
    left = tuple(span for each in shown for span in _view(each, current, gap))
    return spread(left, (*note, Span(" ")) if note else (), columns)


def note_fits(views: Sequence[tuple[str, str]], current: str, note: Line, columns: int) -> bool:
    """Return whether the note about filter and order fits beside the names of the views without cutting them."""
    gap, shown = _beside(views, current, note, columns)
    return _width(shown, current, gap) + line_width(note) + 1 < columns


def _beside(
    views: Sequence[tuple[str, str]], current: str, note: Line, columns: int
) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return the gap between the views, and the views with their names as far as these fit.

    First the gap shrinks so that the note fits, too; then the last views show only their keys.
    """
    wanted = line_width(note) + 2 if note else 0
    gaps = (WIDE, CLOSE) if columns >= ROOMY else (CLOSE,)
    # Rather narrow gaps with the note than wide gaps without it; the note has another place below.
    for more in (wanted, 0):
        for gap in gaps:
            if _width(views, current, gap) + more <= columns:
                return gap, views
    shown = list(views)
    # From the last view on: the key alone still shows that there is a view. The present one keeps its name.
    for place in reversed(range(len(shown))):
        key, name = shown[place]
        if key and name != current:
            shown[place] = (key, "")
        if _width(shown, current, CLOSE) <= columns:
            break
    return CLOSE, shown


def _width(views: Sequence[tuple[str, str]], current: str, gap: str) -> int:
    return sum(line_width(_view(each, current, gap)) for each in views)


def _view(view: tuple[str, str], current: str, gap: str) -> Line:
    """Return the spans of a view: its key, if it has one, and its name."""
    key, name = view
    chosen = name == current
    sign = Span(f" {key} " if key else " ", ACCENT if chosen else MUTED)
    return sign, Span(name, STRONG if chosen else MUTED), Span(gap if name or gap == WIDE else "")


def view_at(
    views: Sequence[tuple[str, str]], column: int, columns: int = ROOMY, current: str = "", note: Line = ()
) -> str:
    """Return the name of the view at this column of the row; empty where there is none."""
    end = 0
    gap, shown = _beside(views, current, note, columns)
    # As drawn, with names left out; the result is the full name.
    for view, each in zip(views, shown, strict=True):
        end += line_width(_view(each, current, gap))
        if column < end:
            return view[1]
    return ""


def key_row(keys: Iterable[Key], columns: int) -> Line:
    """Return the row with as many keys as fit; keys whose action is refused now are dimmed."""
    return tuple(span for key in _fitting(keys, columns) for span in _key(key))


def key_at(keys: Iterable[Key], column: int) -> str:
    """Return the id of the action whose key is at this column of the row; empty where there is none."""
    end = 0
    for key in keys:
        end += line_width(_key(key))
        if column < end:
            return key.action
    return ""


def _fitting(keys: Iterable[Key], columns: int) -> Iterator[Key]:
    used = 0
    for key in keys:
        used += line_width(_key(key))
        if used > columns:
            return
        yield key


def _key(key: Key) -> Line:
    return Span(f" {key.key}", ACCENT if key.enabled else MUTED), Span(
        f" {key.label} ", "text" if key.enabled else MUTED
    )
