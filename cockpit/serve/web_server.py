"""The cockpit in a browser: a page with a terminal, whose sessions are those of the SSH server in all but the wire.

An address has a token, which stands for a user and an access level. `ssh HOST web` prints one for the user who logs in,
so that keys, users and levels are those of SSH. Tokens are in memory only, and end after `TOKEN_SECONDS` without a
request, or with the server.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from cockpit.errors import CockpitError
from cockpit.model.access_level import AccessLevel
from cockpit.serve.limits import Bounds, Sessions
from cockpit.serve.program import GRACE_SECONDS
from cockpit.serve.starting import StartProgram
from cockpit.serve.web_session import Page, WebSession

PAGE: Final = {
    "": ("index.html", "text/html"),
    "xterm.js": ("xterm.js", "text/javascript"),
    "addon-fit.js": ("addon-fit.js", "text/javascript"),
    "page.js": ("page.js", "text/javascript"),
    "xterm.css": ("xterm.css", "text/css"),
    "page.css": ("page.css", "text/css"),
}
"""The files of the page by their names in the address. All come from this package: the page loads nothing else."""
HEADERS: Final = {
    # xterm.js writes its styles into the page.
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TOKEN_SECONDS: Final = 12 * 3600.0
MOST_TOKENS: Final = 1000
LARGEST_MESSAGE: Final = 64 << 10


class Token(msgspec.Struct):
    """Whose sessions an address opens."""

    login: str
    level: AccessLevel
    used_at: float


class WebServer:
    """Serves the page and its sessions, and makes addresses."""

    def __init__(self, sessions: Sessions, bounds: Bounds, start: StartProgram, report: Callable[[str], None]) -> None:
        """`sessions`: those of the SSH server, which are counted together. `start`: starts a session's program.
        `report`: writes a line of the log."""
        self._sessions, self._bounds, self._start, self._report = sessions, bounds, start, report
        self._tokens: dict[str, Token] = {}
        self._open: set[WebSession] = set()
        self._runner: web.AppRunner | None = None
        self._base = ""

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> str:
        """Start to listen; return the beginning of all addresses. Raises `CockpitError`."""
        app = web.Application(client_max_size=1)
        app.router.add_get("/{token}/session", self._session)
        app.router.add_get("/{token}/{name:[a-z.-]*}", self._file)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=GRACE_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise CockpitError(f"The web server cannot listen at {host}:{port}: {error.strerror}.") from None
        shown = f"[{host}]" if ":" in host else host
        bound = self._runner.addresses[0][1]
        self._base = f"{'https' if tls is not None else 'http'}://{shown}:{bound}"
        return self._base

    def address_for(self, login: str, level: AccessLevel) -> str:
        """Return a new address, which opens sessions of this user at this level."""
        now = asyncio.get_running_loop().time()
        self._tokens = {name: each for name, each in self._tokens.items() if now - each.used_at < TOKEN_SECONDS}
        while len(self._tokens) >= MOST_TOKENS:
            del self._tokens[min(self._tokens, key=lambda name: self._tokens[name].used_at)]
        token = secrets.token_urlsafe(32)
        self._tokens[token] = Token(login, level, now)
        return f"{self._base}/{token}/"

    async def close(self) -> None:
        """End all sessions and stop to listen."""
        for session in list(self._open):
            session.end("The server stops. Jobs continue.")
        if self._runner is not None:
            await self._runner.cleanup()

    def _known(self, request: web.Request) -> Token:
        """Return the token of the address. Raises `HTTPNotFound`, as for an address that never was."""
        now = asyncio.get_running_loop().time()
        given = request.match_info["token"].encode()
        # In constant time each, so that a token cannot be found by measuring.
        found = [each for name, each in self._tokens.items() if secrets.compare_digest(name.encode(), given)]
        if not found or now - found[0].used_at >= TOKEN_SECONDS:
            raise web.HTTPNotFound(text="There is no such address. `ssh HOST web` prints a new one.\n", headers=HEADERS)
        found[0].used_at = now
        return found[0]

    async def _file(self, request: web.Request) -> web.Response:
        self._known(request)
        name = request.match_info["name"]
        if name not in PAGE:
            raise web.HTTPNotFound(text="There is no such file.\n", headers=HEADERS)
        file, kind = PAGE[name]
        body = (files("cockpit.serve") / "page" / file).read_bytes()
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=HEADERS)

    async def _session(self, request: web.Request) -> web.WebSocketResponse:
        token = self._known(request)
        # Another site's page has another origin, should it ever learn the token.
        if request.headers.get("Origin", "").partition("://")[2] != request.host:
            raise web.HTTPForbidden(text="The page of another site opens no session.\n", headers=HEADERS)
        socket = web.WebSocketResponse(heartbeat=30, max_msg_size=LARGEST_MESSAGE, compress=False)
        await socket.prepare(request)
        session = WebSession(Page(socket), token.login, token.level, self._sessions, self._bounds, self._start)
        self._open.add(session)
        try:
            await session.run(self._report)
        finally:
            self._open.discard(session)
        return socket


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS settings of a certificate and its key; None without a certificate. Raises `CockpitError`."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CockpitError(f"The certificate {certificate} cannot be used: {error}.") from None
    return context
