"""Columns as data: what a table shows, as facts for programs and as text for people, from one place.

A column's *fact* is a plain value (None: nothing to say). Its JSON is the fact with moments in ISO 8601 UTC, its text
is the same fact in words, harmless for a terminal. So JSON and table cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

if TYPE_CHECKING:
    from cockpit.model.spec import NodeSpec

NOTHING: Final = "–"
"""A cell without a fact."""


class Kind(StrEnum):
    """What sort of fact a column holds: decides its alignment, text, JSON type and how a filter compares it."""

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
    {Kind.INTEGER, Kind.NUMBER, Kind.SECONDS, Kind.MIB, Kind.FRACTION, Kind.MEMORY_FRACTION}
)


FRACTIONS: Final = frozenset({Kind.FRACTION, Kind.MEMORY_FRACTION})


LIKE_NUMBERS: Final = FRACTIONS | {Kind.NUMBER}
"""1 and 1.0 are equal, and are not written alike."""


class Fraction(msgspec.Struct, frozen=True):
    used: int | float
    total: int | float


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What facts and texts depend on besides the row."""

    now: Millis
    zone: tzinfo | None = None
    """Of the clocks that people read; None: this machine's."""
    user: str = ""
    """Who `user:me` is."""
    chosen: NodeSpec | None = None
    """The node spec that nodes are judged against."""
    forecasts: Mapping[JobId, Forecast] = {}
    """When queued jobs start, as far as it is known: list, panel and page read it, so that they show one figure."""
    failures: Mapping[JobId, str] = {}
    """The defects for which it is not known, by job."""


class Column(msgspec.Struct, frozen=True):
    """One column of a table. Either `field` names the row's attribute, or `derive` makes the fact."""

    id: str
    title: str
    kind: Kind
    help: str
    field: str = ""
    derive: Callable[[Any, Context], Any] | None = None
    words: Callable[[Any, Context], str] | None = None
    """Text of a row's cell where it says more than its own fact; must be harmless."""
    words_from: tuple[str, ...] = ()
    """The attributes that `words` reads: rows that are equal in them have equal words."""
    ticks: Callable[[Any], bool] | None = None
    """Of which rows the cell changes with every moment. None: of none; that a moment is of today is no change."""
    record_json: Callable[[Any], Any] | None = None
    """JSON of a record that is not its own JSON."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the fact where the kind does not say enough."""
    wide: bool = False
    """Shown only where everything is asked for."""
    spare: bool = False
    """Left out first where the screen is too narrow, the last one first."""
    rare: bool = False
    """Left out where no row has anything to say, unless everything is asked for."""
    nullable: bool = False
    aliases: tuple[str, ...] = ()
    """Other names that filters and `--columns` accept."""

    @property
    def right(self) -> bool:
        """Figures stand at the right edge of their column."""
        return self.kind in RIGHT_ALIGNED

    def fact(self, row: object, context: Context) -> object:
        return self.facts((row,), context)[0]

    def facts(self, rows: Sequence[Any], context: Context) -> list[Any]:
        """One fact a row. By column rather than by row: ten thousand rows are common."""
        if self.derive is None:
            return values(rows, self.field)
        derive = self.derive
        return [derive(row, context) for row in rows]

    def json(self, rows: Sequence[Any], context: Context) -> list[Any]:
        """One JSON value a row, as msgspec encodes it."""
        facts = self.facts(rows, context)
        convert = iso if self.kind is Kind.MOMENT else self.record_json
        return facts if convert is None else map_unique(lambda fact: None if fact is None else convert(fact), facts)

    def texts(self, rows: Sequence[Any], context: Context) -> list[str]:
        """One harmless text a row."""
        if self.words is not None:
            return [self.words(row, context) for row in rows]
        facts = self.facts(rows, context)
        if self.kind in LIKE_NUMBERS:
            return [fact_text(self.kind, fact, context) for fact in facts]
        return map_unique(lambda fact: fact_text(self.kind, fact, context), facts)


def values(rows: Sequence[Any], field: str) -> list[Any]:
    """One attribute of each row. Not to be changed."""
    return rows.column(field) if isinstance(rows, JobRows) else list(map(attrgetter(field), rows))


def _beside(words: Sequence[str]) -> str:
    """Sentences have no commas between them."""
    return (" " if all(map_unique.endswith(".") for map_unique in words) else ", ").join(words)


def fact_text(kind: Kind, fact: object, context: Context) -> str:
    """A fact in words."""
    return NOTHING if fact is None else _TEXT_OF[kind](fact, context)


_TEXT_OF: Final[dict[Kind, Callable[[Any, Context], str]]] = {
    Kind.TEXT: lambda fact, _: safe(fact),
    Kind.INTEGER: lambda fact, _: str(fact),
    Kind.NUMBER: lambda fact, _: str(fact),
    Kind.SECONDS: lambda fact, _: units.duration(fact),
    Kind.MIB: lambda fact, _: units.memory(fact),
    Kind.MOMENT: lambda fact, context: clock(fact, context.now, context.zone),
    Kind.WORDS: lambda fact, _: safe(_beside(fact)) or NOTHING,
    Kind.FRACTION: lambda fact, _: units.fraction(str(fact.used), str(fact.total)),
    Kind.MEMORY_FRACTION: lambda fact, _: units.fraction(units.memory(fact.used), units.memory(fact.total)),
    Kind.RECORD: lambda fact, _: safe(str(fact)),
}


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of row and its columns."""

    name: str
    help: str
    columns: tuple[Column, ...]
    keys: tuple[Column, ...] = ()
    """Further keys that filters accept, never shown."""
    empty: str
    """What is said when there is no row, and what to do next."""
    identity: tuple[str, ...] = ()
    """Ids of the columns that tell a row from all others, however it changes. None: nobody follows these rows."""

    @property
    def default(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.wide)

    def find(self, name: str) -> Column | None:
        """The column or key of that id or alias."""
        wanted = name.lower()
        for column in self.columns + self.keys:
            if wanted == column.id or wanted in column.aliases:
                return column
        return None

    def names(self) -> list[str]:
        """Every name that `find` accepts."""
        return [name for column in self.columns + self.keys for name in (column.id, *column.aliases)]
