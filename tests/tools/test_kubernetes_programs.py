"""Where the programs of the tests' Kubernetes are kept, and what happens where they cannot be built."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tools import kubernetes_programs
from tools.kubernetes_programs import ProgramSet

if TYPE_CHECKING:
    from pathlib import Path

ONE = ProgramSet("one", "module", {"program": "./cmd"}, sources=("go.mod", "cmd/*.go"))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a module with one program; programs are kept below `tmp_path / "cache"`."""
    monkeypatch.setattr(kubernetes_programs, "MODULES", tmp_path)
    monkeypatch.setattr(kubernetes_programs, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(kubernetes_programs, "SETS", (ONE,))
    (tmp_path / "module" / "cmd").mkdir(parents=True)
    (tmp_path / "module" / "go.mod").write_text("module test\n\ngo 1.19\n")
    (tmp_path / "module" / "cmd" / "main.go").write_text("package main\n\nfunc main() {}\n")
    return tmp_path / "module"


def fake_go(folder: Path, script: str) -> str:
    """A program that is called as Go's command, and says that it is of a version that is new enough."""
    program = folder / "go"
    program.write_text(f'#!/bin/sh\n[ "$1" = env ] && echo go1.99.0 && exit\n{script}\n')
    program.chmod(0o755)
    return str(program)


def test_each_state_of_the_sources_has_a_folder_of_its_own(module: Path):
    first = ONE.folder()
    (module / "notes.txt").write_text("not a source")
    assert ONE.folder() == first
    (module / "cmd" / "more.go").write_text("package main\n")
    second = ONE.folder()
    (module / "go.mod").write_text("module test\n\ngo 1.20\n")
    assert len({first, second, ONE.folder()}) == 3


def test_a_set_is_built_once_and_nothing_else_is_left(module: Path, tmp_path: Path):
    calls = tmp_path / "calls"
    go = fake_go(tmp_path, f'echo "$@" >>{calls}; while [ "$1" != -o ]; do shift; done; echo built >"$2"')
    kubernetes_programs.build((ONE,), go)
    kubernetes_programs.build((ONE,), go)
    assert (ONE.folder() / "program").read_text() == "built\n"
    assert len(calls.read_text().splitlines()) == 1
    assert sorted(each.name for each in (tmp_path / "cache").iterdir()) == sorted(["lock", ONE.folder().name])


def test_a_failure_is_reported_and_leaves_no_folder(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(kubernetes_programs, "find_go", lambda: fake_go(tmp_path, "exit 3"))
    assert kubernetes_programs.main() == 0
    assert not ONE.is_built()
    assert "Kubernetes could not be built" in capsys.readouterr().err
    assert [each.name for each in (tmp_path / "cache").iterdir()] == ["lock"]


def test_without_go_nothing_is_built(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kubernetes_programs, "find_go", lambda: None)
    assert kubernetes_programs.main() == 0
    assert not (tmp_path / "cache").exists()


def test_programs_that_nobody_used_for_long_are_removed(module: Path, tmp_path: Path):
    go = fake_go(tmp_path, 'while [ "$1" != -o ]; do shift; done; echo built >"$2"')
    kubernetes_programs.build((ONE,), go)
    old, recent = tmp_path / "cache" / "one-0000", tmp_path / "cache" / "one-1111"
    for folder in (old, recent):
        folder.mkdir()
    now = ONE.folder().stat().st_mtime
    os.utime(old, (now - 15 * 86_400,) * 2)
    os.utime(recent, (now - 13 * 86_400,) * 2)
    kubernetes_programs.build((ONE,), go)
    assert (ONE.is_built(), old.exists(), recent.exists()) == (True, False, True)
