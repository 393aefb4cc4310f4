"""What a field means that a request, a file or an old journal leaves out, and how records are encoded."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import msgspec
import pytest

import cockpit.model
from cockpit.model.accountchange import CLEAR, AssociationChange, LimitsChange, QosChange
from cockpit.model.accounting import UsageSum
from cockpit.model.accounts import Usage
from cockpit.model.jobrow import JobRow
from cockpit.model.priority import WeightChanges
from cockpit.model.requests import RequestOutcome
from cockpit.model.staging import Progress
from cockpit.model.usage import ReplicaTotals, Sample

OTHER_THAN_NOTHING = {
    "ArrayTask.count": 1,
    "Association.shares": 1,
    "CardSlice.milli": 1000,
    "Cluster.drain_after_prechecks": 2,
    "Cluster.mutable": True,
    "Cluster.precheck_exclusion_seconds": 3600,
    "Cluster.sharing": True,
    "ClusterReported.count": 1,
    "EarlySignal.seconds": 60,
    "Elastic.allow_scaling": True,
    "Elastic.backoff_limit": 3,
    "Elastic.max_wait_seconds": 600,
    "Alert.continues": True,
    "Elastic.min_workers": 1,
    "EventRecord.version": 1,
    "Failover.toleration_seconds": 30,
    "JobRow.attempt": 1,
    "JobSpec.grace_seconds": 30,
    "JobSpec.nodes": 1,
    "JobSpec.time_limit_seconds": 86_400,
    "LogRequest.limit": 1 << 20,
    "LogSearch.any_case": True,
    "LogSearch.most": 1,
    "NodeSpec.cpus": 1,
    "NodeSpec.memory_mib": 1024,
    "Overview.admin": True,
    "Partition.priority_job_factor": 1,
    "Partition.priority_tier": 1,
    "Preemption.slice_seconds": 30,
    "Priority.calc_period_seconds": 300,
    "Priority.dampening_factor": 1,
    "Priority.decay_half_life_seconds": 7 * 86_400,
    "Priority.max_age_seconds": 7 * 86_400,
    "Qos.usage_factor": 1.0,
    "ShellRequest.columns": 80,
    "ShellRequest.rows": 24,
    "Staging.full_percent": 90,
    "Staging.keep_seconds": 7 * 86_400,
}
"""The numbers and flags that hold where none is given; all others are 0 or false, so that their absence has no effect.
"""


def defaults() -> Iterator[tuple[str, object]]:
    """Yield the default of every field of the model's records that has one."""
    for module in pkgutil.walk_packages(cockpit.model.__path__, "cockpit.model."):
        for value in vars(import_module(module.name)).values():
            if not isinstance(value, type) or value.__module__ != module.name:
                continue
            if issubclass(value, msgspec.Struct):
                yield from ((f"{value.__name__}.{each.name}", each.default) for each in msgspec.structs.fields(value))
            elif issubclass(value, tuple):
                found = getattr(value, "_field_defaults", {})
                yield from ((f"{value.__name__}.{name}", default) for name, default in found.items())


@pytest.mark.req("JT-03")
def test_a_number_or_flag_that_is_left_out_has_no_effect_but_for_the_documented_defaults() -> None:
    numbers = {field: default for field, default in defaults() if isinstance(default, int | float)}
    assert {field: number for field, number in numbers.items() if number} == OTHER_THAN_NOTHING


@pytest.mark.req("PF-18")
@pytest.mark.parametrize("struct", [JobRow, Progress, Sample, UsageSum])
def test_what_is_sent_again_and_again_is_encoded_without_the_names_of_its_fields(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.array_like


@pytest.mark.req("SC-04")
@pytest.mark.parametrize(
    "value", [AssociationChange(), LimitsChange(), QosChange(), WeightChanges(), ReplicaTotals(), Usage()]
)
def test_a_change_or_a_sum_is_encoded_with_nothing_but_what_it_says(value: msgspec.Struct) -> None:
    assert msgspec.json.encode(value) == b"{}"
    assert msgspec.json.encode(RequestOutcome(known=True)) == b'{"known":true}'


@pytest.mark.req("SC-16")
def test_a_limit_is_removed_by_minus_one_as_in_sacctmgr() -> None:
    assert CLEAR == -1
