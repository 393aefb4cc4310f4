"""Values that attack in each field of a job, written in each form: at most that field is lost, and no other changes.

`written` reads its text again and names each field that differs, so a value that leaves its place shows in another one.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest
import yaml

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.exchange import Form, written
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.spec import JobSpec

VALUES = (
    *(
        "no",
        "1e3",
        "~",
        "12:30:45",
        "2001-01-01",
        "<<",
        "*a",
        "- x",
        "x: y",
        "x #y",
        "{a: [b]}",
        "a'b\"c\\",
        "$(touch X)`touch X`",
    ),
    *(
        "${HOME}$$",
        "$(A)",
        "a,b=c;d|e",
        "^,^a,b",
        "--name=x",
        "x\n#SBATCH --hold\ntouch X",
        "a\u2028b\x85c",
        "\ufeff\u202ex\ty",
        "hetjob",
    ),
)
PLAIN = {"name": "job", "command": "record x", "output": "/x", "specs": [{"cpus": 2, "memory": "1G"}]}
SCRIPT = {"text": "#!/bin/bash\nrecord\n", "work_dir": "/w", "submit_dir": "/s"}
POOLS = [{"spec": {"cpus": 2}}, {"replicas": 2, "spec": {"cpus": 2}}]


def of_script(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {"mode": "slurm", "home": "rw", "script": {**SCRIPT, name: value}}


def of_pool(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {"mode": "worker-pools", "specs": None, "worker_pools": [POOLS[0], {**POOLS[1], name: value}]}


FIELDS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "name": lambda value: {"name": value},
    "account": lambda value: {"account": value},
    "qos": lambda value: {"qos": value},
    "reservation": lambda value: {"reservation": value},
    "project": lambda value: {"project": value},
    "output": lambda value: {"output": f"/{value}"},
    "partitions": lambda value: {"partitions": ["a", value]},
    "node_names": lambda value: {"node_names": [value]},
    "image": lambda value: {"image": value},
    "env": lambda value: {"env": {"A": value, "B": "b"}},
    "labels": lambda value: {"labels": {"a": value, "b": "c"}},
    "node_selector": lambda value: {"node_selector": {"a": value, "b": "c"}},
    "tolerations": lambda value: {"tolerations": [value, "b"]},
    "command": lambda value: {"command": f"record {shlex.quote(value)}"},
    "command of bash": lambda value: {"command": f"bash -c {shlex.quote('record ' + shlex.quote(value))}"},
    "datasets": lambda value: {"datasets": [{"name": "d", "path": f"/{value}", "read_only": True}]},
    "volumes": lambda value: {"volumes": [{"name": "d", "path": f"/{value}"}]},
    "volumes of the catalogue": lambda value: {"volumes": [{"name": value}]},
    "models": lambda value: {"models": [{"name": "m", "path": f"/{value}"}]},
    "algorithm": lambda value: {"algorithm": {"path": f"/{value}"}},
    "specs": lambda value: {"specs": [{"cpus": 2, "cards": 1, "card_models": [value]}]},
    "hooks": lambda value: {"hooks": {"before_start": value}},
    "sweep": lambda value: {"sweep": {"parameters": {"lr": [value, "x"]}}},
    **{f"script.{name}": of_script(name) for name in ("output", "error", "input", "file", "work_dir")},
    **{f"worker_pools.{name}": of_pool(name) for name in ("image", "disk_type", "machine_type")},
}


_NAME = re.compile(r"\w*")


def read(source: str, text: str) -> list[JobSpec]:
    return read_jobs(f"{source}.json", text, "/", defaults=Defaults())


def job(fields: dict[str, Any]) -> JobSpec | None:
    """The job; None where a job file may not have that."""
    values = {name: value for name, value in {**PLAIN, **fields}.items() if value is not None}
    try:
        (spec,) = read("job", msgspec.json.encode(values).decode())
    except SpecErrors:
        return None
    return spec


def lost_by_value(field: str, form: Form) -> Iterator[tuple[str, str, set[str]]]:
    """Yield each value that the field may have with the text of its job and the fields that the text loses."""
    for value in ("plain", *VALUES):
        spec = job(FIELDS[field](value))
        if spec is None:
            continue
        try:
            result = written(spec, form, read)
        # A form may refuse a value with its field.
        except SpecErrors:
            continue
        # An error of the text's own reader begins with the field; an option that its reader refuses is no other field.
        names = [each.removeprefix(f"{form}.json: ") for each in result.lost if not each.startswith(f"{form}: ")]
        yield value, result.text, {_NAME.findall(each)[0] for each in names}


@pytest.mark.req("TR-06", "LA-70")
@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("field", FIELDS)
def test_a_value_reaches_no_other_field(field: str, form: Form) -> None:
    lost = {value: (text, names) for value, text, names in lost_by_value(field, form)}
    _, usual = lost["plain"]
    own = {field.partition(" ")[0].partition(".")[0]}
    for value, (text, names) in lost.items():
        assert names <= usual | own, (value, text)
        assert reads_elsewhere(text, form), (value, text)


def reads_elsewhere(text: str, form: Form) -> bool:
    """Whether the reader of another maker takes the text: PyYAML, or Bash for a command."""
    if form in {Form.SBATCH, Form.ARENA, Form.GCLOUD}:
        return subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False).returncode == 0
    return list(yaml.load_all(text, yaml.CSafeLoader)) != []
