"""Catalogue entries: the columns of their list, the panel about one, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cockpit.formats.catalogue.file import entry_values
from cockpit.model.catalogue import EntryKind, EntryRow
from cockpit.model.spec import Access
from cockpit.present.columns import NOTHING, Cell, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, key_hint, line, spread
from cockpit.present.width import pad, widest

COMMON: Final = frozenset({"name", "project", "owner", "access", "about", "source"})
"""Names of the values that have a column of their own."""


_ROLES = {Access.RW: "running", Access.RO: "text", Access.NONE: MUTED}


_WIDTH = 12
_OPEN = {"rw": "may change it", "ro": "may use it", "none": "do not see it"}


_LEVELS: Final = {"enum": [str(each) for each in Access]}


def means_text(row: EntryRow) -> str:
    """Return the entry's values without a column of their own, as `name=value` words."""
    return safe(" ".join(f"{name}={_value_text(value)}" for name, value in own_values(row).items())) or NOTHING


def own_values(row: EntryRow) -> dict[str, object]:
    """Return the values that only entries of this kind have, with the names of the catalogue's file."""
    return {name: value for name, value in entry_values(row.entry).items() if name not in COMMON}


def _value_text(value: object) -> str:
    # Labels and versions: pairs, which read as words in a cell.
    if isinstance(value, dict):
        return ",".join(f"{key}:{item}" for key, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def source(row: EntryRow, _: Context) -> str | None:
    # Null, since only datasets, algorithms and models have a source.
    return str(row.entry.source) if hasattr(row.entry, "source") else None


def defining_file(row: EntryRow, _: Context) -> str | None:
    """Return the file that defines the entry, where only the file can change it; None: commands can change it."""
    return ("cluster.toml" if row.of_rules else "catalogue.toml") if row.entry.filed else None


# Kinds of entries have different values, which do not fit common columns: they are one column of `name=value` words.
CATALOGUE: Final = TableView(
    name="catalogue",
    identity=("kind", "project", "name"),
    key=lambda row: row.entry.key,
    help="What names in job files stand for, as far as you may see it",
    empty="Nothing has a name here yet. `cockpit catalogue add --help` shows how datasets, models … get one.",
    columns=(
        Column("kind", "KIND", "What it is", field="entry.kind", values=EntryKind, cell=Cell(9, role=MUTED)),
        Column("name", "NAME", "What job files say", field="entry.name", cell=Cell(14, role=STRONG, grows=1, most=30)),
        Column(
            "source",
            "SOURCE",
            "Where among its kind",
            derive=source,
            nullable=True,
            rare=True,
            cell=Cell(10, role=MUTED, need=100),
        ),
        Column(
            "project",
            "PROJECT",
            "Whose it is; none: the whole cluster's",
            derive=lambda row, _: row.entry.project or None,
            nullable=True,
            cell=Cell(
                11,
                lambda row, _: line(safe(row.entry.project) if row.entry.project else Span("all users", MUTED)),
                grows=1,
                most=20,
            ),
        ),
        Column(
            "owner",
            "OWNER",
            "Who may open and close it",
            field="entry.owner",
            aliases=("user",),
            cell=Cell(8, lambda row, _: line(safe(row.entry.owner) or Span(NOTHING, MUTED)), grows=1, most=16),
        ),
        Column(
            "access",
            "ACCESS",
            "What the other members of the project may do with it",
            field="entry.access",
            schema=_LEVELS,
            cell=Cell(6, lambda row, _: line(Span(str(row.entry.access), _ROLES[row.entry.access]))),
        ),
        Column(
            "may",
            "YOU MAY",
            "What you may do with it",
            schema=_LEVELS,
            cell=Cell(4, lambda row, _: line(Span(str(row.may), _ROLES[row.may])), title="YOU"),
        ),
        Column(
            "means",
            "STANDS FOR",
            "What it says beside that, by field",
            ValueKind.RECORD,
            derive=lambda row, _: own_values(row),
            words=lambda row, _: means_text(row),
            schema={"type": "object"},
            cell=Cell(16, grows=6),
        ),
        Column("about", "ABOUT", "What it is, in a sentence", field="entry.about", wide=True),
        Column("file", "FILE", "Where alone it is changed", derive=defining_file, nullable=True, wide=True),
    ),
)


def entry_answer(row: EntryRow, keys: Mapping[str, str], columns: int) -> Iterator[Line]:
    """Yield harmless lines about an entry."""
    entry = row.entry
    about = f" · {safe(entry.about)}" if entry.about else ""
    change = keys.get("set_entry", ":set-entry")
    # An entry of a file is changed there, whatever the user may do.
    offer = key_hint(change, "changes it") if row.may is Access.RW and not entry.filed else ()
    yield spread(line(Span(f"{INDENT}{entry.kind} {safe(entry.name)}", STRONG), about), offer, columns)
    yield line(Span(f"{INDENT}{ownership(row)}", MUTED))
    facts = list(own_facts(row))
    names = widest([name for name, _ in facts])
    for name, text in facts:
        yield line(Span(f"{INDENT}{pad(name, names)}  ", MUTED), text)


def no_entries_lines(keys: Mapping[str, str], *, filtered: bool) -> Iterator[Line]:
    """Yield the lines of an empty catalogue view."""
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


def entry_page(row: EntryRow) -> Iterator[str]:
    """Yield the entry's page in harmless lines: owner, access and what the name refers to."""
    entry = row.entry
    yield f"{entry.kind} {safe(entry.name)}" + (f": {safe(entry.about)}" if entry.about else "")
    for name, text in entry_facts(row):
        yield f"  {name:<{_WIDTH}} {text}"


def entry_facts(row: EntryRow) -> Iterator[tuple[str, str]]:
    """Yield harmless labels and texts of an entry."""
    entry = row.entry
    yield "project", safe(entry.project) or "the whole cluster's"
    yield "owner", safe(entry.owner) or NOTHING
    yield "access", f"{entry.access} (other members {_OPEN[entry.access]})"
    yield "you may", str(row.may)
    yield from own_facts(row)
    if entry.filed:
        yield "file", _file(row)


def ownership(row: EntryRow) -> str:
    """Return one line with the project, the owner, and the access of others and of the user."""
    entry = row.entry
    # The words of the page in one line, where the panel has no room for a table.
    whose = [safe(entry.project) or "the whole cluster's", *([f"{safe(entry.owner)}'s"] if entry.owner else [])]
    others = f"others {_OPEN[entry.access]}"
    file = [f"in {_file(row)}"] if entry.filed else []
    return " · ".join([*whose, others, f"you {_OPEN[row.may]}", *file])


def own_facts(row: EntryRow) -> Iterator[tuple[str, str]]:
    """Yield label and text of the values that only entries of this kind have."""
    if source := getattr(row.entry, "source", ""):
        yield "source", str(source)
    for name, value in own_values(row).items():
        yield from _value(name, value)


def _file(row: EntryRow) -> str:
    return "cluster.toml" if row.of_rules else "catalogue.toml"


def _value(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield from ((f"{name}.{safe(str(key))}", safe(str(item))) for key, item in value.items())
    else:
        yield name, safe(", ".join(map(str, value)) if isinstance(value, list) else str(value))
