"""Encodes events as rows of the journal and as lines of archive files, and answers as rows, with checksums. Pure.

A body is stored as the JSON of `model.events.EventBody` with its tag. New fields always have defaults and unknown
fields are ignored, so that every stored event can be decoded for ever.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import StoreError
from cockpit.model.events import EVENT_VERSION, EventBody, EventRecord
from cockpit.model.forecast import PromisedStart
from cockpit.model.requests import KeptAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cockpit.model.ids import Millis

COLUMNS = ("seq", "at", "actor", "origin", "request", "type", "version", "job", "body", "checksum")
"""The columns of an event's row, in order."""
ANSWER_COLUMNS = ("request", "at", "answer", "op", "digest", "refused", "checksum")
"""The columns of an answer's row, in order."""
PROMISE_COLUMNS = ("job", "promise", "checksum")
"""The columns of a promised start's row, in order."""

Row = tuple[int, int, str, str, str, str, int, int | None, str, bytes]
_CHECKSUM_BYTES = 8

_encoder = msgspec.json.Encoder()
_body_decoder: msgspec.json.Decoder[EventBody] = msgspec.json.Decoder(EventBody)
_promise_decoder = msgspec.json.Decoder(PromisedStart)
_line_decoder = msgspec.json.Decoder(EventRecord)


class _Columns(msgspec.Struct, frozen=True):
    """The fields of a body that the row repeats in columns of their own."""

    type: str
    job: int | None = None


_columns_decoder = msgspec.json.Decoder(_Columns)


class _Line(msgspec.Struct, frozen=True):
    """An `EventRecord` whose body is left as the JSON text that the journal stores, since the checksum is of it."""

    seq: int
    at: int
    actor: str
    origin: str
    request: str
    version: int
    body: msgspec.Raw
    checksum: str = ""
    """The checksum in hexadecimal digits; empty for an event that was written before events had checksums."""


_plain_decoder = msgspec.json.Decoder(_Line)


class Damaged(StoreError):
    """A stored event or answer does not match its checksum."""


def to_row(record: EventRecord) -> Row:
    """Return the event as a row. Raises `StoreError` if a text in it is not Unicode (half a surrogate pair)."""
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
    """Return the checksum of an event. It covers type and job too, since these columns repeat fields of the body."""
    return checksum_of(seq, at, actor, origin, request, version, body)


def checksum_of(*values: str | float | bytes | None) -> bytes:
    """Return the checksum of a row's values."""
    digest = blake2b(digest_size=_CHECKSUM_BYTES)
    for value in values:
        digest.update(value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass"))
        # a mark behind each value: else ("ab", "c") and ("a", "bc") would have the same checksum
        digest.update(b"\0")
    return digest.digest()


def answer_to_row(answer: KeptAnswer, at: Millis) -> tuple[str, int, bytes, str, bytes, int, bytes]:
    """Return the answer, given at `at`, as a row."""
    plain = (answer.request, at, answer.answer, answer.op, answer.digest, int(answer.refused))
    return (*plain, checksum_of(*plain))


def answer_from_row(row: Sequence[Any]) -> KeptAnswer:
    """Return the answer of a row. Raises `Damaged` if it does not match its checksum; older rows have none."""
    *plain, written = row
    if written is not None and checksum_of(*plain) != written:
        raise Damaged(
            f"The stored answer to the request {row[0]} is damaged: it does not match its checksum. "
            "`cockpit doctor --journal` lists all damage."
        )
    request, at, encoded, op, digest, refused = plain
    return KeptAnswer(request, encoded, op, digest, refused=bool(refused), at=at)


def promise_to_row(promise: PromisedStart) -> tuple[int, str, bytes]:
    """Return a promised start as a row."""
    plain = (promise.job, _encoder.encode(promise).decode())
    return (*plain, checksum_of(*plain))


def promise_from_row(row: Sequence[Any]) -> PromisedStart:
    """Return the promised start of a row.

    Raises `Damaged` if it does not match its checksum (older rows have none) or cannot be decoded.
    """
    *plain, written = row
    try:
        if written is None or checksum_of(*plain) == written:
            return _promise_decoder.decode(plain[1])
    except (msgspec.DecodeError, TypeError, UnicodeEncodeError):
        pass
    raise Damaged(f"The promised start of job {row[0]} does not match its checksum.")


def from_row(row: Sequence[Any]) -> EventRecord:
    """Return the event of a row.

    Raises `Damaged` if it does not match its checksum, and `StoreError` if today's types cannot decode it.
    """
    seq, at, actor, origin, request, _, version, _, text, written = row
    if written is not None and not _matches(row):
        raise damaged(seq)
    try:
        body = _body_decoder.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, TypeError) as error:
        raise unreadable(f"event {seq}", error) from error
    record = EventRecord(seq=seq, at=at, actor=actor, origin=origin, request=request, version=version, body=body)
    return _check_version(record)


def to_line(row: Sequence[Any]) -> bytes:
    """Return a row as a line of an archive file: the JSON of an `EventRecord` with its checksum, and a newline."""
    seq, at, actor, origin, request, _, version, _, text, written = row
    # the text as it was stored: encoding the body again might write other bytes, and the checksum is of these
    body = msgspec.Raw(text.encode())
    digits = "" if written is None else written.hex()
    return _encoder.encode(_Line(seq, at, actor, origin, request, version, body, digits)) + b"\n"


def from_line(line: bytes) -> EventRecord:
    """Return the event of a line of an archive file.

    Raises `Damaged` if it does not match its checksum, and `StoreError` if today's types cannot decode it.
    """
    try:
        plain = _plain_decoder.decode(line)
        if plain.checksum:
            body = bytes(plain.body).decode()
            fields = (plain.seq, plain.at, plain.actor, plain.origin, plain.request, plain.version, body)
            if checksum(*fields).hex() != plain.checksum:
                raise damaged(plain.seq)
        return _check_version(_line_decoder.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise unreadable("an archived event", error) from error


def damaged(seq: int) -> Damaged:
    """Return the error for an event that does not match its checksum."""
    return Damaged(
        f"The journal's event {seq} is damaged: it does not match its checksum. Nothing was accepted. Stop the engine, "
        "keep a copy of the state folder, then restore it from a backup; `cockpit doctor --journal` lists all damage."
    )


def _matches(row: Sequence[Any]) -> bool:
    """Tell whether the row matches its checksum, and its columns match the body."""
    seq, at, actor, origin, request, kind, version, job, text, written = row
    try:
        if checksum(seq, at, actor, origin, request, version, text) != written:
            return False
        columns = _columns_decoder.decode(text)
    except (msgspec.DecodeError, AttributeError, TypeError, UnicodeEncodeError):
        return False
    return (columns.type, columns.job) == (kind, job)


def _check_version(record: EventRecord) -> EventRecord:
    """Return the event. Raises `StoreError` if a newer version of cockpit wrote it."""
    if record.version > EVENT_VERSION:
        raise unreadable(f"event {record.seq}", f"its version is {record.version}, known is {EVENT_VERSION}")
    return record


def unreadable(what: str, why: object) -> StoreError:
    """Return the error of something stored that cannot be decoded."""
    return StoreError(
        f"The journal's {what} cannot be read: {why}. "
        "A newer cockpit wrote it, or the file is damaged: start the newer version, or restore the state folder."
    )
