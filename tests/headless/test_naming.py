"""Jobs are named by their ids, their names, or the ids that a folded list shows."""

from __future__ import annotations

import json

import pytest

from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask
from tests.doubles.samples import failed_row, job_row
from tests.headless.conftest import Desk


@pytest.fixture
def named(desk: Desk) -> Desk:
    task = [ArrayTask(array=JobId(30), index=index, count=3) for index in range(2)]
    desk.backend.job_rows = [
        job_row(30, name="sweep", array=task[0]),
        job_row(31, name="sweep", array=task[1]),
        job_row(40, name="train"),
        failed_row(39, name="train", held_until=None),
        failed_row(35, name="old", held_until=None),
        job_row(41, name="same", project="a"),
        job_row(42, name="same", project="b"),
        job_row(43, name="4711"),
    ]
    return desk


def told(desk: Desk, verb: str) -> list[tuple[object, ...]]:
    return [asked[1:] for asked in desk.backend.asked if asked[0] == verb]


@pytest.mark.req("UI-41")
@pytest.mark.parametrize(("name", "job"), [("train", 40), ("old", 35), ("sweep", 30), ("40", 40), ("same", None)])
def test_a_name_selects_the_only_job_with_it(named: Desk, name: str, job: int | None) -> None:
    done = named("cancel", "-y", name)
    assert [each[0] for each in told(named, "cancel")] == ([job] if job is not None else [])
    assert (done.code == 0) == (job is not None)
    if not name.isdecimal():
        assert ("jobs", True) in named.backend.asked, "a name may be that of an ended job"


@pytest.mark.req("UI-41")
def test_an_unknown_or_ambiguous_job_name_is_refused_with_advice(named: Desk) -> None:
    done = named("cancel", "-y", "nosuch")
    assert (done.code, done.err) == (66, "No job is named nosuch. See: cockpit jobs --all\n")
    done = named("hold", "same")
    assert (done.code, done.err) == (65, "2 jobs are named same: 41, 42. Name the job by its id.\n")
    assert told(named, "hold") == []


@pytest.mark.req("UI-41", "TR-05")
def test_digits_are_an_id_and_hostile_names_are_written_out(named: Desk) -> None:
    named("cancel", "-y", "4711")
    assert [each[0] for each in told(named, "cancel")] == [4711]
    assert "\\u202e" in named("cancel", "-y", "a\u202eb").err


@pytest.mark.req("UI-41", "SL-10")
def test_a_folded_id_selects_its_tasks(named: Desk) -> None:
    assert named("hold", "30_[0-1%2]").code == 0
    assert [each[:2] for each in told(named, "hold")] == [(30, 0), (30, 1)]


@pytest.mark.req("UI-41")
def test_reading_verbs_accept_names_too(named: Desk) -> None:
    named.backend.details = {35: named.backend.details[4715]}
    assert json.loads(named("job", "old", "-o", "json").out)["rows"]
    assert named("job", "30_[0-1]").code == 66, "asked for as job 30, which this cluster does not have"
