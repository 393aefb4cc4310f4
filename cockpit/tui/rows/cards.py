"""The row model of the Cards view: a row for each node with cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.card_map import FIGURES, Layout, by_job, by_user, cells, laid_out
from cockpit.present.filters import compile_filter
from cockpit.present.saved import none_saved
from cockpit.present.stranded import known_requests
from cockpit.present.tables.cards import CARDS, card_rows
from cockpit.present.width import width as columns_of
from cockpit.tui.widgets.table import TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from cockpit.model.ids import NodeName
    from cockpit.model.jobrow import JobRow
    from cockpit.model.view import NodeRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved
    from cockpit.present.spans import Line
    from cockpit.present.stranded import Requests
    from cockpit.present.tables.cards import CardRow

Key = tuple[int, int]
"""The card's and the slice's number on a node."""


class CardRows:
    """`TableRows` over the last answer of `backend.nodes()`. `cursor` is the node whose part is picked."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self.cursor: NodeName | None = None
        self.by_user = False
        """Whether colours stand for users rather than jobs."""
        self._context = context
        self._saved = saved
        self._target: Key = (0, -1)
        """The card and slice that the cursor was moved to."""
        self._requests: Requests = ()
        self._nodes: dict[NodeName, NodeRow] = {}
        self._parts: dict[NodeName, list[CardRow]] = {}
        self._places: dict[NodeName, int] = {}
        self._lit: dict[NodeName, Collection[Key]] | None = None
        """The parts that pass the filter; None: no filter."""
        self._filter_text = ""
        self._filter = compile_filter("", CARDS)
        self._largest = (1, 1)
        """Cards of the node with most, columns of the longest name."""

    def take(self, nodes: Sequence[NodeRow], jobs: Iterable[JobRow]) -> tuple[list[NodeName], bool]:
        """Store an answer; return the names of changed nodes, and whether nodes were added or removed."""
        requests = known_requests(jobs)
        fresh = {row.node.name: row for row in nodes if row.node.cards}
        # A node is laid out again if its cards have changed, and all are if the requests of the queue have: whether an
        # idle card is stranded depends on them.
        stale = (
            set(fresh) if requests != self._requests else {n for n, row in fresh.items() if self._nodes.get(n) != row}
        )
        before, self._nodes, self._requests = list(self._places), fresh, requests
        known, self._parts = self._parts, {}
        for name, row in fresh.items():
            self._parts[name] = card_rows(row, requests) if name in stale else known[name]
        # Many nodes differ only in figures that the map does not show.
        changed = [name for name in stale if known.get(name) != self._parts[name]]
        self._arrange()
        return changed, list(self._places) != before

    def filter_by(self, text: str) -> None:
        """Show the nodes with matching parts, other parts dimmed; on `FilterError` the last filter stays in force."""
        self._filter = compile_filter(text, CARDS, saved=self._saved)
        self._filter_text = text
        self._arrange()

    @property
    def order(self) -> Sequence[NodeName]:
        return list(self._places)

    def place(self, row_id: NodeName) -> int | None:
        return self._places.get(row_id)

    def row(self, row_id: NodeName) -> NodeRow | None:
        """Return the row with this id; None where it no longer exists."""
        return self._nodes.get(row_id)

    def parts(self) -> Iterator[CardRow]:
        """Yield the parts of all nodes, also of those that the filter hides."""
        return (part for parts in self._parts.values() for part in parts)

    def layout(self, width: int) -> Layout:
        """Return the layout of a row of this width."""
        return laid_out(width, *self._largest)

    def columns(self, width: int) -> Sequence[TableColumn]:
        layout = self.layout(width)
        titled = zip(layout.titles(), layout.widths(), strict=True)
        return [TableColumn(title, size, right=title in FIGURES) for title, size in titled]

    def cells(self, row_id: NodeName, width: int) -> Sequence[Line]:
        picked = self.part_of(row_id) if row_id == self.cursor else None
        return cells(
            self._parts[row_id],
            self.layout(width),
            by_user if self.by_user else by_job,
            lit=None if self._lit is None else self._lit[row_id],
            picked=None if picked is None else picked.key,
        )

    def of_node(self, row_id: NodeName) -> Sequence[CardRow]:
        """Card by card; none of a node that has gone."""
        return self._parts.get(row_id, ())

    def part_of(self, row_id: NodeName | None) -> CardRow | None:
        """Return the part under the cursor on that node: the one at the picked place, or the next one of that card."""
        parts = self._parts.get(row_id, []) if row_id is not None else []
        # The cursor goes straight down also past a node with fewer slices on this card: it remembers the target, not
        # the part.
        near = [part for part in parts if part.card.index == self._target[0]] or parts
        return next((part for part in near if part.key >= self._target), near[-1] if near else None)

    @property
    def part(self) -> CardRow | None:
        """The card or slice under the cursor."""
        return self.part_of(self.cursor)

    def pick(self, part: CardRow) -> None:
        """Pick this card and slice, on whatever node the cursor is."""
        self._target = part.key

    def neighbour(self, step: int) -> CardRow | None:
        """Return the part `step` places to the right on the cursor's node, or the outermost one."""
        here = self.part
        if here is None or self.cursor is None:
            return None
        parts = self._parts[self.cursor]
        return parts[max(0, min(parts.index(here) + step, len(parts) - 1))]

    def _arrange(self) -> None:
        """Compute the shown nodes, the parts that the filter matches, and the sizes that the layout depends on."""
        order, self._lit = list(self._parts), None
        if self._filter_text.strip():
            lit: dict[NodeName, set[Key]] = {}
            for part in self._filter.passing(self.parts(), self._context()):
                lit.setdefault(part.node.name, set()).add(part.key)
            order = [name for name in order if name in lit]
            self._lit = dict(lit)
        self._places = {name: place for place, name in enumerate(order)}
        # Of all nodes, also hidden ones, so that the columns do not jump while the user types a filter.
        most = max((len(row.node.cards) for row in self._nodes.values()), default=1)
        self._largest = (most, max(map(columns_of, self._nodes), default=1))
