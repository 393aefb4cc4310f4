"""The Cards view, and its table: in a row the user also moves sideways, from card slice to card slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from cockpit.present.card_map import card_answer, legend, part_at, totals
from cockpit.present.empty_views import no_cards_lines
from cockpit.present.spans import Line, Span
from cockpit.present.tables.cards import CARDS as CARD_TABLE
from cockpit.tui.views.view import WIDE, FetchContext, View, ViewContext
from cockpit.tui.widgets.table import GAP, MARGIN, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual import events

    from cockpit.model.view import NodeRow
    from cockpit.present.tables.cards import CardRow
    from cockpit.tui.rows.cards import CardRows
    from cockpit.tui.theme import RoleTheme


class CardMap(Table):
    """The table of nodes with their cards; its row model holds which card or slice is selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "pick(1)", show=False),
        Binding("left", "pick(-1)", show=False),
    ]

    def __init__(self, rows: CardRows, theme: Callable[[], RoleTheme], *, id: str) -> None:  # noqa: A002 - Textual's word
        super().__init__(rows, theme, id=id)
        self._cards = rows

    def action_pick(self, step: int) -> None:
        """Select the card or slice `step` places to the right."""
        self._pick(self._cards.neighbour(step))

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y
        if place < len(self._cards.order):
            # First the card under the mouse, then the row: the base class opens what is picked at a second click.
            layout = self._cards.layout(self._row_width)
            before = sum(width + GAP for width in (layout.node, layout.model) if width)
            parts = self._cards.of_node(self._cards.order[place])
            self._pick(part_at(parts, layout, event.x - MARGIN - before))
        super().on_click(event)

    def _pick(self, part: CardRow | None) -> None:
        if part is not None:
            self._cards.pick(part)
            self._repick()
            self.post_message(self.CursorMoved(self.cursor_id))

    def _put_cursor(self, place: int) -> None:
        before = self.cursor_id
        super()._put_cursor(place)
        self._cards.cursor = self.cursor_id  # type: ignore[assignment]  # ids of nodes
        # Both rows look different: the picked part is highlighted only where the cursor is.
        self._repick(before)

    def _repick(self, *others: object) -> None:
        rows = [row_id for row_id in (*others, self.cursor_id) if row_id is not None]
        self.rows_changed([row_id for row_id in rows if self._rows.place(row_id) is not None], news=False)


async def _take_cards(context: FetchContext) -> None:
    """Take the cards from the nodes, which the poller has fetched just before."""
    state = context.state
    context.redraw(CARDS.id, *state.card_rows.take(state.node_rows.rows(), state.job_rows.list.rows()))


def _card_panel(row: NodeRow, context: ViewContext) -> Iterator[Line]:
    state, part = context.state, context.state.card_rows.part
    if part is not None:
        job = state.job_rows.row(part.job) if part.job else None
        yield from card_answer(part, row, job, state.context(), context.columns, brief=context.brief)
        colours = "by user" if state.card_rows.by_user else "by job"
        unknown = any(each.assumed for each in state.card_rows.parts())
        yield legend(colours, context.keys.get("colours", ":colours"), unknown=unknown)


def _card_totals(context: ViewContext) -> Iterator[Span]:
    yield Span("   ")
    yield from totals(context.state.card_rows.parts(), words=context.columns >= WIDE)


CARDS = View(
    table=CARD_TABLE,
    title="Cards",
    rows=lambda state: state.card_rows,
    fetch=_take_cards,
    key="3",
    action="cards",
    help="Show cards and the jobs on them",
    hint="model:A100 state:free,stranded user:me node~a0",
    help_title="the map of the cards",
    panel=_card_panel,
    note=_card_totals,
    advice=lambda context: no_cards_lines(len(list(context.state.card_rows.parts())), context.keys),
    widget=CardMap,
)
