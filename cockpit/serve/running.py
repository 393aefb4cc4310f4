"""Runs the server until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import msgspec

from cockpit.errors import CockpitError
from cockpit.model.access_level import AccessLevel
from cockpit.present.safe import safe_lines
from cockpit.runtime.clock import SystemClock
from cockpit.serve.accounts import own_account
from cockpit.serve.forking import ForkServer
from cockpit.serve.host_keys import host_key
from cockpit.serve.keys import key_source
from cockpit.serve.limits import Bounds
from cockpit.serve.ssh_server import SshServer
from cockpit.serve.ssh_session import WEB
from cockpit.serve.web_server import WebServer, tls_context

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `cockpit serve` was asked for, from its options and the settings."""

    host: str
    port: int
    authorized_keys: Path | None
    """None: the keys of the users themselves."""
    host_key: Path
    access: AccessLevel
    bounds: Bounds
    web: tuple[str, int] | None = None
    """Where the web server listens; None: there is none."""
    certificate: Path | None = None
    certificate_key: Path | None = None


def run_server(options: ServeOptions) -> int:
    """Serve until a signal; return the exit code. Raises `CockpitError` if the server cannot start."""
    gc.enable()  # commands switch it off because they end soon; this one runs for months
    return asyncio.run(_serve(options, _log))


async def _serve(options: ServeOptions, log: Callable[[str], None]) -> int:
    keys = key_source(options.authorized_keys)
    key = host_key(options.host_key)
    for problem in await asyncio.to_thread(keys.check):
        log(problem)
    # Before the server listens, so that a signal at any moment ends it in order.
    stopped = asyncio.Event()
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = SshServer(keys, key, options.access, options.bounds, now=SystemClock().now, report=log)
    forks = ForkServer(log)
    server.start = forks.start
    port = await server.listen(options.host, options.port)
    log(f"SSH at {options.host or '*'}:{port}, host key {key.get_fingerprint()}")
    for line in _hints(options, port):
        log(line)
    forks.launch()
    web = await _serve_web(options, server, log) if options.web is not None else None
    _tell_systemd("READY=1")
    await stopped.wait()
    _tell_systemd("STOPPING=1")
    # A second signal does not wait for sessions to end by themselves.
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, server.hurry)
    await server.drain()
    server.end_sessions()
    if web is not None:
        await web.close()
    await server.close()
    forks.close()
    log("the server has stopped; jobs continue")
    return 0


async def _serve_web(options: ServeOptions, server: SshServer, log: Callable[[str], None]) -> WebServer:
    assert options.web is not None
    host, port = options.web
    tls = tls_context(options.certificate, options.certificate_key)
    if tls is None and not _is_loopback(host):
        raise CockpitError(
            f"A web server at {host} needs TLS, since addresses are secret: --tls-certificate FILE --tls-key FILE"
        )
    web = WebServer(server.sessions, server.bounds, server.start, server.report)
    base = await web.listen(host, port, tls)
    server.address = web.address_for
    log(f"Web at {base}; `ssh -p PORT HOST {WEB}` prints an address that opens the cockpit")
    # The address is all that a browser needs to be this user, so it is shown on this user's terminal alone.
    if sys.stderr.isatty():
        log(f"Open it: {web.address_for(own_account().name, options.access)}")
    return web


def _hints(options: ServeOptions, port: int) -> list[str]:
    hints = [f"Open it: ssh -p {port} {own_account().name}@{options.host or socket.gethostname()}"]
    if not _is_loopback(options.host):
        hints.append("Other machines reach it: each key of its users opens the cockpit from anywhere.")
    if os.geteuid() != 0:
        hints.append(f"It runs as {own_account().name}, so all sessions are of this user; as root it serves all users.")
    return hints


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _log(text: str) -> None:
    """Write a line to the server's log, which is stderr. Without a reader, the server goes on."""
    with suppress(OSError):
        print(f"cockpit serve: {safe_lines(text)}", file=sys.stderr, flush=True)  # noqa: T201 - as systemd collects it


def _tell_systemd(state: str) -> None:
    """Report a state to systemd, where it started this process (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
        try:
            notify.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
        except OSError as error:
            _log(f"systemd cannot be told of the start: {error.strerror}")
