"""`cockpit metrics`, read by the parser of the library and by a scraper's request."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cockpit.errors import Unreachable
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.verbs.metrics import LOOPBACK, MOST_CLIENTS, Source, address, metrics_server
from cockpit.present.metrics import Family, Sample
from tests.doubles.hostile_cluster import HostileBackend
from tests.headless.conftest import Desk
from tests.present.corpus import is_harmless

pytestmark = pytest.mark.req("UI-40")
SCRAPER = {
    "Accept": "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4,*/*;q=0.2",
    "Accept-Encoding": "gzip",
    "User-Agent": "Prometheus/2.53.0",
    "X-Prometheus-Scrape-Timeout-Seconds": "10",
}
"""The headers of a Prometheus server."""


def parsed(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


@contextmanager
def serving(source: Any) -> Iterator[int]:
    with metrics_server(source, LOOPBACK, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join(10)


def scrape(port: int, headers: dict[str, str] = SCRAPER) -> tuple[str, str]:
    """The type and the text of the answer."""
    with closing(HTTPConnection(LOOPBACK, port, timeout=20)) as connection:
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200
        body = answer.read()
        if answer.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        return answer.headers["Content-Type"], body.decode()


def test_the_text_is_read_by_the_parser_and_names_no_job_or_user(desk: Desk) -> None:
    done = desk("metrics")
    assert done.code == ExitCode.OK
    text = done.out.decode()
    assert text.endswith("# EOF\n")
    known = parsed(text)
    assert known["cockpit_up"].samples[0].value == 1
    queued = [row for row in desk.backend.job_rows if row.queued]
    assert sum(each.value for each in known["cockpit_waiting_jobs"].samples) == len(queued)
    labels = {label for family in known.values() for each in family.samples for label in each.labels}
    assert labels <= {"state", "kind", "queue", "resource", "partition", "cause", "model"}
    assert not any(row.user in text or row.name in text for row in desk.backend.job_rows)


def test_hostile_names_are_escaped_and_still_parsed() -> None:
    desk = Desk()
    desk.backend = HostileBackend()
    text = desk("metrics").out.decode()
    assert is_harmless(text.replace("\n", ""))
    assert parsed(text)["cockpit_up"].samples[0].value == 1


def test_a_scraper_gets_openmetrics_and_many_of_them_cost_one_question() -> None:
    asked = []

    def source() -> Iterator[Family]:
        asked.append(1)
        return iter([Family("cockpit_up", "Whether", (), (Sample((), 1),))])

    with serving(source) as port:
        kind, text = scrape(port)
        assert kind.startswith("application/openmetrics-text")
        assert [each.name for each in text_string_to_metric_families(text)] == ["cockpit_up"]
        assert scrape(port, {})[0].startswith("text/plain")
    assert len(asked) == 2


class CallDouble:
    """A cluster that can be silent."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.is_silent, self.connected = desk, False, 0
        self.streams = self

    def now(self) -> int:
        return self.desk.clock[0]

    @property
    def backend(self) -> Any:
        self.connected += 1
        if self.is_silent:
            raise Unreachable("nobody answers")
        return self.desk.backend

    async def close(self) -> None:
        pass


def test_a_fresh_answer_is_given_again_and_a_silent_cluster_is_a_figure(desk: Desk) -> None:
    call = CallDouble(desk)
    source = Source(call)  # type: ignore[arg-type]  # as much of a call as it uses

    def is_up() -> float:
        return next(each.samples[0].value for each in source() if each.name == "cockpit_up")

    assert is_up() == 1
    before = call.connected
    assert is_up() == 1
    assert call.connected == before
    call.is_silent = True
    desk.clock[0] += 1000
    assert is_up() == 0
    call.is_silent = False
    desk.clock[0] += 1000
    assert is_up() == 1


def test_clients_that_send_nothing_do_not_keep_others_from_their_answer() -> None:
    source = iter([Family("cockpit_up", "Whether", (), (Sample((), 1),))])
    with serving(lambda: source) as port:
        idle = [socket.create_connection((LOOPBACK, port), 10) for _ in range(MOST_CLIENTS - 1)]
        try:
            assert "cockpit_up" in scrape(port)[1]
        finally:
            for each in idle:
                each.close()


def test_an_address_is_a_port_on_loopback_or_names_a_host(desk: Desk) -> None:
    assert address("9090") == (LOOPBACK, 9090)
    assert address("0.0.0.0:9090") == ("0.0.0.0", 9090)
    assert address("[::1]:9090") == ("::1", 9090)
    for wrong in ("x", "127.0.0.1:", "127.0.0.1:99999", ""):
        done = desk("metrics", "--listen", wrong)
        assert done.code == ExitCode.USAGE
        assert "such as 9090" in done.err


def test_an_address_in_use_is_said(desk: Desk) -> None:
    with closing(socket.socket()) as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = desk("metrics", "--listen", str(port))
    assert done.code == ExitCode.USAGE
    assert f"cannot listen on 127.0.0.1:{port}" in done.err
    assert "choose another port" in done.err
