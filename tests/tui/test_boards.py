"""TensorBoard from the cockpit: started with a key, found again, stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cockpit.model.spec import Access, JobKind, JobSpec, Task
from cockpit.runtime.tensorboard import Board
from tests.doubles.tensorboard import stand_in
from tests.tui.lab import a_lab, a_members_lab, job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIVE: dict[str, Any] = {"pace": None, "badge": lambda: ""}
"""The cluster is shown as one that is no demo."""


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobSpec]:
    """Two tasks whose folders are there."""
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for number in range(2):
        (tmp_path / f"out/tune-{number}").mkdir(parents=True)
    tasks = (Task(command="sleep 36000"),) * 2
    yield replace(
        job("tune"), kind=JobKind.BATCH, tasks=tasks, command="", algorithm=None, output=str(tmp_path / "out")
    )
    for folder in (tmp_path / "state/cockpit-cluster/tensorboard").glob("*"):
        Board(folder).stop()


@pytest.mark.req("JT-41", "JT-03")
async def test_a_key_starts_and_stops_tensorboard_for_all_tasks(batch: JobSpec) -> None:
    async with a_lab(batch, **LIVE) as lab:
        cockpit = lab.cockpit
        await cockpit.sees("tune [2]").press("T").sees("is at http://127.0.0.1:", "It ends with this cockpit.")
        (board,) = cockpit.app.boards
        assert board.address
        await cockpit.press("Enter", "Enter").sees("Batch 1", "0 of 2 tasks have ended").press("T")
        await (
            cockpit.sees("Stop the TensorBoard of job 1 tune?", board.address).press("y").sees("TensorBoard is stopped")
        )
        assert not board.address


@pytest.mark.req("JT-41", "JT-60")
async def test_a_user_with_read_access_may_open_tensorboard(batch: JobSpec) -> None:
    async with a_members_lab(replace(batch, access=Access.RO, project="vision"), **LIVE) as cockpit:
        await cockpit.sees("tune [2]").press("T").sees("is at http://127.0.0.1:")
        (board,) = cockpit.app.boards
        assert board.address


@pytest.mark.req("JT-41")
async def test_missing_tensorboard_folders_are_reported() -> None:
    async with a_lab(job("done", "sleep 1"), **LIVE) as lab:
        await lab.cockpit.sees("done").press("T").sees("None of the output folders can be read from here")


@pytest.mark.req("UI-50", "JT-41")
async def test_a_demo_has_no_tensorboard_and_creates_no_folder(batch: JobSpec, tmp_path: Path) -> None:
    async with a_lab(batch) as lab:
        await lab.cockpit.sees("tune [2]").press("T").sees("The jobs of a demo write no files.")
        assert not lab.cockpit.app.boards
    assert not (tmp_path / "state").exists()
