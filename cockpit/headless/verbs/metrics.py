"""`cockpit metrics`: the cluster's figures as OpenMetrics text, once or for a scraper over HTTP."""

from __future__ import annotations

import gc
import threading
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cockpit.backends.drive import drive
from cockpit.errors import CockpitError, RequestRefused
from cockpit.headless.arguments import UsageError, Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.present.metrics import Family, Figures, families, silent

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from prometheus_client.metrics_core import Metric

    from cockpit.model.cluster import Partition

LOOPBACK: Final = "127.0.0.1"
FRESH_MS: Final = 1_000
"""For how long an answer is given again, so that many scrapers cost the cluster no more than one."""
CLIENT_SECONDS: Final = 10
"""Time after which a client that does not send its request is dropped."""
MOST_CLIENTS: Final = 20


def metrics_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        type=address,
        metavar="HOST:PORT",
        help="serve them over HTTP until interrupted; with a port alone on loopback",
    )


def address(text: str) -> tuple[str, int]:
    """Parse `PORT`, `HOST:PORT` or `[IPv6]:PORT`; 0 is any free port."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise ArgumentTypeError("write a port, or HOST:PORT, such as 9090 or 127.0.0.1:9090")
    return host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port)


async def run(call: Call) -> int:
    if call.args.listen is not None:
        return _serve(call, *call.args.listen)
    text = exposition(families(await _figures(call)))
    call.streams.write(text)
    return ExitCode.OK


async def _figures(call: Call) -> Figures:
    backend = call.backend
    return Figures(
        overview=await backend.overview(),
        jobs=await backend.jobs(),
        nodes=await backend.nodes(),
        queues=(await backend.queues()).rows if not backend.capabilities.why_not("queues") else (),
        partitions=await _partitions(call),
        now=call.streams.now(),
    )


async def _partitions(call: Call) -> tuple[Partition, ...]:
    """Return the partitions; none where the cluster does not tell its rules."""
    try:
        return (await call.backend.rules()).partitions
    except RequestRefused:
        return ()


def exposition(shown: Iterator[Family]) -> bytes:
    """Return the metrics as OpenMetrics text."""
    from prometheus_client.openmetrics.exposition import generate_latest

    text: bytes = generate_latest(_registry(lambda: shown))  # type: ignore[no-untyped-call]  # of the library
    return text


def _registry(make: Callable[[], Iterator[Family]]) -> Any:  # noqa: ANN401 - of a library that is imported late
    from prometheus_client.core import CollectorRegistry, GaugeMetricFamily

    class Collector:
        """Hands the families over as the library's own."""

        def collect(self) -> Iterator[Metric]:
            for family in make():
                gauge = GaugeMetricFamily(family.name, family.help, labels=family.labels)
                for sample in family.samples:
                    gauge.add_metric(sample.labels, sample.value)
                yield gauge

        def describe(self) -> list[Metric]:
            return []  # else the library would ask the cluster when the collector is registered

    registry = CollectorRegistry()
    registry.register(Collector())
    return registry


class Source:
    """The latest families of one cluster, asked again when they are not fresh. It may be used by several threads."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._latest: tuple[int, list[Family]] | None = None

    def __call__(self) -> Iterator[Family]:
        # The connection to the cluster carries one request at a time.
        with self._lock:
            now = self._call.streams.now()
            if self._latest is None or not 0 <= now - self._latest[0] < FRESH_MS:
                self._latest = now, self._ask()
            return iter(self._latest[1])

    def _ask(self) -> list[Family]:
        try:
            return [*families(drive(_figures(self._call)))]
        except CockpitError:
            # A cluster that is away is a figure too, and may be back for the next scrape.
            with suppress(CockpitError):
                drive(self._call.close())
            return [*silent()]


def _serve(call: Call, host: str, port: int) -> int:
    """Answer scrapes until interrupted."""
    gc.enable()  # commands switch it off because they end soon
    source = Source(call)
    # Asked once before anybody does, so that a cluster that cannot be opened is an error of the command.
    drive(_figures(call))
    with metrics_server(source, host, port) as server:
        shown = f"[{server.server_name}]" if ":" in server.server_name else server.server_name
        call.streams.line(f"http://{shown}:{server.server_port}/metrics")
        call.streams.flush()
        server.serve_forever()
    return ExitCode.OK


def metrics_server(source: Callable[[], Iterator[Family]], host: str, port: int) -> WSGIServer:
    """Return a server that is bound and does not serve yet. Raises `UsageError` where it cannot be bound."""
    import socket
    from socketserver import ThreadingMixIn
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    from prometheus_client import make_wsgi_app

    app = make_wsgi_app(_registry(source))

    class Handler(WSGIRequestHandler):
        timeout = CLIENT_SECONDS

        def log_message(self, *_: object) -> None:
            """Print nothing: scrapes come every few seconds."""

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        clients = threading.Semaphore(MOST_CLIENTS)

        def server_bind(self) -> None:
            # Without the look-up of the host's name, which may take seconds.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
            self.setup_environ()

        def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base
            if not self.clients.acquire(blocking=False):
                self.shutdown_request(request)
                return
            try:
                super().process_request_thread(request, client_address)
            finally:
                self.clients.release()

        def handle_error(self, *_: object) -> None:
            """Print nothing: that a client goes away is no error."""

    try:
        server = Server((host, port), Handler)
    except OSError as failed:
        raise UsageError(
            f"cannot listen on {host}:{port}: {failed.strerror or failed}; choose another port"
        ) from failed
    server.set_app(app)
    return server


METRICS = Verb(
    metrics_arguments,
    run,
    ("cockpit metrics", "cockpit metrics --listen 9090", "cockpit -c lab-a metrics --listen 127.0.0.1:9091"),
)
