"""Job rows on the wire: the requests for them, pages of rows stored by column, and changes of single columns.

Long lists of jobs have few distinct values in most columns, so that a brief page replaces a column of equal values by
one value.
"""

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
"""The number of rows in a page."""
LIST_ROWS = 20_000
"""The number of rows in the first page, for clients that show nothing before the last page has arrived."""
PIECE_BYTES = 1 << 20
"""The most bytes of encoded records in one frame, unless a single record is larger."""


class JobsArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `jobs`."""

    ended: bool = False
    """Whether jobs that only the accounting has are included."""
    brief: bool = False
    """Whether a column with the same value in every row may be sent as that one value."""


class SubscribeArgs(msgspec.Struct, frozen=True, omit_defaults=True):
    """The arguments of `subscribe`."""

    first: int = 100
    """The number of rows in the first page: as many as the screen shows."""
    brief: bool = False
    """Whether pages may be brief, as in `JobsArgs`."""
    anything: bool = False
    """Whether an event that changes no row is sent too, as an empty change."""


def _columns_type() -> type[msgspec.Struct]:
    # Made from `JobRow`, so that a new column of the row is one of the wire too. Only columns at the end that have
    # defaults may be new: a page is an array, and an older engine's is shorter.
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
"""The columns of a page: one list for each field of `JobRow`, in its order. `reason` has indices into
`JobsPage.reasons`. The last columns may be missing, since an older engine does not know them. In a brief page a list of
one value stands for all rows, whose number is that of the ids."""


class JobsPage(msgspec.Struct, frozen=True, tag="page"):
    """Job rows, stored by column."""

    columns: JobColumns
    reasons: tuple[Reason, ...] = ()
    """The distinct reasons of all rows, which are few."""
    counts: dict[str, int] = {}
    """The number of jobs by state, of all that the user may see. Only in the first page of a subscription."""


class JobsChange(msgspec.Struct, frozen=True, tag="change"):
    """The changes of a subscriber's rows since the last frame."""

    version: int
    new: JobsPage
    """The new rows."""
    changed: tuple[tuple[int, int, dict[int, Any]], ...] = ()
    """For each changed row: id, version, and the new values by column index."""
    removed: tuple[int, ...] = ()
    """The ids of removed rows."""
    resync: bool = False
    """Whether the client was too slow, so that changes were dropped and it has to subscribe again."""


class AllLoaded(msgspec.Struct, frozen=True, tag="loaded"):
    """The end of a subscription's pages; from now on changes follow."""


Update = JobsPage | AllLoaded | JobsChange
"""One frame of a subscription."""

_decode_page = msgspec.msgpack.Decoder(JobsPage).decode
_astuple = msgspec.structs.astuple
_REASON = FIELDS.index("reason")
_DEFAULTS = dict(zip(range(len(FIELDS))[-len(JobRow.__struct_defaults__) :], JobRow.__struct_defaults__, strict=True))


def page_of(rows: Sequence[JobRow], counts: dict[str, int] | None = None, *, brief: bool = False) -> JobsPage:
    """Return the rows as a page. `brief`: columns of equal values become one value, except the ids."""
    columns = [list(column) for column in zip(*map(_astuple, rows), strict=True)] if rows else [[] for _ in FIELDS]
    indices: dict[Reason, int] = {}
    # Thousands of jobs share a few reasons, so each is sent once and referred to by its index.
    columns[_REASON] = [None if each is None else indices.setdefault(each, len(indices)) for each in columns[_REASON]]
    if brief:
        # The ids stay whole: they tell the client how many rows the constant columns stand for.
        columns[1:] = [column[:1] if _is_constant(column) else column for column in columns[1:]]
    return JobsPage(JobColumns(*columns), tuple(indices), counts or {})


def encoded_pages(
    rows: Sequence[JobRow], counts: dict[str, int] | None = None, *, brief: bool
) -> Iterator[msgspec.Raw]:
    """Yield the rows as one encoded page, or as several if one does not fit into a frame. The first has the counts."""
    page = msgspec.Raw(msgspec.msgpack.encode(page_of(rows, counts, brief=brief)))
    if fits(page) or len(rows) < 2:
        yield page
        return
    # Halves instead of an estimated size: rows differ too much, and a page that does not fit is rare.
    middle = len(rows) // 2
    yield from encoded_pages(rows[:middle], counts, brief=brief)
    yield from encoded_pages(rows[middle:], brief=brief)


def _is_constant(column: Sequence[Any]) -> bool:
    # Comparing the ends first rejects most columns without counting.
    return bool(column) and column[0] == column[-1] and column.count(column[0]) == len(column)


def start_over(version: int) -> JobsChange:
    """Return the change that asks a client to subscribe again."""
    return JobsChange(version, page_of([]), resync=True)


def fits(encoded: msgspec.Raw) -> bool:
    """Tell whether an encoded value fits into a frame, together with the fields of `Answer` around it."""
    # 1 KiB is far more than those fields take; to encode them here would mean to encode the page twice.
    return memoryview(encoded).nbytes <= MAX_FRAME - 1024


def rows_of(page: JobsPage) -> JobRows:
    """Return the rows of a page."""
    columns = list(_astuple(page.columns))
    columns[_REASON] = [None if index is None else page.reasons[index] for index in columns[_REASON]]
    for at, default in _DEFAULTS.items():  # an older engine leaves the last columns out
        columns[at] = columns[at] or [default]
    # The ids are never shortened. In a page of one row, a column of one value is multiplied by 1.
    size = len(columns[0])
    return JobRows([column * size if len(column) == 1 else column for column in columns])


def rows_of_all(pages: Iterable[bytes | msgspec.Raw]) -> JobRows:
    """Return the rows of several encoded pages, of which there must be at least one."""
    return JobRows.joined(rows_of(_decode_page(page)) for page in pages)


def pieces(records: Iterable[msgspec.Struct]) -> Iterator[list[msgspec.Raw]]:
    """Yield encoded records in lists that each fit into a frame; at least one list, which may be empty."""
    piece: list[msgspec.Raw] = []
    size = 0
    for record in records:
        encoded = msgspec.msgpack.encode(record)
        # Tested before the record is added, so that only a record that is too large by itself makes a large piece.
        if piece and size + len(encoded) > PIECE_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(msgspec.Raw(encoded))
        size += len(encoded)
    # Also when it is empty: a client waits for at least one answer.
    yield piece


def whole_list(pages: Iterable[Priorities]) -> Priorities:
    """Return the rows of all pages as one list of priorities. There must be at least one page."""
    received = list(pages)
    return replace(received[0], rows=tuple(row for page in received for row in page.rows))


def changed_columns(before: JobRow, after: JobRow) -> dict[int, Any]:
    """Return the new values by column index, for the columns in which the rows differ."""
    pairs = zip(_astuple(before), _astuple(after), strict=True)
    return {index: new for index, (old, new) in enumerate(pairs) if old != new}


def with_changes(row: JobRow, changes: dict[int, Any]) -> JobRow:
    """Return the row with the values of `changed_columns`. Raises `msgspec.ValidationError` if one has a wrong type."""
    # The wire has plain values (a state is a text), and `changes` is decoded without knowing the columns' types.
    values = list(_astuple(row))
    for index, value in changes.items():
        values[index] = msgspec.convert(value, _types()[index])
    return JobRow(*values)


@cache
def _types() -> list[Any]:
    """Return the type of each column."""
    return [field.type for field in msgspec.structs.fields(JobRow)]
