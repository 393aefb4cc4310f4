"""Weights as people type them, and in a cluster.toml that somebody wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.file import read_cluster_file
from cockpit.formats.cluster.text import with_weights
from cockpit.formats.clusterinit import initial_cluster
from cockpit.formats.typed_values import read_weights, weights_text
from cockpit.model.cluster import Priority, PriorityKind, Weights
from cockpit.model.ids import NodeName
from cockpit.model.node import Node
from cockpit.model.priority import WeightChanges

MACHINE = Node(name=NodeName("n1"), cpus=8, memory_mib=1024)
NEW = Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(age=5, qos=3, tres={"cpu": 2, "gres/gpu": 50}))
WRITTEN = """\
# Ours.
urgent_jobs = 3

[priority]   # who comes first
type = "priority/basic"
max_age = "2d"   # a weekend
[priority.weights]
age = 1000 # of waiting
fairshare = 20  # of shares

# Everybody's.
[[partitions]]
name = "main"
"""
WEIGHT = st.integers(0, (1 << 32) - 1)


TRES = st.dictionaries(st.sampled_from(["cpu", "gres/gpu:a100"]), WEIGHT.map(float))


@given(st.builds(Weights, age=WEIGHT, fairshare=WEIGHT, assoc=WEIGHT, tres=TRES))
def test_written_weights_are_read_back(weights: Weights) -> None:
    assert read_weights(weights_text(weights)).on(Weights(tres=weights.tres)) == weights


def test_every_error_is_reported() -> None:
    with pytest.raises(SpecErrors) as told:
        read_weights("speed=1, age=x, fairshare=5")
    assert str(told.value).splitlines() == [
        "speed is no factor; there are age, fairshare, jobsize, partition, qos, assoc, tres/cpu",
        "age wants a whole number from 0 to 4294967295, such as age=1000",
    ]
    assert read_weights("Age = 7") == WeightChanges(age=7)


@pytest.mark.req("SC-15", "UI-07")
def test_lines_are_changed_in_place_and_comments_kept() -> None:
    text = with_weights(WRITTEN, NEW)
    assert text.splitlines() == [
        "# Ours.",
        "urgent_jobs = 3",
        "",
        "[priority]   # who comes first",
        'type = "priority/multifactor"',
        'max_age = "2d"   # a weekend',
        "[priority.weights]",
        "qos = 3",
        'tres = { cpu = 2, "gres/gpu" = 50 }',
        "age = 5 # of waiting",
        "fairshare = 0  # of shares",
        "",
        "# Everybody's.",
        "[[partitions]]",
        'name = "main"',
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mutable = true\n",
        WRITTEN,
        initial_cluster(MACHINE, None, None).text,
        '[priority]\ntype = "priority/multifactor"\n[priority.weights.tres]\ncpu = 1\n',
    ],
)
def test_only_the_weights_of_the_file_change(text: str) -> None:
    before, after = (read_cluster_file(MACHINE, each) for each in (text, with_weights(text, NEW)))
    priority = replace(before.priority, kind=NEW.kind, weights=NEW.weights)
    assert after == replace(before, priority=priority)
    assert with_weights(with_weights(text, NEW), NEW) == with_weights(text, NEW)


@pytest.mark.parametrize("text", ["[priority]\nweights = { age = 1 }\n", "priority.weights.age = 1\n", "age = = 1"])
def test_a_file_that_cannot_be_edited_by_lines_is_not_changed(text: str) -> None:
    with pytest.raises(SpecErrors):
        with_weights(text, NEW)


def test_a_script_that_looks_like_rules_is_not_changed() -> None:
    script = "prolog_bash_scripts = ['''\n[priority.weights]\nage = 1\n''']\n"
    with pytest.raises(SpecErrors):
        with_weights(script, NEW)
