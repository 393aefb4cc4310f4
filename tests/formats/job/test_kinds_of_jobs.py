"""The fields `kind` and `tasks` of a job file."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import Defaults, job_schema, read_jobs
from cockpit.formats.job.specfile import spec_as_yaml
from cockpit.model.spec import Algorithm, JobKind, JobSpec, Task

TASKS = "[{command: python t.py --lr 1, algorithm: ./a}, {command: x}]"
BATCH = f"{{name: tune, kind: batch, time_limit: 1h, output: ./out, tasks: {TASKS}}}"


def read(text: str) -> JobSpec:
    return read_jobs("job.yaml", text, "/work", defaults=Defaults())[0]


@pytest.mark.req("JT-03", "JT-06")
def test_each_task_has_a_command_and_an_algorithm_of_its_own() -> None:
    spec = read(BATCH)
    assert (spec.kind, spec.command, spec.algorithm) == (JobKind.BATCH, "", None)
    assert spec.tasks == (Task(command="python t.py --lr 1", algorithm=Algorithm(path="/work/a")), Task(command="x"))


@pytest.mark.req("JT-03")
@pytest.mark.parametrize(
    "text",
    [
        BATCH,
        "{name: s, kind: interactive, output: /o, time_limit: 1h}",
        "{name: n, kind: interactive, command: jupyter lab, output: /o, time_limit: 1h}",
    ],
)
def test_every_kind_of_job_is_written_as_it_is_read(text: str) -> None:
    spec = read(text)
    assert read_jobs("job.yaml", spec_as_yaml(spec), "/", defaults=Defaults()) == [spec]


@pytest.mark.req("JT-03")
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "command: is missing; give the executable"),
        ({"command": ""}, "command: is empty"),
        ({"command": "x", "tasks": [{"command": "x"}]}, "tasks: cannot be used in a job of the kind regular"),
        ({"kind": "batch"}, "tasks: is missing; a batch has one or more"),
        ({"kind": "batch", "command": "x", "tasks": [{"command": "x"}]}, "command: cannot be used with tasks"),
        ({"kind": "batch", "algorithm": "/a", "tasks": [{"command": "x"}]}, "algorithm: cannot be used with tasks"),
        ({"kind": "batch", "array": "0-1", "tasks": [{"command": "x"}]}, "array: cannot be used with tasks"),
        ({"kind": "batch", "tasks": [{}]}, "tasks[0].command: is missing; give the executable"),
        ({"kind": "batch", "tasks": [{"command": "x"}, {"command": "a && b"}]}, "tasks[1].command: "),
        ({"kind": "batch", "tasks": [{"command": "x"}] * 1001}, "tasks: has 1001 entries; give 0 to 1000"),
        ({"kind": "interactive", "array": "0-1"}, "array: cannot be used in a session"),
        (
            {"kind": "interactive", "tasks": [{"command": "x"}]},
            "tasks: cannot be used in a job of the kind interactive",
        ),
        (
            {"kind": "interactive", "pool": "a", "resume": {"max_resumes": 1, "grace_period": "1m"}},
            "resume: is for regular jobs alone",
        ),
        ({"kind": "shell"}, 'kind: is the text "shell"; write regular or batch or interactive'),
    ],
)
def test_an_error_is_reported_with_its_field(fields: dict[str, object], error: str) -> None:
    with pytest.raises(SpecErrors, match=re.escape(error)):
        read(json.dumps({"name": "a", "output": "/o", **fields}))


@pytest.mark.req("JT-03")
def test_the_name_with_a_tasks_number_is_a_folder_name() -> None:
    tasks = [{"command": "x"}] * 101
    batch = {"name": "𠀀" * 62, "kind": "batch", "output": "/o", "tasks": tasks}
    assert read(json.dumps(batch, ensure_ascii=False)).name == "𠀀" * 62
    with pytest.raises(SpecErrors, match="name: becomes a folder with each task's number, of more than 255 bytes"):
        read(json.dumps({**batch, "name": "𠀀" * 63}, ensure_ascii=False))


@pytest.mark.req("JT-03")
def test_the_schema_requires_a_command_where_the_reader_does() -> None:
    validator = Draft202012Validator(job_schema())
    least = {"name": "a", "output": "/o"}
    assert not validator.is_valid(least)
    assert not validator.is_valid(least | {"kind": "regular"})
    assert validator.is_valid(least | {"kind": "interactive"})
    assert validator.is_valid(least | {"kind": "batch", "tasks": [{"command": "x"}]})
