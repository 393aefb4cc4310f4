"""What any release has ever spoken, this one understands and still speaks; and it says so where it cannot."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.errors import ProtocolMismatch, RequestRefused
from cockpit.model import asking
from cockpit.model.accounting import EndedJob, Spending
from cockpit.model.catalogue import CatalogueShown
from cockpit.model.cluster import Cluster, Reservation
from cockpit.model.events import EventRecord
from cockpit.model.fleetrow import FleetShown, MemberObject
from cockpit.model.forecast import ExpectedStart, Outlook
from cockpit.model.job import Job
from cockpit.model.jobdetail import JobDetail
from cockpit.model.requests import RequestOutcome
from cockpit.model.staging import StagedCopy
from cockpit.model.view import (
    AccountsShown,
    EngineStatus,
    HoldRow,
    NodeRow,
    Overview,
    Priorities,
    QueuesShown,
    WeightsSet,
)
from cockpit.protocol import messages
from cockpit.protocol.frames import (
    MAJOR,
    MAX_FRAME,
    MINOR,
    Answer,
    Hello,
    RequestFrame,
    body_length,
    check_hello,
    frame,
    raw,
    request_frame,
)
from cockpit.protocol.operations import SHELL
from cockpit.protocol.pages import JobsChange, JobsPage, Update, page_of, rows_of
from cockpit.runtime.operations import OPERATIONS
from cockpit.runtime.shells import SHELL_ARGS
from tests.e2e.cockpit_user import CockpitUser
from tests.protocol.recording import body_of, frames, recorded
from tests.runtime.served import ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RECORDED, SPOKEN = recorded(), frames()
ARGUMENTS = {**{name: kind for name, (kind, _) in OPERATIONS.items()}, SHELL: SHELL_ARGS}
ANSWERS: dict[str, Any] = {
    "status": EngineStatus,
    "overview": Overview,
    "jobs": JobsPage,
    "subscribe": Update,
    "job": JobDetail,
    "priorities": Priorities,
    "nodes": list[NodeRow],
    "holds": list[HoldRow],
    "rules": Cluster,
    "accounts": AccountsShown,
    "catalogue": CatalogueShown,
    "accounting": list[EndedJob],
    "spending": Spending,
    "queues": QueuesShown,
    "fleet": FleetShown,
    "own_object": MemberObject,
    "snapshot": bytes,
    "explain": Outlook,
    "starts": list[ExpectedStart],
    "predict": list[Outlook],
    "reservations": list[Reservation],
    "staged": list[StagedCopy],
    "events": list[EventRecord],
    "wait": Job | None,
    "logs": asking.LogChunk,
    "search_log": asking.LogMatches,
    "request": RequestOutcome,
    "submit": messages.Submitted,
    "set_weights": WeightsSet,
    "extend_hold": messages.HeldUntil,
    "shell": asking.ShellOpened,
}
"""What the client takes an operation's answer for; the others answer nothing."""


def understood(name: str, encoded: bytes) -> Any:
    """A frame as today's types read it."""
    body = body_of(encoded)
    kind, _, about = name.partition("-")
    operation = about.partition("-")[0]
    if kind == "hello":
        return msgspec.msgpack.decode(body, type=Hello)
    if kind == "request":
        request = msgspec.msgpack.decode(body, type=RequestFrame)
        return request.id, request.op, request.request, msgspec.msgpack.decode(request.args, type=ARGUMENTS[operation])
    answer = msgspec.msgpack.decode(body, type=Answer)
    value = msgspec.msgpack.decode(answer.ok, type=ANSWERS.get(operation, type(None)))
    return answer.id, answer.no, answer.last, answer.fds, meaning(value)


def meaning(value: Any) -> Any:
    """Pages as rows: those of an older engine lack the columns that came since."""
    if isinstance(value, JobsPage):
        return list(rows_of(value)), value.counts
    if isinstance(value, JobsChange):
        return value.version, list(rows_of(value.new)), value.changed, value.removed, value.resync
    return value


