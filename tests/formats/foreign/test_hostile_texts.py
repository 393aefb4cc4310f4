"""Every form that a job is written in, with values that attack: run by a real Bash, and read by other readers."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.exchange import Form, taken_over, written
from cockpit.formats.foreign.kubeargs import expand_references
from cockpit.formats.foreign.sbatch_options import as_directive, directives
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.rules.spec import label_error
from cockpit.model.spec import JobSpec, Mode, NodeSpec, WorkerPool
from tests.hostile import HOSTILE

CANARY = "INJECTED"
ATTACKS = {
    "line": f"x\ntouch {CANARY} #",
    "closes single quotes": f"x'; touch {CANARY}; '",
    "closes double quotes": f'x"; touch {CANARY}; "',
    "substitution": f"$(touch {CANARY})`touch {CANARY}`",
    "option of sbatch": f"x\n#SBATCH --wrap=touch\n#SBATCH --export=ALL,LD_PRELOAD=/x\ntouch {CANARY}",
    "here document": f"EOF\ntouch {CANARY}\nEOF",
    "carriage return": f"x\r\ntouch {CANARY}\r\n",
    "other line ends": f"x\u2028touch {CANARY}\u2029\x85touch {CANARY}\x0b\x0c",
    "comment": " # not a comment",
    "comma": "mlx5_0,LD_PRELOAD=/evil",
    "components": "hetjob PackJob",
    "gcloud's delimiter": "^,^a,b",
    "backslash at the end": "x\\",
    "backslashes": "\\' \\\" \\\\n \\$HOME",
    "dashes": f"--wrap=touch {CANARY}",
    "percent": "%j%x%n",
    "history": "!!",
    "blanks": "  x \t ",
    "empty": "",
}
VALUES = {**ATTACKS, **HOSTILE}
NO_JOB_HAS = {"nul", "lone high surrogate", "lone low surrogate", "ten thousand characters"}
"""Refused in every field of a job file, see `tests.formats.job`."""
WORDS = {name: text for name, text in VALUES.items() if name not in NO_JOB_HAS}
RECORD = """#!/bin/bash
printf '%s\\0' "$0" "$@" > "$RECORDED"
printf '%s\\0' "${A-unset}" > "$RECORDED.env"
"""
SHELL_FORMS = (Form.SBATCH, Form.ARENA, Form.GCLOUD)


def read(source: str, text: str) -> list[JobSpec]:
    return read_jobs(f"{source}.json", text, "/", defaults=Defaults())


def job(**fields: Any) -> JobSpec:
    (spec,) = read(
        "job", msgspec.json.encode({"name": "job", "command": "record x", "output": "/x", **fields}).decode()
    )
    return spec


def field_of(name: str, value: str) -> dict[str, object]:
    """A job file's field with that text."""
    return {name: [value] if name in {"partitions", "node_names"} else f"/{value}" if name == "output" else value}


def accepted() -> list[Any]:
    """Each field with each text that a job file may have there."""
    found = []
    for field in ("account", "qos", "reservation", "output", "partitions", "node_names"):
        for name, value in WORDS.items():
            try:
                job(**field_of(field, value))
            except SpecErrors:
                continue
            found.append(pytest.param(field, value, id=f"{field}: {name}"))
    return found


class Ran:
    """What a text did when Bash ran it: nothing but to call one program."""

    def __init__(self, text: str, folder: Path, *programs: str) -> None:
        checked = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr
        for name in programs:
            (folder / name).write_text(RECORD)
            (folder / name).chmod(0o755)
        recorded = folder / "recorded"
        env = {"PATH": f"{folder}:/usr/bin:/bin", "RECORDED": str(recorded), "LC_ALL": "C.UTF-8"}
        (folder / "script").write_bytes(text.encode())
        self.done = subprocess.run(["bash", "script"], cwd=folder, env=env, capture_output=True, check=False)
        assert not (folder / CANARY).exists(), text
        self.arguments = recorded.read_bytes().decode().split("\0")[1:-1] if recorded.exists() else None
        self.variable = Path(f"{recorded}.env").read_bytes().decode()[:-1] if recorded.exists() else None


