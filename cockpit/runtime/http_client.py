"""Sends one HTTP/1.1 request to a service outside cockpit, such as a cloud's metadata address, within a time limit.

Proxies of the environment are not used, since link-local addresses are meant; redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 14
_MOST_HEADERS: Final = 100


class HttpFailed(Exception):
    """A service gave no HTTP answer; the text says why, to follow its address."""


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
    try:
        async with asyncio.timeout(seconds):
            return await _exchange(method, url, headers, body, limit)
    except TimeoutError:
        raise HttpFailed(f"did not answer within {seconds:g} s") from None
    except ssl.SSLError as error:
        raise HttpFailed(f"has no valid TLS: {error.reason or 'the handshake failed'}") from None
    except OSError as error:
        raise HttpFailed(f"cannot be reached: {error.strerror or error}") from None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise HttpFailed("gave no complete HTTP answer") from None


async def _exchange(method: str, url: str, headers: Mapping[str, str], body: bytes, limit: int) -> HttpAnswer:
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if tls else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    reader, writer = await asyncio.open_connection(host, port, ssl=tls or None, limit=_LONGEST_LINE)
    try:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {parts.netloc}", "Connection: close", "User-Agent: cockpit"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}"] if body or method != "GET" else []
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        return await _answer(reader, limit)
    finally:
        # not awaited: the other side may never complete a TLS shutdown
        writer.close()


async def _answer(reader: asyncio.StreamReader, limit: int) -> HttpAnswer:
    version, status, *_ = (await reader.readuntil(b"\n")).decode("latin-1").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers: dict[str, str] = {}
    while line := (await reader.readuntil(b"\n")).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
        if len(headers) > _MOST_HEADERS:
            raise ValueError(name)
    # chunked comes first: a length beside it does not count (RFC 9112, 6.3)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return HttpAnswer(int(status), await _chunks(reader, limit))
    if (length := headers.get("content-length")) is not None:
        if not 0 <= int(length) <= limit:
            raise ValueError(length)
        return HttpAnswer(int(status), await reader.readexactly(int(length)))
    text = await reader.read(limit + 1)
    while len(text) <= limit and (more := await reader.read(limit + 1)):
        text += more
    if len(text) > limit:
        raise ValueError(len(text))
    return HttpAnswer(int(status), text)


async def _chunks(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Read a body of chunks, each of which has its length in hexadecimal before it."""
    body = b""
    while length := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
        if not 0 < length <= limit - len(body):
            raise ValueError(length)
        body += await reader.readexactly(length)
        await reader.readuntil(b"\n")
    return body
