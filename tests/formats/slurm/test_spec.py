"""slurmSpec: the example of the guide as it stands, what is refused and what only warned of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.slurm.spec import SlurmSpec, read_slurm_spec
from cockpit.model.cluster import Enforce, Partition, Preemption, Priority, PriorityKind, Weights
from cockpit.resources import fixture

EXAMPLE = fixture("slurmspec/training-cluster.json").read_text()
STORAGE = "projects/PROJECT_ID/locations/REGION-ZONE/instances/FILESTORE_INSTANCE_ID"


def read(text: str) -> SlurmSpec:
    return read_slurm_spec("spec.json", text)


def bare(**fields: Any) -> str:
    return json.dumps({"partitions": [{"id": "a4", "node_pool_ids": ["a4"]}], **fields})


def errors_of(text: str) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        read(text)
    return [error.removeprefix("spec.json: ") for error in caught.value.errors]


@pytest.mark.req("SC-15")
def test_the_guides_example() -> None:
    spec = read(EXAMPLE)
    assert spec.storage == STORAGE
    assert spec.warnings == ()
    cluster = spec.cluster
    assert cluster.partitions == (Partition(name="a4", pools=("a4",)),)
    assert cluster.login_pool == "login"
    assert cluster.enforce == (Enforce.ASSOCIATIONS, Enforce.LIMITS, Enforce.QOS)
    assert cluster.priority == Priority(
        kind=PriorityKind.MULTIFACTOR, weights=Weights(tres={"cpu": 100.0, "mem": 150.0})
    )
    assert cluster.preemption == Preemption(kind="preempt/partition_prio", mode=("SUSPEND", "GANG"))
    assert cluster.prolog_scripts[0] == "#!/bin/bash\necho 'First prolog script running'"
    assert len(cluster.prolog_scripts) == 2
    assert len(cluster.epilog_scripts) == 1
    assert not cluster.mutable


def test_the_example_without_its_line_ends_is_the_same() -> None:
    """As it stands where the guide was copied as plain text."""
    assert read(" ".join(EXAMPLE.split("\n"))) == read(EXAMPLE)


def test_the_slurm_spec_by_itself() -> None:
    inner = json.loads("\n".join(line for line in EXAMPLE.split("\n") if "//" not in line))["orchestratorSpec"]
    assert read(json.dumps(inner["slurmSpec"])).cluster == read(json.dumps(inner)).cluster == read(EXAMPLE).cluster


def test_comments_end_with_their_line_and_not_in_texts() -> None:
    spec = read(bare(prolog_bash_scripts=["curl https://x // y"]).replace("}]", "} // here\n]"))
    assert spec.cluster.prolog_scripts == ("curl https://x // y",)


def test_remaining_placeholders_are_named() -> None:
    (error,) = errors_of('{"partitions": [], "scheduling": {"priority_weight_age": PRIORITY_WEIGHT_AGE,\n "a": 1}}')
    assert error.startswith("is not JSON: ")
    assert error.endswith("; write values for the placeholders PRIORITY_WEIGHT_AGE")


def test_all_errors_at_once_with_their_paths() -> None:
    text = json.dumps(
        {
            "orchestratorSpec": {
                "slurmSpec": {
                    "partitions": [
                        {"node_pool_ids": ["a"]},
                        {"id": "p", "node_pool_ids": []},
                        {"id": "p", "node_pool_ids": ["login"]},
                        {"id": "q"},
                    ],
                    "login_node_pool_id": "login",
                    "home_directory_storage": "/srv/home",
                    "accounting": {"accounting_storage_enforce": "associations,everything"},
                    "scheduling": {
                        "priority_type": "PRIORITY_TYPE",
                        "priority_weight_age": 1.5,
                        "priority_weight_qos": "many",
                        "priority_weight_tres": "cpu",
                        "preempt_type": "preempt/qos",
                        "preempt_mode": "OFF",
                        "preempt_exempt_time": "soon",
                    },
                    "epilog_bash_scripts": "echo",
                }
            }
        }
    )
    assert [error.partition(": ")[0].removeprefix("orchestratorSpec.slurmSpec.") for error in errors_of(text)] == [
        "partitions[0].id",
        "partitions[1].node_pool_ids",
        "partitions[3].node_pool_ids",
        "home_directory_storage",
        "accounting.accounting_storage_enforce",
        "scheduling.priority_type",
        "scheduling.priority_weight_age",
        "scheduling.priority_weight_qos",
        "scheduling.priority_weight_tres",
        "scheduling.preempt_exempt_time",
        "epilog_bash_scripts",
        "partitions[2].id",
        "partitions[2].node_pool_ids",
        "scheduling.preempt_mode",
    ]


def test_unknown_settings_are_ignored_with_a_warning() -> None:
    spec = read('{"displayName": "x", "orchestratorSpec": {"slurmSpec": ' + bare(later={"a": 1}) + "}}")
    assert spec.warnings == (
        "displayName: is not the slurmSpec, and counts for nothing",
        "orchestratorSpec.slurmSpec.later: is not known here, and counts for nothing",
    )


@pytest.mark.parametrize(
    ("scheduling", "warning"),
    [
        ({"priority_weight_age": 5}, "scheduling.priority_type: with priority/basic the weights count for nothing"),
        ({"preempt_exempt_time": "00:05:00"}, "scheduling.preempt_exempt_time: counts only with REQUEUE or CANCEL"),
    ],
)
def test_settings_without_effect_cause_a_warning(scheduling: dict[str, object], warning: str) -> None:
    assert read(bare(scheduling=scheduling)).warnings == (warning,)


@pytest.mark.parametrize(
    ("enforce", "found"), [("all", tuple(Enforce)), ("Safe, qos", (Enforce.SAFE, Enforce.QOS)), ("", ())]
)
def test_what_may_be_enforced(enforce: str, found: tuple[Enforce, ...]) -> None:
    assert read(bare(accounting={"accounting_storage_enforce": enforce})).cluster.enforce == found


def test_unsupported_enforcement_causes_a_warning() -> None:
    spec = read(bare(accounting={"accounting_storage_enforce": "wckeys,limits"}))
    assert spec.cluster.enforce == (Enforce.LIMITS,)
    assert "wckeys is not followed here" in spec.warnings[0]


@pytest.mark.parametrize(("time", "seconds"), [("00:00:00", 0), ("5", 300), ("1:30", 90), ("1-12", 129_600), ("-1", 0)])
def test_times_are_slurms(time: str, seconds: int) -> None:
    scheduling = {"preempt_type": "preempt/qos", "preempt_mode": "REQUEUE", "preempt_exempt_time": time}
    assert read(bare(scheduling=scheduling)).cluster.preemption.exempt_seconds == seconds


def test_whole_numbers_may_be_quoted_and_names_like_this() -> None:
    spec = read(bare(scheduling={"priorityType": "priority/multifactor", "priorityWeightAge": "1000"}))
    assert spec.cluster.priority.weights.age == 1000


@pytest.mark.parametrize(
    "text", ["[]", '"x"', "3", "null", '{"orchestratorSpec": 3}', '{"orchestratorSpec": {}}', "{}"]
)
def test_other_documents_are_no_slurm_spec(text: str) -> None:
    assert errors_of(text)
