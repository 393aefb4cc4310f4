from __future__ import annotations

import pytest

from cockpit.model.cluster import Enforce, Reservation
from cockpit.model.ids import JobId, Millis
from cockpit.model.job import ArrayTask
from cockpit.model.node import NodeState
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    DependencyNever,
    Held,
    LimitReached,
    WaitsForJob,
)
from cockpit.model.spec import Dependency, DependencyKind
from cockpit.sched.gates import Gates
from cockpit.sched.nodes.reservation_windows import ReservationWindows
from cockpit.sched.rules.rulebook import enforced
from tests.sched.lab import starts, submit, tree, world
from tests.sched.world import World, node, spec_of, wants


def reserved(name: str, nodes: tuple[str, ...], start: int, end: int, **fields) -> dict[str, Reservation]:
    return {name: Reservation(name=name, nodes=nodes, start_at=1000 * start, end_at=1000 * end, **fields)}


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("written", "means"),
    [
        ((), set()),
        (("associations",), {"associations"}),
        (("limits",), {"associations", "limits"}),
        (("qos",), {"associations", "qos"}),
        (("safe",), {"associations", "limits", "safe"}),
        (("safe", "qos"), {"associations", "limits", "safe", "qos"}),
    ],
)
def test_each_word_of_the_enforcement_implies_others(written, means) -> None:
    assert enforced(map(Enforce, written)) == means


@pytest.mark.req("SC-10", "SC-13")
def test_a_jobs_own_conditions_are_checked_first_and_in_this_order() -> None:
    here = World(node("n1"))
    job = here.submit(begin_at=Millis(9000))
    after = (Dependency(DependencyKind.AFTER_ANY, JobId(7)), Dependency(DependencyKind.AFTER_OK, JobId(8)))
    here.change(job, held_by="root", held_since=Millis(5), waits_for=after[::-1], never=JobId(8))
    told = []
    for change in ({"held_by": ""}, {"never": None, "waits_for": after}, {"waits_for": after[:1]}, {"waits_for": ()}):
        here.cycle()
        told.append(here.reason(job))
        here.change(job, **change)
    assert told == [
        Held("root", Millis(5)),
        DependencyNever(DependencyKind.AFTER_OK, JobId(8)),
        WaitsForJob(DependencyKind.AFTER_ANY, JobId(7), 1),
        WaitsForJob(DependencyKind.AFTER_ANY, JobId(7), 0),
    ]
    here.cycle()
    assert here.reason(job) == BeginsLater(Millis(9000))
    here.now = Millis(8999)
    assert not starts(here, job)
    here.now = Millis(9000)
    assert starts(here, job)


@pytest.mark.req("SC-10", "SC-14")
def test_the_plan_gives_the_next_time_at_which_time_alone_may_permit_a_start() -> None:
    here = World(node("n1"), node("n2"))
    assert here.cycle().next_at is None
    for begin in (7000, 5000):
        here.submit(begin_at=Millis(begin))
    here.submit(begin_at=Millis(1000), held_by="root")
    assert here.cycle().next_at == 5000
    here.change_rules(reservations=reserved("r", ("n1",), 3, 6))
    assert here.cycle().next_at == 3000
    here.now = Millis(3000)
    assert here.cycle().next_at == 5000
    here.now = Millis(5500)
    assert here.cycle().next_at == 6000
    here.now = Millis(7000)
    assert here.cycle().next_at is None


@pytest.mark.req("SC-10")
def test_another_task_of_a_throttled_array_starts_when_one_ends() -> None:
    here = World(node("n1"))
    tasks = [here.submit(record={"array": ArrayTask(JobId(1), index, 2)}) for index in range(4)]
    assert [start.job for start in here.run().starts] == tasks[:2]
    assert here.reason(tasks[3]) == ArrayFull(JobId(1), 2)
    here.end(tasks[0])
    assert [start.job for start in here.run().starts] == tasks[2:3]


@pytest.mark.req("SC-13")
def test_a_gate_can_be_evaluated_alone() -> None:
    here = world(tree(nlp={"max_jobs": 1}))
    first, second = submit(here), submit(here)
    plan = here.run()
    index = here.index
    gates = Gates(here.snapshot(), index.equivalence, index.counters.fork(), ReservationWindows({}, here.now))
    assert gates.refusal(here.jobs[second], "") is None  # the index is of before the start
    assert isinstance(plan.refusals.gates.refusal(here.jobs[second], ""), LimitReached)
    here.cycle()
    assert first in here.occupied


def test_equal_jobs_without_limits_share_one_equivalence_class() -> None:
    here = World(node("n1"))
    for _ in range(20):
        here.submit_spec(spec_of(wants(1000)))
    here.cycle()
    assert len(here.index.equivalence.classes) == 1


@pytest.mark.req("SC-14")
def test_a_job_that_a_limit_stopped_is_not_checked_again_while_usage_is_as_high(monkeypatch) -> None:
    asked = []
    class_refusal = Gates.class_refusal

    def counted(gates: Gates, equivalence_class, *more):
        asked.append(equivalence_class)
        return class_refusal(gates, equivalence_class, *more)

    monkeypatch.setattr(Gates, "class_refusal", counted)
    here = world(tree(nlp={"grp_tres": {"cpu": 8}}))
    runs = [submit(here, cpus=4), submit(here, cpus=4)]
    here.run()
    waiting = [submit(here, cpus=cpus, user="bob") for cpus in (5, 6, 7, 8)]
    assert not here.cycle().starts
    assert len(set(asked[-len(waiting) :])) == len(waiting)
    asked.clear()
    here.set_state(max(here.nodes), NodeState.DRAINED)  # a whole pass, not the continuation of the last one
    assert not here.cycle().starts
    assert asked == []
    assert [here.reason(job).limit for job in waiting] == ["GrpTRES"] * len(waiting)
    here.set_state(max(here.nodes), NodeState.UP)
    for job in runs:
        here.end(job)
    assert [start.job for start in here.cycle().starts] == waiting[:1]
