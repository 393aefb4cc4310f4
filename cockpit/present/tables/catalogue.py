"""The columns of the catalogue."""

from __future__ import annotations

from typing import Final

from cockpit.formats.catalogue.fields import entry_values
from cockpit.model.catalogue import EntryKind, EntryRow
from cockpit.model.spec import Access
from cockpit.present.columns import NOTHING, Column, Context, TableView, ValueKind
from cockpit.present.safe import safe

COMMON: Final = frozenset({"name", "project", "owner", "access", "about", "source"})
"""What has a column of its own."""


def means(row: EntryRow, _: Context) -> str:
    """What it says beside that, in words."""
    return means_text(row)


def means_text(row: EntryRow) -> str:
    """What it says beside that, in words."""
    return safe(" ".join(f"{name}={_text(value)}" for name, value in own_values(row).items())) or NOTHING


def own_values(row: EntryRow) -> dict[str, object]:
    """What only an entry of its kind says, as a file says it."""
    return {name: value for name, value in entry_values(row.entry).items() if name not in COMMON}


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{item}" for key, item in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def source(row: EntryRow, _: Context) -> str | None:
    return str(row.entry.source) if hasattr(row.entry, "source") else None


def home(row: EntryRow, _: Context) -> str | None:
    return row.entry.project or None


def stands_in(row: EntryRow, _: Context) -> str | None:
    """The file that alone changes it."""
    return ("cluster.toml" if row.of_rules else "catalogue.toml") if row.entry.filed else None


_LEVELS: Final = {"enum": [str(each) for each in Access]}

CATALOGUE: Final = TableView(
    name="catalogue",
    identity=("kind", "project", "name"),
    help="What names in job files stand for, as far as you may see it",
    empty="Nothing has a name here yet. `cockpit catalogue add --help` shows how datasets, models … get one.",
    columns=(
        Column(
            "kind",
            "KIND",
            ValueKind.TEXT,
            "What it is",
            derive=lambda row, _: str(row.entry.kind),
            schema={"enum": [str(each) for each in EntryKind]},
        ),
        Column("name", "NAME", ValueKind.TEXT, "What job files say", field="entry.name"),
        Column("source", "SOURCE", ValueKind.TEXT, "Where among its kind", derive=source, nullable=True, rare=True),
        Column(
            "project", "PROJECT", ValueKind.TEXT, "Whose it is; none: the whole cluster's", derive=home, nullable=True
        ),
        Column("owner", "OWNER", ValueKind.TEXT, "Who may open and close it", field="entry.owner", aliases=("user",)),
        Column(
            "access",
            "ACCESS",
            ValueKind.TEXT,
            "What the other members of the project may do with it",
            derive=lambda row, _: str(row.entry.access),
            schema=_LEVELS,
        ),
        Column(
            "may",
            "YOU MAY",
            ValueKind.TEXT,
            "What you may do with it",
            derive=lambda row, _: str(row.may),
            schema=_LEVELS,
        ),
        Column(
            "means",
            "STANDS FOR",
            ValueKind.RECORD,
            "What it says beside that, by field",
            derive=lambda row, _: own_values(row),
            words=means,
            schema={"type": "object"},
        ),
        Column("about", "ABOUT", ValueKind.TEXT, "What it is, in a sentence", field="entry.about", wide=True),
        Column("file", "FILE", ValueKind.TEXT, "Where alone it is changed", derive=stands_in, nullable=True, wide=True),
    ),
)
