"""Job rows on the wire: how they are asked for, pages by column, and changes of single columns."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from cockpit.model.jobrow import FIELDS, JobRow, JobRows
from cockpit.model.reasons import Reason
from cockpit.protocol.frames import MAX_FRAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.model.view import Priorities

PAGE_ROWS = 5_000
LIST_ROWS = 20_000
"""Of the first page, for who shows nothing before the last."""
PIECE_BYTES = 1 << 20
"""Of encoded records in one frame, except where one record alone is larger."""


class JobsArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    ended: bool = False
    """Also the jobs that accounting alone remembers."""
    brief: bool = False
    """A column that says the same of every row may stand as that one value."""


class SubscribeArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    first: int = 100
    """Rows in the first page: as many as the screen shows."""
    brief: bool = False
    """As in `JobsArgs`, of the pages."""
    anything: bool = False
    """Also an empty change when something has happened that changes no row."""


def _columns_type() -> type[msgspec.Struct]:
    fields: list[Any] = []
    for field in msgspec.structs.fields(JobRow):
        kind = list[int | None] if field.name == "reason" else list[field.type]  # type: ignore[name-defined] # read at run time
        required = field.default is msgspec.NODEFAULT
        fields.append((field.name, kind) if required else (field.name, kind, msgspec.field(default_factory=list)))
    return msgspec.defstruct("JobColumns", fields, array_like=True, frozen=True)


if TYPE_CHECKING:
    JobColumns = msgspec.Struct
else:
    JobColumns = _columns_type()
"""One list per field of `JobRow`, in its order; `reason` holds places in `JobsPage.reasons`. The last ones may be
missing: an older engine does not know them. In a brief page a list of one speaks for all rows; `id` tells their number.
"""


class JobsPage(msgspec.Struct, frozen=True, tag="page"):
    """Job rows by column. Reasons, of which there are few, stand once."""

    columns: JobColumns
    reasons: tuple[Reason, ...] = ()
    counts: dict[str, int] = {}
    """Jobs per state over all that the asker may see; in a subscription's first page."""


class JobsChange(msgspec.Struct, frozen=True, tag="change"):
    """What a subscriber's rows miss."""

    version: int
    new: JobsPage
    changed: tuple[tuple[int, int, dict[int, Any]], ...] = ()
    """(id, version, column index → value) per changed row."""
    removed: tuple[int, ...] = ()
    resync: bool = False
    """Too slow: everything since the last frame was dropped; subscribe again."""


class AllLoaded(msgspec.Struct, frozen=True, tag="loaded"):
    """A subscription's pages are all sent; changes follow."""


Update = JobsPage | AllLoaded | JobsChange
"""What a subscription is told."""

_decode_page = msgspec.msgpack.Decoder(JobsPage).decode
_astuple = msgspec.structs.astuple
_REASON = FIELDS.index("reason")
_DEFAULTS = dict(zip(range(len(FIELDS))[-len(JobRow.__struct_defaults__) :], JobRow.__struct_defaults__, strict=True))


def page_of(rows: Sequence[JobRow], counts: dict[str, int] | None = None, *, brief: bool = False) -> JobsPage:
    """Rows turned into columns."""
    columns = [list(column) for column in zip(*map(_astuple, rows), strict=True)] if rows else [[] for _ in FIELDS]
    places: dict[Reason, int] = {}
    columns[_REASON] = [None if each is None else places.setdefault(each, len(places)) for each in columns[_REASON]]
    if brief:
        columns[1:] = [column[:1] if _says_one_thing(column) else column for column in columns[1:]]
    return JobsPage(JobColumns(*columns), tuple(places), counts or {})


def encoded_pages(
    rows: Sequence[JobRow], counts: dict[str, int] | None = None, *, brief: bool
) -> Iterator[msgspec.Raw]:
    """Rows in one page, or in several where one would not fit into a frame; the first has the counts."""
    page = msgspec.Raw(msgspec.msgpack.encode(page_of(rows, counts, brief=brief)))
    if fits(page) or len(rows) < 2:
        yield page
        return
    middle = len(rows) // 2
    yield from encoded_pages(rows[:middle], counts, brief=brief)
    yield from encoded_pages(rows[middle:], brief=brief)


def _says_one_thing(column: Sequence[Any]) -> bool:
    return bool(column) and column[0] == column[-1] and column.count(column[0]) == len(column)


def start_over(version: int) -> JobsChange:
    """What a subscriber is told who cannot be told the changes."""
    return JobsChange(version, page_of([]), resync=True)


def fits(encoded: msgspec.Raw) -> bool:
    """Whether a frame holds it, with room for what stands around it."""
    return memoryview(encoded).nbytes <= MAX_FRAME - 1024


def rows_of(page: JobsPage) -> JobRows:
    """The page's rows."""
    columns = list(_astuple(page.columns))
    columns[_REASON] = [None if place is None else page.reasons[place] for place in columns[_REASON]]
    for at, default in _DEFAULTS.items():
        columns[at] = columns[at] or [default]
    size = len(columns[0])
    return JobRows([column * size if len(column) == 1 else column for column in columns])


def rows_of_all(pages: Iterable[bytes | msgspec.Raw]) -> JobRows:
    """The rows of encoded pages, of which there is at least one."""
    return JobRows.joined(rows_of(_decode_page(page)) for page in pages)


def pieces(records: Iterable[msgspec.Struct]) -> Iterator[list[msgspec.Raw]]:
    """Records, encoded, in lists that fit into a frame. At least one list."""
    piece: list[msgspec.Raw] = []
    size = 0
    for record in records:
        encoded = msgspec.msgpack.encode(record)
        if piece and size + len(encoded) > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(msgspec.Raw(encoded))
        size += len(encoded)
    yield piece


def whole_list(pages: Iterable[Priorities]) -> Priorities:
    """The rows of all pages in one list. There is at least one page."""
    received = list(pages)
    return replace(received[0], rows=tuple(row for page in received for row in page.rows))


def changed_columns(before: JobRow, after: JobRow) -> dict[int, Any]:
    """Column index → new value, for the columns that differ."""
    pairs = zip(_astuple(before), _astuple(after), strict=True)
    return {index: new for index, (old, new) in enumerate(pairs) if old != new}


def with_changes(row: JobRow, changes: dict[int, Any]) -> JobRow:
    """A row after `changed_columns` arrived for it. Raises `msgspec.ValidationError` for a value of no such column."""
    values = list(_astuple(row))
    for index, value in changes.items():
        values[index] = msgspec.convert(value, _types()[index])
    return JobRow(*values)


@cache
def _types() -> list[Any]:
    """Of the columns."""
    return [field.type for field in msgspec.structs.fields(JobRow)]
