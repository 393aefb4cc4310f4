"""Requests to one API server.

Answers stay bytes: lists are decoded page by page into structs of the needed fields (`lists`), which takes a tenth of
the time of the client's typed models.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.kubernetes.wire.answers import ApiError, error_of
from cockpit.errors import Unreachable
from cockpit.model.text import visible

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientWebSocketResponse

    from cockpit.backends.kubernetes.wire.connection import Connected, Connection

Query = Sequence[tuple[str, str]]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
HEARTBEAT_SECONDS = 30.0
"""How often a WebSocket is pinged: the kubelet cuts an idle one (streamingConnectionIdleTimeout, 4 h)."""
PATIENCE_SECONDS = 20.0
"""Longest time that a request is repeated while the server says that it is busy."""
_LONGEST_WAIT_SECONDS = 10.0
_OF_USERS = ("/log", "/exec")
"""Ends of paths that only a user asks for, as opposed to what is read all the time."""
_SLASHES_OF_GROUP = 3
"""Of a version of an API group, `/apis/GROUP/VERSION`."""
_BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})


class AnswerLost(Unreachable):
    """A request was sent, and its answer did not come: a change may have been made."""


class ApiRequest(NamedTuple):
    """One HTTP request to the API server."""

    method: str
    path: str
    """The path, which begins with a slash."""
    query: Query = ()
    body: bytes | None = None
    content: str = JSON
    """The type of the body."""
    accept: str = JSON
    silence_seconds: float | None = None
    """Of an answer without end: longest time without a byte; None: the whole answer has `REQUEST_SECONDS`."""
    known_tag: str = ""
    """The ETag of an answer that is known already, which the server need not repeat."""


class TaggedAnswer(NamedTuple):
    """An answer that the server tells from later ones."""

    body: bytes
    tag: str
    """Its ETag; empty: the server gave none."""


class Api:
    """Sends requests and returns the answers' bytes.

    Every method raises `Unreachable` when there is no answer, and `ApiError` when the answer is an error.
    """

    def __init__(self, connection: Connection, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """`sleep`: for tests."""
        self._connection, self._sleep = connection, sleep
        self.refused: Callable[[str], None] = lambda _: None
        """Called with the path of a change, a log or a shell that the user has no right to."""
        self.lacks_kind: Callable[[str], None] = lambda _: None
        """Called with the path of objects whose kind the server says that it does not serve."""

    def through(self, prefix: str) -> Api:
        """Return the API server behind a proxy of this one. `prefix`: the proxy's path."""
        return Api(self._connection.through(prefix), self._sleep)

    @property
    def context(self) -> str:
        """The name of the kubeconfig's context."""
        return self._connection.context

    async def get(self, path: str, query: Query = (), *, accept: str = JSON) -> bytes:
        """Return the body of an answer to GET."""
        return await self._body(ApiRequest("GET", path, query, accept=accept))

    async def get_unless(self, known_tag: str, path: str, *, accept: str) -> TaggedAnswer | None:
        """Return an answer to GET with its ETag; None: it is still the one with this tag."""
        response = await self._response(ApiRequest("GET", path, accept=accept, known_tag=known_tag))
        if response.status == HTTPStatus.NOT_MODIFIED:
            response.close()
            return None
        return TaggedAnswer(await self._whole(response), response.headers.get("ETag", ""))

    async def send(
        self, method: str, path: str, body: bytes | None = None, query: Query = (), *, content: str = JSON
    ) -> bytes:
        """Send a change (POST, PUT, PATCH or DELETE) and return the answer's body."""
        return await self._body(ApiRequest(method, path, query, body, content))

    @asynccontextmanager
    async def lines(self, path: str, query: Query, silence_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of an answer as they come.

        The lines end with the answer; `Unreachable` is raised after `silence_seconds` without any byte.
        """
        response = await self._response(ApiRequest("GET", path, query, silence_seconds=silence_seconds))
        try:
            yield self._lines_of(response)
        finally:
            response.close()

    @asynccontextmanager
    async def pieces(self, path: str, query: Query, silence_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield an answer's bytes in pieces as they come, as `lines` does."""
        response = await self._response(ApiRequest("GET", path, query, silence_seconds=silence_seconds))
        try:
            yield self._pieces_of(response)
        finally:
            response.close()

    async def websocket(self, path: str, query: Query, protocols: Sequence[str]) -> ClientWebSocketResponse:
        """Open a WebSocket with the first of these protocols that the server knows."""
        from aiohttp import ClientError, WSServerHandshakeError

        connected = await self._connection.get()
        try:
            opened: ClientWebSocketResponse = await connected.session.ws_connect(
                connected.url(path, query),
                headers=connected.headers(JSON),
                protocols=tuple(protocols),
                heartbeat=HEARTBEAT_SECONDS,
                max_msg_size=0,
                **connected.options,
            )
        except WSServerHandshakeError as error:
            # aiohttp drops the body, in which the server says why; to a plain GET it says the same.
            raise await self._why_no_websocket(path, query, error.status) from error
        except (TimeoutError, ClientError, OSError) as error:
            raise self._silent(error) from error
        return opened

    async def close(self) -> None:
        await self._connection.close()

    async def _why_no_websocket(self, path: str, query: Query, status: int) -> ApiError:
        try:
            await self.get(path, query)
        except ApiError as error:
            return error
        return error_of(status, b"")

    async def _lines_of(self, response: ClientResponse) -> AsyncIterator[bytes]:
        from aiohttp import ClientError
        from aiohttp.http_exceptions import HttpProcessingError

        try:
            async for line in response.content:
                yield line
        except (TimeoutError, ClientError, OSError) as error:
            raise self._silent(error) from error
        # Which of them it is depends on aiohttp's version; its text repeats the line, which may hold secrets.
        except (HttpProcessingError, ValueError) as error:
            raise self._silent(ValueError("a line is longer than any object that a server stores")) from error

    async def _pieces_of(self, response: ClientResponse) -> AsyncIterator[bytes]:
        from aiohttp import ClientError

        try:
            async for piece in response.content.iter_any():
                yield piece
        except (TimeoutError, ClientError, OSError) as error:
            raise self._silent(error) from error

    async def _body(self, request: ApiRequest) -> bytes:
        return await self._whole(await self._response(request))

    async def _whole(self, response: ClientResponse) -> bytes:
        from aiohttp import ClientError

        try:
            return bytes(await response.read())
        except (TimeoutError, ClientError, OSError) as error:
            raise self._silent(error, AnswerLost) from error
        finally:
            response.close()

    async def _response(self, request: ApiRequest) -> ClientResponse:
        """Return a successful response whose body has not been read.

        1. A server that is busy (429, 503, 504) says when to ask again; nothing was done then, so changes are repeated,
           too. After `PATIENCE_SECONDS` its answer is an error like any other.
        2. A server that does not accept the credentials (401) may do so with new ones, once.
        """
        waited, renewed = 0.0, False
        while True:
            connected = await self._connection.get()
            response = await self._send_once(request, connected)
            if response.status < HTTPStatus.BAD_REQUEST:
                return response
            error = error_of(response.status, bytes(await response.read()))
            seconds = _retry_after(response, error)
            if response.status in _BUSY and seconds and waited < PATIENCE_SECONDS:  # step 1
                await self._sleep(seconds)
                waited += seconds
            elif response.status == HTTPStatus.UNAUTHORIZED and not renewed:  # step 2
                renewed = True
                await self._connection.renew(connected.credentials)
            elif response.status == HTTPStatus.UNAUTHORIZED:
                raise Unreachable(
                    f"The API server does not accept the credentials of the context {self.context!r} (401). Log in "
                    "again, for example with your provider's command, and try once more."
                )
            else:
                if error.is_forbidden and (request.method != "GET" or request.path.endswith(_OF_USERS)):
                    self.refused(request.path)
                if error.lacks_kind and _is_of_kind(request.path):
                    self.lacks_kind(request.path)
                raise error

    async def _send_once(self, request: ApiRequest, connected: Connected) -> ClientResponse:
        from aiohttp import ClientConnectorError, ClientError, ClientTimeout

        headers, more = connected.headers(request.accept), connected.options
        if request.body is not None:
            headers["Content-Type"] = request.content
            more["data"] = request.body
        if request.known_tag:
            headers["If-None-Match"] = request.known_tag
        silence = request.silence_seconds
        limits = ClientTimeout(
            total=REQUEST_SECONDS if silence is None else None, sock_connect=CONNECT_SECONDS, sock_read=silence
        )
        url = connected.url(request.path, request.query)
        try:
            return await connected.session.request(request.method, url, headers=headers, timeout=limits, **more)
        except ClientConnectorError as error:
            raise self._silent(error) from error
        except (TimeoutError, ClientError, OSError, ValueError) as error:
            raise self._silent(error, AnswerLost) from error

    def _silent(self, error: BaseException, kind: type[Unreachable] = Unreachable) -> Unreachable:
        why = visible(str(error), 300) or _KINDS.get(type(error).__name__, type(error).__name__)
        return kind(f"The API server {self._connection.server} of the context {self.context!r} does not answer: {why}.")


_KINDS = {"TimeoutError": "no answer in time", "SocketTimeoutError": "no answer in time"}


def _is_of_kind(path: str) -> bool:
    """Return whether a path is about objects of an API group, as opposed to what the group has."""
    return path.startswith("/apis/") and path.count("/") > _SLASHES_OF_GROUP


def _retry_after(response: ClientResponse, error: ApiError) -> float:
    """Return the seconds after which the server wants to be asked again; 0: it does not say."""
    said = response.headers.get("Retry-After", "")
    seconds = float(said) if said.isascii() and said.isdigit() else 0.0
    if not seconds and error.details is not None:
        seconds = float(error.details.retry_after_seconds)
    return min(seconds, _LONGEST_WAIT_SECONDS)
