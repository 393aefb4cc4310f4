"""Input and output of a step's tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.slurmtools import streams
from cockpit.runtime.containers.slurmtools.options import Task, Unusable
from cockpit.runtime.containers.slurmtools.streams import Outputs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("LA-71")
ENV = {"SLURM_JOB_ID": "70", "USER": "ann", "SLURM_JOB_NAME": "bert"}
FIRST, THIRD = Task(0, "n1", 0, 0), Task(2, "n2", 1, 0)


def outputs(tasks: int = 3, env: dict[str, str] = ENV, **options: str) -> Outputs:
    return Outputs({name.replace("_", "-"): value for name, value in options.items()}, env, tasks)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a-%j.%s", "a-70.5"),
        ("%J", "70.5"),
        ("%t-%n-%N", "2-1-n2"),
        ("%3t", "002"),
        ("%99s", "0000000005"),
        ("%3N", "n2"),
        ("%u/%x", "ann/bert"),
        ("%A_%a", "70_4294967294"),
        ("100%%", "100%"),
        ("\\a%j", "a%j"),
        ("%z", "%z"),
    ],
)
def test_the_pattern_of_a_path_is_filled(pattern: str, path: str):
    assert outputs()._path(pattern, THIRD, 5) == path


def test_an_array_task_names_its_files_by_array_and_index():
    env = ENV | {"SLURM_ARRAY_JOB_ID": "60", "SLURM_ARRAY_TASK_ID": "4"}
    assert outputs(env=env)._path("%A_%a_%j", FIRST, 0) == "60_4_70"
    assert outputs(env={})._path("%A.%j.%u%x", FIRST, 0) == "0.0."


def test_without_options_a_task_has_the_streams_of_the_script():
    assert outputs().of(FIRST, 0) == (None, None, None)
    assert outputs(input="all", output="all").of(THIRD, 0) == (None, None, None)


def test_a_stream_can_be_that_of_one_task_or_of_none():
    null = subprocess.DEVNULL
    only = outputs(input="2", output="2", error="0")
    assert only.of(FIRST, 0) == (null, null, None)
    assert only.of(THIRD, 0) == (None, None, null)
    assert outputs(input="none", output="none").of(FIRST, 0) == (null, null, null)
    assert outputs(error="none").of(FIRST, 0) == (None, None, null)


def written(fd: int | None, text: bytes) -> None:
    assert fd is not None
    os.write(fd, text)


def test_tasks_that_share_a_file_append_to_it(tmp_path: Path):
    (tmp_path / "log").write_text("old\n")
    step = outputs(output=str(tmp_path / "log"))
    for task in (FIRST, THIRD):
        _, out, err = step.of(task, 0)
        written(out, b"out %d\n" % task.rank)
        written(err, b"err %d\n" % task.rank)
    assert (tmp_path / "log").read_text() == "out 0\nerr 0\nout 2\nerr 2\n"


@pytest.mark.parametrize(("mode", "kept"), [("truncate", ""), ("t", ""), ("append", "old\n"), ("a", "old\n")])
def test_the_open_mode_keeps_or_empties_a_file(tmp_path: Path, mode: str, kept: str):
    for name in ("out", "err"):
        (tmp_path / name).write_text("old\n")
    step = outputs(output=str(tmp_path / "out"), error=str(tmp_path / "err"), open_mode=mode)
    _, out, err = step.of(FIRST, 0)
    written(out, b"out\n")
    written(err, b"err\n")
    assert [(tmp_path / name).read_text() for name in ("out", "err")] == [f"{kept}out\n", f"{kept}err\n"]


def test_each_task_reads_all_of_an_input_file(tmp_path: Path):
    (tmp_path / "in-0").write_text("zero")
    (tmp_path / "in-2").write_text("two")
    step = outputs(input=str(tmp_path / "in-%t"))
    assert [os.read(step.of(task, 0)[0] or 0, 9) for task in (FIRST, THIRD, FIRST)] == [b"zero", b"two", b"zero"]
    (tmp_path / "in-0").unlink()
    with pytest.raises(Unusable, match=r"Could not open file .*in-0: No such file or directory"):
        step.of(FIRST, 0)


@pytest.mark.parametrize(("options", "env"), [({"label": ""}, {}), ({}, {"SLURM_LABELIO": "1"})])
def test_labels_need_the_outputs_of_every_task(options: dict[str, str], env: dict[str, str]):
    assert Outputs(options, env, 2).of(FIRST, 0) == (None, subprocess.PIPE, subprocess.PIPE)
    assert Outputs({**options, "output": "none"}, env, 2).of(FIRST, 0) == (None, subprocess.DEVNULL, subprocess.DEVNULL)


def test_each_line_is_labelled_with_its_tasks_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    step = outputs(tasks=11, label="")
    with (tmp_path / "out").open("w+b") as out, (tmp_path / "err").open("w+b") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        command = ["sh", "-c", "echo a; printf b; echo c >&2"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            step.follow(process, THIRD)
            step.finish()
        with subprocess.Popen(["echo", "d"]) as silent:
            step.follow(silent, FIRST)
            step.finish()
    assert ((tmp_path / "out").read_text(), (tmp_path / "err").read_text()) == (" 2: a\n 2: b\n", " 2: c\n")


@pytest.fixture
def typed():
    """Let standard input be a pipe, and return its other end."""
    before, (read, write) = os.dup(0), os.pipe()
    os.dup2(read, 0)
    os.close(read)
    yield write
    os.dup2(before, 0)
    os.close(before)


def test_every_task_gets_all_of_the_input_until_it_ends(typed: int):
    """The first has ended early; the others get every byte, and then the end."""
    pipes = [os.pipe() for _ in range(3)]
    os.close(pipes[0][0])
    text = bytes(range(256)) * 200
    os.write(typed, text)
    os.close(typed)
    tasks = [os.fdopen(write, "wb") for _, write in pipes]
    streams.spread(tasks)
    assert all(task.closed for task in tasks)
    for read, _ in pipes[1:]:
        with os.fdopen(read, "rb") as stream:
            assert stream.read() == text


def test_nothing_to_read_is_recognised():
    with open(os.devnull, "rb") as null, open(__file__, "rb") as file:
        assert (streams.is_nothing(null.fileno()), streams.is_nothing(file.fileno())) == (True, False)
        number = os.dup(file.fileno())
    os.close(number)
    assert streams.is_nothing(number)
