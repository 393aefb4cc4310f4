"""Acts through connections that break anywhere, and engines that are killed anywhere: each happens once, and none is
said to have been refused that was not."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import msgspec
import pytest

from cockpit.backends.drive import drive
from cockpit.backends.local.backend import LocalBackend
from cockpit.backends.local.channel import Channel
from cockpit.backends.local.repeated_request import TRY_SECONDS
from cockpit.backends.local.start import connect
from cockpit.errors import MayBeAccepted, RequestRefused, Unreachable
from cockpit.model.refusal import RefusalKind
from cockpit.model.requests import RequestIds
from cockpit.protocol.frames import RequestFrame, frame, raw
from cockpit.protocol.messages import SubmitArgs
from tests.builders import a_spec
from tests.doubles.faulty_proxy import SOUND, Fault, FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.backends.conftest import OwnEngine

pytestmark = [pytest.mark.req("TR-01"), pytest.mark.real]
SPEC = a_spec("once", hold=True)
WHOLE = len(frame(RequestFrame(1, "submit", raw(SubmitArgs((SPEC,))), "x" * 32)))
"""Bytes of the request."""
PATIENCE = 20.0
IMPATIENCE = 1.2


@pytest.fixture
def proxy(engine: OwnEngine) -> Iterator[FaultyProxy]:
    with FaultyProxy(engine.folder / "proxy.sock", engine.places.socket) as proxy:
        yield proxy


def through(proxy: FaultyProxy, patience: float = PATIENCE) -> LocalBackend:
    def to_engine() -> Channel:
        try:
            return Channel.connect(str(proxy.path))
        except OSError as error:
            raise Unreachable(str(error)) from error

    return LocalBackend(to_engine, patience=lambda: patience)


def directly(engine: OwnEngine) -> LocalBackend:
    return LocalBackend(engine.way.reach)


def names(engine: OwnEngine) -> list[str]:
    return [row.name for row in drive(directly(engine).jobs(ended=True))]


CUTS = {
    "nothing of the request": Fault(to_engine=0),
    "a part of the header": Fault(to_engine=2),
    "a part of the request": Fault(to_engine=WHOLE // 2),
    "all but one byte": Fault(to_engine=WHOLE - 1),
    "the whole request": Fault(to_engine=WHOLE),
    "nothing of the answer": Fault(to_client=0),
    "a byte of the answer": Fault(to_client=1),
    "a part of the answer": Fault(to_client=8),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_submission_through_a_connection_that_breaks_is_accepted_once(
    engine: OwnEngine, proxy: FaultyProxy, cut: str
) -> None:
    proxy.fault = CUTS[cut]
    ids = drive(through(proxy).submit([SPEC]))
    assert [row.id for row in drive(directly(engine).jobs())] == ids
    assert proxy.connections >= 2 or cut == "the whole request"


@pytest.mark.parametrize("cut", [cut for cut in CUTS if cut != "the whole request"])
def test_a_submission_without_an_answer_is_never_reported_as_refused(
    engine: OwnEngine, proxy: FaultyProxy, cut: str
) -> None:
    proxy.fault = CUTS[cut]._replace(once=False, stalls=True)
    with pytest.raises(MayBeAccepted, match="The request may have been accepted") as uncertain:
        drive(through(proxy, IMPATIENCE).submit([SPEC]))
    outcome = drive(directly(engine).request(uncertain.value.request))
    assert [row.id for row in drive(directly(engine).jobs())] == list(outcome.jobs)
    proxy.fault = SOUND
    again = through(proxy)
    again.identify(RequestIds(uncertain.value.request))
    assert len(drive(again.submit([SPEC]))) == 1
    assert names(engine) == ["once"]


def test_a_request_that_was_never_sent_is_not_accepted(proxy: FaultyProxy, engine: OwnEngine) -> None:
    def nobody() -> Channel:
        raise Unreachable("No engine runs here.")

    with pytest.raises(Unreachable, match="No engine runs here"):
        drive(LocalBackend(nobody, patience=lambda: IMPATIENCE).submit([SPEC]))
    assert names(engine) == []
    assert proxy.connections == 0


def test_a_paused_engine_gets_the_request_once_and_executes_it_when_resumed(engine: OwnEngine) -> None:
    backend = LocalBackend(engine.way.reach, patience=lambda: IMPATIENCE)
    drive(backend.status())  # the connection is there
    engine.signal(signal.SIGSTOP)
    try:
        with pytest.raises(MayBeAccepted) as uncertain:
            drive(backend.submit([SPEC]))
    finally:
        engine.signal(signal.SIGCONT)
    again = directly(engine)
    again.identify(RequestIds(uncertain.value.request))
    (job,) = drive(again.submit([SPEC]))
    assert list(drive(again.request(uncertain.value.request)).jobs) == [job]
    assert names(engine) == ["once"]


def test_a_slow_engine_is_waited_for(engine: OwnEngine) -> None:
    backend = LocalBackend(engine.way.reach, patience=lambda: PATIENCE)
    drive(backend.status())
    engine.signal(signal.SIGSTOP)
    going_on = threading.Timer(2.0, engine.signal, [signal.SIGCONT])
    going_on.start()
    (job,) = drive(backend.submit([SPEC]))
    going_on.join()
    assert [row.id for row in drive(backend.jobs())] == [job]


@pytest.mark.parametrize("point", ["read submit", "appended JobHeld", "answering submit"])
def test_an_engine_that_is_killed_at_any_point_of_a_submission_accepts_it_once(
    engine: OwnEngine, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    engine.control.stop(jobs=False)
    monkeypatch.setenv("COCKPIT_DIE_AT", point)
    engine.control.start()
    pids = [engine.pid]

    def reach() -> Channel:
        """The first engine dies there; the next one has no such order."""
        channel = connect(engine.places)
        if channel is None:
            monkeypatch.delenv("COCKPIT_DIE_AT", raising=False)
            channel = engine.way.reach()
        pids.append(channel.hello.pid)
        return channel

    (job,) = drive(LocalBackend(reach, patience=lambda: PATIENCE).submit([SPEC]))
    assert len(set(pids)) == 2, "one was killed"
    assert [(row.id, row.name) for row in drive(directly(engine).jobs())] == [(job, "once")]


def test_an_engine_that_crashes_on_every_try_leaves_the_request_uncertain(
    engine: OwnEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.control.stop(jobs=False)
    monkeypatch.setenv("COCKPIT_DIE_AT", "read submit")
    with pytest.raises(MayBeAccepted):
        drive(LocalBackend(engine.way.reach, patience=lambda: IMPATIENCE).submit([SPEC]))
    monkeypatch.delenv("COCKPIT_DIE_AT")
    engine.kill() if _runs(engine) else None
    assert names(engine) == []


def _runs(engine: OwnEngine) -> bool:
    with suppress(OSError, ValueError):
        os.kill(engine.holder(), 0)
        return True
    return False


def test_a_refusal_is_the_same_through_a_connection_that_breaks(engine: OwnEngine, proxy: FaultyProxy) -> None:
    proxy.fault = CUTS["nothing of the answer"]
    with pytest.raises(RequestRefused) as refused:
        drive(through(proxy).submit([msgspec.structs.replace(SPEC, nodes=99)]))
    assert refused.value.refusal.kind is RefusalKind.INVALID
    assert names(engine) == []


def test_a_request_too_long_for_a_frame_is_refused_and_the_connection_stays_open(engine: OwnEngine) -> None:
    backend = directly(engine)
    large = [a_spec(f"large-{number}", env={"LARGE": "x" * 60_000}) for number in range(300)]
    with pytest.raises(RequestRefused, match=r"The request has 17 MiB, and one may have 16\. Nothing was sent"):
        drive(backend.submit(large))
    assert list(drive(backend.jobs())) == []


def test_a_temporary_refusal_is_reported_at_once(engine: OwnEngine) -> None:
    drive(directly(engine).status())
    with closing(sqlite3.connect(engine.places.state_folder / "journal.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RequestRefused, match="locked by another process") as refused:
            drive(LocalBackend(engine.way.reach, patience=lambda: 1e9).submit([SPEC]))
        other.execute("ROLLBACK")
    assert refused.value.refusal.kind is RefusalKind.UNAVAILABLE
    assert names(engine) == []


@pytest.mark.parametrize("fault", [Fault(to_client=0, once=False), Fault(to_client=0, once=False, stalls=True)])
def test_an_unanswered_request_reports_the_time_and_the_risk_of_a_repeat(proxy: FaultyProxy, fault: Fault) -> None:
    proxy.fault = fault
    with pytest.raises(MayBeAccepted) as uncertain:
        drive(through(proxy, IMPATIENCE).submit([SPEC]))
    why, advice = str(uncertain.value).splitlines()
    assert "again" not in why
    assert "waited 15 s" not in why
    assert advice.endswith(f"`--request-id {uncertain.value.request}`.")


@pytest.mark.parametrize("cut", ["a byte of the answer", "a part of the answer"])
def test_an_answer_that_stops_in_the_middle_is_waited_for_as_long_as_any(
    engine: OwnEngine, proxy: FaultyProxy, cut: str
) -> None:
    proxy.fault = CUTS[cut]._replace(once=False, stalls=True)
    began = time.monotonic()
    with pytest.raises(MayBeAccepted, match=r"waited [12] s"):
        drive(through(proxy, IMPATIENCE).submit([SPEC]))
    assert time.monotonic() - began < 2 * TRY_SECONDS / 3
    assert names(engine) == ["once"]


def test_an_answer_that_is_garbage_leaves_the_request_uncertain(engine: OwnEngine, proxy: FaultyProxy) -> None:
    proxy.fault = Fault(garbles=True, once=False)
    with pytest.raises(MayBeAccepted):
        drive(through(proxy, IMPATIENCE).submit([SPEC]))
    assert names(engine) == ["once"]


def test_a_later_request_of_a_command_is_repeated_with_the_whole_command(engine: OwnEngine, proxy: FaultyProxy) -> None:
    first, second = through(proxy), through(proxy, IMPATIENCE)
    ids = RequestIds("nightly")
    first.identify(ids)
    second.identify(ids)
    drive(first.submit([SPEC]))
    proxy.fault = Fault(swallows_acts=True, once=False)
    with pytest.raises(MayBeAccepted, match=r"jobs --request nightly#2`.* with `--request-id nightly`"):
        drive(second.submit([SPEC]))


def test_a_request_that_one_engine_may_have_is_not_sent_to_another(engine: OwnEngine, proxy: FaultyProxy) -> None:
    """As where the machine-wide engine is gone and one's own answers in its place."""
    proxy.fault = Fault(to_client=0)
    first = through(proxy).open
    turns = iter([first])

    def other() -> Channel:
        if (turn := next(turns, None)) is not None:
            return turn()
        channel = engine.way.reach()
        channel.hello = msgspec.structs.replace(channel.hello, state_folder="/another")
        return channel

    with pytest.raises(MayBeAccepted, match="another one answers in its place"):
        drive(LocalBackend(other, patience=lambda: IMPATIENCE).submit([SPEC]))
    assert names(engine) == ["once"]
