"""Every act happens once for each request id, whatever becomes of its first answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.errors import StoreError
from cockpit.model.requests import RequestOutcome
from cockpit.protocol.messages import Submitted
from cockpit.protocol.operations import SHELL
from cockpit.runtime.operations import ONCE, OPERATIONS
from tests.forged import READING, SPEC, arguments_for
from tests.runtime.served import RawClient, ServedEngine
from tests.runtime.test_acting_events import Stage, events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.protocol.frames import Answer

pytestmark = pytest.mark.req("TR-01")
HELD = {"specs": [{**SPEC, "name": "once", "hold": True}]}


@pytest.fixture
def engine(tmp_path: Any) -> Iterator[ServedEngine]:
    with ServedEngine(tmp_path) as served:
        yield served
        assert served.complaints == ""


@pytest.fixture
def client(engine: ServedEngine) -> Iterator[RawClient]:
    with engine.client() as client:
        yield client


def ids(answer: Answer) -> tuple[int, ...]:
    assert answer.no is None, answer.no
    return msgspec.msgpack.decode(answer.ok, type=Submitted).ids


def outcome(client: RawClient, request: str) -> RequestOutcome:
    answer = client.ask("request", {"request": request})
    assert answer.no is None, answer.no
    return msgspec.msgpack.decode(answer.ok, type=RequestOutcome)


def jobs(client: RawClient) -> int:
    return int(msgspec.msgpack.decode(client.ask("status").ok)["jobs"])


def test_every_action_is_executed_once_per_request_id() -> None:
    assert {*OPERATIONS, SHELL} - ONCE == {*READING, SHELL, "stop"}


@pytest.mark.parametrize("operation", sorted(ONCE))
def test_a_repeated_action_gets_the_same_answer_and_writes_no_second_event(
    engine: ServedEngine, client: RawClient, operation: str
) -> None:
    arguments = arguments_for(operation, Stage(engine, client).job_for(operation))
    first = client.ask(operation, arguments, "same")
    assert first.no is None, first.no
    left = [record for record in events(client) if record.request.endswith(":same")]
    with engine.client() as other:
        again = other.ask(operation, arguments, "same")
    assert (again.no, bytes(again.ok)) == (None, bytes(first.ok))
    assert [record for record in events(client) if record.request.endswith(":same")] == left


def test_a_repeat_of_a_refused_request_is_refused_alike(client: RawClient) -> None:
    (job,) = ids(client.ask("submit", HELD))
    first = client.ask("suspend", {"job": job}, "refused")
    missing = client.ask("hold", {"job": job + 1}, "missing")
    assert ids(client.ask("submit", {"specs": [{**SPEC, "name": "next", "hold": True}]})) == (job + 1,)
    assert client.ask("cancel", {"job": job}).no is None
    assert first.no is not None
    assert missing.no is not None
    assert client.ask("suspend", {"job": job}, "refused").no == first.no
    assert client.ask("hold", {"job": job + 1}, "missing").no == missing.no, "the job is there by now"
    assert outcome(client, "refused").refusal == first.no


def test_a_temporarily_refused_request_may_be_repeated(
    engine: ServedEngine, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = engine.engine.host.journal

    async def full(*_: Any, **__: Any) -> None:
        raise StoreError("The disk is full. Nothing was accepted.")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "append", full)
        refused = client.ask("submit", HELD, "later").no
    assert refused is not None
    assert refused.kind == "unavailable"
    assert outcome(client, "later") == RequestOutcome(known=False)
    assert len(ids(client.ask("submit", HELD, "later"))) == 1


def test_a_repeat_while_the_journal_is_unreadable_has_an_unknown_outcome(
    engine: ServedEngine, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = ids(client.ask("submit", HELD, "mine"))

    async def unreadable(*_: Any) -> None:
        raise StoreError("journal.db is locked by another process. Nothing was accepted. See which one.")

    with monkeypatch.context() as patch:
        patch.setattr(engine.engine.host.journal, "answer", unreadable)
        refused = client.ask("submit", HELD, "mine").no
    assert refused is not None
    assert "not known whether this request was accepted" in refused.message
    assert "Nothing was accepted" not in refused.message
    assert ids(client.ask("submit", HELD, "mine")) == accepted


def test_the_jobs_of_a_request_are_known_where_its_answer_is_damaged(
    engine: ServedEngine, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = ids(client.ask("submit", HELD, "mine"))

    async def damaged(*_: Any) -> None:
        raise StoreError("The stored answer is damaged.")

    with monkeypatch.context() as patch:
        patch.setattr(engine.engine.host.journal, "answer", damaged)
        assert outcome(client, "mine") == RequestOutcome(known=True, op="submit", jobs=(job,))
        refused = client.ask("request", {"request": "other"}).no
    assert refused is not None, "it is not known that there was none"


def test_another_request_under_the_same_id_is_refused(client: RawClient) -> None:
    (job,) = ids(client.ask("submit", HELD, "twice"))
    for op, args in (("submit", {"specs": [{**SPEC, "name": "other"}]}), ("cancel", {"job": job})):
        refused = client.ask(op, args, "twice").no
        assert refused is not None
        assert refused.kind == "conflict"
        assert "Request id twice was used before, for another request (submit)" in refused.message
    assert jobs(client) == 1


def test_a_corrected_request_may_have_the_id_of_a_refused_one(client: RawClient) -> None:
    wrong = client.ask("submit", {"specs": [{**SPEC, "nodes": 99}]}, "nightly").no
    assert wrong is not None
    accepted = ids(client.ask("submit", HELD, "nightly"))
    assert ids(client.ask("submit", HELD, "nightly")) == accepted
    late = client.ask("submit", {"specs": [{**SPEC, "nodes": 99}]}, "nightly").no
    assert late is not None
    assert late.kind == "conflict"
    assert jobs(client) == 1


def test_a_request_with_the_same_words_is_the_same_although_its_arguments_differ(client: RawClient) -> None:
    def submit(name: str, words: bytes, request: str = "relative") -> Answer:
        args = {"specs": [{**SPEC, "name": name, "hold": True}]}
        client.say(msgspec.msgpack.encode({"id": 1, "op": "submit", "args": args, "request": request, "words": words}))
        return client.answer()

    accepted = ids(submit("at-noon", b"words"))
    assert ids(submit("at-one", b"words")) == accepted
    assert ids(submit("at-noon", b"other words")) == accepted, "the same contents are the same request, too"
    assert outcome(client, "relative").words == b"words"
    for words in (b"other words", b""):
        other = submit("at-one", words).no
        assert other is not None
        assert other.kind == "conflict"
    assert submit("bad\nname", b"words", "wrong").no is not None
    assert len(ids(submit("corrected", b"words", "wrong"))) == 1, "what was refused is decided again"


def test_a_request_received_many_times_together_is_executed_once(engine: ServedEngine) -> None:
    clients = [engine.client() for _ in range(12)]
    body = msgspec.msgpack.encode({"id": 1, "op": "submit", "args": HELD, "request": "at once"})
    for each in clients:
        each.say(body)
    answers = {ids(each.answer()) for each in clients}
    assert (len(answers), jobs(clients[0])) == (1, 1)
    for each in clients:
        each.socket.close()


def test_a_disconnected_client_finds_the_job_it_submitted(engine: ServedEngine) -> None:
    with engine.client() as impatient:
        impatient.say(msgspec.msgpack.encode({"id": 1, "op": "submit", "args": HELD, "request": "gone"}))
    with engine.client() as client:
        accepted = ids(client.ask("submit", HELD, "gone"))
        assert outcome(client, "gone").jobs == accepted
        assert jobs(client) == 1


def test_the_outcome_of_a_request_that_is_being_decided_is_waited_for(engine: ServedEngine) -> None:
    journal = engine.engine.host.journal
    writing, may_write = asyncio.Event(), asyncio.Event()
    append = journal.append

    async def slow(*args: Any, **more: Any) -> None:
        writing.set()
        await may_write.wait()
        await append(*args, **more)

    async def is_writing() -> None:
        await writing.wait()

    journal.append = slow  # type: ignore[method-assign] # a slow disk
    try:
        with engine.client() as first, engine.client() as second:
            first.say(msgspec.msgpack.encode({"id": 1, "op": "submit", "args": HELD, "request": "slow"}))
            engine.run(is_writing())
            second.say(msgspec.msgpack.encode({"id": 1, "op": "request", "args": {"request": "slow"}, "request": ""}))
            engine.call(may_write.set)
            accepted = ids(first.answer())
            assert msgspec.msgpack.decode(second.answer().ok, type=RequestOutcome).jobs == accepted
    finally:
        journal.append = append  # type: ignore[method-assign] # a slow disk


def test_an_unknown_request_has_no_outcome(client: RawClient) -> None:
    assert outcome(client, "never") == RequestOutcome(known=False)


def test_a_removed_copy_whose_event_is_not_stored_is_reported_as_removed(
    engine: ServedEngine, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> None:
        raise StoreError("The disk is full. Nothing was accepted. Free some space.", passing=True)

    monkeypatch.setattr(engine.engine.host.journal, "append", full)
    refusal = client.ask("unstage", {"name": "4f2a"}).no
    assert refusal is not None
    assert refusal.message == (
        "Copy 4f2a was removed, but the event of it was not stored. The disk is full. Free some space."
    )
