from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask, JobState
from tests.doubles.samples import job_row
from tests.headless.conftest import Desk


@pytest.mark.req("LA-63")
def test_trials_have_parameters_state_and_progress(desk: Desk) -> None:
    desk.backend.job_rows = [
        job_row(4731, state=JobState.QUEUED, started_at=None, array=ArrayTask(JobId(4730), 1, 2, 4, 0, 3)),
        job_row(4730, state=JobState.RUNNING, array=ArrayTask(JobId(4730), 0, 2, 4, 0, 3)),
        job_row(4740, state=JobState.RUNNING, array=ArrayTask(JobId(4740), 0, 2, 4, 0, 3)),
    ]
    first, second = json.loads(desk("trials", "4730", "-o", "json").out)["rows"]
    assert ("jobs", True) in desk.backend.asked, "most trials of a sweep have ended"
    assert (first["trial"], first["id"], first["parameters"]) == ("1", 4730, {"lr": "0.1", "layers": "2"})
    assert first["progress"]["total"] > first["progress"]["used"] > 0
    assert (second["state"], second["progress"], second["parameters"]["layers"]) == ("queued", None, "4")
    assert desk("trials", "4730").lines[1].split()[2:5] == ["lr=0.1", "layers=2", "running"]


@pytest.mark.req("LA-63")
def test_trials_of_a_job_that_is_no_sweep_are_refused(desk: Desk) -> None:
    done = desk("trials", "4715")
    assert (done.code, done.err) == (65, "Job 4715 is no sweep; submit one with `sweep:`.\n")
    sweep = desk.backend.details[4730]
    desk.backend.details[4730] = replace(sweep, job=replace(sweep.job, spec=replace(sweep.job.spec, sweep=None)))
    assert desk("trials", "4730").code == 65, "an array alone is no sweep"


@pytest.mark.req("LA-63")
def test_the_details_of_a_trial_identify_it(desk: Desk) -> None:
    assert "trial         1 of 4: lr=0.1 layers=2" in desk("job", "4730").lines


@pytest.mark.req("LA-63")
def test_the_page_of_a_trial_has_a_table_of_all(desk: Desk) -> None:
    tasks = tuple(
        job_row(4730 + index, state=state, array=ArrayTask(JobId(4730), index, 2, 4, 0, 3))
        for index, state in enumerate((JobState.RUNNING, JobState.QUEUED))
    )
    found = desk.backend.details[4730]
    desk.backend.details[4730] = replace(found, row=tasks[0], tasks=tasks)
    lines = desk("job", "4730").lines
    first = lines.index("  Sweep 4730  0 of 2 tasks have ended: 1 queued, 1 running")
    assert [each.split()[:4] for each in lines[first + 2 : first + 4]] == [
        ["1", "◂", "lr=0.1", "layers=2"],
        ["2", "lr=0.1", "layers=4", "◌"],
    ]
