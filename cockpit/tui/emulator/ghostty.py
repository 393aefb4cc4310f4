"""The emulator of pyghostty: libghostty-vt, which interprets hundreds of megabytes a second.

The rows come from libghostty's render state, which tells those that changed. Cells are read as packed numbers, a whole
row at a time: a call of C for each cell would take longer than interpreting the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyghostty import Terminal
from pyghostty.core import check, ffi, init_sized, lib, union_fn
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from cockpit.tui.emulator.base import SCROLLBACK_LINES, Cursor, Modes
from cockpit.tui.emulator.cells import REPLACEMENT, Look, PaletteOrRgb, cell_style, cell_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_KNOWN_CELLS: Final = 1 << 15
_MOST_MARKS: Final = 32
"""Longest cell in bytes of UTF-8: a program may put any number of combining marks on one letter."""
_PLAIN: Final = Style.null()

# cffi passes no union by value. A structure of the same layout is passed in the same way.
ffi.cdef(
    "typedef struct { GhosttyTerminalScrollViewportTag tag; intptr_t delta; uint64_t padding; } CockpitScrollViewport;"
)
_scroll_viewport: Final = union_fn(
    "ghostty_terminal_scroll_viewport", "void(*)(GhosttyTerminal, CockpitScrollViewport)"
)


class GhosttyEmulator:
    """A terminal of libghostty."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._terminal = Terminal(columns, rows, scrollback=SCROLLBACK_LINES)
        self._replies: list[bytes] = []
        self._terminal.on_reply(self._replies.append)
        # Without storage libghostty ignores the graphics protocol, which could have it read files of this machine.
        self._set("KITTY_IMAGE_STORAGE_LIMIT", ffi.new("uint64_t*", 0))
        self._state = ffi.new("GhosttyRenderState*")
        check(lib.ghostty_render_state_new(ffi.NULL, self._state), "render_state_new")
        self._iterator = ffi.new("GhosttyRenderStateRowIterator*")
        check(lib.ghostty_render_state_row_iterator_new(ffi.NULL, self._iterator), "row_iterator_new")
        self._cells = ffi.new("GhosttyRenderStateRowCells*")
        check(lib.ghostty_render_state_row_cells_new(ffi.NULL, self._cells), "row_cells_new")
        self._row, self._raw = ffi.new("uint16_t*"), ffi.new("GhosttyCellsView*")
        self._cell_style = init_sized("GhosttyStyle")
        self._known: dict[int, tuple[str, int, bool, Style | None]] = {}
        """What a packed cell means: its text, its style's number, whether marks belong to it, and its style where it is
        nothing but a colour."""
        self._lines: list[Sequence[Segment]] = [()] * rows

    def _set(self, option: str, value: Any) -> None:  # noqa: ANN401 - a pointer of C
        check(lib.ghostty_terminal_set(self._handle, getattr(lib, f"GHOSTTY_TERMINAL_OPT_{option}"), value), option)

    @property
    def _handle(self) -> Any:  # noqa: ANN401 - a pointer of C
        return self._terminal._t[0]  # noqa: SLF001 - pyghostty's own way to what it does not wrap

    def feed(self, data: bytes) -> bytes:
        self._terminal.feed(data)
        if not self._replies:
            return b""
        replies = b"".join(self._replies)
        self._replies.clear()
        return replies

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._terminal.resize(columns, rows)

    def changed(self) -> Sequence[int]:
        check(lib.ghostty_render_state_update(self._state[0], self._handle), "render_state_update")
        self._state_get("ROW_ITERATOR", self._iterator)
        dirty = ffi.new("GhosttyRenderStateDirty*")
        self._state_get("DIRTY", dirty)
        if len(self._lines) != self.rows:
            self._lines = [()] * self.rows
        if dirty[0] == lib.GHOSTTY_RENDER_STATE_DIRTY_FULL:
            rows = list(range(self.rows))
            for row in rows:
                lib.ghostty_render_state_row_iterator_next(self._iterator[0])
                self._lines[row] = self._read_row()
        else:
            rows = []
            while lib.ghostty_render_state_row_iterator_next_dirty(self._iterator[0], self._row):
                rows.append(self._row[0])
                self._lines[self._row[0]] = self._read_row()
        check(lib.ghostty_render_state_clean(self._state[0]), "render_state_clean")
        return rows

    def line(self, row: int) -> Sequence[Segment]:
        return self._lines[row]

    def cursor(self) -> Cursor | None:
        seen = ffi.new("bool*")
        for condition in ("CURSOR_VISIBLE", "CURSOR_VIEWPORT_HAS_VALUE"):
            self._state_get(condition, seen)
            if not seen[0]:
                return None
        column, row = ffi.new("uint16_t*"), ffi.new("uint16_t*")
        self._state_get("CURSOR_VIEWPORT_X", column)
        self._state_get("CURSOR_VIEWPORT_Y", row)
        return Cursor(column[0], row[0])

    def modes(self) -> Modes:
        mode = self._terminal.mode
        return Modes(
            application_cursor=mode(1),
            bracketed_paste=mode(2004),
            mouse_clicks=mode(1000),
            mouse_drags=mode(1002),
            mouse_moves=mode(1003),
            sgr_mouse=mode(1006),
            alternate_screen=self._terminal.get("active_screen", "GhosttyTerminalScreen") != 0,
            disambiguates_keys=bool(self._terminal.get("kitty_keyboard_flags", "uint8_t")),
        )

    def scroll(self, lines: int) -> None:
        where = ffi.new("CockpitScrollViewport*")
        where.tag, where.delta = lib.GHOSTTY_SCROLL_VIEWPORT_DELTA, lines
        _scroll_viewport(self._handle, where[0])

    def scrolled_back(self) -> int:
        bar = ffi.new("GhosttyTerminalScrollbar*")
        check(lib.ghostty_terminal_get(self._handle, lib.GHOSTTY_TERMINAL_DATA_SCROLLBAR, bar), "scrollbar")
        return int(max(0, bar.total - bar.offset - bar.len))

    def close(self) -> None:
        lib.ghostty_render_state_row_cells_free(self._cells[0])
        lib.ghostty_render_state_row_iterator_free(self._iterator[0])
        lib.ghostty_render_state_free(self._state[0])
        self._terminal.close()

    def _state_get(self, what: str, out: Any) -> None:  # noqa: ANN401 - a pointer of C
        check(
            lib.ghostty_render_state_get(self._state[0], getattr(lib, f"GHOSTTY_RENDER_STATE_DATA_{what}"), out), what
        )

    def _read_row(self) -> Sequence[Segment]:
        """Return the iterator's present row as segments."""
        row = self._iterator[0]
        check(lib.ghostty_render_state_row_get(row, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS_RAW, self._raw), "cells")
        check(lib.ghostty_render_state_row_get(row, lib.GHOSTTY_RENDER_STATE_ROW_DATA_CELLS, self._cells), "cells")
        segments: list[Segment] = []
        text: list[str] = []
        present: Any = 0
        style = _PLAIN
        # Numbers of styles mean something only within a row: the style of the first cell of each run is looked up.
        for column, raw in enumerate(ffi.unpack(self._raw.ptr, self._raw.len)):
            drawn, number, has_marks, colour = self._known.get(raw) or self._learn(raw)
            key = number if colour is None else colour
            if key != present:
                if text:
                    segments.append(Segment("".join(text), style))
                    text = []
                present = key
                style = colour if colour is not None else self._style_at(column) if number else _PLAIN
            text.append(self._with_marks(column, drawn) if has_marks else drawn)
        # Cells that a program has moved may end with the first half of a wide character.
        if text and cell_len(text[-1]) > 1:
            text[-1] = REPLACEMENT
        if text:
            segments.append(Segment("".join(text), style))
        return segments

    def _learn(self, raw: int) -> tuple[str, int, bool, Style | None]:
        if len(self._known) >= _MOST_KNOWN_CELLS:
            self._known.clear()
        self._known[raw] = meaning = self._meaning(raw)
        return meaning

    def _meaning(self, raw: int) -> tuple[str, int, bool, Style | None]:
        tag = self._cell_get(raw, "CONTENT_TAG", "GhosttyCellContentTag*")[0]
        if tag == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_PALETTE:
            return " ", 0, False, cell_style(Look(bg=self._cell_get(raw, "COLOR_PALETTE", "uint8_t*")[0]))
        if tag == lib.GHOSTTY_CELL_CONTENT_BG_COLOR_RGB:
            rgb = self._cell_get(raw, "COLOR_RGB", "GhosttyColorRgb*")
            return " ", 0, False, cell_style(Look(bg=(rgb.r, rgb.g, rgb.b)))
        wide = self._cell_get(raw, "WIDE", "GhosttyCellWide*")[0]
        code = self._cell_get(raw, "CODEPOINT", "uint32_t*")[0]
        style = self._cell_get(raw, "STYLE_ID", "uint16_t*")[0]
        # The second half of a wide character is a cell of its own, without text.
        if wide == lib.GHOSTTY_CELL_WIDE_SPACER_TAIL:
            return "", style, False, None
        text = cell_text(chr(code) if code else " ", 2 if wide == lib.GHOSTTY_CELL_WIDE_WIDE else 1)
        return text, style, tag == lib.GHOSTTY_CELL_CONTENT_CODEPOINT_GRAPHEME, None

    def _cell_get(self, raw: int, what: str, kind: str) -> Any:  # noqa: ANN401 - a pointer of C
        out = ffi.new(kind)
        check(lib.ghostty_cell_get(raw, getattr(lib, f"GHOSTTY_CELL_DATA_{what}"), out), what)
        return out

    def _with_marks(self, column: int, drawn: str) -> str:
        """Return the cell's text with its combining marks; `drawn` is its first character."""
        check(lib.ghostty_render_state_row_cells_select(self._cells[0], column), "cell")
        count = ffi.new("uint32_t*")
        self._row_cell_get("GRAPHEMES_LEN", count)
        if not 0 < count[0] <= _MOST_MARKS:
            return drawn
        codes = ffi.new("uint32_t[]", count[0])
        self._row_cell_get("GRAPHEMES_BUF", codes)
        return cell_text("".join(map(chr, codes)), cell_len(drawn))

    def _style_at(self, column: int) -> Style:
        check(lib.ghostty_render_state_row_cells_select(self._cells[0], column), "cell")
        style = self._cell_style
        self._row_cell_get("STYLE", style)
        look = Look(
            _palette_or_rgb(style.fg_color),
            _palette_or_rgb(style.bg_color),
            style.bold,
            style.faint,
            style.italic,
            style.underline != 0,
            style.inverse,
            style.strikethrough,
            style.invisible,
        )
        return cell_style(look)

    def _row_cell_get(self, what: str, out: Any) -> None:  # noqa: ANN401 - a pointer of C
        what = f"GHOSTTY_RENDER_STATE_ROW_CELLS_DATA_{what}"
        check(lib.ghostty_render_state_row_cells_get(self._cells[0], getattr(lib, what), out), what)


def _palette_or_rgb(colour: Any) -> PaletteOrRgb:  # noqa: ANN401 - a structure of C
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_PALETTE:
        return int(colour.value.palette)
    if colour.tag == lib.GHOSTTY_STYLE_COLOR_RGB:
        return colour.value.rgb.r, colour.value.rgb.g, colour.value.rgb.b
    return None
