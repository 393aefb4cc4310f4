"""The least and the most of every number and list of cluster.toml, as its published schema says them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.cluster.fields import FILE
from cockpit.formats.cluster.file import read_cluster_file
from tests.builders import a_node

CENTURY = 36_600 * 86_400
WEIGHT = (0, 2**32 - 2)
COUNT = (0, 2**31 - 1)
NUMBERS = {
    "urgent_jobs": (0, 1_000_000),
    "max_resumes": (0, 1000),
    "max_grace_period": (0, 86_400),
    "staging.keep": (0, 3660 * 86_400),
    "staging.full": (1, 100),
    "nodes.cpus": (1, 65_536),
    "nodes.memory": (1, 2**30),
    "nodes.cards.count": (1, 1024),
    "nodes.cards.slices": (0, 100),
    "nodes.cards.memory": (1, 2**30),
    "nodes.machine_cards": (0, 1023),
    "machine.cards.count": (1, 1024),
    **{f"priority.weights.{name}": WEIGHT for name in ("age", "assoc", "fairshare", "job_size", "partition", "qos")},
    "priority.max_age": (0, CENTURY),
    "priority.calc_period": (1, 86_400),
    "priority.decay_half_life": (0, CENTURY),
    "priority.dampening_factor": (1, 65_533),
    "backfill.window": (0, CENTURY),
    "backfill.resolution": (0, 86_400),
    "backfill.depth": (0, 1_000_000),
    "preemption.exempt_time": (0, CENTURY),
    "preemption.time_slice": (5, 65_533),
    "partitions.max_time": (0, CENTURY),
    "partitions.default_time": (0, CENTURY),
    "partitions.min_nodes": (0, 1_000_000),
    "partitions.max_nodes": (0, 1_000_000),
    "partitions.priority_job_factor": (0, 65_533),
    "partitions.priority_tier": (0, 65_533),
    "partitions.grace_time": (0, CENTURY),
    "qos.priority": WEIGHT,
    "qos.usage_factor": (0, 10**9),
    "qos.grace_time": (0, CENTURY),
    "qos.limits.max_wall": (0, CENTURY),
    "qos.limits.max_jobs": COUNT,
    "qos.max_jobs_per_account": COUNT,
    "accounts.shares": COUNT,
    "accounts.priority": WEIGHT,
    "users.shares": COUNT,
    "users.limits.grp_submit_jobs": COUNT,
}
LISTS = {
    "prolog_bash_scripts": 64,
    "epilog_bash_scripts": 64,
    "node_pools": 4096,
    "nodes": 1024,
    "nodes.cards": 1024,
    "nodes.taints": 64,
    "accounting.enforce": 8,
    "priority.flags": 16,
    "preemption.mode": 8,
    "partitions": 1024,
    "partitions.nodes": 4096,
    "qos": 1024,
    "qos.flags": 32,
    "accounts": 100_000,
    "users": 100_000,
    "projects": 1024,
}


def schemas(schema: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema within a schema with the path of its field."""
    if isinstance(schema, list):
        for each in schema:
            yield from schemas(each, at)
    elif isinstance(schema, dict):
        yield at, schema
        for name, field in schema.get("properties", {}).items():
            yield from schemas(field, f"{at}.{name}".lstrip("."))
        for name in ("anyOf", "items", "additionalProperties"):
            yield from schemas(schema.get(name), at)


@pytest.mark.req("SC-15")
def test_every_number_has_the_bounds_that_slurm_or_the_machine_has() -> None:
    found = {at: (each["minimum"], each["maximum"]) for at, each in schemas(FILE.schema()) if "maximum" in each}
    assert {at: found.get(at) for at in NUMBERS} == NUMBERS


@pytest.mark.req("SC-15")
def test_every_list_has_a_most() -> None:
    found = {at: each["maxItems"] for at, each in schemas(FILE.schema()) if "maxItems" in each}
    assert {at: found.get(at) for at in LISTS} == LISTS


@pytest.mark.req("SC-08", "SC-15")
@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("[preemption]\ntime_slice = 5", ""),
        ("[preemption]\ntime_slice = 4", "preemption.time_slice: 4 s is not between 5 s and 65533 s"),
        ("[preemption]\ntime_slice = 65533", ""),
        ("[preemption]\ntime_slice = 65534", "preemption.time_slice: 65534 s is not between"),
        ("[backfill]\nresolution = 86401", "backfill.resolution: 86401 s is not between 0 s and 86400 s"),
        ("[priority.weights]\nage = 4294967294", ""),
        ("[priority.weights]\nage = 4294967295", "priority.weights.age: 4294967295 is not between"),
        ('[machine]\ncards = [{model = "A", count = 1024}]', ""),
        ('[machine]\ncards = [{model = "A", count = 1025}]', "machine.cards[0].count: 1025 is not between 1 and 1024"),
    ],
)
def test_a_number_beyond_its_bounds_is_refused_with_its_place(text: str, refused: str) -> None:
    if not refused:
        read_cluster_file(a_node(), text, "cluster.toml")
        return
    with pytest.raises(SpecErrors) as caught:
        read_cluster_file(a_node(), text, "cluster.toml")
    assert caught.value.errors[0].startswith(f"cluster.toml: {refused}")
