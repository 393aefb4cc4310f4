"""Forged requests about the catalogue, by real users over the engine's socket; and who is in a project while they are
connected."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.model.refusal import RefusalKind
from cockpit.protocol.pages import JobsChange, Update
from tests.builders import a_node
from tests.e2e.people import ANN, BOB, CAROL
from tests.e2e.test_rights import NEVER, RULES
from tests.forged import SPEC
from tests.runtime.served import RawClient, ServedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real

CORPUS = {"kind": "dataset", "name": "corpus", "project": "vision", "owner": ANN, "path": "/etc", "access": "ro"}
SPEECH = {"kind": "project", "name": "speech", "access": "ro"}


@pytest.fixture(scope="module")
def served(people: None) -> Iterator[ServedEngine]:
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        Path(path).chmod(0o755)
        with ServedEngine(Path(path), cluster=RULES, node=a_node(cpus=64)) as served:
            yield served


def change(client: RawClient, before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """Why not; empty: it is done."""
    no = client.ask("change_catalogue", {"changes": [{"before": before, "after": after}], "admin": True}).no
    return "" if no is None else f"{no.kind}: {no.message}"


@pytest.mark.req("JT-49", "TR-09")
def test_forged_owners_and_versions_of_entries_are_refused(served: ServedEngine) -> None:
    ann, bob, carol = (RawClient(served.path, user=user) for user in (ANN, BOB, CAROL))
    for lie in ({"owner": BOB}, {"owner": "root"}, {"owner": ""}, {"project": ""}, {"project": BOB}, {"filed": True}):
        assert change(ann, None, CORPUS | lie)
    assert change(ann, None, CORPUS) == ""
    stolen = CORPUS | {"owner": BOB, "access": "rw"}
    for lie in (CORPUS, CORPUS | {"owner": BOB}, CORPUS | {"access": "rw"}):
        assert change(bob, lie, stolen).startswith((RefusalKind.DENIED, RefusalKind.CONFLICT))
        assert change(carol, lie, stolen).startswith(RefusalKind.NOT_FOUND)
        assert change(carol, lie, None).startswith(RefusalKind.NOT_FOUND)
    assert change(bob, None, CORPUS | {"owner": BOB}).startswith(RefusalKind.CONFLICT)
    told = msgspec.msgpack.decode(carol.ask("catalogue").ok)
    assert [row["entry"]["name"] for row in told["rows"]] == []
    for nonsense in ({"kind": "nothing", "name": "x"}, {"kind": "dataset"}, {"kind": "dataset", "name": 3}, [], "x"):
        answer = carol.ask("change_catalogue", {"changes": [{"before": None, "after": nonsense}]})
        assert answer.no is not None
        assert answer.no.kind is RefusalKind.INVALID


@pytest.mark.req("JT-49", "JT-30", "TR-09")
def test_resolved_entries_in_a_submitted_job_are_ignored(served: ServedEngine) -> None:
    bob, root = RawClient(served.path, user=BOB), RawClient(served.path)
    assert change(RawClient(served.path, user=ANN), None, CORPUS | {"name": "texts"}) == ""
    lie = {"found": {"project": "vision", "path": "/root"}}
    spec = {
        **SPEC,
        "name": "lies",
        "project": "vision",
        "begin_at": NEVER,
        "pool_nodes": ["n1"],
        "image_found": "dir:/",
    }
    spec["datasets"] = [{"name": "texts", "read_only": True, **lie}, {"name": "own", "path": "/tmp", **lie}]
    answer = bob.ask("submit", {"specs": [spec]})
    assert answer.no is None
    (job,) = msgspec.msgpack.decode(answer.ok)["ids"]
    kept = msgspec.msgpack.decode(root.ask("job", {"job": job}).ok)["job"]["spec"]
    assert [each["found"] and each["found"]["path"] for each in kept["datasets"]] == ["/etc", None]
    assert (kept["pool_nodes"], kept["image_found"]) == ([], "")
    writing = spec | {"name": "writes", "datasets": [{"name": "texts", **lie}]}
    refused = bob.ask("submit", {"specs": [writing]}).no
    assert refused is not None
    assert "for reading only" in refused.message


@pytest.mark.req("JT-49", "JT-60")
def test_a_changed_project_membership_applies_without_a_new_connection(served: ServedEngine) -> None:
    root, carol, watching = (
        RawClient(served.path),
        RawClient(served.path, user=CAROL),
        RawClient(served.path, user=CAROL),
    )
    without, within = SPEECH | {"users": [ANN]}, SPEECH | {"users": [ANN, CAROL]}
    assert change(root, None, without) == ""
    job = {**SPEC, "name": "shared", "project": "speech", "access": "ro", "begin_at": NEVER}
    (shared,) = msgspec.msgpack.decode(RawClient(served.path, user=ANN).ask("submit", {"specs": [job]}).ok)["ids"]
    assert carol.ask("job", {"job": shared}).no is not None
    first = watching.ask("subscribe", {"first": 10})
    assert not first.last
    assert change(root, without, within) == ""
    assert carol.ask("job", {"job": shared}).no is None
    told = [update for update in iter(lambda: next_update(watching), None) if isinstance(update, JobsChange)]
    assert told[-1].resync
    assert change(root, within, without) == ""
    assert carol.ask("job", {"job": shared}).no is not None
    assert carol.ask("submit", {"specs": [job | {"name": "mine"}]}).no is not None


def next_update(client: RawClient) -> Any:
    """None at the end."""
    answer = client.answer()
    return None if answer.last else msgspec.msgpack.decode(answer.ok, type=Update)
