"""What the maker process of a podman container answers to the container's holder."""

from __future__ import annotations

import _socket
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from cockpit.runtime.containers.shim import maker, podman, view
from cockpit.runtime.containers.shim.attempt import Attempt

pytestmark = pytest.mark.req("LA-70")


class Container:
    """Notes what is done with it; the process in it is this one."""

    def __init__(self) -> None:
        self.kept_image = "kept"
        self.done: list[str] = []
        self.runs: list[tuple[str, list[str]]] = []
        """The image and the devices of each run."""

    def commit(self) -> None:
        self.done.append("commit")

    def remove(self) -> None:
        self.done.append("remove")

    def forget_kept(self) -> None:
        self.done.append("forget_kept")

    def run(self, image: str, layout: podman.Layout, _holder: int, _pidfile: str) -> int:
        self.runs.append((image, list(layout.devices)))
        return os.getpid()


@pytest.fixture
def ends() -> tuple[_socket.socket, _socket.socket]:
    return _socket.socketpair()


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch) -> Container:
    made = Container()
    monkeypatch.setattr(podman, "Container", lambda _plan: made)
    return made


def laid_out(monkeypatch: pytest.MonkeyPatch, outcome: BaseException | int) -> None:
    def answered(*_words: object, again: bool) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(maker, "_laid_out", answered)


@pytest.mark.parametrize(("again", "done"), [(False, ["remove"]), (True, [])])
def test_a_new_container_is_removed_if_its_holder_is_gone_but_a_held_one_stays(
    monkeypatch, ends, container, again, done
):
    here, there = ends
    here.close()
    laid_out(monkeypatch, 0)
    maker._answer(None, {}, there, 1, again=again)
    assert container.done == done


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (podman.PodmanError("podman create: no space left"), "podman create: no space left"),
        (PermissionError("denied"), "the container could not be made: denied"),
    ],
)
def test_the_holder_learns_why_podman_made_no_container(monkeypatch, ends, container, error, sentence):
    laid_out(monkeypatch, error)
    here, there = ends
    maker._answer(None, {}, there, 1, again=False)
    asked = maker.Maker.__new__(maker.Maker)
    asked._holder_side = here
    with pytest.raises(view.ViewError, match=f"^{sentence}$"):
        asked.wait()


def test_the_holder_keeps_the_file_system_open_that_the_maker_sends(monkeypatch, ends, container, tmp_path):
    (tmp_path / "seen").write_text("the file system")
    seen = os.open(tmp_path / "seen", os.O_RDONLY)
    laid_out(monkeypatch, seen)
    kept: list[bytes] = []
    monkeypatch.setattr(view, "hold_open", lambda fd: (kept.append(os.pread(fd, 99, 0)), os.close(fd)))
    here, there = ends
    maker._answer(None, {}, there, 1, again=False)
    asked = maker.Maker.__new__(maker.Maker)
    asked._holder_side = here
    assert asked.wait() == []
    assert kept == [b"the file system"]
    os.close(seen)


def test_a_maker_that_dies_is_reported(ends):
    here, there = ends
    there.close()
    asked = maker.Maker.__new__(maker.Maker)
    asked._holder_side = here
    with pytest.raises(view.ViewError, match="its maker process was killed"):
        asked.wait()


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    monkeypatch.setattr(maker, "_leave_mounts", lambda: None)
    monkeypatch.setattr(maker, "_complete", lambda _seen: None)
    monkeypatch.setattr(view, "beside_image", lambda *_: ([], []))
    return Attempt(str(tmp_path))


@pytest.mark.parametrize(
    ("again", "cards", "expected"),
    [
        (False, None, ("image", ["/dev/x"], ["remove"])),
        (True, "keep", ("kept", ["/dev/x"], ["commit"])),
        (True, "free", ("kept", [], ["commit"])),
    ],
)
def test_a_held_container_is_made_of_its_committed_files_without_the_freed_cards(attempt, again, cards, expected):
    if cards:
        attempt.write("kept.json", {"cards": cards})
    container = Container()
    os.close(maker._laid_out(attempt, {"devices": ["/dev/x"], "podman": "image"}, container, os.getpid(), again=again))
    assert (*container.runs[0], container.done) == expected


def test_a_program_that_ended_at_once_is_no_container(attempt, monkeypatch):
    monkeypatch.setattr(maker.os, "readlink", lambda path: path)
    with pytest.raises(podman.PodmanError, match="ended at once"):
        maker._laid_out(attempt, {"devices": [], "podman": "image"}, Container(), 1, again=False)


@pytest.mark.parametrize(("kept", "done"), [(False, ["remove"]), (True, ["remove", "forget_kept"])])
def test_the_committed_files_are_removed_with_a_held_container(attempt, container, kept, done):
    attempt.write("plan.json", {})
    if kept:
        attempt.write("kept.json", {"cards": "keep"})
    assert maker.forget(attempt.path) == 0
    assert container.done == done


def test_what_podman_cannot_remove_is_reported(attempt, monkeypatch, capsys):
    def refused() -> None:
        raise podman.PodmanError("podman rm: database is locked")

    attempt.write("plan.json", {})
    monkeypatch.setattr(podman, "Container", lambda _plan: SimpleNamespace(remove=refused))
    assert maker.forget(attempt.path) == 1
    assert capsys.readouterr().err == "podman rm: database is locked\n"
