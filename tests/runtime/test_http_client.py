"""HTTP requests to services: what is sent, and what is made of every kind of answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime import http_client
from cockpit.runtime.http_client import HttpFailed, call_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.req("TR-03")
OK = b"HTTP/1.1 200 OK\r\n"
SECONDS = 60.0


class Service:
    """Answers every request with the same bytes, and keeps what it was sent."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer
        self.address = ""
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.left = asyncio.Event()
        """Set when a client has closed its connection."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("Content-Length:")), 0)
        self.bodies.append(await reader.readexactly(length))
        if self._answer is not None:
            writer.write(self._answer)
            writer.write_eof()
        await reader.read()
        self.left.set()
        writer.close()


@asynccontextmanager
async def service(answer: bytes | None) -> AsyncIterator[Service]:
    made = Service(answer)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello, not read", 200, b"hello"),
        (OK + b"CONTENT-LENGTH:   5  \r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.0 404 Not Found\nContent-Length: 2\n\nno", 404, b"no"),
        (b"HTTP/1.1 204\r\nContent-Length: 0\r\n\r\n", 204, b""),
        (OK + b"\r\nto the end", 200, b"to the end"),
        (OK + b"\r\n", 200, b""),
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;note=1\r\n0123456789\r\n0\r\n\r\n",
            200,
            b"abc0123456789",
        ),
        (OK + b"Content-Length: 1\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, b"ab"),
        (OK + b"".join(b"X-%d: 1\r\n" % each for each in range(99)) + b"\r\nbody", 200, b"body"),
    ],
)
async def test_every_form_of_a_body_is_read(answer: bytes, status: int, body: bytes) -> None:
    async with service(answer) as made:
        answered = await call_http("GET", f"http://{made.address}/", {}, SECONDS)
        assert (answered.status, answered.body) == (status, body)
        await asyncio.wait_for(made.left.wait(), SECONDS)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP at all",
        b"SSH-2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 many OK\r\n\r\n",
        OK + b"Content-Length: 9\r\n\r\nshort",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: some\r\n\r\n",
        OK + b"Content-Length: 9",
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nab\r\n",
        OK + b"X: " + b"x" * http_client.LONGEST_LINE * 2 + b"\r\n\r\n",
        OK + b"X: 1\r\n" * 100 + b"\r\n",
    ],
)
async def test_an_answer_that_breaks_off_or_is_no_http_is_reported(answer: bytes) -> None:
    async with service(answer) as made:
        with pytest.raises(HttpFailed, match=r"^gave no complete HTTP answer$"):
            await call_http("GET", f"http://{made.address}/", {}, SECONDS)


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: %d\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n"],
    ids=["length", "to the end", "chunks"],
)
async def test_a_body_has_a_limit_whatever_its_form(head: bytes) -> None:
    def answer(size: int) -> bytes:
        if b"chunked" in head:
            halves = [b"x" * (size // 2), b"x" * (size - size // 2)]
            return OK + head + b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in halves) + b"0\r\n\r\n"
        return OK + (head % size if b"%" in head else head) + b"x" * size

    async with service(answer(10)) as made:
        assert (await call_http("GET", f"http://{made.address}/", {}, SECONDS, limit=10)).body == b"x" * 10
        with pytest.raises(HttpFailed, match="no complete"):
            await call_http("GET", f"http://{made.address}/", {}, SECONDS, limit=9)
    async with service(answer(http_client.MOST_BYTES + 1)) as made:
        with pytest.raises(HttpFailed, match="no complete"):
            await call_http("GET", f"http://{made.address}/", {}, SECONDS)
    async with service(answer(http_client.MOST_BYTES)) as made:
        assert len((await call_http("GET", f"http://{made.address}/", {}, SECONDS)).body) == 1 << 20


async def test_a_request_has_what_services_expect() -> None:
    async with service(OK + b"\r\n") as made:
        url = f"http://ann:secret@{made.address}"
        await call_http("GET", f"{url}/a%20b?c=d", {"X-Token": "é"}, SECONDS)
        await call_http("POST", url, {}, SECONDS, b"text")
        await call_http("PUT", f"{url}?e", {"User-Agent": "other"}, SECONDS)
        await call_http("DELETE", f"{url}/", {}, SECONDS, b"text")
        host = f"Host: {made.address}"
        agent = "User-Agent: cockpit"
        assert [head.split("\r\n")[:-2] for head in made.heads] == [
            ["GET /a%20b?c=d HTTP/1.1", "Connection: close", host, agent, "X-Token: é"],
            ["POST / HTTP/1.1", "Connection: close", host, agent, "Content-Length: 4"],
            ["PUT /?e HTTP/1.1", "Connection: close", host, "User-Agent: other", "Content-Length: 0"],
            ["DELETE / HTTP/1.1", "Connection: close", host, agent, "Content-Length: 4"],
        ]
        assert made.bodies == [b"", b"text", b"", b"text"]


async def test_text_is_readable_whatever_bytes_it_has() -> None:
    async with service(OK + b"\r\ncaf\xc3\xa9 \xff") as made:
        assert (await call_http("GET", f"http://{made.address}", {}, SECONDS)).text == "café \N{REPLACEMENT CHARACTER}"


async def test_a_service_that_is_silent_unreachable_or_without_tls_is_named() -> None:
    async with service(None) as made:
        with pytest.raises(HttpFailed, match=r"^did not answer within 0\.2 s$"):
            await call_http("GET", f"http://{made.address}/", {}, 0.2)
    with pytest.raises(HttpFailed, match=r"^cannot be reached: "):
        await call_http("GET", f"http://{made.address}/", {}, SECONDS)
    server = await asyncio.start_server(_answer_without_tls, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HttpFailed, match=r"^has no valid TLS: "):
            await call_http("GET", f"https://127.0.0.1:{port}/", {}, SECONDS)


async def _answer_without_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(OK + b"\r\nplain")
    writer.close()


@pytest.mark.parametrize(
    ("url", "port"), [("http://cloud/", 80), ("https://cloud/", 443), ("https://cloud:8443/", 8443)]
)
async def test_the_port_follows_the_scheme(url: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[object, ...]] = []

    async def refuse(host: str, port: int, *, ssl: bool | None, limit: int) -> None:
        opened.append((host, port, ssl, limit))
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(asyncio, "open_connection", refuse)
    with pytest.raises(HttpFailed, match=r"^cannot be reached: Connection refused$"):
        await call_http("GET", url, {}, SECONDS)
    assert opened == [("cloud", port, url.startswith("https") or None, http_client.LONGEST_LINE)]
