"""Events as rows and as lines. Pure: the journal, its archive files and the tests share this one form.

A body is kept as the JSON of `model.events.EventBody`, tag included. Fields only ever come with defaults and unknown
fields are ignored, so whatever was once written decodes forever.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import StoreError
from cockpit.model.events import EVENT_VERSION, EventBody, EventRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

COLUMNS = ("seq", "at", "actor", "origin", "request", "type", "version", "job", "body", "checksum")
"""The columns of a row, in order."""

Row = tuple[int, int, str, str, str, str, int, int | None, str, bytes]
_CHECKSUM_BYTES = 8

_encoder = msgspec.json.Encoder()
_body_decoder: msgspec.json.Decoder[EventBody] = msgspec.json.Decoder(EventBody)
_line_decoder = msgspec.json.Decoder(EventRecord)


class _Beside(msgspec.Struct, frozen=True):
    """What stands in columns beside the body too."""

    type: str
    job: int | None = None


_beside_decoder = msgspec.json.Decoder(_Beside)


class _Line(msgspec.Struct, frozen=True):
    """An `EventRecord` whose body stays the very text that the journal holds."""

    seq: int
    at: int
    actor: str
    origin: str
    request: str
    version: int
    body: msgspec.Raw
    checksum: str = ""
    """In hexadecimal digits; empty for an event that was written before there were checksums."""


_plain_decoder = msgspec.json.Decoder(_Line)


class Damaged(StoreError):
    """An event is not what was written."""


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
    plain = (record.seq, record.at, record.actor, record.origin, record.request, record.version, body)
    return (*plain[:5], kind, record.version, job, body, checksum(*plain))


def checksum(seq: int, at: int, actor: str, origin: str, request: str, version: int, body: str) -> bytes:
    """Of everything that an event says. Type and job, which are columns beside the body, follow from the body."""
    digest = blake2b(digest_size=_CHECKSUM_BYTES)
    for text in (str(seq), str(at), actor, origin, request, str(version), body):
        digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.digest()


def from_row(row: Sequence[Any]) -> EventRecord:
    """Raises `StoreError` when today's types cannot read it, `Damaged` when it is not what was written."""
    seq, at, actor, origin, request, _, version, _, text, written = row
    if written is not None and not _matches(row):
        raise damaged(seq)
    try:
        body = _body_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, TypeError) as error:
        raise _unreadable(f"event {seq}", error) from error
    record = EventRecord(seq=seq, at=at, actor=actor, origin=origin, request=request, version=version, body=body)
    return _known(record)


def to_line(row: Sequence[Any]) -> bytes:
    """One line of an archive file, newline included: the row as the JSON of an `EventRecord`."""
    seq, at, actor, origin, request, _, version, _, text, written = row
    body = msgspec.Raw(text.encode())
    digits = "" if written is None else written.hex()
    return _encoder.encode(_Line(seq, at, actor, origin, request, version, body, digits)) + b"\n"


def from_line(line: bytes) -> EventRecord:
    """Raises `StoreError` when today's types cannot read it, `Damaged` when it is not what was written."""
    try:
        plain = _plain_decoder.decode(line)
        if plain.checksum:
            body = bytes(plain.body).decode()
            said = (plain.seq, plain.at, plain.actor, plain.origin, plain.request, plain.version, body)
            if checksum(*said).hex() != plain.checksum:
                raise damaged(plain.seq)
        return _known(_line_decoder.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable("an archived event", error) from error


def damaged(seq: int) -> Damaged:
    """What is said of an event that does not match its checksum."""
    return Damaged(
        f"The journal's event {seq} is damaged: it does not match its checksum. Nothing was accepted. Stop the engine, "
        "keep a copy of the state folder, then restore it from a backup; `cockpit doctor --journal` lists all damage."
    )


def _matches(row: Sequence[Any]) -> bool:
    """Whether the row says what was written."""
    seq, at, actor, origin, request, kind, version, job, text, written = row
    try:
        if checksum(seq, at, actor, origin, request, version, text) != written:
            return False
        beside = _beside_decoder.decode(text)
    except (msgspec.DecodeError, AttributeError, TypeError, UnicodeEncodeError):
        return False
    return (beside.type, beside.job) == (kind, job)


def _known(record: EventRecord) -> EventRecord:
    if record.version > EVENT_VERSION:
        raise _unreadable(f"event {record.seq}", f"its version is {record.version}, known is {EVENT_VERSION}")
    return record


def _unreadable(what: str, why: object) -> StoreError:
    return StoreError(
        f"The journal's {what} cannot be read: {why}. "
        "A newer cockpit wrote it, or the file is damaged: start the newer version, or restore the state folder."
    )
