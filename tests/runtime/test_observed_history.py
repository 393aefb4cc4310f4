"""What is kept of a cluster that keeps no history for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cockpit.model.events import JobReleased
from cockpit.model.ids import JobId, Millis
from cockpit.model.reasons import SchedulerReason, Waited
from cockpit.runtime import observed_history
from cockpit.runtime.observed_history import ObservedHistory

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = 60_000
JOB = JobId(7)
BUSY, BEHIND = SchedulerReason("Resources"), SchedulerReason("Priority")


def at(minutes: int) -> Millis:
    return Millis(1_795_000_000_000 + minutes * MINUTE)


@pytest.mark.req("UI-11")
def test_a_new_connection_has_the_observed_history_and_its_gaps(tmp_path: Path) -> None:
    first = ObservedHistory(tmp_path / "lab.jsonl", "Slurm")
    first.note([(JOB, BEHIND)], [], at(0))
    first.note([(JOB, BEHIND)], [(at(1), JobReleased(JobId(8)))], at(2))
    first.note([(JOB, BUSY)], [], at(3))
    first.close()
    second = ObservedHistory(tmp_path / "lab.jsonl", "Slurm")
    assert second.waited([JOB], at(60)) == (Waited(at(0), BEHIND), Waited(at(3), BUSY), Waited(at(3), None))
    second.note([(JOB, BUSY)], [(at(60), JobReleased(JOB))], at(60))
    second.note([(JOB, BEHIND)], [], at(61))
    assert second.waited([JOB], at(61))[2:] == (Waited(at(3), None), Waited(at(60), BUSY), Waited(at(61), BEHIND))
    assert [(each.seq, each.at, each.body.job) for each in second.events()] == [(1, at(1), 8), (2, at(60), 7)]
    assert [each.actor for each in second.events([JOB], after=1)] == ["Slurm"]


def test_one_of_several_cockpits_writes_the_history_and_the_others_read_it(tmp_path: Path) -> None:
    path = tmp_path / "lab.jsonl"
    writer, reader = ObservedHistory(path, "Slurm"), ObservedHistory(path, "Slurm")
    writer.note([(JOB, BEHIND)], [], at(0))
    reader.note([(JOB, BEHIND)], [], at(0))
    writer.note([(JOB, BUSY)], [], at(1))
    assert reader.waited([JOB], at(1)) == writer.waited([JOB], at(1)) == (Waited(at(0), BEHIND), Waited(at(1), BUSY))
    assert path.read_text().count("Priority") == 1
    writer.close()
    reader.note([(JOB, BEHIND)], [], at(2))
    assert [each.reason for each in ObservedHistory(path, "Slurm").waited([JOB], at(2))] == [BEHIND, BUSY, BEHIND]


def test_the_history_file_is_bounded_and_keeps_the_newest_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_history, "MOST_BYTES", 4000)
    path = tmp_path / "lab.jsonl"
    kept = ObservedHistory(path, "Slurm")
    for minute in range(200):
        kept.note([(JobId(minute), BEHIND)], [], at(minute))
    assert path.stat().st_size <= 4000
    assert kept.waited([JobId(3)], at(200)) == ()
    assert kept.waited([JobId(199)], at(200)) == (Waited(at(199), BEHIND),)


def test_a_damaged_line_or_a_read_only_folder_loses_no_other_line(tmp_path: Path) -> None:
    path = tmp_path / "lab.jsonl"
    ObservedHistory(path, "Slurm").note([(JOB, BEHIND)], [], at(0))
    with path.open("ab") as file:
        file.write(b'{"at": 1, "event": {"type": "of_tomorrow"}}\n{"at"')
    assert ObservedHistory(path, "Slurm").waited([JOB], at(0)) == (Waited(at(0), BEHIND),)
    (tmp_path / "file").touch()
    nowhere = ObservedHistory(tmp_path / "file" / "lab.jsonl", "Slurm")
    nowhere.note([(JOB, BEHIND)], [], at(0))
    assert nowhere.waited([JOB], at(0)) == (Waited(at(0), BEHIND),)


@pytest.mark.req("UI-11")
def test_the_history_file_is_never_larger_than_its_bound_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_history, "MOST_BYTES", 4000)
    path = tmp_path / "lab.jsonl"
    kept, sizes = ObservedHistory(path, "Slurm"), list[int]()
    for minute in range(100):
        kept.note([(JobId(minute), SchedulerReason("Resources " * 20))], [], at(minute))
        sizes.append(path.stat().st_size)
    assert max(sizes) <= 4000


@pytest.mark.req("UI-11")
def test_a_line_a_minute_shows_that_a_quiet_cluster_is_observed(tmp_path: Path) -> None:
    path = tmp_path / "lab.jsonl"
    kept = ObservedHistory(path, "Slurm")
    kept.note([(JOB, BEHIND)], [], at(0))
    before = path.read_text().count("\n")
    kept.note([(JOB, BEHIND)], [], Millis(at(1) - 1))
    assert path.read_text().count("\n") == before
    kept.note([(JOB, BEHIND)], [], at(1))
    kept.note([(JOB, BEHIND)], [], Millis(at(2) - 1))
    assert path.read_text().count("\n") == before + 1
    assert kept.waited([JOB], Millis(at(4) - 1)) == (Waited(at(0), BEHIND),)
    assert kept.waited([JOB], at(4)) == (Waited(at(0), BEHIND), Waited(at(1), None))


@pytest.mark.req("UI-11")
@pytest.mark.parametrize(("silence", "gap"), [(3 * MINUTE - 1, False), (3 * MINUTE, True)])
def test_three_minutes_without_a_line_are_a_gap(tmp_path: Path, silence: int, gap: bool) -> None:
    kept = ObservedHistory(tmp_path / "lab.jsonl", "Slurm")
    kept.note([(JOB, BEHIND)], [], at(0))
    again = Millis(at(0) + silence)
    kept.note([(JOB, BUSY)], [], again)
    between = (Waited(at(0), None),) if gap else ()
    assert kept.waited([JOB], again) == (Waited(at(0), BEHIND), *between, Waited(again, BUSY))


@pytest.mark.req("UI-11")
def test_events_are_numbered_by_time_and_are_never_in_the_future(tmp_path: Path) -> None:
    kept = ObservedHistory(tmp_path / "lab.jsonl", "Slurm")
    kept.note([], [(at(9), JobReleased(JobId(2))), (at(1), JobReleased(JobId(1)))], at(2))
    kept.note([], [(at(3), JobReleased(JobId(1)))], at(3))
    expected = [(1, at(1), 1), (2, at(2), 2), (3, at(3), 1)]
    assert [(each.seq, each.at, each.body.job) for each in kept.events()] == expected
    assert [each.seq for each in kept.events(after=0)] == [1, 2, 3]
    assert [each.seq for each in kept.events(after=2)] == [3]
    assert [each.seq for each in kept.events([JobId(1)], after=1)] == [3]


def test_a_reader_follows_the_writer_also_when_the_file_is_halved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_history, "MOST_BYTES", 2000)
    path = tmp_path / "sub" / "lab.jsonl"
    writer, reader = ObservedHistory(path, "Slurm"), ObservedHistory(path, "Slurm")
    everyone = [JobId(number) for number in range(60)]
    for minute, job in enumerate(everyone):
        writer.note([(job, BEHIND)], [(at(minute), JobReleased(job))], at(minute))
        assert reader.waited(everyone, at(minute)) == writer.waited(everyone, at(minute))
        assert reader.events() == writer.events()
    assert 0 < len(writer.events()) < 30
    assert writer.events()[-1].seq > 30, "numbers go on"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.with_suffix(".lock").stat().st_mode & 0o777 == 0o600


def test_without_a_file_the_history_is_that_of_this_cockpit_alone() -> None:
    kept = ObservedHistory(None, "Slurm")
    kept.note([(JOB, BEHIND)], [(at(0), JobReleased(JOB))], at(0))
    assert kept.waited([JOB], at(0)) == (Waited(at(0), BEHIND),)
    assert len(kept.events()) == 1
    kept.close()
