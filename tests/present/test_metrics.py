"""The figures for monitoring systems: what they count, and how many labels they may have."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import Partition
from cockpit.model.ids import JobId, Millis, NodeName
from cockpit.model.node import Card, Node, NodeState
from cockpit.model.reasons import Held, SchedulerReason
from cockpit.model.view import NodeRow, Overview, QueueKind, QueueRow, SliceUse
from cockpit.present.metrics import MOST_QUEUES, OTHER, Figures, families
from tests.doubles.samples import MINUTE, NOW, queued_row

pytestmark = pytest.mark.req("UI-40")
GLANCE = Overview("lab", {"queued": 3, "running": 2}, 1, 2, 128, 36, 1024, 24, 16_000, 1500, pass_ms=12.5)


def queue(name: str, waiting: int = 0, running: int = 0, kind: QueueKind = QueueKind.PARTITION) -> QueueRow:
    return QueueRow(
        kind=kind,
        path=name,
        name=name,
        level=0,
        since=None,
        waiting=waiting,
        running=running,
        used={"cpu": 4000},
        min={},
        max={"cpu": 64_000},
    )


def node(name: str, *cards: int, state: NodeState = NodeState.UP, used: tuple[SliceUse, ...] = ()) -> NodeRow:
    made = tuple(Card(index=index, model="A100") for index in cards)
    whole = Node(name=NodeName(name), cpus=8, memory_mib=64_000, cards=made, state=state, pool=name[0])
    return NodeRow(whole, 0, 0, 1000 * len(used), len(used), used, ())


def figures(**changes: object) -> Figures:
    empty = Figures(overview=GLANCE, jobs=(), nodes=(), queues=(), partitions=(), now=NOW)
    return empty._replace(**changes)


def samples(name: str, of: Figures) -> dict[tuple[str, ...], float]:
    (family,) = (each for each in families(of) if each.name == name)
    assert all(len(each.labels) == len(family.labels) for each in family.samples)
    return {each.labels: each.value for each in family.samples}


def test_jobs_and_pass_time_are_those_of_the_overview() -> None:
    assert samples("cockpit_jobs", figures()) == {("queued",): 3, ("running",): 2}
    assert samples("cockpit_pass_seconds", figures()) == {(): 0.0125}
    silent_about_it = figures(overview=replace(GLANCE, pass_ms=None))
    assert "cockpit_pass_seconds" not in {each.name for each in families(silent_about_it)}


def test_waits_are_counted_by_partition_and_cause_and_unused_causes_are_zero() -> None:
    jobs = [
        queued_row(1, submitted_at=Millis(NOW - 5 * MINUTE), partitions=("gpu",), reason=Held("ann", None)),
        queued_row(2, submitted_at=Millis(NOW - 2 * MINUTE), partitions=("gpu",), reason=Held("ann", None)),
        queued_row(3, submitted_at=NOW, partitions=("cpu",), reason=SchedulerReason("Priority"), tasks=(1, 2, 3)),
    ]
    counts = samples("cockpit_waiting_jobs", figures(jobs=jobs))
    assert {key: value for key, value in counts.items() if value} == {("gpu", "held"): 2, ("cpu", "jobs"): 3}
    assert counts["cpu", "limits"] == 0
    assert samples("cockpit_waiting_seconds", figures(jobs=jobs))["gpu", "held"] == 7 * 60
    assert samples("cockpit_longest_wait_seconds", figures(jobs=jobs))["gpu", "held"] == 5 * 60


def test_the_number_of_labels_is_bounded_and_nothing_is_lost() -> None:
    many = MOST_QUEUES + 20
    queues = [queue(f"q{number}", waiting=number) for number in range(many)]
    shown = samples("cockpit_queue_waiting_jobs", figures(queues=queues))
    assert len(shown) == MOST_QUEUES + 1
    assert sum(shown.values()) == sum(range(many))
    jobs = [queued_row(number, partitions=(f"q{number}",)) for number in range(1, many + 1)]
    waiting = samples("cockpit_waiting_jobs", figures(jobs=jobs))
    assert len({name for name, _ in waiting}) == MOST_QUEUES + 1
    assert sum(waiting.values()) == many
    assert waiting[OTHER, "jobs"] == 20


def test_queues_have_their_lengths_and_resources() -> None:
    of = figures(queues=[queue("gpu", 4, 2), queue("root/a", 1, kind=QueueKind.QUOTA)])
    assert samples("cockpit_queue_waiting_jobs", of) == {("partition", "gpu"): 4, ("quota", "root/a"): 1}
    assert samples("cockpit_queue_running_jobs", of)["partition", "gpu"] == 2
    assert samples("cockpit_queue_used", of)["partition", "gpu", "cpu"] == 4
    assert samples("cockpit_queue_limit", of)["partition", "gpu", "cpu"] == 64


def test_cards_are_counted_by_state_and_the_stranded_part_by_partition() -> None:
    used = (SliceUse(0, None, 1000, JobId(1), "", ""),)
    nodes = [node("a1", 0, 1, used=used), node("b1", 0, 1), node("c1", 0, state=NodeState.DOWN)]
    partitions = (
        Partition(name="a", pools=("a",)),
        Partition(name="b", nodes=(NodeName("b1"),)),
        Partition(name="all"),
    )
    # Two whole cards on one node: the free card of a1 is of no use.
    wants = [queued_row(7, card_milli=2000, nodes=1, cpus=1, memory_mib=1, card_models=("A100",))]
    of = figures(jobs=wants, nodes=nodes, partitions=partitions)
    cards = samples("cockpit_cards", of)
    assert {key[1]: value for key, value in cards.items()} == {
        "allocated": 1,
        "held": 0,
        "free": 2,
        "stranded": 1,
        "out": 1,
    }
    fractions = samples("cockpit_stranded_fraction", of)
    assert fractions == {("a",): 1.0, ("b",): 0.0, ("all",): pytest.approx(1 / 3)}
    assert samples("cockpit_nodes", of)["down",] == 1
