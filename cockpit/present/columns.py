"""The description of tables: each column gives a plain value for programs and a text for users, from one place.

The value of a cell is called its *fact* (None: no value). JSON contains the fact, with moments in ISO 8601 UTC; the
table contains the same fact in words without control characters. So JSON and table cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import tzinfo
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cockpit.model.forecast import Forecast
from cockpit.model.ids import JobId, Millis
from cockpit.model.jobrow import JobRows
from cockpit.present import units
from cockpit.present.map_unique import map_unique
from cockpit.present.moments import clock, iso
from cockpit.present.safe import safe
from cockpit.present.spans import TEXT, Line, Span, line

if TYPE_CHECKING:
    from cockpit.model.spec import NodeSpec

NOTHING: Final = "–"
"""Text of a cell without a fact."""


class ValueKind(StrEnum):
    """The kind of a column's facts, which decides alignment, text, JSON type and how a filter compares them."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    SECONDS = "seconds"
    MIB = "mib"
    MOMENT = "moment"
    WORDS = "words"
    """A tuple of texts."""
    FRACTION = "fraction"
    """A `Fraction` of numbers."""
    MEMORY_FRACTION = "memory fraction"
    """A `Fraction` of MiB."""
    RECORD = "record"
    """An object or a list of objects; its column says its JSON and text."""


RIGHT_ALIGNED: Final = frozenset(
    {
        ValueKind.INTEGER,
        ValueKind.NUMBER,
        ValueKind.SECONDS,
        ValueKind.MIB,
        ValueKind.FRACTION,
        ValueKind.MEMORY_FRACTION,
    }
)


FRACTIONS: Final = frozenset({ValueKind.FRACTION, ValueKind.MEMORY_FRACTION})


LIKE_NUMBERS: Final = FRACTIONS | {ValueKind.NUMBER}
"""Kinds whose texts are not cached by value: 1 and 1.0 are equal keys but have different texts."""


class Fraction(msgspec.Struct, frozen=True):
    used: int | float
    total: int | float


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The moment, time zone, user and predictions on which facts and texts depend besides the row."""

    now: Millis
    zone: tzinfo | None = None
    """Time zone of the shown times; None: this machine's."""
    user: str = ""
    """Name of the user that `user:me` means."""
    chosen: NodeSpec | None = None
    """The node spec for which nodes are idle or tight."""
    forecasts: Mapping[JobId, Forecast] = {}
    """The known forecasts of queued jobs; list, panel and page read them here, so that they show the same start."""
    failures: Mapping[JobId, str] = {}
    """The errors for which a job's forecast is not known, by job."""


class Cell(msgspec.Struct, frozen=True):
    """How the TUI draws a column.

    `draw` and `fill` receive the row and the *scene*: the values on which the cells of a view depend besides the row.
    It is the `Context` unless the view's module names another type.
    """

    width: int
    """Least width in terminal columns."""
    draw: Callable[[Any, Any], Line] | None = None
    """A function that makes the cell; None: the cell is the column's text, and the scene must be a `Context`."""
    fill: Callable[[Any, Any, int], Line] | None = None
    """A function like `draw` that also receives the width which the column got, as bars need it."""
    title: str = ""
    """Title in the TUI; empty: the column's."""
    right: bool | None = None
    """Whether the cells are aligned at the right; None: the column's kind decides."""
    role: str = ""
    """Colour role of a cell without `draw` and `fill`."""
    grows: int = 0
    """Share of the space that is left over."""
    most: int = 0
    """Largest width; 0: unlimited."""
    need: int = 0
    """Least total width of the table that shows the column."""
    after: str = ""
    """Id of the column that it follows in the TUI, where its order differs from that of the columns."""
    ticks: bool = False
    """Whether it shows a passing time, so that a change of it is not highlighted."""
    optional: str = ""
    """The attribute of the row for which it is shown only once a row has had a value, as some backends never fill it;
    empty: it is always shown."""


