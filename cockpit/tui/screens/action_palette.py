"""The palette: whatever can be done here or gone to, found by a few letters of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from cockpit.present.fuzzy import fuzzy_match, highlighted
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, TEXT, Line, Span, key_hint, line, spread
from cockpit.tui.screens.dialog import Dialog, is_open
from cockpit.tui.widgets.entry import SafeInput
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import GAP, Table, TableColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events
    from textual.app import ComposeResult

    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.parts import PaletteEntry

HINT = "the name of an action, a job, a node, a theme …"
ABOUT_ONLY = 5
"""Points of an entry whose description has the typed words, but not its name."""
RECENT, REFUSED, ELSEWHERE = 30, -50, -100
"""Points of what was used lately, of what cannot be used now, and of what belongs to another view."""
NAME_PART, MOST_NAME_COLUMNS, KEYS_COLUMNS = 0.36, 34, 9
"""The names' part of the width and its bound, and the width of the keys."""


class ActionPalette(Dialog[None]):
    """The dialog with the list, in which every key types but those that move the cursor, choose and close."""

    app: Cockpit

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False),
        Binding("down,ctrl+n,tab", "move(1)", show=False),
        Binding("up,shift+tab", "move(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._found: FoundEntries | None = None

    def compose(self) -> ComposeResult:
        dispatcher, theme = self.app.dispatcher, self.app.state.role_theme
        # Made once: while the palette is open, the place where one stands does not change.
        self._found = FoundEntries(dispatcher.palette(), dispatcher.recent)
        with Vertical():
            yield SafeInput(placeholder=HINT)
            table = Table(self._found, theme)
            table.can_focus = False
            yield table
            yield Lines(theme, ground="background", id="foot")

    def on_mount(self) -> None:
        self.query_one(SafeInput).focus()
        self._search("")
        self.run_worker(self._fetch_names(), group="names")

    async def _fetch_names(self) -> None:
        """List the queues too, once their names are here."""
        if await self.app.poller.fetch_names() and is_open(self) and self._found is not None:
            table = self.query_one(Table)
            chosen = table.cursor_id
            self._found.entries = self.app.dispatcher.palette()
            self._search(self.query_one(SafeInput).value)
            if chosen is not None:
                table.move_to(chosen)

    @on(SafeInput.Changed)
    def _typed(self, event: SafeInput.Changed) -> None:
        # What was typed last may arrive after the palette was closed.
        if is_open(self):
            self._search(event.value)

    def _search(self, text: str) -> None:
        assert self._found is not None
        self._found.search(text, self.app.dispatcher.jobs_named(text))
        table = self.query_one(Table)
        table.order_changed()
        table.redraw()
        table.action_go(0)
        self._draw_foot()

    @on(Table.CursorMoved)
    def _draw_foot(self) -> None:
        """Draw the whole reason why the entry under the cursor is refused, else how to go on."""
        found = self._found
        # The palette may be closed before its widgets are there.
        if not is_open(self) or found is None or not self.query(Table):
            return
        entry = self._entry
        foot = self.query_one("#foot", Lines)
        counted = Span(f"{len(found.order)} of {len(found.entries)}", MUTED)
        if entry is None:
            words: Line = line(Span("Nothing is called so.", "warning"))
        elif entry.refusal:
            words = line(Span(safe(entry.refusal), "warning"))
        else:
            words = (*key_hint("Enter", "runs it"), *key_hint("Tab", "next", "   "), *key_hint("Esc", "closes", "   "))
        foot.show([(), spread(words, (counted,), foot.size.width)])

    @property
    def _entry(self) -> PaletteEntry | None:
        chosen = self.query_one(Table).cursor_id
        return None if chosen is None or self._found is None else self._found.entry(str(chosen))

    @on(SafeInput.Submitted)
    def _choose(self) -> None:
        entry = self._entry if is_open(self) else None
        if entry is not None:
            self.dismiss(None)
            # Once this screen has gone: what it runs may open or close others.
            self.app.call_later(self.app.dispatcher.run_entry, entry)

    def on_resize(self) -> None:
        # Only then its last line has a width.
        self.call_after_refresh(self._draw_foot)

    def action_move(self, lines: int) -> None:
        table = self.query_one(Table)
        order = [] if self._found is None else self._found.order
        # Around the end, so that Tab goes through all of them.
        if order and table.cursor_id == order[-1 if lines > 0 else 0]:
            table.action_go(0 if lines > 0 else -1)
        else:
            table.action_move(lines)

    def action_page(self, pages: int) -> None:
        self.query_one(Table).action_page(pages)

    def on_click(self, event: events.Click) -> None:
        """Run the clicked entry; a click beside the box closes the palette."""
        if isinstance(event.widget, Table):
            # The table has put its cursor there; below its last row there is nothing to run.
            if event.y + event.widget.scroll_offset.y < len(event.widget.visible_ids()) + event.widget.scroll_offset.y:
                self._choose()
        elif event.widget is self:
            self.dismiss(None)


class Found(NamedTuple):
    """An entry with the places of its name that were typed."""

    entry: PaletteEntry
    places: frozenset[int] = frozenset()


class FoundEntries:
    """The entries that fit what was typed, as `TableRows` of the palette's table, the likeliest first."""

    def __init__(self, entries: Sequence[PaletteEntry], recent: Sequence[str]) -> None:
        self.entries = entries
        """All that can be found, besides jobs."""
        self._recent = {row_id: place for place, row_id in enumerate(recent)}
        self._found: dict[str, Found] = {}
        self.order: Sequence[str] = []

    def search(self, text: str, jobs: Iterable[PaletteEntry]) -> None:
        """Find the entries, and these jobs, that fit the text; without a text those of the present view."""
        ranked: list[tuple[int, int, Found]] = []
        for entry in (*self.entries, *jobs):
            if (fit := self._fit(entry, text)) is not None:
                points, places = fit
                ranked.append((-points, self._recent.get(entry.id, len(self._recent)), Found(entry, places)))
        # Of equal ones what was used last comes first; the sort keeps the order of the others.
        ranked.sort(key=lambda each: each[:2])
        self._found = {found.entry.id: found for _, _, found in ranked}
        self.order = list(self._found)

    def _fit(self, entry: PaletteEntry, text: str) -> tuple[int, frozenset[int]] | None:
        """Return the entry's points and the typed places of its name; None where it does not fit."""
        if entry.is_elsewhere and not text.strip():
            return None
        match = fuzzy_match(text, safe(entry.name))
        if match is not None:
            score, places = match
        elif all(word in f"{entry.name} {entry.about}".casefold() for word in text.casefold().split()):
            score, places = ABOUT_ONLY, frozenset[int]()
        else:
            return None
        score += RECENT if entry.id in self._recent else 0
        return score + (ELSEWHERE if entry.is_elsewhere else REFUSED if entry.refusal else 0), places

    def entry(self, row_id: str) -> PaletteEntry | None:
        """Return the entry with this id; None where it does not fit what was typed."""
        found = self._found.get(row_id)
        return None if found is None else found.entry

    def place(self, row_id: str) -> int | None:
        return self.order.index(row_id) if row_id in self._found else None

    def columns(self, width: int) -> Sequence[TableColumn]:
        names = min(MOST_NAME_COLUMNS, round(width * NAME_PART))
        about = max(0, width - names - KEYS_COLUMNS - 2 * GAP)
        return [TableColumn("", names), TableColumn("", KEYS_COLUMNS), TableColumn("", about)]

    def cells(self, row_id: str, width: int) -> Sequence[Line]:  # noqa: ARG002 - the table's
        entry, places = self._found[row_id]
        usable = not entry.refusal
        name = highlighted(safe(entry.name), places, TEXT if usable else "unknown", ACCENT if usable else MUTED)
        keys = Span("  ".join(entry.keys), ACCENT if usable else "unknown")
        return [name, line(keys), line(Span(safe(entry.refusal or entry.about), MUTED))]
