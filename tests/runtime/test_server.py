"""Whatever arrives at the socket, the engine answers it, keeps running, and answers all other clients."""

from __future__ import annotations

import asyncio
import resource
import select
import socket
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.engine.access import Actor
from cockpit.protocol.frames import MAX_FRAME
from cockpit.protocol.operations import SHELL
from cockpit.runtime import server
from cockpit.runtime.connection import Bounds
from cockpit.runtime.operations import OPERATIONS
from tests.builders import ANN, BOB
from tests.forged import SPEC, arguments_for
from tests.runtime.served import RawClient, ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EVERY_OPERATION = sorted((*OPERATIONS, SHELL))
PATIENCE = Bounds(frame_seconds=0.4)
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FARTHEST = 2**64 - 1
"""The largest number of a message, which SQLite cannot hold."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEngine]:
    with ServedEngine(tmp_path_factory.mktemp("engine")) as served:
        with served.client() as client:
            assert client.ask("submit", {"specs": [{**SPEC, "hold": True}]}).no is None
        yield served
        assert served.complaints == ""


@pytest.fixture
def hasty(tmp_path: Any) -> Iterator[ServedEngine]:
    """An engine that soon loses its patience."""
    with ServedEngine(tmp_path, PATIENCE) as served:
        yield served
        assert served.complaints == ""


@pytest.fixture
def witness(engine: ServedEngine) -> Iterator[RawClient]:
    """Another client, who must be answered whatever happens."""
    with engine.client() as client:
        yield client
        assert client.ask("status").no is None


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
field_names = st.sampled_from(
    sorted({name for kind, _ in OPERATIONS.values() for name in kind.__struct_fields__} | {"rows", "columns", "term"})
)


@pytest.mark.req("TR-09")
@fuzz
@given(st.binary(max_size=300))
def test_random_bytes_in_a_frame_are_answered(engine: ServedEngine, witness: RawClient, body: bytes) -> None:
    with engine.client() as client:
        client.say(body)
        assert client.answer().no is not None
    assert witness.ask("status").no is None


@pytest.mark.req("TR-09")
@fuzz
@given(st.binary(min_size=1, max_size=100))
def test_random_bytes_instead_of_frames_affect_no_other_client(
    engine: ServedEngine, witness: RawClient, data: bytes
) -> None:
    with engine.client() as client:
        client.socket.sendall(data)
    assert witness.ask("status").no is None


@pytest.mark.req("TR-09")
@fuzz
@given(st.sampled_from(EVERY_OPERATION), st.dictionaries(field_names, values, max_size=5) | values, values, values)
def test_wrong_types_are_refused(
    engine: ServedEngine, witness: RawClient, op: str, args: Any, request: Any, number: Any
) -> None:
    if op == "stop" and isinstance(args, dict):
        args = {"jobs": args}
    with engine.client() as client:
        client.say(msgspec.msgpack.encode({"id": number, "op": op, "args": args, "request": request}))
        refused = client.answer().no if op not in {"wait", "logs", "subscribe"} else None
        assert refused is None or "defect" not in refused.message
    assert witness.ask("status").no is None


@pytest.mark.req("TR-09")
@fuzz
@given(st.sampled_from(EVERY_OPERATION), st.data())
def test_one_field_of_any_value_is_answered_without_a_defect(
    engine: ServedEngine, op: str, data: st.DataObject
) -> None:
    args = arguments_for(op, 1)
    fields = sorted(args.keys() - {"timeout_seconds"})
    if op in {"stop", "submit", "delete"} or not fields:
        return
    args[data.draw(st.sampled_from(fields))] = data.draw(st.integers(-(2**63), 2**64 - 1) | st.floats() | values)
    with engine.client() as client:
        answer = client.ask(op, args)
        assert answer.no is None or "defect" not in answer.no.message


@pytest.mark.req("TR-09")
@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("accounting", {"since": FARTHEST}),
        ("accounting", {"until": FARTHEST}),
        ("accounting", {"since": -(2**63)}),
        ("spending", {"edges": [0, FARTHEST]}),
        ("spending", {"edges": [-(2**63), FARTHEST]}),
        ("events", {"job": FARTHEST, "after": 0, "limit": 1}),
        ("events", {"job": None, "after": FARTHEST, "limit": FARTHEST}),
        ("events", {"job": None, "after": -(2**63), "limit": -1}),
        ("job", {"job": FARTHEST}),
        ("job", {"job": -(2**63)}),
    ],
)
def test_numbers_beyond_those_of_the_store_are_answered_without_a_defect(
    witness: RawClient, op: str, args: dict[str, Any]
) -> None:
    answer = witness.ask(op, args)
    assert answer.no is None or "defect" not in answer.no.message


@pytest.mark.req("TR-09")
@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, 1e300])
def test_no_timeout_value_changes_the_engines_clock(witness: RawClient, seconds: float) -> None:
    refused = witness.ask("wait", {"job": 1, "timeout_seconds": seconds}).no
    assert refused is not None
    assert "timeout_seconds" in refused.message


@pytest.mark.req("TR-09")
@pytest.mark.parametrize("op", ["nothing", "", "__init__", "a\x1b[31m", "x" * 100_000])
def test_an_unknown_operation_is_refused_by_the_names_of_the_known(witness: RawClient, op: str) -> None:
    refused = witness.ask(op).no
    assert refused is not None
    assert "subscribe" in refused.message
    assert len(refused.message) < 1000


DEEP = b"\x91" * 1_000_000 + b"\xc0"


@pytest.mark.req("TR-09")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        DEEP,
        b"\x83\xa2id\x01\xa2op\xa6submit\xa4args" + DEEP,
        b"\x83\xa2id\x01\xa2op\xa6submit\xa4args\x81\xa5specs" + DEEP,
        b"\x82\xa2id\x01\xa2op\xa2\xff\xfe",
        b"\x83\xa2id\x01\xa2op\xa4jobs\xa4args\xdf\xff\xff\xff\xff",
        b"\x83\xa2id\x01\xa2op\xa6submit\xa4args\x81\xa5specs\xdd\xff\xff\xff\xff",
        b"\xc1" * 100,
        b"\x82\xa2id\x01\xa2op\xdb\xff\xff\xff\xff",
    ],
    ids=["empty", "deep", "deep args", "deep specs", "no UTF-8", "huge map", "huge array", "no msgpack", "huge text"],
)
def test_hostile_message_bodies_are_refused(engine: ServedEngine, witness: RawClient, body: bytes) -> None:
    with engine.client() as client:
        client.say(body)
        refused = client.answer().no
        assert refused is not None
        assert (refused.kind, "defect" in refused.message) == ("invalid", False)
        assert client.ask("status").no is None, "a bad body costs nobody the connection"


@pytest.mark.req("TR-09")
@pytest.mark.parametrize("length", [MAX_FRAME + 1, 2**32 - 1])
def test_a_frame_that_is_too_long_ends_the_connection(engine: ServedEngine, witness: RawClient, length: int) -> None:
    with engine.client() as client:
        client.socket.sendall(struct.pack(">I", length) + b"x" * 100)
        assert "exceeds" in str(client.answer().no)
        assert client.at_end()


@pytest.mark.req("TR-09")
def test_the_longest_frame_is_accepted(engine: ServedEngine, witness: RawClient) -> None:
    with engine.client() as client:
        client.say(msgspec.msgpack.encode({"id": 1, "op": "jobs", "args": {"x": b"\0" * (MAX_FRAME - 100)}}))
        assert client.answer().no is None


@pytest.mark.req("TR-09")
@pytest.mark.parametrize("part", [b"\0", struct.pack(">I", 100) + b"half", struct.pack(">I", 1 << 20)])
def test_an_incomplete_frame_times_out(hasty: ServedEngine, part: bytes) -> None:
    with hasty.client() as slow, hasty.client() as other:
        slow.socket.sendall(part)
        assert other.ask("status").no is None
        assert "took longer than 0.4 s" in str(slow.answer().no)
        assert slow.at_end()
        assert other.ask("status").no is None, "who says nothing at all may stay"


@pytest.mark.req("TR-09")
def test_slowly_sent_bytes_do_not_extend_the_timeout(hasty: ServedEngine) -> None:
    """Each byte arrives soon after the one before; the whole frame does not."""
    with hasty.client() as slow:
        slow.socket.sendall(struct.pack(">I", 10_000))
        for _ in range(9_000):
            slow.socket.sendall(b"x")
            if select.select([slow.socket], [], [], 0.02)[0]:
                break
        assert "took longer than 0.4 s" in str(slow.answer().no)


@pytest.mark.req("TR-09")
def test_a_client_that_never_reads_is_disconnected_within_a_small_buffer(tmp_path: Any) -> None:
    """Large frames have all the time they need on a busy machine: only who takes nothing is dropped soon."""
    specs = [{**SPEC, "name": f"j{n}", "command": f"true {'x' * 20_000}", "hold": True} for n in range(700)]
    with ServedEngine(tmp_path, Bounds(frame_seconds=60, send_seconds=1)) as engine, engine.client() as other:
        for first in range(0, len(specs), 50):  # 14 MiB at once take longer than an answer may on a busy machine
            assert other.ask("submit", {"specs": specs[first : first + 50]}).no is None
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        question = msgspec.msgpack.encode({"id": 1, "op": "jobs", "args": {}})
        with engine.client() as greedy:
            greedy.socket.sendall((struct.pack(">I", len(question)) + question) * 100)
            while not hung_up(greedy.socket):
                assert other.ask("status").no is None
        assert engine.complaints == ""
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    assert grown_mib < 200, "32 answers of 14 MiB are not made before one is taken"


def hung_up(connection: socket.socket) -> bool:
    """Whether the engine has closed the connection; looks without reading."""
    poll = select.poll()
    poll.register(connection, select.POLLHUP)
    return any(event & select.POLLHUP for _, event in poll.poll(20))


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Both ends of 600 connections are in this process; an ordinary user's soft limit is often 1,024 descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2048
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this user may open {hard} files at most; the test needs {needed}")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.req("TR-09")
@pytest.mark.usefixtures("many_descriptors")
def test_six_hundred_connections(engine: ServedEngine, witness: RawClient) -> None:
    """Connections beyond the user's share are refused with a reason; open ones stay; once some close, new ones are
    accepted."""
    clients = [RawClient(engine.path, greet=False) for _ in range(600)]
    try:
        assert witness.ask("status").no is None
        bodies = [msgspec.msgpack.decode(client.body()) for client in clients]
        refused = [body["no"]["message"] for body in bodies if "no" in body]
        assert len(refused) > 600 - Bounds().connections_per_user
        assert set(refused) == {"The engine has too many open connections; close some cockpits."}
        assert witness.ask("status").no is None
    finally:
        for client in clients:
            client.socket.close()
    with engine.client() as client:
        assert client.ask("status").no is None


@pytest.mark.req("TR-09")
def test_silent_connections_give_their_places_to_one_that_asks(tmp_path: Any) -> None:
    """One that has asked stays, however long it is silent afterwards."""
    with ServedEngine(tmp_path, Bounds(connections_per_user=6, silent_seconds=0)) as engine, engine.client() as first:
        assert first.ask("status").no is None
        silent = [engine.client() for _ in range(5)]
        asking = [engine.client() for _ in range(3)]
        assert [each.ask("status").no for each in asking] == [None] * 3
        assert [hung_up(each.socket) for each in silent] == [True] * 3 + [False] * 2
        assert first.ask("status").no is None
        for each in (*silent, *asking):
            each.socket.close()


@pytest.mark.req("TR-09")
def test_many_requests_in_flight_are_all_answered(engine: ServedEngine, witness: RawClient) -> None:
    waits = [
        msgspec.msgpack.encode({"id": n, "op": "wait", "args": {"job": 1, "timeout_seconds": 0.01}}) for n in range(500)
    ]
    with engine.client() as client:
        client.socket.sendall(b"".join(struct.pack(">I", len(body)) + body for body in waits))
        assert witness.ask("status").no is None
        assert {client.answer().id for _ in waits} == set(range(500))


@pytest.mark.req("TR-09")
def test_waiting_requests_do_not_delay_others_of_the_connection(engine: ServedEngine) -> None:
    with engine.client() as client:
        held = {"specs": [{**SPEC, "name": "waits", "hold": True}]}
        (job,) = msgspec.msgpack.decode(client.ask("submit", held).ok)["ids"]
        for number in range(20):
            client.say(msgspec.msgpack.encode({"id": number, "op": "wait", "args": {"job": job}}))
        assert client.ask("status", number=99).id == 99


@pytest.mark.req("TR-09")
def test_large_requests_of_one_user_are_handled_one_after_another(hasty: ServedEngine) -> None:
    """Not all of them lie in memory at once; and small ones are answered meanwhile."""
    with hasty.client() as first, hasty.client() as second, hasty.client() as other:
        first.socket.sendall(struct.pack(">I", 1 << 20))
        second.say(msgspec.msgpack.encode({"id": 1, "op": "jobs", "args": {"x": b"\0" * (1 << 20)}}))
        assert other.ask("status").no is None
        assert "took longer" in str(first.answer().no)
        assert second.answer().no is None


@pytest.mark.req("TR-09")
def test_a_defect_in_an_operation_is_an_answer(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks(*_: object) -> None:
        raise ZeroDivisionError("by \x1b[31mzero")

    monkeypatch.setitem(OPERATIONS, "nodes", (OPERATIONS["nodes"][0], breaks))
    with ServedEngine(tmp_path) as served, served.client() as client:
        client.say(msgspec.msgpack.encode({"id": 7, "op": "wait", "args": {"job": 1, "timeout_seconds": 0.2}}))
        refused = client.ask("nodes", number=8).no
        assert refused is not None
        assert (refused.kind, "defect" in refused.message) == ("unavailable", True)
        assert client.answer().id == 7, "what else was asked is still answered"
        assert client.ask("status").no is None
        assert "the operation nodes failed" in served.complaints
        assert "Traceback" in served.complaints


@pytest.mark.req("TR-09")
def test_a_repeated_request_gets_the_first_answer(engine: ServedEngine) -> None:
    specs = {"specs": [{**SPEC, "name": "once", "hold": True}]}
    with engine.client() as first, engine.client() as second:
        assert bytes(first.ask("submit", specs, "same").ok) == bytes(second.ask("submit", specs, "same").ok)


@pytest.mark.req("TR-09")
def test_a_request_id_is_short(witness: RawClient) -> None:
    assert "length <= 128" in str(witness.ask("hold", {"job": 1}, "x" * 129).no)


@pytest.mark.req("TR-09", "JT-60")
def test_beyond_all_connections_an_administrator_is_accepted_and_no_other_user(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = Actor(BOB, admin=False)
    with ServedEngine(tmp_path, Bounds(connections=2, silent_seconds=3600)) as engine:
        monkeypatch.setattr(server, "peer_actor", lambda *_: user)
        clients = [RawClient(engine.path, greet=False) for _ in range(2)]
        for each in clients:
            each.socket.settimeout(30)
        assert ["no" in msgspec.msgpack.decode(each.body()) for each in clients] == [False, False]
        with RawClient(engine.path, greet=False) as beyond:
            refused = msgspec.msgpack.decode(beyond.body())
        assert refused["no"]["message"] == "The engine has too many open connections; close some cockpits."
        monkeypatch.setattr(server, "peer_actor", lambda *_: Actor(ANN, admin=True))
        with RawClient(engine.path) as administrator:
            assert administrator.ask("status").no is None
        for each in clients:
            each.socket.close()


@pytest.mark.req("TR-09")
def test_beyond_all_connections_a_user_with_few_takes_the_place_of_one_with_many(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First one without a request gives way, then the latest; never one of a user who has as few."""
    with ServedEngine(tmp_path, Bounds(connections=4, silent_seconds=3600)) as engine:
        monkeypatch.setattr(server, "peer_actor", lambda *_: Actor(ANN, admin=False))
        anns = [engine.client() for _ in range(4)]
        for each in (anns[0], anns[1], anns[3]):
            assert each.ask("status").no is None
        monkeypatch.setattr(server, "peer_actor", lambda *_: Actor(BOB, admin=False))
        bobs = [engine.client() for _ in range(2)]
        assert [each.ask("status").no for each in bobs] == [None, None]
        assert [hung_up(each.socket) for each in anns] == [False, False, True, True]
        with RawClient(engine.path, greet=False) as beyond:
            assert "too many open connections" in str(msgspec.msgpack.decode(beyond.body())["no"])
        assert [each.ask("status").no for each in (*anns[:2], *bobs)] == [None] * 4
        for each in (*anns, *bobs):
            each.socket.close()


