"""The priority word of queued jobs, and a number in its place."""

from __future__ import annotations

import pytest

from cockpit.engine.access import Actor
from cockpit.engine.priority_changes import set_priority
from cockpit.model import events
from cockpit.model.accounts import Association, Qos
from cockpit.model.asking import SiteFactor, WantedPriority
from cockpit.model.cluster import Cluster, Enforce, Priority, PriorityKind
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Array, Dependency, DependencyKind, PriorityWord
from tests.builders import ANN, BOB, HOUR, a_node, a_spec
from tests.engine.driver import EngineDriver

NORMAL, URGENT, VERY = PriorityWord
MEMBER, ADMIN = Actor(ANN, admin=False), Actor(BOB, admin=True)


@pytest.fixture
def engine() -> EngineDriver:
    return EngineDriver(a_node("n1", cpus=4))


def asked(engine: EngineDriver, *jobs: int, wanted: WantedPriority, by: Actor = MEMBER) -> Refusal | None:
    return engine.act(set_priority(engine.machine, [engine.job(job) for job in jobs], wanted, by))


@pytest.mark.req("JT-34", "JT-04")
def test_a_new_priority_word_changes_the_default_qos_too(engine: EngineDriver) -> None:
    tree = (Association(account="lab", parent="root", qos=("normal", "urgent")), Association(account="lab", user="ann"))
    engine.tell(
        events.AccountsChanged(tree, (Qos(name="urgent"),)), events.ClusterConfigured(Cluster(enforce=(Enforce.QOS,)))
    )
    follows, named = engine.submit(a_spec("a"), a_spec("b", qos="normal"))
    assert asked(engine, follows, named, wanted=URGENT) is None
    assert [(engine.job(job).spec.priority, engine.job(job).qos) for job in (follows, named)] == [
        (URGENT, "urgent"),
        (URGENT, "normal"),
    ]
    assert asked(engine, follows, wanted=NORMAL) is None
    assert engine.job(follows).qos == "normal"


@pytest.mark.req("JT-34", "SC-10")
def test_a_priority_change_changes_no_other_field(engine: EngineDriver) -> None:
    (first,) = engine.run(a_spec("first"))
    (job,) = engine.submit(
        a_spec("a", dependencies=(Dependency(DependencyKind.AFTER_OK, first),), time_limit_seconds=60)
    )
    engine.ended(first, code=0)
    before = engine.job(job)
    engine.pass_time(HOUR // 2)
    assert asked(engine, job, wanted=URGENT) is None
    after = engine.job(job)
    assert (after.waits_for, after.accrues_from, after.account) == ((), before.accrues_from, before.account)
    before_events = len(engine.journal)
    assert asked(engine, job, wanted=URGENT) is None
    assert len(engine.journal) == before_events


@pytest.mark.req("JT-34", "SC-11")
def test_the_bound_of_urgent_jobs_applies_to_changes_and_whole_arrays(engine: EngineDriver) -> None:
    engine.tell(events.ClusterConfigured(Cluster(urgent_jobs=2)))
    tasks = engine.submit(a_spec("sweep", array=Array((0, 1, 2))))
    refused = asked(engine, *tasks, wanted=URGENT)
    assert refused is not None
    assert refused.kind is RefusalKind.CONFLICT
    assert asked(engine, *tasks[:2], wanted=URGENT) is None
    refused = asked(engine, tasks[2], wanted=URGENT)
    assert refused is not None
    assert f"now they are {tasks[0]}, {tasks[1]}." in refused.message
    assert asked(engine, tasks[0], wanted=URGENT) is None
    assert asked(engine, tasks[0], wanted=NORMAL) is None
    assert asked(engine, tasks[2], wanted=URGENT) is None


@pytest.mark.req("JT-34")
def test_members_set_neither_very_urgent_nor_numbers(engine: EngineDriver) -> None:
    (job,) = engine.submit(a_spec())
    for wanted in (VERY, 1000):
        refused = asked(engine, job, wanted=wanted)
        assert refused is not None
        assert refused.kind is RefusalKind.DENIED
        assert asked(engine, job, wanted=wanted, by=ADMIN) is None
    assert (engine.job(job).spec.priority, engine.job(job).direct_priority) == (VERY, 1000)
    overruling = asked(engine, job, wanted=NORMAL)
    assert overruling is not None
    assert overruling.kind is RefusalKind.DENIED
    assert asked(engine, job, wanted=NORMAL, by=ADMIN) is None
    assert (engine.job(job).spec.priority, engine.job(job).direct_priority) == (NORMAL, None)


@pytest.mark.req("JT-34")
def test_priority_changes_need_a_waiting_job_and_a_valid_value(engine: EngineDriver) -> None:
    (job,) = engine.run(a_spec("running", cpus=4))
    refused = asked(engine, job, wanted=URGENT)
    assert refused is not None
    assert "only a queued job" in refused.message
    (queued,) = engine.submit(a_spec())
    assert asked(engine, job, queued, wanted=URGENT) is None
    zero = asked(engine, queued, wanted=0, by=ADMIN)
    assert zero is not None
    assert "cockpit hold" in zero.message


@pytest.mark.req("SC-01", "JT-34")
def test_a_site_factor_is_added_to_what_is_computed_and_only_by_administrators(engine: EngineDriver) -> None:
    engine.tell(events.ClusterConfigured(Cluster(priority=Priority(kind=PriorityKind.MULTIFACTOR))))
    plain, raised = engine.submit(a_spec("plain"), a_spec("raised"))
    refused = asked(engine, raised, wanted=SiteFactor(500))
    assert refused is not None
    assert refused.kind is RefusalKind.DENIED
    too_much = asked(engine, raised, wanted=SiteFactor(2**40), by=ADMIN)
    assert too_much is not None
    assert too_much.kind is RefusalKind.INVALID
    assert asked(engine, raised, wanted=SiteFactor(500), by=ADMIN) is None
    assert (engine.job(plain).site_factor, engine.job(raised).site_factor) == (0, 500)
    assert engine.job(raised).direct_priority is None
    told = len(engine.journal)
    assert asked(engine, raised, wanted=SiteFactor(500), by=ADMIN) is None
    assert len(engine.journal) == told
