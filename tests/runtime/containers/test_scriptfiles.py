"""The files of a batch script's streams, and their copies in the logs."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.runtime.containers.shim import program, scriptfiles
from cockpit.runtime.containers.shim.scriptfiles import FileCopier, OutputMirrors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.req("LA-71")


@pytest.fixture
def copier(tmp_path: Path) -> Callable[..., tuple[Path, FileCopier, Path]]:
    def made(begin: int = 0) -> tuple[Path, FileCopier, Path]:
        source, log = tmp_path / "out", tmp_path / "log"
        source.touch()
        return source, FileCopier(os.open(source, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT), begin), log

    return made


def test_what_is_new_in_a_file_is_copied_once(copier):
    source, copying, log = copier()
    assert not copying.step()
    for text in ("one\n", "two\n"):
        with source.open("a") as stream:
            stream.write(text)
        assert copying.step()
        assert not copying.step()
    assert log.read_text() == "one\ntwo\n"
    source.write_text("new\n")
    assert copying.step()
    assert log.read_text() == "one\ntwo\nnew\n"


def test_what_was_in_a_file_before_the_script_is_not_copied(copier):
    source, _, _ = copier()
    source.write_text("before\n")
    _, copying, log = copier(begin=7)
    with source.open("a") as stream:
        stream.write("x" * (3 << 20))
    assert copying.step()
    assert log.stat().st_size == 3 << 20


def test_a_growing_file_is_looked_at_more_often():
    answers = iter([True, False, False, False, False, OSError(28, "full")])

    def step() -> bool:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    mirrors = OutputMirrors()
    assert (bool(mirrors), mirrors.seconds) == (False, 0.5)
    mirrors.add(SimpleNamespace(step=step))
    seen = []
    for _ in range(6):
        mirrors.step()
        seen.append(mirrors.seconds)
    assert bool(mirrors)
    assert seen == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]


class Streams:
    def __init__(self, folder: Path) -> None:
        self.folder, self.mirrors = folder, OutputMirrors()
        (folder / "in").write_text("input")
        self.fds: list[int] = []

    def open(self, **more: object) -> list[int]:
        files: dict[str, object] = {name: str(self.folder / file) for name, file in FILES.items()}
        plan: Any = {
            "script_files": {**files, "append": False, **more},
            "rootless": True,
            "user": "ann",
            "state": "/nowhere",
            "socket": "/nowhere",
        }
        fds = scriptfiles.open_streams(plan, self._log, self.mirrors)
        self.fds += fds
        return fds

    def _log(self, name: str) -> int:
        return os.open(self.folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


FILES = {"stdin": "in", "stdout": "out", "stderr": "err"}


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[Streams]:
    made = Streams(tmp_path)
    yield made
    for fd in made.fds:
        os.close(fd)


def test_a_script_has_its_own_files_and_they_are_copied_into_the_logs(streams, tmp_path):
    stdin, stdout, stderr = streams.open()
    assert os.read(stdin, 99) == b"input"
    os.write(stdout, b"to out\n")
    os.write(stderr, b"to err\n")
    streams.mirrors.step()
    for name in ("out", "err"):
        assert (tmp_path / name).read_text() == (tmp_path / f"std{name}.log").read_text() == f"to {name}\n"


@pytest.mark.parametrize(("append", "kept"), [(True, "old\n"), (False, "")])
def test_a_file_is_emptied_or_continued(streams, tmp_path, append, kept):
    (tmp_path / "out").write_text("old\n")
    _, stdout, _ = streams.open(append=append)
    os.write(stdout, b"new\n")
    streams.mirrors.step()
    assert (tmp_path / "out").read_text() == f"{kept}new\n"
    assert (tmp_path / "stdout.log").read_text() == "new\n"


def test_output_and_errors_can_share_a_file(streams, tmp_path):
    _, stdout, stderr = streams.open(stderr=str(tmp_path / "out"))
    os.write(stdout, b"one\n")
    os.write(stderr, b"two\n")
    streams.mirrors.step()
    assert (tmp_path / "out").read_text() == (tmp_path / "stdout.log").read_text() == "one\ntwo\n"
    assert not (tmp_path / "stderr.log").exists()


def test_a_device_is_not_copied(streams):
    streams.open(stdout="/dev/null", stderr="/dev/null")
    assert not streams.mirrors


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"stdin": "/none"}, "script.input: /none: no such file or directory for user ann"),
        ({"stdout": "/none/x"}, "script.output: /none/x: no such file or directory for user ann"),
        ({"stderr": "/none/x"}, "script.error: /none/x: no such file or directory for user ann"),
        ({"stdout": "{here}/pipe"}, "script.output: .*/pipe: no program reads this pipe for user ann"),
    ],
)
def test_a_file_that_cannot_be_opened_is_named(streams, tmp_path, files, words):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(program.StartError, match=words):
        streams.open(**{name: file.format(here=tmp_path) for name, file in files.items()})


def test_a_stream_waits_for_its_reader(streams):
    assert [os.get_blocking(fd) for fd in streams.open()] == [True] * 3
