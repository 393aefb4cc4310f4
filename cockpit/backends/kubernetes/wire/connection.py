"""The connection pool of one context, with credentials that are renewed when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from cockpit.backends.kubernetes.wire.credentials import Credentials, client_modules, read_credentials
from cockpit.errors import Unreachable
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import ClientSession

    from cockpit.model.ids import Millis


class Connected(NamedTuple):
    """What a request is sent with."""

    session: ClientSession
    credentials: Credentials
    prefix: str = ""
    """The path of a proxy to another API server, which comes before every path; empty: the server itself is meant."""

    def url(self, path: str, query: Sequence[tuple[str, str]]) -> str:
        host = str(self.credentials.configuration.host).rstrip("/")
        return f"{host}{self.prefix}{path}?{urlencode(query)}" if query else f"{host}{self.prefix}{path}"

    def headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, "User-Agent": "cockpit"}
        if self.credentials.authorization:
            headers["Authorization"] = self.credentials.authorization
        return headers

    @property
    def options(self) -> dict[str, Any]:
        """Options of every request: the kubeconfig's name for the server's certificate, and its proxy."""
        configuration = self.credentials.configuration
        found = {"server_hostname": configuration.tls_server_name, "proxy": configuration.proxy}
        return {option: value for option, value in found.items() if value}


class Connection:
    """Connects with the first request."""

    def __init__(self, context: str, files: tuple[str, ...], now: Callable[[], Millis], prefix: str = "") -> None:
        """`files`: the kubeconfig files. `prefix`: the path of a proxy to the server that is meant."""
        self.context = context
        self._files, self._now, self._prefix = files, now, prefix
        self._credentials: Credentials | None = None
        self._pools: list[Any] = []
        """The client's pools (`RESTClientObject`): the last one is used, watches may still use the earlier ones."""
        self._connecting = asyncio.Lock()

    def through(self, prefix: str) -> Connection:
        """Return a connection of its own to the server behind a proxy of this one."""
        return Connection(self.context, self._files, self._now, prefix)

    @property
    def server(self) -> str:
        """The address of the API server; empty before the first request."""
        return str(self._credentials.configuration.host) if self._credentials is not None else ""

    async def get(self) -> Connected:
        """Return a connection with valid credentials. Raises `Unreachable` where the kubeconfig gives none."""
        async with self._connecting:
            if self._credentials is None or self._credentials.must_be_renewed(self._now()):
                await self._read()
            assert self._credentials is not None
            return Connected(self._session(), self._credentials, self._prefix)

    async def renew(self, refused: Credentials) -> None:
        """Read the credentials anew, unless another request has done so since these were refused."""
        async with self._connecting:
            if self._credentials is refused:
                await self._read()

    async def close(self) -> None:
        for each in self._pools:
            await each.close()
        self._pools = []

    def _session(self) -> ClientSession:
        pool = self._pools[-1]
        if pool.pool_manager is None:
            # The pool makes its session with its first own request, and these encode every body once more.
            pool.pool_manager = pool._create_pool_manager()  # noqa: SLF001 - as the client's WebSockets do
        session: ClientSession = pool.pool_manager
        return session

    async def _read(self) -> None:
        new = await read_credentials(self.context, self._files)
        if self._credentials is None or not new.same_connection(self._credentials):
            _, client = await client_modules()
            try:
                self._pools.append(client.rest.RESTClientObject(new.configuration))
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                why = visible(str(error), 300)
                raise Unreachable(f"The certificates of the context {self.context!r} cannot be used: {why}") from error
        self._credentials = new
