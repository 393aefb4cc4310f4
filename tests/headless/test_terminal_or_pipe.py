"""What a real terminal gets is harmless, and what a pipe gets is exact: the whole program, asked in both ways."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import UNSEEN
from tests.present.corpus import is_harmless

TEXTS = {what: text for what, text in UNSEEN.items() if what != "nul" and "surrogate" not in what}
ALL = " ".join(TEXTS.values())
NAMES = "".join(text.replace("/", "") for what, text in TEXTS.items() if what != "newline")


@pytest.fixture
def around(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has nothing."""
    job = {"name": "job", "command": "record x", "output": "/x", "env": {"A": ALL, "B": "'$(touch INJECTED)'"}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    (tmp_path / f"{NAMES}.json").write_text("[")
    folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "STATE", "CACHE")}
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TERM": "xterm", **folders}


def on_a_terminal(words: list[str], around: dict[str, str]) -> str:
    """What a terminal gets of both outputs, without the carriage returns that it is set to add."""
    outer, inner = pty.openpty()
    process = subprocess.Popen(command(words), cwd=around["HOME"], env=around, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    written = b""
    while True:
        try:
            piece = os.read(outer, 65_536)
        except OSError:  # the last of it has closed the other end
            break
        if not piece:
            break
        written += piece
    os.close(outer)
    process.wait()
    return written.decode().replace("\r\n", "\n")


def command(words: list[str]) -> list[str]:
    return [sys.executable, "-m", "cockpit.cli", *words]


@pytest.mark.req("TR-05", "UI-14")
@pytest.mark.parametrize(
    "words",
    [
        *(["convert", "job.json", "--to", form] for form in ("yaml", "json", "sbatch", "arena", "customjob")),
        ["convert", "job.json", "--to", NAMES],
        ["convert", f"{NAMES}.json"],
        ["convert", f"no such {NAMES}"],
        [NAMES],
        ["jobs", f"--{NAMES}"],
        ["-c", f"recorded:{NAMES}", "jobs"],
        ["-c", f"snapshot:{NAMES}", "jobs"],
        ["-c", "recorded:24.11", "jobs", "--filter", f"name:{NAMES}"],
        ["-c", "recorded:24.11", "job", NAMES],
        ["-c", "recorded:24.11", "logs", f"4711/{NAMES}"],
        ["-c", "recorded:24.11", "nodes", "--columns", NAMES],
        ["-c", "recorded:24.11", "--show-commands", "nodes", "drain", "n1", "--reason", ALL],
        ["completion", NAMES],
        ["play", f"no {NAMES}"],
        ["replay", f"no {NAMES}"],
        ["schema", NAMES],
    ],
    ids=lambda words: " ".join(map(ascii, words))[:60],
)
def test_output_on_a_terminal_is_escaped(words: list[str], around: dict[str, str]) -> None:
    seen = on_a_terminal(words, around)
    assert seen
    assert all(is_harmless(line.replace("\t", "")) for line in seen.split("\n")), ascii(seen)


@pytest.mark.req("TR-05")
def test_a_script_that_the_terminal_changes_comes_with_a_warning(around: dict[str, str]) -> None:
    """YAML has escapes of its own, which mean the same; a shell's script has none."""
    warning = "Do not copy this from the terminal"
    assert warning in on_a_terminal(["convert", "job.json", "--to", "sbatch"], around)
    assert warning not in on_a_terminal(["convert", "job.json", "--to", "yaml"], around)


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("form", ["yaml", "json", "sbatch"])
def test_output_to_a_pipe_is_unchanged(form: str, around: dict[str, str]) -> None:
    words = ["convert", "job.json", "--to", form]
    printed = subprocess.run(command(words), cwd=around["HOME"], env=around, capture_output=True, check=True).stdout
    folder = Path(around["HOME"])
    if form == "sbatch":
        (folder / "record").write_text('#!/bin/sh\nprintf %s "$A" >recorded; printf %s "$B" >recorded.b\n')
        (folder / "record").chmod(0o755)
        env = {**around, "PATH": f"{folder}:{around['PATH']}"}
        subprocess.run(["bash", "-s"], input=printed, cwd=folder, env=env, check=True)
        assert (folder / "recorded").read_bytes() == ALL.encode()
        assert (folder / "recorded.b").read_text() == "'$(touch INJECTED)'"
        assert not (folder / "INJECTED").exists()
        return
    (folder / f"again.{form}").write_bytes(printed)
    again = subprocess.run(
        command(["convert", f"again.{form}", "--to", "json"]), cwd=folder, env=around, capture_output=True, check=True
    )
    assert json.loads(again.stdout)["env"]["A"] == ALL
