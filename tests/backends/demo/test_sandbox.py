"""The demo's sandboxes: their files, their isolation, and what passes into and out of a shell."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.demo import backend as backend_module
from cockpit.backends.demo.backend import open_demo
from cockpit.backends.demo.fixture import nodes_of, read_fixture
from cockpit.backends.demo.pace import DemoPace
from cockpit.backends.demo.sandbox import Sandboxes, View, _arguments, _as_here, _environment
from cockpit.backends.demo.simulated_users import actor_of
from cockpit.engine.effects import StartReplica
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.mounts import Volume
from cockpit.model.node import Allocation, CardSlice
from cockpit.model.spec import DebugHold, HoldCards, JobSpec
from cockpit.runtime.containers.entering import Terminal
from tests.backends.demo.conftest import LAB
from tests.runtime.containers.house import exit_code

if TYPE_CHECKING:
    from cockpit.runtime.containers.entering import EnteredShell

pytestmark = pytest.mark.req("UI-50")
FIXTURE = read_fixture(LAB)
ANN = actor_of(FIXTURE, "ann").who


def start(command: str = "python own.py --fast /opt/other.py", **fields: object) -> StartReplica:
    spec = JobSpec(name="mine", command=command, output="/o", **fields)
    slices = (CardSlice(0, None, 1000),)
    return StartReplica(ReplicaId(JobId(7), 1, 0), spec, ANN, Allocation(0, nodes_of(FIXTURE)[0].name, 4, 1024, slices))


def test_a_replicas_folder_has_its_program_and_what_it_has_saved(tmp_path: Path) -> None:
    sandboxes = Sandboxes(tmp_path)
    folder = sandboxes._with_files(start(volumes=(Volume(name="v", path="/data"),)))
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == ["algorithm/config.json", "algorithm/own.py", "outputs/checkpoint-1000/state.json"]
    assert (folder / "volume" / "v").is_dir()
    assert json.loads((folder / "algorithm/config.json").read_text())["steps"] == 6000
    (folder / "algorithm/own.py").write_text("changed")
    assert (sandboxes._with_files(start()) / "algorithm/own.py").read_text() == "changed"
    sandboxes.remove(start().replica)
    assert not folder.exists()
    folder = sandboxes._with_files(start("./run"))
    assert (folder / "algorithm/train.py").is_file(), "a command without a program gets an example"


def view(tmp_path: Path) -> View:
    (tmp_path / "room").mkdir()
    return View(tmp_path / "room", ANN, "größe-1")


def test_a_sandbox_is_isolated_and_has_the_jobs_user(tmp_path: Path) -> None:
    words = _arguments(view(tmp_path), (), None)
    assert words[0] == "bwrap"
    assert {"--unshare-all", "--die-with-parent", "--clearenv"} <= set(words)
    assert words[-2:] == ["/bin/bash", "-i"]
    assert _arguments(View(tmp_path / "room", ANN, "x"), ("ls", "-l"), None)[-3:] == ["--", "ls", "-l"]
    pairs = list(zip(words, words[1:], words[2:], strict=False))
    assert ("--uid", str(ANN.uid), "--gid") in pairs
    assert ("--bind", str(tmp_path / "room"), "/workspace") in pairs
    names = tmp_path / "room.passwd"
    assert ("--ro-bind", str(names), "/etc/passwd") in pairs
    assert names.read_text() == f"ann:x:{ANN.uid}:{ANN.gid}::/home/ann:/bin/bash\n"
    assert [word for word in words if "bind" in word].count("--bind") == 1, "all else is read-only"


def test_the_programs_of_this_machine_are_where_they_are_here(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    assert _as_here(tmp_path / "bin") == ("--symlink", "usr/bin", str(tmp_path / "bin"))
    assert _as_here(tmp_path / "usr") == ("--ro-bind-try", str(tmp_path / "usr"), str(tmp_path / "usr"))


def test_a_shell_has_the_type_of_its_terminal(tmp_path: Path) -> None:
    seen = view(tmp_path)
    assert _environment(seen, Terminal(24, 80, "xterm"))["TERM"] == "xterm"
    env = _environment(seen, None)
    assert (env["TERM"], env["HOME"], env["USER"], env["COCKPIT_PROMPT"]) == ("dumb", "/home/ann", "ann", "größe-1")


@pytest.mark.real
@pytest.mark.parametrize(
    ("cards", "kept", "freed"),
    [(HoldCards.FREE, True, True), (HoldCards.KEEP, True, False), (HoldCards.FREE, False, False)],
)
async def test_a_shell_reads_its_input_and_is_told_of_freed_cards(
    tmp_path: Path, cards: HoldCards, kept: bool, freed: bool
) -> None:
    sandboxes = Sandboxes(tmp_path)
    effect = start(debug_hold=DebugHold(cards=cards))
    entered = sandboxes.enter(effect, ("cat",), terminal=None, label="x", kept=kept)
    assert (entered.facts.kept, entered.facts.cards_freed) == (kept, freed)
    assert await asyncio.to_thread(talked, entered, b"hello") == (b"hello", b"", 0)
    none = replace(effect, allocation=replace(effect.allocation, slices=()))
    entered = sandboxes.enter(none, ("sh", "-c", "echo no >&2; kill -9 $$"), terminal=None, label="x", kept=True)
    assert not entered.facts.cards_freed
    assert await asyncio.to_thread(talked, entered, b"") == (b"", b"no\n", 137)
    assert len(sandboxes._shells) <= 2
    sandboxes.close()


def talked(entered: EnteredShell, text: bytes) -> tuple[bytes, bytes, int]:
    """Write the text to a program, and return its outputs and its exit code."""
    assert entered.pipe_fds is not None
    stdin, *outputs = entered.pipe_fds
    os.write(stdin, text)
    os.close(stdin)
    read = []
    for fd in outputs:
        with os.fdopen(fd, "rb") as stream:
            read.append(stream.read())
    return read[0], read[1], exit_code(entered)


async def test_a_demos_folder_is_its_users_own_and_removed_at_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[tuple[object, ...]] = []
    monkeypatch.setattr(backend_module.atexit, "register", lambda *call: at_exit.append(call))
    before = os.umask(0)
    try:
        folder = backend_module._own_folder(tmp_path / "mine")
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    ((remove, *arguments),) = at_exit
    remove(*arguments)
    assert not folder.exists()
    remove(*arguments)
    with pytest.raises(FileExistsError):
        backend_module._own_folder(tmp_path)


@pytest.mark.parametrize("going", [True, False])
async def test_only_a_demo_that_is_going_follows_real_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, going: bool
) -> None:
    runs = asyncio.Event()

    async def run(_pace: DemoPace) -> None:
        runs.set()

    monkeypatch.setattr(DemoPace, "run", run)
    demo = await open_demo(LAB, folder=tmp_path / "demo", going=going)
    for _ in range(5):
        await asyncio.sleep(0)
    assert runs.is_set() == going
    await demo.close()


async def test_a_demo_that_fails_to_begin_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reach(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(DemoPace, "reach", reach)
    with pytest.raises(KeyboardInterrupt):
        await open_demo(LAB, folder=tmp_path / "demo")
    assert not (tmp_path / "demo").exists()
