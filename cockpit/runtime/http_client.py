"""Sends one HTTP/1.1 request over a connection of its own and reads the answer.

`call_http` is for services outside the cluster, such as a cloud's metadata address: within a time limit, without
redirects, and without the environment's proxies, since link-local addresses are meant. `exchange` is for callers that
connect by themselves.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES: Final = 1 << 20
LONGEST_LINE: Final = 1 << 16
"""The limit of the stream reader: no line of an answer's head may be longer."""
_MOST_HEADERS: Final = 100
NO_ANSWER: Final = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)
"""The exceptions of `exchange` for an answer that broke off or is not HTTP."""


class HttpFailed(Exception):
    """A service gave no HTTP answer; the text says why, to follow its address."""


class TooLarge(Exception):
    """An answer exceeds the limit."""


class HttpAnswer(NamedTuple):
    """An answer of any status."""

    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


async def call_http(
    method: str, url: str, headers: Mapping[str, str], seconds: float, body: bytes = b"", limit: int = MOST_BYTES
) -> HttpAnswer:
    """Send the request and return the answer. Raises `HttpFailed`, also after `seconds` or for more than `limit` bytes.

    The whole call has the time limit, so that a service which sends a byte now and then does not prolong it.
    """
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # Without a user and password, which are no part of the header (RFC 9110, 7.2).
    named = {"Host": parts.netloc.rpartition("@")[2], "User-Agent": "cockpit", **headers}
    try:
        async with asyncio.timeout(seconds):
            port = parts.port or (443 if tls else 80)
            connection = await asyncio.open_connection(parts.hostname, port, ssl=tls or None, limit=LONGEST_LINE)
            return await exchange(connection, method, target, named, body, limit)
    except TimeoutError:
        raise HttpFailed(f"did not answer within {seconds:g} s") from None
    except ssl.SSLError as error:
        raise HttpFailed(f"has no valid TLS: {error.reason or 'the handshake failed'}") from None
    except OSError as error:
        raise HttpFailed(f"cannot be reached: {error.strerror or error}") from None
    except (*NO_ANSWER, TooLarge):
        raise HttpFailed("gave no complete HTTP answer") from None


async def exchange(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    limit: int,
) -> HttpAnswer:
    """Send the request, return the answer and close the connection. `target` is percent-encoded; `headers` name the
    host.

    Raises `OSError` when the connection fails, `NO_ANSWER` when the answer breaks off or is not HTTP, and `TooLarge`
    when its body has more than `limit` bytes.
    """
    reader, writer = connection
    try:
        lines = [f"{method} {target} HTTP/1.1", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        # Of methods that have a body, an empty one is announced too (RFC 9110, 8.6).
        lines += [f"Content-Length: {len(body)}"] if body or method in {"POST", "PUT"} else []
        # Header fields are at most Latin-1 (RFC 9110, 5.5).
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        return await _answer(reader, limit)
    finally:
        # Not awaited: the other side may never complete a TLS shutdown.
        writer.close()


async def _answer(reader: asyncio.StreamReader, limit: int) -> HttpAnswer:
    version, status, *_ = (await reader.readuntil(b"\n")).decode("latin-1").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers = await _headers(reader)
    # Chunked comes first: a length beside it does not count (RFC 9112, 6.3).
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return HttpAnswer(int(status), await _chunks(reader, limit))
    if (length := headers.get("content-length")) is not None:
        return HttpAnswer(int(status), await _sized(reader, int(length), limit))
    return HttpAnswer(int(status), await _to_the_end(reader, limit))


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    """Return the headers by their names in lower case."""
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = (await reader.readuntil(b"\n")).decode("latin-1").strip()
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raise ValueError("too many headers")


async def _sized(reader: asyncio.StreamReader, length: int, limit: int) -> bytes:
    if length < 0:
        raise ValueError(length)
    if length > limit:
        raise TooLarge
    return await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Read a body of chunks, each of which has its length in hexadecimal before it."""
    pieces: list[bytes] = []
    left = limit
    while length := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
        # The limit is for their sum: many small chunks must not pass a limit for one.
        pieces.append(await _sized(reader, length, left))
        left -= length
        # The line break behind the chunk.
        await reader.readuntil(b"\n")
    # The trailer is not read: the connection is closed after the answer.
    return b"".join(pieces)


async def _to_the_end(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Read a body without a stated length, which ends with the connection."""
    pieces, left = list[bytes](), limit
    while piece := await reader.read(LONGEST_LINE):
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise TooLarge
    return b"".join(pieces)
