"""The language of the engine's socket: frames and messages. `docs/protocol.md` describes it for other clients.

A frame is a 4-byte big-endian length and that many bytes of msgpack. The engine speaks first (`Hello`); after that each
`Request` is answered by one or more `Answer` frames with its id, the last of them marked so.
"""

from __future__ import annotations

import struct
from typing import Annotated

import msgspec

from cockpit.errors import ProtocolMismatch, RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind

MAJOR, MINOR = 1, 1
MAX_FRAME = 16 << 20
"""Bytes of one frame's body; a longer one ends the connection."""
HEADER = struct.Struct(">I")

CAPABILITIES = ("jobs", "subscribe", "shell", "holds", "logs", "requests")


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's first frame."""

    protocol: tuple[int, int]
    version: str
    capabilities: tuple[str, ...]
    pid: int
    state_folder: str


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    id: int
    op: str
    args: msgspec.Raw = msgspec.Raw(b"\x80")
    """A map; the default is the empty one."""
    request: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """Client-made id of an acting request: a repeat gets the first answer."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    id: int
    ok: msgspec.Raw = msgspec.Raw(b"\xc0")
    no: Refusal | None = None
    last: bool = True
    fds: int = 0
    """How many file descriptors follow in one SCM_RIGHTS message of one byte."""


def frame(message: msgspec.Struct) -> bytes:
    """Header and body of one message. Raises `ValueError` when the body exceeds `MAX_FRAME`."""
    body = msgspec.msgpack.encode(message)
    if len(body) > MAX_FRAME:
        msg = f"a message of {len(body)} bytes exceeds the {MAX_FRAME} that a frame may have"
        raise ValueError(msg)
    return HEADER.pack(len(body)) + body


def request_frame(request: Request) -> bytes:
    """Raises `RequestRefused` for a request that no frame holds: nothing of it is sent."""
    try:
        return frame(request)
    except ValueError:
        size, most = memoryview(request.args).nbytes >> 20, MAX_FRAME >> 20
        text = (
            f"The request has {size} MiB, and one may have {most}. Nothing was sent. Submit the jobs in several parts."
        )
        raise RequestRefused(Refusal(RefusalKind.INVALID, text)) from None


def body_length(header: bytes) -> int:
    """Of the body that follows `header`. Raises `ValueError` when it exceeds `MAX_FRAME`."""
    (length,) = HEADER.unpack(header)
    if length > MAX_FRAME:
        msg = f"a frame of {length} bytes exceeds the {MAX_FRAME} that are allowed"
        raise ValueError(msg)
    return int(length)


def raw(value: object) -> msgspec.Raw:
    """A value encoded for a message's raw field."""
    return msgspec.Raw(msgspec.msgpack.encode(value))


def check_hello(hello: Hello) -> None:
    """Raises `ProtocolMismatch` unless this client can speak with that engine (an older minor is spoken too)."""
    if hello.protocol[0] != MAJOR:
        msg = (
            f"The running engine (cockpit {hello.version}) speaks protocol {hello.protocol[0]}, this cockpit speaks "
            f"{MAJOR}: `cockpit engine restart` starts the new engine without ending jobs."
        )
        raise ProtocolMismatch(msg)