class Column(msgspec.Struct, frozen=True):
    """A column of a table. Its fact is the row's attribute of the name `field`, unless `derive` computes it."""

    id: str
    title: str
    help: str
    kind: ValueKind = ValueKind.TEXT
    field: str = ""
    """The row's attribute with the fact; without one, and without `derive`, that of the column's id."""
    derive: Callable[[Any, Context], Any] | None = None
    words: Callable[[Any, Context], str] | None = None
    """A function that makes the cell's text from the whole row; its result must have no control characters."""
    words_from: tuple[str, ...] = ()
    """The attributes that `words` reads: rows that are equal in them have equal texts."""
    ticks: Callable[[Any], bool] | None = None
    """A function that says whether the row's cell changes as time passes; None: in no row."""
    record_json: Callable[[Any], Any] | None = None
    """A function that converts a record to its JSON; None: msgspec encodes it as it is."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the fact where the kind does not suffice."""
    values: Collection[str] | type[StrEnum] = ()
    """The only texts that the fact can be, besides null where it is nullable; none: any text."""
    wide: bool = False
    """Whether only `-o wide` shows the column, not the default table."""
    spare: bool = False
    """Whether it is left out first where the screen is too narrow, the last such column first."""
    rare: bool = False
    """Whether it is left out where no row has a fact, except in the wide table."""
    nullable: bool = False
    aliases: tuple[str, ...] = ()
    """Other names that filters and `--columns` accept."""
    cell: Cell | None = None
    """How the TUI draws it; None: it does not."""

    def __post_init__(self) -> None:
        # Most columns are named after the attribute that they show. The struct is frozen, hence `force_setattr`.
        if not self.field and self.derive is None:
            msgspec.structs.force_setattr(self, "field", self.id)

    @property
    def screen(self) -> Cell:
        """The cell of a column that the TUI draws."""
        assert self.cell is not None
        return self.cell

    @property
    def heading(self) -> str:
        """The column's title in the TUI."""
        return self.screen.title or self.title

    @property
    def leans_right(self) -> bool:
        """Whether the TUI aligns the cells at the right."""
        return self.right if self.screen.right is None else self.screen.right

    def drawn(self, row: object, scene: Any, width: int) -> Line:  # noqa: ANN401 - each view has its own
        """Return the row's cell in the TUI. It may be narrower or wider than `width`: the table pads and cuts it."""
        cell = self.screen
        if cell.fill is not None:
            return cell.fill(row, scene, width)
        if cell.draw is not None:
            return cell.draw(row, scene)
        return line(Span(self.texts((row,), scene)[0], cell.role or TEXT))

    @property
    def right(self) -> bool:
        """Whether the cells are aligned at the right, as figures are."""
        return self.kind in RIGHT_ALIGNED

    def fact(self, row: object, context: Context) -> object:
        return self.facts((row,), context)[0]

    def facts(self, rows: Sequence[Any], context: Context) -> list[Any]:
        """Return the fact of each row; by column rather than by row, as tables of ten thousand rows are common."""
        if self.derive is None:
            return values(rows, self.field)
        derive = self.derive
        return [derive(row, context) for row in rows]

    def json(self, rows: Sequence[Any], context: Context) -> list[Any]:
        """Return a value of each row that msgspec encodes as its JSON."""
        facts = self.facts(rows, context)
        convert = iso if self.kind is ValueKind.MOMENT else self.record_json
        return facts if convert is None else map_unique(lambda fact: None if fact is None else convert(fact), facts)

    def texts(self, rows: Sequence[Any], context: Context) -> list[str]:
        """Return the text of each row, without control characters."""
        if self.words is not None:
            return [self.words(row, context) for row in rows]
        facts = self.facts(rows, context)
        # See LIKE_NUMBERS: one text for equal facts would be that of the first of them.
        if self.kind in LIKE_NUMBERS:
            return [fact_text(self.kind, fact, context) for fact in facts]
        return map_unique(lambda fact: fact_text(self.kind, fact, context), facts)


def values(rows: Sequence[Any], field: str) -> list[Any]:
    """Return one attribute of each row. The caller must not change the list: it may be the rows' own."""
    # A job list keeps its columns as lists: no object is made for each of a hundred thousand rows.
    return rows.column(field) if isinstance(rows, JobRows) else list(map(attrgetter(field), rows))


def _joined(words: Sequence[str]) -> str:
    """Join words with commas, and whole sentences with blanks."""
    return (" " if all(word.endswith(".") for word in words) else ", ").join(words)


def fact_text(kind: ValueKind, fact: object, context: Context) -> str:
    """Return the fact as text for users."""
    return NOTHING if fact is None else _TEXT_OF[kind](fact, context)


_TEXT_OF: Final[dict[ValueKind, Callable[[Any, Context], str]]] = {
    ValueKind.TEXT: lambda fact, _: safe(fact),
    ValueKind.INTEGER: lambda fact, _: str(fact),
    ValueKind.NUMBER: lambda fact, _: str(fact),
    ValueKind.SECONDS: lambda fact, _: units.duration(fact),
    ValueKind.MIB: lambda fact, _: units.memory(fact),
    ValueKind.MOMENT: lambda fact, context: clock(fact, context.now, context.zone),
    ValueKind.WORDS: lambda fact, _: safe(_joined(fact)) or NOTHING,
    ValueKind.FRACTION: lambda fact, _: units.fraction(str(fact.used), str(fact.total)),
    ValueKind.MEMORY_FRACTION: lambda fact, _: units.fraction(units.memory(fact.used), units.memory(fact.total)),
    ValueKind.RECORD: lambda fact, _: safe(str(fact)),
}


