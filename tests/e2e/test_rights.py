"""Who may do what: every operation, on jobs of every access, by their owner, a member of the project, a stranger and an
administrator. Real users at the engine's real socket, whose requests are forged by hand."""

from __future__ import annotations

import os
import pwd
import socket
import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.model.cluster import Cluster, Project
from cockpit.model.refusal import RefusalKind
from cockpit.protocol.operations import SHELL, TABLE
from cockpit.protocol.pages import JobsPage, rows_of
from cockpit.runtime import timeline
from cockpit.runtime.operations import OPERATIONS
from tests.builders import a_node
from tests.e2e.people import ANN, BOB, CAROL, LAB
from tests.forged import READING, SPEC, arguments_for
from tests.runtime.served import RawClient, ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.protocol.frames import Answer

pytestmark = pytest.mark.real

ACCESSES = ("rw", "ro", "none")
OWNER, MEMBER, STRANGER, ADMINISTRATOR = "owner", "member", "stranger", "administrator"
PEOPLE = {OWNER: ANN, MEMBER: BOB, STRANGER: CAROL, ADMINISTRATOR: "root"}
LOOKS = {"job", "explain", "events", "logs", "wait"}
"""Details, logs, usage; what is cloned is read."""
ACTS = {
    *("edit", "hold", "release", "requeue", "set_priority", "set_time_limit", "cancel", "delete", "suspend", "resume"),
    *(SHELL, "extend_hold", "end_hold", "unblock"),
}
ADMINISTERS = {
    *("set_weights", "make_reservation", "end_reservation", "drain_node", "resume_node", "apply_quota"),
    *("staged", "unstage", "snapshot"),
    *("remove_quota", "stop"),
}
ASKS = {*OPERATIONS, SHELL} - LOOKS - ACTS - ADMINISTERS
"""Each is told what that one may see."""
RUNS = {SHELL, "suspend"}
"""On what runs; all other jobs wait for a day that never comes."""
NEVER = 4_000_000_000_000
PROJECT, OTHER = "vision", "nlp"
RULES = Cluster(
    projects=tuple(Project(name=name, users=(BOB,), groups=(LAB,)) for name in (PROJECT, OTHER)), urgent_jobs=2
)
"""Ann is in the group."""
LIES = {"user": "root", "uid": 0, "actor": ANN, "submitter": {"name": ANN, "uid": 0}, "admin": True, "access": "rw"}


class Lab:
    """The engine, everybody's connection, and Ann's jobs: one for each operation, access and role."""

    def __init__(self, served: ServedEngine) -> None:
        self.served = served
        self.clients = {role: RawClient(served.path, user=user) for role, user in PEOPLE.items()}
        cells = list(product(sorted(LOOKS | ACTS), ACCESSES, PEOPLE))
        ids = self.submitted(OWNER, [_spec("-".join(cell), cell[0], cell[1]) for cell in cells])
        self.jobs = dict(zip(cells, ids, strict=True))

    def submitted(self, role: str, specs: list[dict[str, Any]]) -> list[int]:
        answer = self.ask(role, "submit", {"specs": specs})
        assert answer.no is None, answer.no
        return list(msgspec.msgpack.decode(answer.ok)["ids"])

    def ask(self, role: str, operation: str, args: dict[str, Any], request: str = "") -> Answer:
        """The first answer."""
        # The frame's own access level can only take rights away: the highest is a lie that gives none.
        body = {"id": 1, "op": operation, "args": {**args, **LIES}, "request": request, **LIES, "access": "admin"}
        client = self.clients[role]
        client.say(msgspec.msgpack.encode(body))
        answer = client.answer()
        if answer.fds:
            _, opened, _, _ = socket.recv_fds(client.socket, 1, answer.fds)
            for each in opened:
                os.close(each)
        if operation == "subscribe":
            client.socket.close()
            self.clients[role] = RawClient(self.served.path, user=PEOPLE[role])
        elif not answer.last:
            while not client.answer().last:
                pass
        return answer

    def read(self, role: str, operation: str, args: dict[str, Any] | None = None) -> Any:
        answer = self.ask(role, operation, args or arguments_for(operation, 0))
        assert answer.no is None, answer.no
        return msgspec.msgpack.decode(answer.ok)


