"""The Catalogue view: its columns as cells with roles, and the panel about the entry under the cursor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from cockpit.model.catalogue import EntryRow
from cockpit.model.spec import Access
from cockpit.present.catalogue_page import own_facts, ownership
from cockpit.present.columns import NOTHING
from cockpit.present.layout import fitting
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line, spread
from cockpit.present.tables.catalogue import means_text
from cockpit.present.width import pad, widest

INDENT = "  "
_ROLES = {Access.RW: "running", Access.RO: "text", Access.NONE: MUTED}


class EntryColumn(NamedTuple):
    """One column of the view."""

    id: str
    title: str
    width: int
    cell: Callable[[EntryRow], Line]
    right: bool = False
    grows: int = 0
    most: int = 0
    need: int = 0


def _kind(row: EntryRow) -> Line:
    return line(Span(str(row.entry.kind), MUTED))


def _source(row: EntryRow) -> Line:
    return line(Span(str(getattr(row.entry, "source", NOTHING)), MUTED))


def _project(row: EntryRow) -> Line:
    return line(safe(row.entry.project) if row.entry.project else Span("all users", MUTED))


def _access(row: EntryRow) -> Line:
    return line(Span(str(row.entry.access), _ROLES[row.entry.access]))


def _may(row: EntryRow) -> Line:
    return line(Span(str(row.may), _ROLES[row.may]))


COLUMNS = (
    EntryColumn("kind", "KIND", 9, _kind),
    EntryColumn("name", "NAME", 14, lambda row: line(Span(safe(row.entry.name), STRONG)), grows=1, most=30),
    EntryColumn("source", "SOURCE", 10, _source, need=100),
    EntryColumn("project", "PROJECT", 11, _project, grows=1, most=20),
    EntryColumn("owner", "OWNER", 8, lambda row: line(safe(row.entry.owner) or Span(NOTHING, MUTED)), grows=1, most=16),
    EntryColumn("access", "ACCESS", 6, _access),
    EntryColumn("may", "YOU", 4, _may),
    EntryColumn("means", "STANDS FOR", 16, lambda row: line(means_text(row)), grows=6),
)


@lru_cache(maxsize=16)
def laid_out(total: int) -> tuple[tuple[EntryColumn, int], ...]:
    """The columns that fit, with their widths."""
    return tuple(fitting(COLUMNS, total))


def entry_answer(row: EntryRow, keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Harmless lines."""
    entry = row.entry
    about = f" · {safe(entry.about)}" if entry.about else ""
    change = keys.get("set_entry", ":set-entry")
    offer = line(Span(change, ACCENT), Span(" changes it", MUTED)) if row.may is Access.RW and not entry.filed else ()
    yield spread(line(Span(f"{INDENT}{entry.kind} {safe(entry.name)}", STRONG), about), offer, columns)
    yield line(Span(f"{INDENT}{ownership(row)}", MUTED))
    facts = list(own_facts(row))
    names = widest([name for name, _ in facts])
    for name, text in facts:
        yield line(Span(f"{INDENT}{pad(name, names)}  ", MUTED), text)


def no_entries_lines(keys: Mapping[str, str], *, filtered: bool) -> Iterator[Line]:
    """Of an empty view."""
    yield line()
    if filtered:
        yield line(Span("   Nothing matches.", STRONG), Span(f"   {keys.get('back', 'Esc')} shows all.", MUTED))
        return
    yield line(Span("   Nothing has a name here yet.", STRONG))
    yield line()
    yield line("   Datasets, models, images, specs … get names here that job files may say instead of paths.")
    yield line(
        Span(f"   {keys.get('add_entry', ':add-entry')}", ACCENT),
        "  add one, such as  ",
        Span("catalogue add dataset corpus path=/data/corpus access=ro", ACCENT),
    )
