"""The help page: every key of the present view with what it does, or why it cannot be used now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical

from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.width import pad
from cockpit.tui.screens.dialog import Dialog
from cockpit.tui.views.all import VIEWS
from cockpit.tui.widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from textual.app import ComposeResult

    from cockpit.tui.parts import HelpEntry
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
KEYS_COLUMNS, LABEL_COLUMNS = 18, 14


class Help(Dialog[None]):
    """The dialog with the help page; Esc, ?, F1 or q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,f1,q", "dismiss", show=False)]

    def __init__(self, entries: Sequence[HelpEntry], view: str, theme: Callable[[], RoleTheme]) -> None:
        super().__init__()
        self._entries = entries
        self._view = view
        self._theme = theme

    def compose(self) -> ComposeResult:
        with Vertical():
            yield LineView(self._theme)

    def on_mount(self) -> None:
        lines = list(help_lines(self._entries, self._view))
        # Border and padding; the stylesheet limits it to the height of the screen.
        self.query_one(Vertical).styles.height = len(lines) + 4
        self.query_one(LineView).hang()
        self.query_one(LineView).show(lines)
        self.query_one(LineView).focus()


def help_lines(entries: Sequence[HelpEntry], view: str) -> Iterator[Line]:
    """Yield the page's lines: the actions by group, then the keys that move the cursor."""
    title = PAGE_TITLES.get(view) or VIEWS[view].help_title or view
    yield line(Span(f"Keys in {title}", STRONG), Span("   Esc closes this page", MUTED))
    groups: dict[str, list[HelpEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.group, []).append(entry)
    # In the order of the table of actions, whose first action of a group decides where the group is.
    for group, members in groups.items():
        yield from _group(group, members)
    yield line()
    yield line(Span("move", MUTED))
    for keys, meaning in (IN_PAGES if view == "job" else IN_TABLES) + ALWAYS:
        yield line(Span(pad(f"  {keys}", KEYS_COLUMNS), ACCENT), meaning)


def _group(group: str, entries: Sequence[HelpEntry]) -> Iterator[Line]:
    yield line()
    yield line(Span(group, MUTED))
    for entry in entries:
        keys, label = pad(f"  {'  '.join(entry.keys)}", KEYS_COLUMNS), pad(entry.label, LABEL_COLUMNS)
        if entry.why_not:
            # The label is there already; behind the colon is the reason.
            yield line(Span(f"{keys}{label}", "unknown"), Span(entry.why_not.split(": ", 1)[-1], MUTED))
        else:
            yield line(Span(keys, ACCENT), label, Span(entry.help, MUTED))