def _spec(name: str, operation: str, access: str) -> dict[str, Any]:
    begins = {} if operation in RUNS else {"begin_at": NEVER}
    held = {"hold": True} if operation == "release" else {}
    return {**SPEC, "name": f"anns-{name}", "project": PROJECT, "access": access, **begins, **held}


@pytest.fixture(scope="module")
def lab(people: None) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        Path(path).chmod(0o755)
        with ServedEngine(Path(path), cluster=RULES, node=a_node(cpus=256, memory_mib=1 << 20)) as served:
            yield Lab(served)


def may(operation: str, access: str, role: str) -> bool:
    """JT-60, in words of its table."""
    if role in {OWNER, ADMINISTRATOR}:
        return True
    return role == MEMBER and (access == "rw" or (access == "ro" and operation in LOOKS))


def test_every_operation_is_in_the_table() -> None:
    assert {*OPERATIONS, SHELL} == TABLE.keys()


@pytest.mark.req("JT-60", "JT-02", "TR-09")
def test_every_operation_is_permitted_or_refused_for_each_role_and_access(lab: Lab) -> None:
    wrong = []
    for (operation, access, role), job in lab.jobs.items():
        answer = lab.ask(role, operation, _aimed(operation, access, job))
        kind = answer.no.kind if answer.no is not None else None
        refused = RefusalKind.DENIED if role == MEMBER and access == "ro" else RefusalKind.NOT_FOUND
        fits = kind not in {RefusalKind.DENIED, RefusalKind.NOT_FOUND, RefusalKind.INVALID, RefusalKind.UNAVAILABLE}
        if not (fits if may(operation, access, role) else kind is refused):
            wrong.append((operation, access, role, answer.no))
    assert wrong == []
    assert not lab.served.complaints


def _aimed(operation: str, access: str, job: int) -> dict[str, Any]:
    if operation != "edit":
        return arguments_for(operation, job)
    return {"job": job, "spec": {**_spec(f"edited-{job}", operation, access), "cpus": 2}}


@pytest.mark.req("JT-60", "TR-11")
def test_events_name_the_acting_user_and_refused_operations_change_nothing(lab: Lab) -> None:
    for access, role in product(ACCESSES, PEOPLE):
        job = lab.jobs["hold", access, role]
        lab.ask(role, "hold", {"job": job})
        entered = lab.jobs[SHELL, access, role]
        lab.ask(role, SHELL, arguments_for(SHELL, entered))
        actors = {name: _actors(lab, each, name) for each, name in ((job, "job_held"), (entered, "shell_opened"))}
        expected = {PEOPLE[role]} if may(SHELL, access, role) else set()
        assert actors == {"job_held": expected, "shell_opened": expected}, (access, role)


def _actors(lab: Lab, job: int, event: str) -> set[str]:
    found = lab.read(ADMINISTRATOR, "events", {"job": job})
    return {each["actor"] for each in found if each["body"]["type"] == event}


@pytest.mark.req("JT-60")
@pytest.mark.parametrize("operation", sorted(ADMINISTERS))
def test_only_administrators_change_cluster_wide_settings(lab: Lab, operation: str) -> None:
    for role in (OWNER, MEMBER, STRANGER):
        answer = lab.ask(role, operation, arguments_for(operation, 0))
        assert answer.no is not None
        assert answer.no.kind is RefusalKind.DENIED
    if operation != "stop":
        answer = lab.ask(ADMINISTRATOR, operation, arguments_for(operation, 0))
        assert answer.no is None or answer.no.kind is not RefusalKind.DENIED


