from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cockpit.errors import SpecErrors
from cockpit.formats.job.fields import JOB
from cockpit.formats.job.file import Defaults, job_schema, read_jobs
from cockpit.model.spec import JobSpec

SCHEMA = job_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
LEAST = {"name": "a", "command": "x", "output": "out"}


def is_read(job: object) -> bool:
    try:
        read_jobs("job.json", json.dumps(job), "/work", defaults=Defaults(home_folder="/home/a"))
    except SpecErrors:
        return False
    return True


def test_it_is_a_schema_and_plain_json() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_the_example_is_valid() -> None:
    VALIDATOR.validate(yaml.safe_load(Path(__file__).with_name("held-one.yaml").read_text()))


def test_every_attribute_of_a_spec_has_a_described_field() -> None:
    attributes = {field.attribute for field in JOB.fields}
    of_the_engine = {"limit_by_default", "pool_nodes", "image_found", "image_mpi", "spread", "components"}
    of_the_engine.add("excluded")
    assert attributes == {field.name for field in msgspec.structs.fields(JobSpec)} - of_the_engine
    assert all(field["description"].endswith(".") for field in SCHEMA["properties"].values())


def test_examples_in_the_schema_are_valid() -> None:
    for name, field in SCHEMA["properties"].items():
        for example in field.get("examples", []):
            VALIDATOR.validate(LEAST | {name: example})


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a/b"},
        {"name": ".a"},
        {"name": "a" * 64},
        {"name": 3},
        {"nodes": 0},
        {"nodes": 10_001},
        {"specs": []},
        {"specs": [{"cpus": 0}]},
        {"specs": [{"memory": "12X"}]},
        {"specs": [{"cards": 1.5}]},
        {"specs": [{"cards": 1025}]},
        {"specs": [{}] * 65},
        {"time_limit": "soon"},
        {"time_limit": 0},
        {"grace_period": 86_401},
        {"debug_hold": {"cards": "maybe"}},
        {"home": "rx"},
        {"env": {"1": ""}},
        {"env": {"A": 1.5}},
        {"volumes": [{}]},
        {"datasets": [{"read_only": True}]},
        {"models": [{"name": "m", "read_only": True}]},
        {"algorithm": {}},
        {"unknown": 1},
        {"pool": None},
    ],
)
def test_schema_and_rules_refuse_the_same(wrong: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(LEAST | wrong)
    assert not is_read(LEAST | wrong)


def bounded(schema: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each whole number within a schema, its least and its greatest value."""
    if schema.get("type") == "integer" and "minimum" in schema:
        yield path, schema["minimum"], schema["maximum"]
    for other in schema.get("anyOf", ()):
        yield from bounded(other, path)
    for name, inner in schema.get("properties", {}).items():
        yield from bounded(inner, (*path, name))
    if isinstance(schema.get("items"), dict):
        yield from bounded(schema["items"], (*path, 0))


BOUNDED = [each for each in bounded(SCHEMA) if each[0][0] != "spec"]  # errors call it specs[0], which is here too


@pytest.mark.req("JT-27")
@pytest.mark.parametrize(
    ("path", "least", "greatest"), BOUNDED, ids=[".".join(map(str, path)) for path, _, _ in BOUNDED]
)
def test_the_bounds_in_the_schema_are_those_of_the_rules(
    path: tuple[str | int, ...], least: int, greatest: int
) -> None:
    at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)[1:]

    def is_refused(value: Any) -> bool:
        for part in reversed(path):
            value = [value] if isinstance(part, int) else {part: value}
        try:
            read_jobs("job.json", json.dumps(LEAST | value), "/work", defaults=Defaults(home_folder="/home/a"))
        except SpecErrors as refused:
            beyond = re.compile(rf"job.json: {re.escape(at)}: .*(between|write)")
            return any(beyond.match(each) and "TensorFlow" not in each for each in refused.errors)
        return False

    assert [is_refused(value) for value in (least - 1, least, greatest, greatest + 1)] == [True, False, False, True]


def test_schema_and_reader_require_the_same_fields() -> None:
    for name in LEAST:
        partial = {key: value for key, value in LEAST.items() if key != name}
        assert not VALIDATOR.is_valid(partial)
        assert not is_read(partial)


SCALARS = st.none() | st.booleans() | st.integers(-2, 70_000) | st.floats(0, 3) | st.text(max_size=6)
UNITS = st.from_regex(re.compile(r"\A[0-9]{1,3}(\.[0-9])?[KMGTwdhms]i?\Z")) | st.from_regex(
    re.compile(r"\A([0-9]-)?[0-9]{1,2}(:[0-9]{2}){1,2}\Z")
)
VALUES = st.recursive(
    SCALARS | UNITS | st.sampled_from(["ro", "none", "keep", "/a", "~/b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["cpus", "memory", "cards", "card_model", "path", "name", "window"]), inner)
    ),
    max_leaves=6,
)
JOBS = st.fixed_dictionaries(
    {"name": st.text(min_size=1, max_size=5), "command": st.just("x"), "output": st.just("out")},
    optional={name: VALUES for name in SCHEMA["properties"] if name not in LEAST},
)


@settings(max_examples=100, deadline=None)
@given(JOBS)
def test_every_file_that_is_read_is_valid(job: dict[str, Any]) -> None:
    if is_read(job):
        VALIDATOR.validate(job)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([name for name in SCHEMA["properties"] if name not in LEAST]), VALUES)
def test_every_valid_field_is_read(name: str, value: object) -> None:
    if VALIDATOR.is_valid(LEAST | {name: value}) and not is_read(LEAST | {name: value}):
        assert beyond_a_schema(name, value), (name, value)


def beyond_a_schema(name: str, value: Any) -> bool:
    """What a schema cannot say: fields that need one another, unseen characters, clocks that run over, zero with a
    unit, shares finer than a thousandth, and that 2.0 is a whole number to it alone."""
    needs_another = name in {
        "driver_version",
        "card_models",
        "card_model",
        "volumes",
        "datasets",
        "models",
        "algorithm",
        "staging",
    }
    return needs_another or re.search(r'\\|[.: ~]|-|"0|card_model', json.dumps(value)) is not None
