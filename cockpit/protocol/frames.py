"""The frames and messages of the engine's socket. `docs/protocol.md` describes the protocol for other clients.

A frame is a 4-byte big-endian length and that many bytes of msgpack. The engine speaks first (`Hello`); after that each
`RequestFrame` is answered by one or more `Answer` frames with its id, the last of them marked so.
"""

from __future__ import annotations

import struct
from typing import Annotated

import msgspec

from cockpit.errors import ProtocolMismatch, RequestRefused
from cockpit.model.refusal import Refusal, RefusalKind

MAJOR, MINOR = 1, 2
"""The protocol's version: clients of another major version are refused, those of an older minor version served."""
MAX_FRAME = 16 << 20
"""The most bytes in the body of a frame; a longer one ends the connection."""
HEADER = struct.Struct(">I")
"""The header of a frame: the length of the body."""

ACCESS = "access"
"""The capability of an engine that limits a request to its access level."""
CAPABILITIES = ("jobs", "subscribe", "shell", "holds", "logs", "requests", ACCESS)


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's first frame on every connection."""

    protocol: tuple[int, int]
    version: str
    capabilities: tuple[str, ...]
    pid: int
    state_folder: str


class RequestFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client's request to carry out one operation."""

    id: int
    """The number of the request on this connection, which its answers repeat."""
    op: str
    """The name of the operation."""
    args: msgspec.Raw = msgspec.Raw(b"\x80")
    """The operation's arguments as an encoded map; by default the empty one."""
    request: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """An id made by the client for a request that changes something: a repeat gets the first answer again."""
    words: Annotated[bytes, msgspec.Meta(max_length=64)] = b""
    """A hash of the command as the user wrote it. A repeat with the same hash is the same request, whatever its `args`:
    a client may compute them from the time or from what it reads."""
    access: Annotated[str, msgspec.Meta(max_length=16)] = ""
    """The access level of the client's session, see `model.access_level`; empty: all rights of the user."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One frame of the answer to a request: a result, or a refusal."""

    id: int
    """The request's `id`."""
    ok: msgspec.Raw = msgspec.Raw(b"\xc0")
    """The encoded result; by default nil."""
    no: Refusal | None = None
    """Why the request was refused; None: it was not."""
    last: bool = True
    """Whether this is the last frame of the answer."""
    fds: int = 0
    """The number of file descriptors that follow in an SCM_RIGHTS message with one byte of data."""


def frame(message: msgspec.Struct) -> bytes:
    """Return a message as header and body. Raises `ValueError` if the body exceeds `MAX_FRAME`."""
    body = msgspec.msgpack.encode(message)
    # Refused here, where the message can still be sent in parts: the other side would end the connection.
    if len(body) > MAX_FRAME:
        msg = f"a message of {len(body)} bytes exceeds the {MAX_FRAME} that a frame may have"
        raise ValueError(msg)
    return HEADER.pack(len(body)) + body


def request_frame(request: RequestFrame) -> bytes:
    """Return a request as header and body. Raises `RequestRefused` if it is too large; nothing has been sent then."""
    try:
        return frame(request)
    except ValueError:
        # The arguments alone: they are nearly all of the request, and what the user can divide.
        size, most = memoryview(request.args).nbytes >> 20, MAX_FRAME >> 20
        text = (
            f"The request has {size} MiB, and one may have {most}. Nothing was sent. Submit the jobs in several parts."
        )
        raise RequestRefused(Refusal(RefusalKind.INVALID, text)) from None


def body_length(header: bytes) -> int:
    """Return the length of the body that follows `header`. Raises `ValueError` if it exceeds `MAX_FRAME`."""
    (length,) = HEADER.unpack(header)
    # Before the body is read: a forged length must not make the reader allocate 4 GiB.
    if length > MAX_FRAME:
        msg = f"a frame of {length} bytes exceeds the {MAX_FRAME} that are allowed"
        raise ValueError(msg)
    return int(length)


def raw(value: object) -> msgspec.Raw:
    """Encode a value for a raw field of a message."""
    return msgspec.Raw(msgspec.msgpack.encode(value))


def check_hello(hello: Hello) -> None:
    """Raise `ProtocolMismatch` unless the engine has this client's major version of the protocol."""
    # The minor version may differ: fields that one side does not know have defaults on the other.
    if hello.protocol[0] != MAJOR:
        msg = (
            f"The running engine (cockpit {hello.version}) speaks protocol {hello.protocol[0]}, this cockpit speaks "
            f"{MAJOR}: `cockpit engine restart` starts the new engine without ending jobs."
        )
        raise ProtocolMismatch(msg)


def check_access(hello: Hello, level: str) -> None:
    """Raise `ProtocolMismatch` if a session has an access level and the engine is too old to keep to it."""
    if level and ACCESS not in hello.capabilities:
        msg = (
            f"The running engine (cockpit {hello.version}) does not know access levels, so this session, whose level "
            f"is {level}, does not use it: `cockpit engine restart` starts the new engine without ending jobs."
        )
        raise ProtocolMismatch(msg)
