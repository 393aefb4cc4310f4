"""Other weights put in force: where, and what becomes of the cluster's rules."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.engine.access import Actor
from cockpit.engine.configure import change_weights
from cockpit.engine.state import ClusterState
from cockpit.model.cluster import Cluster, Partition, Priority, PriorityKind, Weights
from cockpit.model.events import ClusterConfigured
from cockpit.model.ids import UserName
from cockpit.model.job import Submitter
from cockpit.model.priority import WeightChanges
from cockpit.model.refusal import Refusal, RefusalKind

WHO = Submitter(UserName("ann"), 1000, 1000, (), "/home/ann")
ADMIN, PERSON = Actor(WHO, admin=True), Actor(WHO, admin=False)
RULES = Cluster(
    partitions=(Partition(name="gpu"),),
    priority=Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(age=10, qos=7), max_age_seconds=60),
)


def state(cluster: Cluster = RULES) -> ClusterState:
    found = ClusterState()
    found.cluster = cluster
    return found


@pytest.mark.req("UI-07", "SC-15")
def test_a_change_of_weights_changes_no_other_rule() -> None:
    decided = change_weights(state(), WeightChanges(age=99, tres={"cpu": 5}))
    weights = Weights(age=99, qos=7, tres={"cpu": 5})
    assert decided == [ClusterConfigured(replace(RULES, priority=replace(RULES.priority, weights=weights)))]


def test_unchanged_weights_write_no_event() -> None:
    assert change_weights(state(), WeightChanges(age=10)) == []


def test_in_order_of_submission_the_factors_count_from_then_on() -> None:
    (event,) = change_weights(state(Cluster()), WeightChanges(age=1))  # type: ignore[misc]  # a list here
    assert isinstance(event, ClusterConfigured)
    assert event.cluster.priority.kind is PriorityKind.MULTIFACTOR


@pytest.mark.req("UI-07", "SC-15")
def test_fixed_weights_are_not_changed() -> None:
    fixed = change_weights(state(replace(RULES, mutable=False)), WeightChanges(age=1))
    assert isinstance(fixed, Refusal)
    assert (fixed.kind, "mutable = false" in fixed.message) == (RefusalKind.CONFLICT, True)
