"""The help page: every key of the present view with what it does, or why it cannot be used now."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, TEXT, Line, Span, fitted, hung, line
from cockpit.present.width import pad, widest
from cockpit.tui.parts import HelpEntry
from cockpit.tui.screens.dialog import Dialog, is_open
from cockpit.tui.views.all import VIEWS
from cockpit.tui.widgets.entry import SafeInput
from cockpit.tui.widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual.app import ComposeResult

    from cockpit.tui.theme import RoleTheme

IN_TABLES = (
    ("j k ↓ ↑", "Move by one row"),
    ("Ctrl-d  Ctrl-u", "Move by half a page"),
    ("g  G", "Go to the first row; to the last row"),
    ("Space  V", "Mark a row; mark a range of rows"),
)
IN_PAGES = (*IN_TABLES[:2], ("g  G", "Go to the top; go to the end and follow it"))
ALWAYS = (("Ctrl-p", "Find any action by its name"),)
PAGE_TITLES = {"job": "a job's page", "node": "a node's page"}
COLUMN, GAP = 50, 3
"""Least width of a column where there are several, and the blank between two."""
BOX, BOX_PART, FRAME = 78, 0.96, 6
"""Width of the box with one column, its largest part of the screen, and what border, padding and scrollbar take."""
WIDE = 120
"""Width of the screen from which there are several columns."""


class Help(Dialog[None]):
    """The dialog with the help page; Esc, ?, F1 or q closes it, / searches in it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("question_mark,f1,q", "dismiss", show=False),
        Binding("slash", "search", show=False),
    ]

    def __init__(self, entries: Sequence[HelpEntry], view: str, theme: Callable[[], RoleTheme]) -> None:
        super().__init__()
        self._entries = entries
        self._view = view
        self._theme = theme

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineView(self._theme)
            yield SafeInput(placeholder="a key, a name, a word of the description; Esc shows everything")

    def on_mount(self) -> None:
        self.query_one(SafeInput).display = False
        self._draw()
        self.query_one(LineView).focus()

    def on_resize(self) -> None:
        # The page may be closed before its widgets are there.
        if is_open(self) and self.query(SafeInput):
            self._draw()

    def _draw(self) -> None:
        """Lay the page out for the width of the screen, with the entries that have the searched words."""
        screen, typed = self.app.size.width, self.query_one(SafeInput)
        most = int(screen * BOX_PART)  # rounded down, as the stylesheet's limit is
        box = most if screen >= WIDE else min(BOX, most)
        lines = help_lines(self._entries, self._view, box - FRAME, typed.value)
        styles = self.query_one(Vertical).styles
        styles.width = box
        # While one searches the box keeps its height: it would jump with each letter. The stylesheet limits it to the
        # height of the screen. Border and padding are 4 lines.
        if not typed.display:
            styles.height = len(lines) + 4
        view = self.query_one(LineView)
        view.search(typed.value.strip())
        view.show(lines)

    def action_search(self) -> None:
        typed = self.query_one(SafeInput)
        typed.display = True
        typed.focus()

    def action_back(self) -> None:
        typed = self.query_one(SafeInput)
        if not typed.display:
            self.dismiss()
            return
        typed.value = ""
        typed.display = False
        self.query_one(LineView).focus()
        self._draw()

    @on(SafeInput.Changed)
    def _typed(self) -> None:
        # What was typed last may arrive after the page was closed.
        if is_open(self):
            self._draw()

    @on(SafeInput.Submitted)
    def _submitted(self) -> None:
        self.query_one(LineView).focus()


def help_lines(entries: Sequence[HelpEntry], view: str, width: int, wanted: str = "") -> list[Line]:
    """Return the page: the actions by group, then the keys that move the cursor, in as many columns as fit.

    With `wanted`, only entries that have all its words in their keys, names, descriptions or groups.
    """
    title = PAGE_TITLES.get(view) or VIEWS[view].help_title or view
    head = line(Span(f"Keys in {title}", STRONG), Span("   Esc closes this page, / searches it", MUTED))
    words = wanted.casefold().split()
    groups: dict[str, list[HelpEntry]] = {}
    for entry in (*entries, *_moves(view)):
        if all(word in " ".join((*entry.keys, entry.label, entry.help, entry.group)).casefold() for word in words):
            groups.setdefault(entry.group, []).append(entry)
    if not groups:
        return [head, line(), line(Span("Nothing here has these words.", "warning"))]
    number = max(1, (width + GAP) // (COLUMN + GAP))
    size = (width - GAP * (number - 1)) // number
    # In the order of the table of actions, whose first action of a group decides where the group is.
    blocks = [[each for whole in _group(*group) for each in hung(whole, size)] for group in groups.items()]
    return [head, *_beside(_balanced(blocks, number), size)]


def _moves(view: str) -> Iterator[HelpEntry]:
    for keys, meaning in (IN_PAGES if view == "job" else IN_TABLES) + ALWAYS:
        yield HelpEntry((keys,), "", meaning, "move", "")


def _balanced(blocks: Sequence[Sequence[Line]], number: int) -> list[list[Line]]:
    """Return the blocks in columns of about equal height, each block whole, in their order down each column."""
    # The least height for which the columns suffice: too small ones are tried first, as there are few lines.
    height = max(map(len, blocks))
    while len(columns := _filled(blocks, height)) > number:
        height += 1
    return columns


def _filled(blocks: Sequence[Sequence[Line]], height: int) -> list[list[Line]]:
    columns: list[list[Line]] = [[]]
    for block in blocks:
        if columns[-1] and len(columns[-1]) + len(block) > height:
            columns.append([])
        columns[-1] += block
    return columns


def _beside(columns: Sequence[Sequence[Line]], size: int) -> Iterator[Line]:
    for row in zip_longest(*columns, fillvalue=()):
        cells = [each for cell in row for each in (Span(" " * GAP), *fitted(cell, size))]
        yield tuple(cells[1:])


def _group(group: str, entries: Sequence[HelpEntry]) -> Iterator[Line]:
    """Yield the group's title and entries; keys and labels are as wide as those of the group, so that texts wrap
    less."""
    yield line()
    yield line(Span(group, MUTED))
    keys = [f"{INDENT}{'  '.join(entry.keys)}" for entry in entries]
    key_columns, label_columns = widest(keys) + 2, widest([entry.label for entry in entries])
    for entry, each in zip(entries, keys, strict=True):
        key, label = pad(each, key_columns), pad(entry.label, label_columns) + INDENT * bool(label_columns)
        if entry.why_not:
            # It keeps its meaning. The label is there already; behind the colon is the reason.
            reason = f" (not now: {entry.why_not.split(': ', 1)[-1].removesuffix('.')})"
            yield line(Span(f"{key}{label}{entry.help}", "unknown"), Span(reason, MUTED))
        else:
            yield line(Span(key, ACCENT), label, Span(entry.help, MUTED if entry.label else TEXT))
