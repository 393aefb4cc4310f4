"""Sends one HTTP/1.1 request and reads its answer: through a unix socket, or to a host, with TLS or without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from cockpit.backends.slurm.wire.calls import MOST_BYTES, AnswerLost
from cockpit.errors import SpecErrors, Unreachable

SCHEMES = ("slurmrestd+unix", "slurmrestd+http", "slurmrestd+https")
PORT = 6820
LONGEST_LINE = 1 << 16
MOST_HEADERS = 100


class Reply(NamedTuple):
    """An HTTP answer of any status."""

    status: int
    body: bytes


class Place(NamedTuple):
    """The address of a slurmrestd."""

    socket: str
    """Path of a unix socket; empty: `host` and `port` count."""
    host: str = "localhost"
    port: int = PORT
    tls: bool = False
    user: str = ""

    @property
    def url(self) -> str:
        """Base URL, in the form that curl takes."""
        # curl ignores the host of a URL when it has --unix-socket, but refuses a URL without one.
        where = "" if self.socket else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{self.host}{where}"


def place_of(address: str) -> Place:
    """Parse `slurmrestd+unix:///run/slurmrestd.sock`, `slurmrestd+http://ann@host:6820` or `slurmrestd+https://…`.

    Raises `SpecErrors` for any other address.
    """
    url = urlsplit(address)
    try:
        port = url.port or PORT
    except ValueError:
        port = 0
    # A host in a socket's address is mostly a forgotten slash: `slurmrestd+unix://run/x.sock` would mean /x.sock on
    # host run.
    if url.scheme == SCHEMES[0] and url.path.startswith("/") and not url.netloc.strip("@"):
        return Place(unquote(url.path))
    # A password is refused rather than ignored: slurmrestd takes none, and the address appears on screens and in
    # errors.
    if url.scheme in SCHEMES[1:] and url.hostname and port and not url.path.strip("/") and not url.password:
        return Place("", url.hostname, port, url.scheme == SCHEMES[2], unquote(url.username or ""))
    examples = "write slurmrestd+unix:///run/slurmrestd.sock or slurmrestd+http://ann@host:6820"
    raise SpecErrors([f"{address}: is not the address of a slurmrestd; {examples}."])


async def ask(place: Place, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
    """Send one request over a connection of its own, and read the answer.

    Raises `OSError` when the connection fails, `AnswerLost` when the answer is cut or is not HTTP, and `Unreachable`
    when it exceeds `MOST_BYTES`.
    """
    reader, writer = await _connect(place)
    try:
        # One connection for each request: questions come seconds apart, and one that the daemon has closed meanwhile
        # would look like a lost answer.
        lines = [f"{method} {target} HTTP/1.1", f"Host: {place.host}", "Accept: application/json", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}"] if body else []
        # Header fields are at most Latin-1 (RFC 9110, 5.5); the target is percent-encoded.
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        return await _reply(reader)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        # Not `Unreachable`: the request was sent, so a change may have taken effect.
        raise AnswerLost("The answer broke off, or is not HTTP.") from None
    finally:
        writer.close()


async def _connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if place.socket:
        return await asyncio.open_unix_connection(place.socket, limit=LONGEST_LINE)
    return await asyncio.open_connection(place.host, place.port, ssl=place.tls or None, limit=LONGEST_LINE)


async def _reply(reader: asyncio.StreamReader) -> Reply:
    """Read a reply. Raises ValueError or `IncompleteReadError` when it is none."""
    version, status, *_ = (await reader.readuntil(b"\n")).decode("latin-1").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers = await _headers(reader)
    # chunked comes first: a length beside it does not count (RFC 9112, 6.3)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Reply(int(status), await _chunks(reader))
    length = headers.get("content-length")
    return Reply(
        int(status), await _read_sized(reader, int(length)) if length is not None else await _to_the_end(reader)
    )


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    """Return the headers by their names in lower case."""
    headers: dict[str, str] = {}
    for _ in range(MOST_HEADERS):
        line = (await reader.readuntil(b"\n")).decode("latin-1").strip()
        if not line:
            return headers
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raise ValueError("too many headers")


async def _read_sized(reader: asyncio.StreamReader, length: int) -> bytes:
    if not 0 <= length <= MOST_BYTES:
        raise Unreachable(f"It answers with {length >> 20} MiB; at most {MOST_BYTES >> 20} are accepted.")
    return await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Read a body with `Transfer-Encoding: chunked`: each chunk has its length in hexadecimal before it."""
    pieces, size = [], 0
    while length := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
        size += length
        # Beyond the limit `_read_sized` gets the sum, which it refuses: many small chunks must not pass a limit for one
        # body.
        pieces.append(await _read_sized(reader, length if size <= MOST_BYTES else size))
        # the line break behind the chunk
        await reader.readuntil(b"\n")
    # the trailer is not read: the connection is closed after the answer
    return b"".join(pieces)


async def _to_the_end(reader: asyncio.StreamReader) -> bytes:
    """Read a body without a stated length, which ends with the connection."""
    pieces, size = [], 0
    while piece := await reader.read(LONGEST_LINE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise Unreachable(f"It answers without end; at most {MOST_BYTES >> 20} MiB are accepted.")
    return b"".join(pieces)