@pytest.mark.req("TR-06", "TR-05")
@pytest.mark.parametrize("value", WORDS.values(), ids=list(WORDS))
class TestShellText:
    def test_a_variable_is_passed_to_the_command_of_a_batch_script(self, value: str, tmp_path: Path) -> None:
        spec = job(env={"A": value, "B": "plain"})
        text = written(spec, Form.SBATCH, read)
        ran = Ran(text.text, tmp_path, "record")
        told = "unset" if f"A={value}" in text.text.split("\n\n")[0].replace("#SBATCH --export=NONE,", "") else value
        assert (ran.arguments, ran.variable) == (["x"], told)
        assert text.lost == ()

    def test_an_argument_of_the_command_arrives_unchanged(self, value: str, tmp_path: Path) -> None:
        spec = job(command=f"record {shlex.quote(value)}")
        text = written(spec, Form.SBATCH, read)
        assert Ran(text.text, tmp_path, "record").arguments == [value]
        assert text.lost == ()

    def test_a_script_arrives_unchanged(self, value: str, tmp_path: Path) -> None:
        script = f"#SBATCH --uid=0\n#SBATCH --wrap=evil\nrecord {shlex.quote(value)}\n#SBATCH --wrap=late"
        text = written(job(command=f"bash -c {shlex.quote(script)}"), Form.SBATCH, read)
        assert Ran(text.text, tmp_path, "record").arguments == [value]
        found = directives(text.text.split("\n"), Draft())
        assert not {"uid", "wrap"} & found.keys()

    def test_an_arena_line_keeps_its_arguments(self, value: str, tmp_path: Path) -> None:
        command = f"record {shlex.quote(value)}"
        spec = job(command=command, env={"A": value}, image="i", mode="pytorch", node_selector={"zone": "a"})
        text = written(spec, Form.ARENA, read)
        arguments = Ran(text.text, tmp_path, "arena").arguments
        assert arguments is not None
        assert arguments[:2] == ["submit", "pytorchjob"]
        assert f"--env=A={value}" in arguments
        assert arguments[-1] == spec.command
        assert not {"env", "command"} & {*text.lost}

    def test_a_gcloud_line_keeps_its_arguments(self, value: str, tmp_path: Path) -> None:
        node = NodeSpec(cpus=1, memory_mib=1024, card_models=("NVIDIA_TESLA_T4",))
        pool = WorkerPool(replicas=1, spec=node, image="i" if label_error(value) or value.startswith("-") else value)
        spec = job(command=f"record {shlex.quote(value)}")
        spec = replace(spec, mode=Mode.WORKER_POOLS, worker_pools=(pool,), specs=(node,))
        text = written(spec, Form.GCLOUD, read)
        arguments = Ran(text.text, tmp_path, "gcloud").arguments
        assert arguments is not None
        assert [each.partition("=")[0] for each in arguments[3:]] == [
            "--display-name",
            "--worker-pool-spec",
            "--command",
        ]
        assert "command" not in text.lost
        draft = taken_over("x", text.text)
        assert draft is not None
        (again,) = read("x", draft.text) if "worker_pools" not in text.lost else (spec,)
        assert again.worker_pools[0].image == pool.image

    @pytest.mark.parametrize("form", [Form.YAML, Form.JSON, Form.PYTORCHJOB, Form.CUSTOMJOB])
    def test_documents_have_the_same_text_for_every_parser(self, form: Form, value: str) -> None:
        spec = job(command=f"record {shlex.quote(value)}", env={"A": value}, image="i", mode="pytorch")
        text = written(spec, form, read)
        (document,) = yaml.safe_load_all(text.text)
        said = list(texts(document))
        assert value in ([expand_references(each, {}) for each in said] if form is Form.PYTORCHJOB else said)
        assert not {"env", "command"} & {*text.lost}


@pytest.mark.req("TR-06")
@pytest.mark.parametrize(("field", "value"), accepted())
def test_no_option_of_sbatch_becomes_another_one(field: str, value: str, tmp_path: Path) -> None:
    spec = job(**field_of(field, value))
    if "\n" in value:
        with pytest.raises(SpecErrors, match=f"{field}: holds a line break"):
            written(spec, Form.SBATCH, read)
        return
    text = written(spec, Form.SBATCH, read)
    assert Ran(text.text, tmp_path, "record").arguments == ["x"]
    known = {"job-name", "chdir", "account", "qos", "reservation", "partition", "nodelist", "export", "time", "mem"}
    found = directives(text.text.split("\n"), Draft())
    assert found.keys() <= known | {"nodes", "mincpus", "gres", "nice", "ntasks-per-node", "cpus-per-task"}
    if field in {"account", "qos", "reservation"} and value:
        assert found[field] == value
        assert field not in text.lost
    if field == "output":
        assert found["chdir"] == spec.output


def texts(document: object) -> list[str]:
    """Every text in a document."""
    if isinstance(document, dict):
        return [each for item in document.values() for each in texts(item)]
    if isinstance(document, list):
        return [each for item in document for each in texts(item)]
    return [document] if isinstance(document, str) else []


@pytest.mark.req("TR-06")
@settings(max_examples=300)
@given(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=30))
def test_any_value_of_one_line_is_read_back(value: str) -> None:
    line = as_directive("comment", value)
    assert directives(["#!/bin/bash", line], Draft()) == {"comment": value}
    assert "hetjob" not in line.lower()
    assert "packjob" not in line.lower()


def test_a_command_that_starts_like_an_option_is_not_an_option(tmp_path: Path) -> None:
    spec = job(command="--loglevel=debug x", image="i", mode="pytorch")
    text = written(spec, Form.ARENA, read)
    assert Ran(text.text, tmp_path, "arena").arguments[-2:] == ["--", "--loglevel=debug x"]
    assert "command" not in text.lost


@pytest.mark.parametrize("value", ["a\nb", "a\0b"])
def test_text_that_no_option_line_can_contain_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        as_directive("comment", value)


@pytest.mark.req("TR-06")
@settings(max_examples=40, deadline=None)
@given(st.text(st.sampled_from("ab'\"\\$`#\n\r\t ,=^|;!%\u2028\x85{}()-"), max_size=12))
def test_any_variable_is_read_back(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    text = written(job(env={"A": value}), Form.SBATCH, read)
    assert text.lost == ()
    if "export A=" in text.text:
        ran = Ran(text.text, tmp_path_factory.mktemp("run"), "record")
        assert ran.variable == value, os.fspath(text.text)
