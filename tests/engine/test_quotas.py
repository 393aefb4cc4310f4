"""The quota tree in the engine: who may change it, what is shown of it, and that it survives a restart."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.configure import apply_quota, remove_quota
from cockpit.engine.machine import Machine
from cockpit.engine.state import ClusterState
from cockpit.engine.views.queues import queues_shown
from cockpit.formats.quotatree import read_quota_tree
from cockpit.model import events
from cockpit.model.cluster import Project
from cockpit.model.ids import Millis
from cockpit.model.quota import QuotaNode, QuotaTree
from cockpit.model.refusal import RefusalKind
from cockpit.model.view import QueueKind
from tests.builders import ANN, BOB, HOUR, NOON, a_node, a_spec
from tests.engine.driver import EngineDriver
from tests.formats.test_quotatree import PUBLISHED

ADMIN, SOMEBODY = Actor(ANN, admin=True), Actor(BOB, admin=False)


def tree(*leaves: QuotaNode, name: str = "teams", cpus: int = 8) -> QuotaTree:
    whole = {"cpu": 1000 * cpus}
    return QuotaTree(name, QuotaNode(name="root", min=whole, max=whole, children=leaves))


ANNS = QuotaNode(name="a", min={"cpu": 2000}, max={"cpu": 4000, "jobs": 1000}, namespaces=("ann",))
BOBS = QuotaNode(name="b", namespaces=("bob",))


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node(cpus=16))


def applied(engine: EngineDriver, wanted: QuotaTree) -> None:
    assert engine.act(apply_quota(engine.machine.state, wanted)) is None


@pytest.mark.req("FL-01")
def test_there_is_one_tree_at_a_time(engine: EngineDriver) -> None:
    state = engine.machine.state
    assert remove_quota(state).kind is RefusalKind.NOT_FOUND
    applied(engine, tree(ANNS))
    second = apply_quota(state, tree(BOBS, name="others"))
    assert (second.kind, "Quota tree teams is there" in second.message) == (RefusalKind.CONFLICT, True)
    assert apply_quota(state, tree(ANNS)) == []
    applied(engine, tree(BOBS))
    engine.act(remove_quota(state))
    applied(engine, tree(name="others"))


@pytest.mark.req("FL-01")
def test_bounds_that_only_the_scheduler_of_a_cluster_keeps_are_refused(engine: EngineDriver) -> None:
    flavors = replace(ANNS, attributes={"resourceflavors": "fast", "note": "ours"}, uncounted_max={"amd.com/gpu": "8"})
    refused = apply_quota(engine.machine.state, tree(flavors))
    assert refused.kind is RefusalKind.INVALID
    assert [line.partition(": ")[0] for line in refused.message.splitlines()] == [
        "spec.root.children[0].max.amd.com/gpu",
        "spec.root.children[0].attributes.resourceflavors",
    ]
    applied(engine, tree(replace(ANNS, attributes={"note": "ours"})))


@pytest.mark.req("FL-01")
def test_a_forged_tree_is_checked_like_a_file(engine: EngineDriver) -> None:
    refused = apply_quota(engine.machine.state, tree(ANNS, replace(ANNS, name="", min={})))
    assert refused.kind is RefusalKind.INVALID
    first, second = refused.message.splitlines()
    assert first == "spec.root.children[1].name: is empty; give a name"
    assert second == 'spec.root.children[1].namespaces[0]: "ann" belongs to root/a already'
    odd = apply_quota(engine.machine.state, tree(QuotaNode(name="a", max={"magic": 1})))
    assert "bounds something else than cpu" in odd.message


@pytest.mark.req("FL-03")
def test_queues_have_an_age_that_another_apply_keeps(engine: EngineDriver) -> None:
    applied(engine, tree(ANNS))
    engine.now = Millis(NOON + HOUR)
    applied(engine, tree(ANNS, BOBS))
    rows = {row.path: row for row in queues_shown(engine.machine, ADMIN).rows}
    assert {path: rows[path].since for path in ("root", "root/a", "root/b")} == {
        "root": NOON,
        "root/a": NOON,
        "root/b": NOON + HOUR,
    }


@pytest.mark.req("JT-60")
def test_a_queue_names_only_projects_that_the_user_is_in(engine: EngineDriver) -> None:
    projects = (Project(name="secret", users=("ann",)), Project(name="open", users=("ann", "bob")))
    engine.tell(events.ClusterConfigured(replace(engine.machine.state.cluster, projects=projects)))
    applied(engine, tree(QuotaNode(name="a", namespaces=("secret", "open", "bob"))))

    def named(actor: Actor) -> tuple[str, ...]:
        return next(row.projects for row in queues_shown(engine.machine, actor).rows if row.name.startswith("root-a"))

    assert named(replace(SOMEBODY, projects=frozenset({"open"}))) == ("open", "bob")
    assert named(ADMIN) == ("secret", "open", "bob")


@pytest.mark.req("FL-02", "FL-03")
def test_queues_count_what_waits_and_runs_up_to_the_root(engine: EngineDriver) -> None:
    applied(engine, tree(ANNS, BOBS))
    engine.submit(*(a_spec(f"a{number}", cpus=3) for number in range(3)))
    engine.submit(a_spec("b", cpus=2), by=BOB)
    engine.schedule()
    rows = {row.path: row for row in queues_shown(engine.machine, ADMIN).rows}
    assert [(path, rows[path].running, rows[path].waiting) for path in ("root", "root/a", "root/b", "")] == [
        ("root", 2, 2),
        ("root/a", 1, 2),
        ("root/b", 1, 0),
        ("", 2, 2),
    ]
    assert rows["root"].used["cpu"] == rows["root/a"].used["cpu"] + rows["root/b"].used["cpu"] == 5000
    assert (rows["root/a"].max_jobs, rows["root/a"].projects, rows[""].kind) == (1, ("ann",), QueueKind.PARTITION)
    assert rows[""].max["cpu"] == 16_000


@pytest.mark.req("FL-01")
def test_the_tree_survives_a_restart(engine: EngineDriver) -> None:
    published = read_quota_tree("quota.yaml", PUBLISHED)
    applied(engine, published)
    replayed = Machine(ClusterState())
    for record in engine.journal:
        replayed.handle(record)
    assert replayed.state.quota == published
    assert replayed.state == engine.machine.state
    assert replayed.snapshot(NOON).quota == published


@pytest.mark.req("SC-07")
def test_a_new_quota_tree_applies_from_the_next_pass_on(engine: EngineDriver) -> None:
    applied(engine, tree(ANNS))
    first, second = engine.submit(a_spec("one"), a_spec("two"))
    engine.schedule()
    assert engine.job(first).attempt is not None
    assert engine.job(second).attempt is None
    applied(engine, tree(replace(ANNS, max={"cpu": 4000})))
    engine.schedule()
    assert engine.job(second).attempt is not None


@pytest.mark.req("FL-02")
def test_queues_count_the_cards_and_the_memory_of_running_jobs() -> None:
    engine = EngineDriver(a_node("n1", cpus=8, cards=4))
    applied(engine, tree(ANNS, BOBS))
    engine.run(a_spec("a", cpus=2, memory_mib=3072, card_milli=2000))
    rows = {row.path: row for row in queues_shown(engine.machine, ADMIN).rows}
    for path in ("root", ""):
        used = rows[path].used
        assert (used["cpu"], used["gres/gpu"], used["mem"]) == (2000, 2000, 3_072_000)
