from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.config.boards import board_name, board_of, runs_of
from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask
from cockpit.model.jobdetail import JobDetail
from tests.doubles.samples import detail, job_row


@pytest.mark.req("JT-41")
def test_a_users_tensorboard_has_a_folder_of_its_own_in_the_state_folder(tmp_path: Path) -> None:
    assert (
        board_of("job-7", {"XDG_STATE_HOME": str(tmp_path)})._folder == tmp_path / "cockpit-cluster/tensorboard/job-7"
    )


def task(number: int, index: int) -> JobDetail:
    """A task of batch 4730, which has two."""
    whole = detail()
    job = replace(whole.job, id=JobId(number), array=ArrayTask(JobId(4730), index, None, 2))
    rows = tuple(job_row(4730 + index, output=f"/out/tune/tune-{index}") for index in range(2))
    return replace(whole, job=job, batch=replace(whole.job.spec, name="tune", output="/out/tune"), tasks=rows)


@pytest.mark.req("JT-41")
def test_a_board_shows_the_folders_of_all_tasks_of_a_batch() -> None:
    assert runs_of(detail()) == {"bert-eval": detail().job.spec.output}
    assert runs_of(task(4731, 1)) == {"tune-0": "/out/tune/tune-0", "tune-1": "/out/tune/tune-1"}


@pytest.mark.req("JT-41")
def test_tasks_of_a_batch_share_a_board_and_other_jobs_have_one_each() -> None:
    board = board_name(task(4730, 0))
    assert board == board_name(task(4731, 1))
    assert board.startswith("4730-")
    assert board_name(replace(task(4731, 1), batch=None)).startswith("4731-"), "a task of a script's array"
    assert board_name(detail()).startswith("4715-")
    renamed = replace(detail().job, spec=replace(detail().job.spec, name="other"))
    assert board_name(replace(detail(), job=renamed)) != board_name(detail()), "another cluster may use its id"
