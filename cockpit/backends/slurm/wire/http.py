"""One request and its answer over HTTP/1.1: through a unix socket, or to a host, with TLS or without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from cockpit.backends.slurm.wire.calls import MOST_BYTES, Unanswered
from cockpit.errors import SpecErrors, Unreachable

SCHEMES = ("slurmrestd+unix", "slurmrestd+http", "slurmrestd+https")
PORT = 6820
LONGEST_LINE = 1 << 16
MOST_HEADERS = 100


class Reply(NamedTuple):
    """An answer, whatever its status."""

    status: int
    body: bytes


class Place(NamedTuple):
    """Where slurmrestd listens."""

    socket: str
    """Path of a unix socket; empty: `host` and `port`."""
    host: str = "localhost"
    port: int = PORT
    tls: bool = False
    user: str = ""

    @property
    def url(self) -> str:
        """As curl takes it."""
        where = "" if self.socket else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{self.host}{where}"


def place_of(address: str) -> Place:
    """Of `slurmrestd+unix:///run/slurmrestd.sock`, `slurmrestd+http://ann@host:6820`, `slurmrestd+https://…`. Raises
    `SpecErrors` for any other."""
    found = urlsplit(address)
    try:
        port = found.port or PORT
    except ValueError:
        port = 0
    if found.scheme == SCHEMES[0] and found.path.startswith("/") and not found.netloc.strip("@"):
        return Place(unquote(found.path))
    if found.scheme in SCHEMES[1:] and found.hostname and port and not found.path.strip("/") and not found.password:
        return Place("", found.hostname, port, found.scheme == SCHEMES[2], unquote(found.username or ""))
    ways = "write slurmrestd+unix:///run/slurmrestd.sock or slurmrestd+http://ann@host:6820"
    raise SpecErrors([f"{address}: is no way to a slurmrestd; {ways}."])


async def ask(place: Place, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
    """One connection for one request. Raises `OSError` where it cannot be made or breaks, `Unreachable` where what
    comes is no HTTP, or has no end."""
    reader, writer = await _connected(place)
    try:
        lines = [f"{method} {target} HTTP/1.1", f"Host: {place.host}", "Accept: application/json", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Content-Length: {len(body)}"] if body else []
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await writer.drain()
        return await _reply(reader)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise Unanswered("The answer broke off, or is none that HTTP knows.") from None
    finally:
        writer.close()


async def _connected(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if place.socket:
        return await asyncio.open_unix_connection(place.socket, limit=LONGEST_LINE)
    return await asyncio.open_connection(place.host, place.port, ssl=place.tls or None, limit=LONGEST_LINE)


async def _reply(reader: asyncio.StreamReader) -> Reply:
    version, status, *_ = (await reader.readuntil(b"\n")).decode("latin-1").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError(version)
    headers = await _headers(reader)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Reply(int(status), await _chunks(reader))
    length = headers.get("content-length")
    return Reply(int(status), await _sized(reader, int(length)) if length is not None else await _to_the_end(reader))


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(MOST_HEADERS):
        line = (await reader.readuntil(b"\n")).decode("latin-1").strip()
        if not line:
            return found
        name, _, value = line.partition(":")
        found[name.lower()] = value.strip()
    raise ValueError("headers without end")


async def _sized(reader: asyncio.StreamReader, length: int) -> bytes:
    if not 0 <= length <= MOST_BYTES:
        raise Unreachable(f"It answers with {length >> 20} MiB; more than {MOST_BYTES >> 20} are not listened to.")
    return await reader.readexactly(length)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces, size = [], 0
    while length := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
        size += length
        pieces.append(await _sized(reader, length if size <= MOST_BYTES else size))
        await reader.readuntil(b"\n")
    return b"".join(pieces)


async def _to_the_end(reader: asyncio.StreamReader) -> bytes:
    pieces, size = [], 0
    while piece := await reader.read(LONGEST_LINE):
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise Unreachable(f"It answers without end; {MOST_BYTES >> 20} MiB were enough.")
    return b"".join(pieces)