def test_an_engine_is_found_where_its_socket_accepts_connections(tmp_path: Path) -> None:
    address = str(tmp_path / "socket")
    assert not server.is_listened_on(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bound:
        bound.bind(address)
        assert not server.is_listened_on(address), "it does not accept yet"
        bound.listen()
        assert server.is_listened_on(address)
    assert not server.is_listened_on(address)


@pytest.mark.req("TR-02")
@pytest.mark.parametrize(("system", "mode"), [(True, 0o666), (False, 0o600)])
def test_only_a_machine_wide_engine_is_open_to_every_user(tmp_path: Path, system: bool, mode: int) -> None:
    path = tmp_path / "run" / "engine.sock"
    with server.listen(path, system=system) as listener:
        assert path.stat().st_mode & 0o777 == mode
        assert [each.name for each in path.parent.iterdir()] == ["engine.sock"]
        assert not listener.getblocking()
        assert server.is_listened_on(str(path))
    with server.listen(path, system=system):
        assert server.is_listened_on(str(path)), "the socket of an engine that has died is replaced"


async def test_a_stopped_server_accepts_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "peer_actor", lambda *_: None)
    path = tmp_path / "run" / "engine.sock"
    nobody: Any = SimpleNamespace(site=None)
    stopped = server.Server(nobody)
    await stopped.stop()
    await stopped.start(server.listen(path, system=False))
    assert await asyncio.to_thread(server.is_listened_on, str(path))
    await stopped.stop()
    assert not await asyncio.to_thread(server.is_listened_on, str(path))
