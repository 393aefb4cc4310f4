"""The policy lab's replays: a past is replayed as it was, and each kind of change has its effect."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.engine.replay.lab import (
    NEVER,
    LabChanges,
    Outcome,
    Scenario,
    changed,
    missing_nodes,
    past_jobs,
    run_scenario,
    today,
)
from cockpit.formats.slurm.sacctmgr import association_change
from cockpit.model.accountchange import AddAccount, AddUser, ModifyUser
from cockpit.model.accounts import Accounts
from cockpit.model.cluster import Backfill, BackfillKind, Cluster, Enforce, Preemption, PreemptType
from cockpit.model.ids import Millis, NodeName
from cockpit.model.job import JobState
from cockpit.model.jobrow import JobRow
from cockpit.model.node import NodeState
from cockpit.model.priority import WeightChanges
from cockpit.model.refusal import Refusal, RefusalKind
from tests.builders import NOON, SECOND, a_node
from tests.doubles.samples import job_row

pytestmark = pytest.mark.req("UI-16")
NO_CHANGE = LabChanges()
NODE = a_node("n1", cpus=4, cards=2)


def ended(number: int, came: int, ran: int, cpus: int, waited: int = 0, **fields: Any) -> JobRow:
    """A job that came `came` seconds after noon."""
    at = NOON + came * SECOND
    times = {
        "submitted_at": Millis(at),
        "started_at": Millis(at + waited * SECOND),
        "ended_at": Millis(at + (waited + ran) * SECOND),
    }
    size = {"nodes": 1, "cpus": cpus, "memory_mib": 0, "card_milli": 0, "card_models": (), "partitions": ()}
    about = {"state": JobState.SUCCEEDED, "held_until": None, "time_limit_seconds": ran, "reason": None}
    return job_row(number, **(times | size | about | fields))


def scenario(**fields: Any) -> Scenario:
    return today([NODE], Cluster(), Accounts()) if not fields else today(**({"nodes": [NODE]} | fields))


def outcome(rows: list[JobRow], changes: LabChanges = NO_CHANGE, base: Scenario | None = None) -> Outcome:
    other = changed(base or scenario(), changes)
    assert not isinstance(other, Refusal)
    return run_scenario(other, past_jobs(rows, NOON))


# The third fits beside the first, and ends before the second can start; the fourth does not.
QUEUE = [ended(1, 0, 100, 3), ended(2, 1, 100, 4), ended(3, 2, 90, 1), ended(4, 3, 200, 1)]


def test_the_waits_of_a_replay_are_those_of_the_rules() -> None:
    assert outcome(QUEUE).waits == (0, 99, 0, 197)
    off = LabChanges(backfill=Backfill(kind=BackfillKind.OFF))
    assert outcome(QUEUE, off).waits == (0, 99, 198, 197)


def test_more_nodes_and_fewer_nodes_change_the_waits() -> None:
    more = LabChanges(added_nodes=((1, NodeName("n1")),))
    assert outcome(QUEUE, more).waits == (0, 0, 0, 89)
    none = LabChanges(removed_nodes=(NodeName("n1"),))
    assert outcome(QUEUE, none).waits == (NEVER,) * 4
    assert missing_nodes(scenario(), LabChanges(removed_nodes=(NodeName("x"),))) == ["x"]


def test_limits_are_changed_as_an_administrator_changes_them() -> None:
    rows = [ended(number, 0, 100, 1, user="ann", account="nlp") for number in (1, 2)]
    rules = scenario(cluster=Cluster(enforce=(Enforce.ASSOCIATIONS, Enforce.LIMITS)), accounts=Accounts())
    added = (AddAccount("nlp", association_change([])), AddUser("ann", "nlp", "", association_change([])))
    assert outcome(rows, LabChanges(accounts=added), rules).waits == (0, 0)
    limited = (*added, ModifyUser("ann", association_change(["MaxJobs=1"]), "nlp", ""))
    assert outcome(rows, LabChanges(accounts=limited), rules).waits == (0, 100)
    refused = changed(rules, LabChanges(accounts=limited[2:]))
    assert isinstance(refused, Refusal)
    assert refused.kind is RefusalKind.NOT_FOUND


def test_weights_decide_the_order_also_where_jobs_came_in_order_of_submission() -> None:
    rows = [ended(1, 0, 100, 4), ended(2, 1, 10, 1), ended(3, 2, 10, 4)]
    assert outcome(rows).waits == (0, 99, 108)
    big = LabChanges(weights=WeightChanges(job_size=1000))
    assert outcome(rows, big).waits == (0, 109, 98)


def test_utilisation_and_stranded_cards_are_integrals_over_time() -> None:
    gpu = {"card_milli": 2000}
    rows = [ended(1, 0, 3600, 4), ended(2, 0, 3600, 1, **gpu), ended(3, 0, 1800, 3)]
    result = outcome(rows)
    assert result.waits == (0, 3600, 3600)
    assert result.cpu_utilisation == pytest.approx((4 + 1 + 1.5) / 8)
    assert result.card_utilisation == pytest.approx(0.5)
    # Both cards are free for the hour in which the second job waits for CPUs.
    assert result.stranded_card_hours == pytest.approx(2.0)


def test_a_job_that_has_not_ended_runs_for_its_limit_and_one_that_never_ran_is_left_out() -> None:
    runs = ended(1, 0, 50, 4, time_limit_seconds=300, ended_at=None, state=JobState.RUNNING)
    waits = ended(2, 1, 60, 4, started_at=None, ended_at=None, state=JobState.QUEUED)
    cancelled = ended(3, 1, 60, 4, started_at=None)
    past = past_jobs([cancelled, waits, runs], NOON)
    assert [(each.recorded_seconds, each.is_assumed) for each in past] == [(0, True), (None, True)]
    assert run_scenario(scenario(), past).waits == (0, 299)


def test_nodes_out_of_service_and_preemption_are_not_replayed() -> None:
    down = a_node("n1", state=NodeState.DOWN)
    rules = Cluster(preemption=Preemption(kind=PreemptType.QOS), mutable=False)
    known = today([down], rules, Accounts())
    assert [node.state for node in known.nodes] == [NodeState.UP]
    assert known.cluster.preemption == Preemption()
    assert not isinstance(changed(known, LabChanges(weights=WeightChanges(age=1))), Refusal)