@pytest.mark.req("JT-60", "TR-09")
def test_another_users_request_id_grants_no_access(lab: Lab) -> None:
    job = lab.submitted(OWNER, [_spec("once", "hold", "none")])[0]
    assert lab.ask(OWNER, "hold", {"job": job}, "once").no is None
    for request in ("once", f"{pwd.getpwnam(ANN).pw_uid}:once"):
        answer = lab.ask(STRANGER, "hold", {"job": job}, request)
        assert answer.no is not None
        assert answer.no.kind is RefusalKind.NOT_FOUND


@pytest.mark.req("JT-60", "TR-14")
def test_a_private_job_is_never_named_to_other_users(lab: Lab) -> None:
    """Not in any answer, whatever is asked; its share of the node and its place in the queue are told."""
    runs = {**_spec("zq-runs", SHELL, "none")}
    ran, waits = lab.submitted(OWNER, [runs, _spec("zq-waits", "hold", "none")])
    behind = {**_spec("shared", "hold", "ro"), "dependencies": [{"kind": "afterok", "job": waits}]}
    theirs = lab.submitted(OWNER, [behind])
    for role in (MEMBER, STRANGER):
        answers = [lab.ask(role, each, arguments_for(each, 0)).ok for each in ASKS & set(READING)]
        answers.append(lab.ask(role, "events", {"limit": 10_000}).ok)
        assert not any(b"zq-" in bytes(each) for each in answers), role
    shared = lab.read(MEMBER, "job", {"job": theirs[0]})
    (condition,) = shared["job"]["waits_for"]
    assert condition == shared["job"]["spec"]["dependencies"][0] == {"kind": "afterok", "job": 0, "task": None}
    assert lab.read(OWNER, "job", {"job": theirs[0]})["job"]["waits_for"][0]["job"] == waits
    (node,) = lab.read(STRANGER, "nodes")
    assert node["used_cpus"] == lab.read(ADMINISTRATOR, "nodes")[0]["used_cpus"] > 0
    assert node["jobs"] == []
    assert ran in lab.read(OWNER, "nodes")[0]["jobs"]
    places = [row for row in lab.read(STRANGER, "priorities", {})["rows"] if row["user"] != CAROL]
    assert {(row["job"], row["name"], row["user"]) for row in places} == {(0, "-", "-")}
    assert [row["position"] for row in places] == sorted(row["position"] for row in places)


@pytest.mark.req("JT-60", "TR-09")
def test_a_subscription_shows_a_job_only_while_it_is_shared(lab: Lab) -> None:
    job = lab.submitted(OWNER, [_spec("soon-private", "hold", "ro")])[0]
    with RawClient(lab.served.path, user=BOB) as watching, RawClient(lab.served.path, user=CAROL) as stranger:
        seen = _subscribed(watching)
        assert job in seen
        assert set(seen.values()) == {"rw", "ro"}
        assert _subscribed(stranger) == {}
        private = {"job": job, "spec": _spec("soon-private", "hold", "none")}
        assert lab.ask(OWNER, "edit", private).no is None
        change = msgspec.msgpack.decode(watching.answer().ok)
        assert change["removed"] == [job]
        refused = lab.ask(MEMBER, "job", {"job": job}).no
        assert refused is not None
        assert refused.kind is RefusalKind.NOT_FOUND


def _subscribed(client: RawClient) -> dict[int, str]:
    """Everything that there is as of now: access by job."""
    client.say(msgspec.msgpack.encode({"id": 1, "op": "subscribe", "args": {"first": 10_000, **LIES}}))
    found: dict[int, str] = {}
    while (page := msgspec.msgpack.decode(client.answer().ok))["type"] == "page":
        rows = rows_of(msgspec.convert(page, JobsPage))
        found |= {row.id: row.access for row in rows}
    return found


