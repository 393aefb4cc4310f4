from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cockpit.model.staging import Progress, StagedCopy
from cockpit.present.tables.all import TABLES
from tests.doubles.samples import NOW
from tests.headless.conftest import Desk

COMMANDS = {
    "jobs": ("jobs",),
    "job-details": ("job", "4715"),
    "usage": ("usage", "4715"),
    "priority": ("priority",),
    "explain": ("explain", "4720"),
    "explain-past": ("explain", "--past", "4715"),
    "lab": ("lab", "--since", "400d"),
    "starts": ("starts",),
    "predict": ("predict", "-"),
    "trials": ("trials", "4730"),
    "launch": ("launch", "--dry-run", "-"),
    "staged": ("staged",),
    "replicas": ("job", "4715", "--replicas"),
    "block-list": ("job", "4715", "--block-list"),
    "nodes": ("nodes", "--all"),
    "cards": ("cards", "--all"),
    "card-models": ("cards", "--models"),
    "holds": ("holds",),
    "queues": ("queues",),
    "quota": ("quota",),
    "reservations": ("reservations",),
    "events": ("events",),
    "overview": ("overview",),
    "engine": ("engine",),
    "doctor": ("doctor",),
    "accounts": ("accounts",),
    "accounts-qos": ("accounts", "qos"),
    "catalogue": ("catalogue",),
    "accounting": ("accounting",),
    "accounting-sums": ("accounting", "--by", "user"),
    "accounting-hours": ("accounting", "hours"),
}

CHECKS: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def conforms(value: Any, schema: dict[str, Any]) -> bool:
    """As much of JSON Schema as the schemas use."""
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(CHECKS[name](value) for name in types):
        return False
    if isinstance(value, list):
        return all(conforms(item, schema["items"]) for item in value)
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return set(schema.get("required", ())) <= set(value) and all(
            conforms(value[key], part) for key, part in parts.items() if key in value
        )
    return True


def schema_of(desk: Desk, name: str) -> dict[str, Any]:
    return json.loads(desk("schema", name).out)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.req("UI-40")
def test_the_output_of_every_command_matches_its_schema(desk: Desk, name: str) -> None:
    document = json.loads(desk(*COMMANDS[name], "-o", "json").out)
    schema = schema_of(desk, name)
    assert conforms(document, schema)
    row = schema["properties"]["rows"]["items"]
    assert row["required"] == list(row["properties"])
    assert all(set(found) == set(row["properties"]) for found in document["rows"])


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("progress", [None, Progress(done=1 << 29, total=1 << 30, rate=0)])
def test_copies_in_progress_and_finished_ones_match_the_schema(desk: Desk, progress: Progress | None) -> None:
    made = StagedCopy(
        key="4f2a",
        what="dataset",
        source="/data/cats",
        size=1 << 30,
        users=("bob",),
        made_at=NOW,
        used_at=NOW,
        jobs=(),
        progress=progress,
    )
    desk.backend.copies = [made]
    document = json.loads(desk("staged", "-o", "json").out)
    assert document["rows"][0]["done"] == (None if progress is None else "50%")
    assert conforms(document, schema_of(desk, "staged"))


def test_the_schema_rejects_an_invalid_document(desk: Desk) -> None:
    document = json.loads(desk("jobs", "-o", "json").out)
    document["rows"][0]["state"] = "failed"
    assert not conforms(document, schema_of(desk, "jobs"))


def test_the_names_of_all_schemas(desk: Desk) -> None:
    listed = {line.split()[0] for line in desk("schema").lines}
    assert listed == {"job", "cluster", "catalogue-file", *TABLES}
    assert set(TABLES) == {
        *COMMANDS,
        "launch-script",
        *("clusters", "fleet", "fleet-pods"),
    }  # of other clusters: tests/clusters, test_slurm_verbs; of fleets: test_fleet
    assert desk("schema", "nonsense").code == 64


@pytest.mark.parametrize(("name", "required"), [("job", ["name", "output"]), ("cluster", [])])
def test_the_schemas_of_files_are_published(desk: Desk, name: str, required: list[str]) -> None:
    schema = schema_of(desk, name)
    assert schema["$id"].startswith(f"urn:cockpit-cluster:{name}:")
    assert sorted(schema.get("required", [])) == sorted(required)


@pytest.mark.req("UI-40")
@pytest.mark.parametrize("name", ["job", "cluster", "catalogue-file"])
def test_the_schema_of_each_kind_of_file_describes_an_object(desk: Desk, name: str) -> None:
    assert schema_of(desk, name)["type"] == "object"