def contains(new: Any, old: Any) -> bool:
    """Whether nothing that was once said is missing or different: what was added since is fine."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(key in new and contains(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(new) >= len(old) and all(map(contains, new, old))
    return bool(new == old)


@pytest.mark.req("TR-09")
def test_every_kind_of_message_is_recorded() -> None:
    assert RECORDED.keys() == SPOKEN.keys(), "python -m tests.protocol.recording records what is new"
    about = {name.split("-")[1] for name in RECORDED if name.startswith("request-")}
    assert about == {*OPERATIONS, SHELL}


@pytest.mark.req("TR-09")
@pytest.mark.parametrize(("moments", "taken"), [(1, False), (2, True), (400, True), (401, False)])
def test_spending_accepts_as_many_times_as_the_protocol_specifies(moments: int, taken: bool) -> None:
    sent = msgspec.msgpack.encode({"edges": list(range(moments))})
    refused = nullcontext() if taken else pytest.raises(msgspec.ValidationError)
    with refused:
        assert len(msgspec.msgpack.decode(sent, type=messages.SpendingArgs).edges) == moments


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_messages_are_decoded_to_their_meaning(name: str) -> None:
    assert understood(name, RECORDED[name]) == understood(name, SPOKEN[name])


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_messages_are_still_encoded_alike(name: str) -> None:
    spoken, once = (msgspec.msgpack.decode(body_of(each[name]), strict=False) for each in (SPOKEN, RECORDED))
    assert contains(spoken, once)


@pytest.mark.parametrize("operation", sorted({*OPERATIONS, SHELL} - {"stop"}))
def test_an_engine_accepts_every_recorded_request(served: ServedEngine, operation: str) -> None:
    """It may say no to what is asked; it never says that it does not understand."""
    with served.client() as client:
        client.socket.sendall(RECORDED[f"request-{operation}"])
        answer = client.answer()
    assert answer.id == 7
    assert answer.no is None or answer.no.kind in {"not_found", "conflict", "unavailable"}, answer.no


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedEngine]:
    with ServedEngine(tmp_path_factory.mktemp("engine")) as engine:
        yield engine


def a_hello(major: int = MAJOR, minor: int = MINOR) -> Hello:
    return Hello(protocol=(major, minor), version="9.9", capabilities=("jobs",), pid=1, state_folder="/")


def test_another_minor_version_is_accepted_and_another_major_is_not() -> None:
    check_hello(a_hello(minor=MINOR + 5))
    for major in (MAJOR - 1, MAJOR + 1):
        with pytest.raises(ProtocolMismatch, match="cockpit engine restart"):
            check_hello(a_hello(major))


def test_a_message_too_long_for_a_frame_is_neither_sent_nor_accepted() -> None:
    with pytest.raises(ValueError, match="exceeds"):
        frame(RequestFrame(1, "jobs", raw(b"\0" * (MAX_FRAME + 1))))
    assert body_length((MAX_FRAME).to_bytes(4, "big")) == MAX_FRAME
    with pytest.raises(ValueError, match="exceeds"):
        body_length((MAX_FRAME + 1).to_bytes(4, "big"))


@pytest.mark.req("TR-09")
def test_a_request_too_large_for_a_frame_is_refused_with_its_size_and_the_way_out() -> None:
    with pytest.raises(
        RequestRefused, match=r"has 17 MiB, and one may have 16\. Nothing was sent\. Submit the jobs in"
    ):
        request_frame(RequestFrame(1, "submit", raw(b"\0" * (17 << 20))))
    assert request_frame(RequestFrame(1, "jobs")) == frame(RequestFrame(1, "jobs"))


class OtherEngine:
    """Says one hello to whoever connects, and answers everything with the same."""

    def __init__(self, path: Path, hello: bytes, answer: bytes) -> None:
        path.parent.mkdir(mode=0o700)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._said = hello, answer
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        hello, answer = self._said
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(hello)
                if connection.recv(4096):
                    connection.sendall(answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def told(tmp_path: Path, hello: Hello, *words: str) -> subprocess.CompletedProcess[bytes]:
    """What the real command says to an engine with this hello, which knows of no job."""
    user = CockpitUser(tmp_path, python=sys.executable)
    answers = frame(Answer(1, raw(page_of([])), last=False)) + frame(Answer(1))
    newer = msgspec.msgpack.encode({**msgspec.to_builtins(hello), "colour": "blue"})
    other = OtherEngine(tmp_path / "run/cockpit-cluster/engine.sock", len(newer).to_bytes(4, "big") + newer, answers)
    try:
        return user.run(*words)
    finally:
        other.close()


@pytest.mark.real
@pytest.mark.req("TR-09")
def test_a_command_reports_an_engine_of_another_major_version_in_one_sentence(tmp_path: Path) -> None:
    done = told(tmp_path, a_hello(MAJOR + 1), "jobs")
    assert (done.returncode, done.stdout) == (76, b"")
    assert done.stderr.decode().splitlines() == [
        (
            f"The running engine (cockpit 9.9) speaks protocol {MAJOR + 1}, this cockpit speaks {MAJOR}: "
            "`cockpit engine restart` starts the new engine without ending jobs."
        )
    ]


@pytest.mark.real
def test_a_command_speaks_with_a_newer_minor(tmp_path: Path) -> None:
    done = told(tmp_path, a_hello(minor=MINOR + 7), "jobs", "-o", "jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