class TableView(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a table: its name, its columns, and the text for an empty one."""

    name: str
    help: str
    columns: tuple[Column, ...]
    keys: tuple[Column, ...] = ()
    """Columns that only filters use and that are never shown."""
    screen_only: tuple[Column, ...] = ()
    """Columns that only the TUI shows."""
    key: Callable[[Any], Any] | None = None
    """A function that returns the id by which the TUI refers to a row; None: no list of the TUI shows the table."""
    empty: str
    """The sentence that is shown when there is no row, with what to do next."""
    identity: tuple[str, ...] = ()
    """Ids of the columns that identify a row, however it changes; empty: the table cannot be watched."""

    @property
    def default(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.wide)

    def find(self, name: str) -> Column | None:
        """Return the column or filter key with this id or alias, ignoring case; None where there is none."""
        wanted = name.lower()
        for column in self.columns + self.keys:
            if wanted == column.id or wanted in column.aliases:
                return column
        return None

    def names(self) -> list[str]:
        """Return every name that `find` accepts."""
        return [name for column in self.columns + self.keys for name in (column.id, *column.aliases)]

    @property
    def screen(self) -> list[Column]:
        """Return the columns that the TUI draws, in their order there."""
        drawn = [column for column in (*self.columns, *self.screen_only) if column.cell is not None]
        shown = [column for column in drawn if not column.screen.after]
        # After the others are in place: the column that it follows may itself come later in the description.
        for column in drawn:
            if column.screen.after:
                names = [each.id for each in shown]
                shown.insert(names.index(column.screen.after) + 1, column)
        return shown


GAP: Final = 2
"""Blank columns between two cells."""


def laid_out(columns: Sequence[Column], total: int) -> list[tuple[Column, int]]:
    """Return the columns that a table of this width shows, with their widths.

    The last column is widened or narrowed by what is left over or lacking after the others have grown. For a table
    without a size yet the result is empty, although its titles are requested.
    """
    chosen = [column for column in columns if total >= column.screen.need]
    if not chosen:
        return []
    # The order of the steps: which columns are shown, then their least widths, then the space that is left by shares.
    left = total - sum(column.screen.width for column in chosen) - GAP * (len(chosen) - 1)
    shares = sum(column.screen.grows for column in chosen)
    widths = [_grown(column.screen, max(left, 0), shares) for column in chosen]
    widths[-1] = max(1, widths[-1] + total - sum(widths) - GAP * (len(chosen) - 1))
    return list(zip(chosen, widths, strict=True))


def _grown(cell: Cell, left: int, shares: int) -> int:
    growth = left * cell.grows // shares if shares else 0
    return cell.width + (min(growth, cell.most - cell.width) if cell.most else growth)


RECORDS: Final = {"type": "array", "items": {"type": "object"}}
"""The schema of a list of objects."""
_FRACTION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"used": {"type": "number"}, "total": {"type": "number"}},
    "required": ["used", "total"],
}

_TYPES: Final[dict[ValueKind, dict[str, Any]]] = {
    ValueKind.TEXT: {"type": "string"},
    ValueKind.INTEGER: {"type": "integer"},
    ValueKind.NUMBER: {"type": "number"},
    ValueKind.SECONDS: {"type": "integer"},
    ValueKind.MIB: {"type": "integer"},
    ValueKind.MOMENT: {"type": "string", "format": "date-time"},
    ValueKind.WORDS: {"type": "array", "items": {"type": "string"}},
    ValueKind.FRACTION: _FRACTION,
    ValueKind.MEMORY_FRACTION: _FRACTION,
    ValueKind.RECORD: {"type": "object"},
}


def table_schema(table: TableView, version: int) -> dict[str, Any]:
    """Return the JSON Schema of `{"version": …, "rows": […]}`. New columns may be added under the same version;
    removing one needs a new version."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": table.name,
        "description": table.help,
        "type": "object",
        "properties": {"version": {"const": version}, "rows": {"type": "array", "items": row_schema(table)}},
        "required": ["version", "rows"],
    }


def row_schema(table: TableView) -> dict[str, Any]:
    """Return the schema of one row, which always has every column."""
    return {
        "type": "object",
        "properties": {column.id: column_schema(column) for column in table.columns},
        # Required although they may be null: a program need not ask whether a key is there.
        "required": [column.id for column in table.columns],
    }


def column_schema(column: Column) -> dict[str, Any]:
    """Return the schema of one column's JSON."""
    schema = dict(column.schema or _TYPES[column.kind])
    # The words of an enumeration say more than its type.
    if column.values:
        schema = {"enum": [*map(str, column.values), *((None,) if column.nullable else ())]}
    if column.nullable and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return {**schema, "description": column.help}
