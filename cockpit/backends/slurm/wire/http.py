"""Finds a slurmrestd by its address and asks it: through a unix socket, or at a host, with TLS or without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from cockpit.backends.slurm.wire.calls import MOST_BYTES, AnswerLost
from cockpit.errors import SpecErrors, Unreachable
from cockpit.runtime.http_client import LONGEST_LINE, NO_ANSWER, HttpAnswer, TooLarge, exchange

SCHEMES = ("slurmrestd+unix", "slurmrestd+http", "slurmrestd+https")
PORT = 6820


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


async def ask(place: Place, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> HttpAnswer:
    """Send one request over a connection of its own, and read the answer.

    Raises `OSError` when the connection fails, `AnswerLost` when the answer is cut or is not HTTP, and `Unreachable`
    when it exceeds `MOST_BYTES`.
    """
    # One connection for each request: questions come seconds apart, and one that the daemon has closed meanwhile would
    # look like a lost answer.
    connection = await _connect(place)
    named = {"Host": place.host, "Accept": "application/json", **headers}
    try:
        return await exchange(connection, method, target, named, body, MOST_BYTES)
    except TooLarge:
        raise Unreachable(f"It answers with more than {MOST_BYTES >> 20} MiB, the most that is accepted.") from None
    except NO_ANSWER:
        # Not `Unreachable`: the request was sent, so a change may have taken effect.
        raise AnswerLost("The answer broke off, or is not HTTP.") from None


async def _connect(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if place.socket:
        return await asyncio.open_unix_connection(place.socket, limit=LONGEST_LINE)
    return await asyncio.open_connection(place.host, place.port, ssl=place.tls or None, limit=LONGEST_LINE)
