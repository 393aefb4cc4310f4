"""The type of a view of the main screen, and what its functions are given.

A view is one object. The main screen makes its table, its name in the row of views, its filter and its panel from it,
the poller what is fetched while it is shown, and `actions/all.py` the action that shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.units import spoken
from cockpit.tui.rows.lists import ListRows
from cockpit.tui.widgets.table import Table, TableRows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from cockpit.backends.base import Backend
    from cockpit.model.capabilities import Capabilities
    from cockpit.present.columns import TableView
    from cockpit.tui.app_state import AppState

WIDE, ROOMY = 100, 115
"""Widths in columns from which a note may be a sentence, and a long sentence."""
LEAST_PANEL = 3
"""Height in lines of the panel on the smallest screens."""
MOST_PANEL = 9
"""Height in lines of the panel below the table on large screens."""
SHOW_WAIT_SECONDS = 3


class ViewRows(TableRows, Protocol):
    """The row model of a view: what its table needs, and the rows themselves."""

    def row(self, row_id: Any) -> Any:  # noqa: ANN401 - each view has its own kind of rows
        """Return the row with this id; None where it no longer exists."""
        ...

    def filter_by(self, text: str) -> None:
        """Filter the rows; on `FilterError` the last filter stays in force."""
        ...


class SortedRows(ViewRows, Protocol):
    """The row model of a view whose rows the user sorts."""

    @property
    def sort_column(self) -> str:
        """The id of the column by which the rows are sorted; empty: they are in their usual order."""

    @property
    def descending(self) -> bool: ...

    def sortable(self, width: int) -> Sequence[str]:
        """Return the ids of the columns of a table of this width by which the rows can be sorted."""

    def sort_by(self, column: str, *, descending: bool | None = None) -> None:
        """Sort by this column; None: in its usual direction."""


class ViewContext(NamedTuple):
    """What a view's note, panel and advice depend on besides its rows."""

    state: AppState
    capabilities: Capabilities
    """What the cluster can do."""
    columns: int
    """Width of the text in characters."""
    lines: int = 0
    """Height of the panel in lines; 0: the text is not the panel's."""
    filter: str = ""
    """The filter of the view; empty: none."""

    @property
    def keys(self) -> Mapping[str, str]:
        """The first key of each action that has one, by action id."""
        return self.state.keys

    @property
    def brief(self) -> bool:
        """Whether the panel has only three lines."""
        return self.lines <= LEAST_PANEL

    @property
    def beside(self) -> bool:
        """Whether the panel stands beside the table, in its full height."""
        return self.lines > MOST_PANEL


class FetchContext(NamedTuple):
    """What a view's function needs that fetches from the cluster."""

    backend: Backend
    state: AppState
    take: Callable[[str, Any], None]
    """Stores an answer in the row model of the view of this id, and redraws what changed."""
    redraw: Callable[[str, Iterable[Hashable], bool], None]
    """Redraws the view of this id after its row model has changed: these rows, whose new cells are bright for a moment,
    and with True the order of all rows."""
    redraw_all: Callable[[str], None]
    """Draws the view of this id anew, with no cell bright."""


@dataclass(frozen=True, kw_only=True)
class View:
    """All that is special to one view."""

    table: TableView
    """Its columns, by which the user also filters. Its name is the view's id."""
    title: str
    """The name in the row of views. The tabs of one view share it, and the first of them stands for all."""
    rows: Callable[[AppState], ViewRows]
    """A function that returns the row model; it is called once."""
    fetch: Callable[[FetchContext], Awaitable[None]] | None = None
    """A function that fetches the rows while the view is shown; None: the poller fetches them for all views."""

    key: str = ""
    """The key of the action that shows it, which the row of views shows too; empty: it is a tab without one."""
    action: str = ""
    """The id of the action that shows it; empty: there is none."""
    help: str = ""
    """The sentence about that action."""
    of_one_cluster: bool = False
    """Whether it cannot be shown for all clusters in one table."""
    opens: str = "open"
    """The id of the action that Enter or a click performs on a row."""

    hint: str
    """An example of a filter, which the empty filter line shows."""
    help_title: str = ""
    """What the help page calls the view; empty: its id."""
    tab: str = ""
    """The name among the tabs of its title; empty: it is no tab."""
    is_sorted: bool = False
    """Whether the user can sort the rows, which are then `SortedRows`."""

    row: Callable[[Any, Any], Any] = lambda rows, row_id: rows.row(row_id)
    """A function that returns the row that the row model shows under an id."""
    panel: Callable[[Any, ViewContext], Iterable[Line]]
    """A function that yields the panel's lines about the row under the cursor."""
    panel_beside: bool = False
    """Whether the panel stands beside the table on wide screens, where the table leaves it the width."""
    note: Callable[[ViewContext], Iterable[Span]] = lambda _: ()
    """A function that yields what the row of views says about the view at its right, behind the filter."""
    legend: Callable[[ViewContext], Line] | None = None
    """A function that returns the line above the column titles; None: there is none."""
    chart: Callable[[AppState, int, int], Iterable[Line]] | None = None
    """A function that yields the chart above the column titles, of a width and height; None: there is none."""
    advice: Callable[[ViewContext], Iterable[Line]] | None = None
    """A function that yields what replaces a table without rows; None: the empty table is shown."""
    is_empty: Callable[[Any], bool] = lambda rows: not rows.order
    """Whether the row model has nothing to show, so that the advice replaces the table."""
    widget: Callable[..., Table] = Table
    """The class of the table."""

    @property
    def id(self) -> str:
        """The name by which actions, saved filters and the tables of the main screen refer to the view."""
        return self.table.name


def plain_rows(table: TableView) -> Callable[[AppState], ViewRows]:
    """Return a `View.rows` for rows that are only stored, filtered and drawn as their table says."""
    return lambda state: ListRows(table, state.context, state.options.filters.of)


def tabs_note(tabs: Iterable[View], tab: str, context: ViewContext) -> Iterator[Span]:
    """Yield the note that names the tabs of a view, with the present one highlighted, and the key for the next one."""
    gap = "   " if context.columns >= WIDE else " "
    for view in tabs:
        yield Span(f"{gap}{view.tab}", STRONG if view.tab == tab else MUTED)
    yield Span(f"{gap}{context.keys.get('next_tab', ':next-tab')}", ACCENT)


def connecting(state: AppState) -> Iterator[Line]:
    """Yield the lines of a view whose rows have not arrived: for how long, and why the cluster cannot be reached."""
    seconds = max(0, state.now() - state.began_at) // 1000
    # A connection that takes a moment is not worth a figure that flickers by.
    waiting = f"{spoken(seconds)}, tries again by itself" if seconds >= SHOW_WAIT_SECONDS else ""
    yield line()
    yield line(Span(f"   connecting … {waiting}", MUTED))
    if state.unreachable:
        yield line()
        yield from (line(Span(f"   {safe(text)}", "warning")) for text in state.unreachable.splitlines())
