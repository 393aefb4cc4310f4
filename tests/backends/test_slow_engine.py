"""A connection to something that listens like an engine and answers as it likes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from random import Random

import msgspec
import pytest

from cockpit.backends.base import Phase
from cockpit.backends.local.channel import Channel
from cockpit.backends.local.live import LiveBackend
from cockpit.backends.local.reconnector import Patience, Reconnector, beside
from cockpit.errors import MayBeAccepted, Unreachable
from cockpit.model.ids import JobId, Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.view import Overview
from cockpit.protocol.frames import HEADER, MAJOR, MINOR, Answer, Hello, RequestFrame, body_length, frame, raw
from cockpit.protocol.messages import NoArgs
from cockpit.protocol.pages import AllLoaded, SubscribeArgs, page_of
from tests.backends.conftest import HASTE
from tests.doubles.samples import job_row

GLANCE = Overview("lab", {}, 0, 1, 8, 0, 1024, 0, 0, 0)
Answering = Callable[[RequestFrame], Awaitable[list[Answer] | None]]


class Listener:
    """Answers each request by `answering`; None: it closes the connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[RequestFrame] = []
        self.answering: Answering = answered
        self.state_folder = "/"

    def reach(self) -> Channel:
        try:
            return Channel.connect(str(self.path))
        except OSError as error:
            raise Unreachable("nobody there") from error

    reach_again = reach

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = Hello(protocol=(MAJOR, MINOR), version="0", capabilities=(), pid=1, state_folder=self.state_folder)
        writer.write(frame(hello))
        try:
            while True:
                body = await reader.readexactly(body_length(await reader.readexactly(HEADER.size)))
                request = msgspec.msgpack.decode(body, type=RequestFrame)
                self.asked.append(request)
                answers = await self.answering(request)
                if answers is None:
                    return
                for answer in answers:
                    writer.write(frame(answer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def of(self, op: str) -> list[RequestFrame]:
        return [request for request in self.asked if request.op == op]


async def answered(request: RequestFrame) -> list[Answer]:
    return [Answer(request.id, raw(GLANCE) if request.op == "overview" else raw([]))]


@pytest.fixture
async def listener(tmp_path: Path) -> AsyncIterator[Listener]:
    listener = Listener(tmp_path / "s")
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(listener.path))
    bound.listen()
    server = await asyncio.start_unix_server(listener.serve, sock=bound)
    yield listener
    server.close()


@pytest.fixture
async def live(listener: Listener) -> AsyncIterator[LiveBackend]:
    backend = LiveBackend(listener, lambda: Millis(7), Random(1), HASTE)
    yield backend
    await backend.close()


@pytest.mark.req("UI-41")
async def test_a_request_beside_an_open_or_left_stream_gets_its_own_answer(listener: Listener) -> None:
    async def answers_much(request: RequestFrame) -> list[Answer]:
        if request.op == "subscribe":
            return [Answer(request.id, raw(page_of([job_row(number)])), last=False) for number in range(1, 4)]
        return await answered(request)

    listener.answering = answers_much
    channel = await asyncio.to_thread(listener.reach)
    updates = channel.stream("subscribe", SubscribeArgs(brief=True))
    await asyncio.to_thread(next, updates)
    assert await asyncio.to_thread(channel.ask, "overview", NoArgs(), Overview) == GLANCE
    second = await asyncio.to_thread(next, updates)
    assert second == raw(page_of([job_row(2)])), "the stream goes on where it was"
    updates.close()
    assert await asyncio.to_thread(channel.ask, "overview", NoArgs(), Overview) == GLANCE
    channel.close()


@pytest.mark.req("TR-01")
async def test_an_action_is_sent_with_one_id_until_it_is_answered(live: LiveBackend, listener: Listener) -> None:
    async def breaks_three_times(request: RequestFrame) -> list[Answer] | None:
        if request.op == "hold" and len(listener.of("hold")) < 4:
            return None
        return [Answer(request.id, raw(GLANCE if request.op == "overview" else None))]

    listener.answering = breaks_three_times
    await live.hold(5)
    ids = [request.request for request in listener.of("hold")]
    assert len(ids) == 4
    assert len(set(ids)) == 1
    assert ids[0]


@pytest.mark.req("TR-01")
async def test_an_unanswered_action_may_have_been_accepted_and_keeps_its_id(listener: Listener) -> None:
    live = LiveBackend(listener, lambda: Millis(7), Random(1), msgspec.structs.replace(HASTE, act=0.3, attempt=0.05))

    async def silent_on_holds(request: RequestFrame) -> list[Answer]:
        return [] if request.op == "hold" else await answered(request)

    listener.answering = silent_on_holds
    with pytest.raises(MayBeAccepted, match="may have been accepted") as uncertain:
        await live.hold(JobId(5))
    (first,) = {request.request for request in listener.of("hold")}
    assert f"`cockpit jobs --request {first}`" in str(uncertain.value)
    listener.answering = done
    await live.hold(JobId(6))
    await live.hold(JobId(5))
    await live.hold(JobId(5))
    *_, other, again, anew = [request.request for request in listener.of("hold")]
    assert again == first, "the same act once more, whose answer never came"
    assert len({first, other, anew}) == 3
    await live.close()


@pytest.mark.req("TR-01")
async def test_a_request_that_one_engine_may_have_is_not_sent_to_another(listener: Listener) -> None:
    live = LiveBackend(listener, lambda: Millis(7), Random(1), msgspec.structs.replace(HASTE, act=0.3, attempt=0.05))

    async def gives_way(request: RequestFrame) -> list[Answer] | None:
        if request.op != "hold":
            return await answered(request)
        listener.state_folder = "/another"
        return None

    listener.answering = gives_way
    with pytest.raises(MayBeAccepted, match="another one answers in its place"):
        await live.hold(JobId(5))
    assert len(listener.of("hold")) == 1
    await live.close()


@pytest.mark.req("TR-01")
async def test_a_temporary_refusal_does_not_answer_an_action_sent_before(live: LiveBackend, listener: Listener) -> None:
    full = Refusal(RefusalKind.UNAVAILABLE, "The disk is full. Nothing was accepted.")

    async def full_the_second_time(request: RequestFrame) -> list[Answer] | None:
        if request.op != "hold":
            return await answered(request)
        tries = len(listener.of("hold"))
        return None if tries == 1 else [Answer(request.id, no=full) if tries == 2 else Answer(request.id, raw(None))]

    listener.answering = full_the_second_time
    await live.hold(JobId(5))
    assert len(listener.of("hold")) == 3


async def done(request: RequestFrame) -> list[Answer]:
    return [Answer(request.id, raw(GLANCE if request.op == "overview" else None))]


async def test_a_read_request_is_repeated_until_answered(live: LiveBackend, listener: Listener) -> None:
    async def breaks_three_times(request: RequestFrame) -> list[Answer] | None:
        return None if request.op == "nodes" and len(listener.of("nodes")) < 4 else await answered(request)

    listener.answering = breaks_three_times
    assert await live.nodes() == []


async def test_answers_may_arrive_in_any_order(live: LiveBackend, listener: Listener) -> None:
    kept: list[RequestFrame] = []

    async def the_other_way_round(request: RequestFrame) -> list[Answer]:
        if request.op == "overview":
            return await answered(request)
        kept.append(request)
        if len(kept) < 2:
            return []
        return [Answer(each.id, raw([])) for each in reversed(kept)]

    listener.answering = the_other_way_round
    assert await asyncio.gather(live.nodes(), live.holds()) == [[], []]


async def test_an_engine_that_never_answers_is_unreachable_and_leaves_no_task(listener: Listener) -> None:
    live = LiveBackend(listener, lambda: Millis(7), Random(1), Patience(read=0.05, ping=0.01, silence=0.02))
    listener.answering = silence
    for asked in (live.nodes, live.jobs):
        with pytest.raises(Unreachable):
            await asked()
    assert live.connection.phase is Phase.CONNECTING
    assert live.connection.good_at is None
    await live.close()


class BrokenEngine:
    """Cannot be started."""

    def reach(self) -> Channel:
        raise Unreachable("The engine says: no space left.")

    def reach_again(self) -> Channel:
        raise Unreachable("The engine was stopped.")


async def test_the_reason_of_a_failed_engine_start_is_reported_until_it_runs() -> None:
    live = LiveBackend(BrokenEngine(), lambda: Millis(7), Random(1), HASTE)
    with pytest.raises(Unreachable, match="no space left"):
        await live.status()
    assert live.connection.phase is Phase.CONNECTING
    await live.close()


async def silence(_: RequestFrame) -> list[Answer]:
    return []


async def test_unchanged_rows_are_not_sent_again(live: LiveBackend, listener: Listener) -> None:
    shown = [[job_row(1), job_row(2), job_row(3)], [job_row(1), job_row(3, name="other"), job_row(4)]]

    async def subscribed(request: RequestFrame) -> list[Answer] | None:
        if request.op != "subscribe":
            return await answered(request)
        rows = shown[len(listener.of("subscribe")) - 1]
        updates = [raw(page_of(rows)), raw(AllLoaded())]
        return [*(Answer(request.id, update, last=False) for update in updates), Answer(request.id)]

    listener.answering = subscribed
    told = []
    async with asyncio.timeout(60), aclosing(live.watch_jobs()) as deltas:
        async for delta in deltas:
            told.append(([row.id for row in delta.changed], list(delta.removed)))
            if len(told) == 4:
                break
    assert told == [([1, 2, 3], []), ([], []), ([3, 4], []), ([], [2])]


async def test_a_lost_connection_is_reported_and_restored(live: LiveBackend, listener: Listener) -> None:
    phases = []
    async with asyncio.timeout(60), aclosing(live.connections()) as connections:
        async for connection in connections:
            phases.append(connection.phase)
            if connection.phase is Phase.CONNECTED:
                if len(phases) > 2:
                    break
                listener.answering = once_closed(listener)
    assert phases == [Phase.CONNECTING, Phase.CONNECTED, Phase.STALE, Phase.CONNECTED]


def once_closed(listener: Listener) -> Answering:
    async def closes(_: RequestFrame) -> None:
        listener.answering = answered

    return closes


def test_retries_are_spread_and_grow_to_a_limit() -> None:
    patience = Patience()
    waits = [[patience.retry(attempt, Random(seed)) for attempt in range(12)] for seed in range(50)]
    assert all(0.1 <= each[0] <= 0.2 for each in waits)
    assert all(2.5 <= each[-1] <= 5.0 for each in waits)
    assert len({each[-1] for each in waits}) == 50


async def test_figures_are_sent_only_when_they_change(listener: Listener) -> None:
    keeper = Reconnector(listener, lambda: Millis(7), Random(1), HASTE)
    seen = []
    glances = iter([GLANCE, GLANCE, GLANCE, msgspec.structs.replace(GLANCE, held=1)])

    async def ever_more(request: RequestFrame) -> list[Answer]:
        return [Answer(request.id, raw(next(glances, GLANCE)))]

    listener.answering = ever_more
    keeper.begin()
    async with asyncio.timeout(60), aclosing(keeper.overview.follow()) as followed:  # type: ignore[type-var] # a generator
        async for glance in followed:
            seen.append(glance)
            if glance is not None and glance.held:
                break
    await keeper.close()
    assert [None if each is None else each.held for each in seen] == [None, 0, 1]


async def test_answers_to_cancelled_requests_are_discarded() -> None:
    begun, go_on, discarded = asyncio.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> str:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(10)
        return "a connection"

    async with asyncio.TaskGroup() as group:
        task = group.create_task(beside(slow, lambda _: discarded.set()))
        await begun.wait()
        task.cancel()
    go_on.set()
    async with asyncio.timeout(60):
        await discarded.wait()