@pytest.mark.req("JT-60")
def test_a_follower_of_events_reads_past_events_of_other_users(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST", 3)
    last = lab.read(ADMINISTRATOR, "events", {"after": -1, "limit": 1})[0]["seq"]
    lab.submitted(OWNER, [_spec(f"noise-{number}", "hold", "none") for number in range(9)])
    (own,) = lab.submitted(STRANGER, [{**SPEC, "name": "mine-too", "begin_at": NEVER}])
    (seen,) = lab.read(STRANGER, "events", {"after": last, "limit": 3})
    assert seen["body"]["job"] == own


@pytest.mark.req("JT-02", "JT-60")
def test_a_member_cannot_widen_access_by_an_edit(lab: Lab) -> None:
    job = lab.submitted(OWNER, [_spec("shared-rw", "edit", "rw")])[0]
    spec = _spec("shared-rw", "edit", "rw")
    for field, value in (
        ("access", "ro"),
        ("home", "rw"),
        ("output", "/root"),
        ("volumes", [{"name": "v", "path": "/"}]),
    ):
        answer = lab.ask(MEMBER, "edit", {"job": job, "spec": {**spec, field: value}})
        assert answer.no is not None
        assert (answer.no.kind, answer.no.message.split(":")[0]) == (RefusalKind.INVALID, field)
    assert lab.ask(MEMBER, "edit", {"job": job, "spec": {**spec, "nice": 5}}).no is None


@pytest.mark.req("JT-02", "TR-14")
def test_a_project_accepts_jobs_of_its_members_only(lab: Lab) -> None:
    intruder = lab.ask(STRANGER, "submit", {"specs": [{**SPEC, "name": "mine", "project": PROJECT}]})
    assert intruder.no is not None
    assert intruder.no.message.startswith("project: you are not in vision; leave it out")
    lab.submitted(STRANGER, [{**SPEC, "name": "mine", "begin_at": NEVER}])
    lab.submitted(MEMBER, [{**SPEC, "name": "bobs", "project": PROJECT, "begin_at": NEVER}])


@pytest.mark.req("JT-34", "JT-04")
def test_urgent_jobs_count_for_their_owner_even_if_another_user_made_them_urgent(lab: Lab) -> None:
    specs = [
        {**_spec(f"urgent-{number}", "hold", access), "project": OTHER}
        for number, access in enumerate(("none", "rw", "rw"))
    ]
    secret, first, second = lab.submitted(OWNER, specs)
    assert lab.ask(OWNER, "set_priority", {"job": secret, "priority": "urgent"}).no is None
    bound = None
    for job in (first, second):
        bound = lab.ask(MEMBER, "set_priority", {"job": job, "priority": "urgent"}).no
    assert bound is not None
    assert "at most 2" in bound.message
    assert str(secret) not in bound.message
    assert "-, " in bound.message
    for role in (OWNER, MEMBER):
        very = lab.ask(role, "set_priority", {"job": first, "priority": "very-urgent"}).no
        assert very is not None
        assert very.kind is RefusalKind.DENIED
    assert lab.ask(ADMINISTRATOR, "set_priority", {"job": first, "priority": "very-urgent"}).no is None


@pytest.mark.req("JT-03", "JT-41", "JT-60")
def test_a_member_sees_only_the_shared_tasks_of_a_batch(lab: Lab) -> None:
    tasks = [{"command": "true"}, {"command": "false"}]
    batch = {**_spec("batch", "job", "ro"), "kind": "batch", "tasks": tasks, "command": ""}
    first = lab.submitted(OWNER, [batch])[0]
    own = {**_spec("batch", "job", "none"), "command": "secret"}
    assert lab.ask(OWNER, "edit", {"job": first + 1, "spec": own}).no is None
    for role, commands in ((OWNER, ["true", "secret"]), (ADMINISTRATOR, ["true", "secret"]), (MEMBER, ["true"])):
        told = lab.read(role, "job", {"job": first, "task": 0})
        assert [each["command"] for each in told["batch"]["tasks"]] == commands
        assert len(told["tasks"]) == len(commands)
    for role in (MEMBER, STRANGER):
        hidden = lab.ask(role, "job", {"job": first, "task": 1})
        assert hidden.no is not None
        assert hidden.no.kind is RefusalKind.NOT_FOUND
