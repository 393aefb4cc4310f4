"""A board: started once, found again, reached from this machine alone, stopped."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cockpit.errors import CockpitError
from cockpit.runtime import tensorboard
from cockpit.runtime.tensorboard import Board
from tests.doubles.tensorboard import stand_in

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITES = """
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
for folder in sys.argv[1:]:
    writer = EventFileWriter(folder)
    writer.add_event(Event(step=1, summary=Summary(value=[Summary.Value(tag="loss", simple_value=0.5)])))
    writer.close()
"""


def shown(address: str) -> list[str]:
    with urllib.request.urlopen(f"{address}data/runs", timeout=60) as answer:
        return list(json.loads(answer.read()))


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, str]:
    """Two tasks have written, one has not begun."""
    for name in ("tune-0", "tune-1"):
        (tmp_path / "out" / name).mkdir(parents=True)
    return {f"tune-{number}": str(tmp_path / "out" / f"tune-{number}") for number in range(3)}


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin"))
    board = Board(tmp_path / "boards" / "4711-a")
    yield board
    board.stop()


@pytest.mark.req("JT-41")
def test_tensorboard_shows_a_run_for_each_folder_and_ends_when_stopped(board: Board, runs: dict[str, str]) -> None:
    address = board.start(runs)
    assert address.startswith("http://127.0.0.1:")
    assert shown(address) == ["tune-0", "tune-1"]
    Path(runs["tune-2"]).mkdir()
    assert shown(address) == ["tune-0", "tune-1", "tune-2"]
    assert board.address == address
    assert board.stop()
    assert (board.address, board.stop()) == ("", False)
    with pytest.raises(urllib.error.URLError):
        shown(address)
    assert Path(runs["tune-0"]).is_dir(), "what the runs wrote is not its own"


@pytest.mark.req("JT-41")
def test_a_second_start_finds_the_first(board: Board, runs: dict[str, str], tmp_path: Path) -> None:
    address = board.start({"tune-0": runs["tune-0"]})
    assert Board(tmp_path / "boards" / "4711-a").start(runs) == address
    assert shown(address) == ["tune-0", "tune-1"]


@pytest.mark.req("JT-41")
def test_an_obstacle_to_tensorboard_is_reported(
    board: Board, runs: dict[str, str], tmp_path: Path, monkeypatch
) -> None:
    with pytest.raises(CockpitError, match="None of the output folders can be read from here, such as /nowhere"):
        board.start({"a": "/nowhere/tune-0"})
    stand_in(tmp_path / "bin", "#!/bin/sh\necho cannot import numpy >&2\nexit 3\n")
    with pytest.raises(CockpitError, match="ended at once with exit code 3: cannot import numpy"):
        board.start(runs)
    for first_line in ("#!/home/ana/my env/bin/python\n", "\x7fELF", "#!/usr/bin\n"):
        stand_in(tmp_path / "bin", first_line)
        with pytest.raises(
            CockpitError, match=r"bin/tensorboard cannot be started \([A-Z].*\)\. Look at the interpreter"
        ):
            board.start(runs)
    assert board.address == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tensorboard.sys, "executable", str(tmp_path / "python"))
    with pytest.raises(CockpitError, match=r"not installed here.*cockpit-cluster\[tensorboard\]"):
        board.start(runs)


@pytest.mark.real
@pytest.mark.req("JT-41")
def test_the_real_tensorboard_accepts_the_same_command_line(runs: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    subprocess.run([sys.executable, "-c", WRITES, runs["tune-0"], runs["tune-1"]], check=True, capture_output=True)
    board = Board(tmp_path / "boards" / "real")
    assert shutil.which(tensorboard.program())
    try:
        assert shown(board.start(runs)) == ["tune-0", "tune-1"]
    finally:
        assert board.stop()


@pytest.mark.req("JT-41")
def test_a_query_without_a_running_tensorboard_creates_no_folder(tmp_path: Path) -> None:
    board = Board(tmp_path / "state/tensorboard/4711")
    assert board.address == ""
    assert not board.stop()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("JT-41")
def test_another_cockpit_stops_it_and_nothing_of_it_is_left(board: Board, runs: dict[str, str], tmp_path: Path) -> None:
    board.start(runs)
    folder = tmp_path / "boards" / "4711-a"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert Board(folder).address == board.address
    assert Board(folder).stop()
    assert not folder.exists()


STUBBORN = """#!/bin/sh
trap '' TERM
sleep 1000 &
echo $! >{folder}/child
echo "TensorBoard 2.13 at http://127.0.0.1:6006/ (Press CTRL+C to quit)"
wait; wait
"""


@pytest.mark.req("JT-41")
def test_one_that_does_not_end_is_killed_with_its_processes(
    board: Board, runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "STOP_SECONDS", 0.3)
    stand_in(tmp_path / "bin", STUBBORN.format(folder=tmp_path))
    assert board.start(runs) == "http://127.0.0.1:6006/"
    assert board.stop()
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().split()[2] in "ZX"


@pytest.mark.req("JT-41")
def test_the_last_three_lines_of_a_failed_start_are_quoted(board: Board, runs: dict[str, str], tmp_path: Path) -> None:
    stand_in(tmp_path / "bin", "#!/bin/sh\nfor n in 1 2 3 4 5; do echo line $n; done\nexit 4\n")
    with pytest.raises(CockpitError, match=r"ended at once with exit code 4: line 3 line 4 line 5$"):
        board.start(runs)


@pytest.mark.req("JT-41")
def test_one_that_never_listens_is_given_up(
    board: Board, runs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "START_SECONDS", 0.1)
    stand_in(tmp_path / "bin", "#!/bin/sh\nexec sleep 1000\n")
    with pytest.raises(CockpitError, match=r"did not say within 0\.1 s where it listens; see .*/4711-a/log\.$"):
        board.start(runs)
    assert board.stop(), "it runs nevertheless"
