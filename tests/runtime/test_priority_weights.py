"""Other weights over the socket: in force at once, and after the engine's next start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from cockpit.engine.configure import take_over_rules
from cockpit.errors import StoreError
from cockpit.formats.cluster.file import read_cluster
from cockpit.model.cluster import PriorityKind, Weights
from cockpit.model.view import WeightsSet
from tests.builders import a_node
from tests.runtime.served import ServedEngine

if TYPE_CHECKING:
    from pathlib import Path

CHOSEN = Weights(age=1000, tres={"cpu": 5.0})
ASKED = {"weights": {"age": 1000, "tres": {"cpu": 5}}}


def answered(served: ServedEngine, request: str = "once") -> WeightsSet:
    with served.client() as client:
        answer = client.ask("set_weights", ASKED, request)
    assert answer.no is None, answer.no
    return msgspec.msgpack.decode(answer.ok, type=WeightsSet)


def rules_of(served: ServedEngine) -> Any:
    return served.call(lambda: served.engine.host.machine.state.cluster)


@pytest.mark.req("SC-15", "UI-07")
def test_applied_weights_are_written_to_the_file_so_that_a_restart_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text("# mine\n[priority.weights]\nage = 1 # little\n")
    file.chmod(0o640)
    with ServedEngine(tmp_path) as served:
        served.engine.cluster_file = file
        assert answered(served) == WeightsSet(CHOSEN, str(file))
        rules, state = rules_of(served), served.engine.host.machine.state
        assert (rules.priority.kind, rules.priority.weights) == (PriorityKind.MULTIFACTOR, CHOSEN)
        assert take_over_rules(state, read_cluster(a_node(), file.read_text()).cluster, sealed=False) == []
        assert answered(served) == WeightsSet(CHOSEN, str(file))
    assert "age = 1000 # little" in file.read_text()
    assert (file.stat().st_mode & 0o777, [each.name for each in tmp_path.glob("*.half")]) == (0o640, [])


@pytest.mark.req("SC-15", "UI-07")
def test_an_unwritable_weights_file_is_reported_with_the_consequence(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text("[priority]\nweights = { age = 1 }\n")
    with ServedEngine(tmp_path) as served:
        served.engine.cluster_file = file
        done = answered(served)
        assert (done.weights, done.file) == (CHOSEN, "")
        assert "in force until the engine starts again" in done.trouble
        assert served.engine.troubles == (done.trouble,)
    assert file.read_text() == "[priority]\nweights = { age = 1 }\n"


def test_weights_are_written_where_no_file_and_folder_is_yet(tmp_path: Path) -> None:
    file = tmp_path / "config" / "cockpit-cluster" / "cluster.toml"
    with ServedEngine(tmp_path) as served:
        served.engine.cluster_file = file
        assert answered(served) == WeightsSet(CHOSEN, str(file))
    assert read_cluster(a_node(), file.read_text()).cluster.priority.weights == CHOSEN
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_an_engine_without_a_file_mentions_none(tmp_path: Path) -> None:
    with ServedEngine(tmp_path) as served:
        assert answered(served) == WeightsSet(CHOSEN)


@pytest.mark.req("TR-01")
def test_weights_whose_final_answer_cannot_be_stored_are_not_reported_as_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_answer: object) -> None:
        raise StoreError("The disk is full. Nothing was accepted.", passing=True)

    file = tmp_path / "cluster.toml"
    with ServedEngine(tmp_path) as served:
        served.engine.cluster_file = file
        with monkeypatch.context() as faulty:
            faulty.setattr(served.engine.host.journal, "remember", full)
            assert answered(served) == WeightsSet(CHOSEN, str(file))
        other = {"weights": {"age": 7, "tres": {}}}
        with served.client() as client:
            assert client.ask("set_weights", other).no is None
        again = answered(served)
        assert (again.weights, "may be in force" in again.trouble) == (CHOSEN, True)
        assert rules_of(served).priority.weights.age == 7, "the repeat has changed nothing"
