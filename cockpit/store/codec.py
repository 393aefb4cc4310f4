"""Events as rows and as lines. Pure: the journal, its archive files and the tests share this one form.

A body is kept as the JSON of `model.events.EventBody`, tag included. Fields only ever come with defaults and unknown
fields are ignored, so whatever was once written decodes forever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import StoreError
from cockpit.model.events import EVENT_VERSION, EventBody, EventRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

COLUMNS = ("seq", "at", "actor", "origin", "request", "type", "version", "job", "body")
"""The columns of a row, in order."""

Row = tuple[int, int, str, str, str, str, int, int | None, str]

_encoder = msgspec.json.Encoder()
_body_decoder: msgspec.json.Decoder[EventBody] = msgspec.json.Decoder(EventBody)
_line_decoder = msgspec.json.Decoder(EventRecord)


class _Line(msgspec.Struct, frozen=True):
    """An `EventRecord` whose body stays the very text that the journal holds."""

    seq: int
    at: int
    actor: str
    origin: str
    request: str
    version: int
    body: msgspec.Raw


def to_row(record: EventRecord) -> Row:
    """Raises `StoreError` when a text in it is not Unicode (half a surrogate pair)."""
    try:
        body = _encoder.encode(record.body).decode()
    except UnicodeEncodeError as error:
        raise StoreError(
            f"Event {record.seq} holds text that is not Unicode ({error}). Nothing was accepted."
        ) from error
    kind = str(record.body.__struct_config__.tag)
    job: int | None = getattr(record.body, "job", None)
    return (record.seq, record.at, record.actor, record.origin, record.request, kind, record.version, job, body)


def from_row(row: Sequence[Any]) -> EventRecord:
    """Raises `StoreError` when today's types cannot read it."""
    seq, at, actor, origin, request, _, version, _, text = row
    try:
        body = _body_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _unreadable(f"event {seq}", error) from error
    record = EventRecord(seq=seq, at=at, actor=actor, origin=origin, request=request, version=version, body=body)
    return _known(record)


def to_line(row: Sequence[Any]) -> bytes:
    """One line of an archive file, newline included: the row as the JSON of an `EventRecord`."""
    seq, at, actor, origin, request, _, version, _, text = row
    return _encoder.encode(_Line(seq, at, actor, origin, request, version, msgspec.Raw(text.encode()))) + b"\n"


def from_line(line: bytes) -> EventRecord:
    """Raises `StoreError` when today's types cannot read it."""
    try:
        return _known(_line_decoder.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable("an archived event", error) from error


def _known(record: EventRecord) -> EventRecord:
    if record.version > EVENT_VERSION:
        raise _unreadable(f"event {record.seq}", f"its version is {record.version}, known is {EVENT_VERSION}")
    return record


def _unreadable(what: str, why: object) -> StoreError:
    return StoreError(
        f"The journal's {what} cannot be read: {why}. "
        "A newer cockpit wrote it, or the file is damaged: start the newer version, or restore the state folder."
    )
