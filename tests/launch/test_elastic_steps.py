"""What `cockpit.elastic.step` reports of a training, and what the engine reads of it."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import pytest

from cockpit import elastic
from cockpit.model.steps import StepReport
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.step_reports import step_report
from tests.launch.elastic_workers import Workers, listed

pytestmark = pytest.mark.req("EL-03")


class Process:
    """A process of the worker: the helper as a script has just imported it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.attempt = Attempt(str(folder))
        self.pulse = folder / "pulse"
        self.pulse.mkdir()
        self.seconds = 100.0
        self._patch = monkeypatch
        monkeypatch.setenv("COCKPIT_PULSE_FILE", str(self.pulse / "beat"))
        monkeypatch.setattr(elastic.time, "monotonic", lambda: self.seconds)
        self.begins()

    def begins(self) -> None:
        self._patch.setattr(elastic, "_PROGRESS", elastic._Progress())

    def steps(self, *numbers: int, each: float = 0.5, total: int | None = None) -> None:
        for number in numbers:
            self.seconds += each
            elastic.step(number, total)

    @property
    def report(self) -> StepReport | None:
        return step_report(self.attempt)

    def writes(self, content: bytes) -> None:
        (self.pulse / "steps").write_bytes(b"%08x %s\n" % (crc32(content), content))


@pytest.fixture
def process(workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    (tmp_path / "attempt").mkdir()
    return Process(tmp_path / "attempt", monkeypatch)


def speeds(report: StepReport | None) -> dict[int, tuple[int, float]]:
    return {each.workers: (each.steps, each.ms) for each in report.speeds} if report is not None else {}


def test_the_engine_reads_the_steps_and_the_speed_with_each_number_of_workers(
    process: Process, workers: Workers
) -> None:
    process.steps(0, 1, 2, 3, total=1000)
    report = process.report
    assert report is not None
    assert (report.step, report.began, report.run, report.before, report.total) == (3, 0, 0, None, 1000)
    assert speeds(report) == {3: (3, 1500.0)}
    workers.show(listed(0, 1, version=2))
    # What lies between the steps of two rings is the time to form the new one.
    process.steps(4, each=30)
    process.steps(5, 6)
    assert speeds(process.report) == {3: (3, 1500.0), 2: (2, 1000.0)}
    assert process.report.total == 1000


def test_several_steps_may_be_reported_at_once(process: Process) -> None:
    process.steps(0, 10, 20)
    assert speeds(process.report) == {3: (20, 1000.0)}


def test_a_fall_of_the_steps_begins_another_run(process: Process) -> None:
    process.steps(0, 1, 2, 3, 4)
    process.steps(2, 3)
    report = process.report
    assert (report.step, report.began, report.run, report.before) == (3, 2, 1, 4)
    assert report.began_at > 0


def test_the_next_process_of_a_worker_continues_the_record(process: Process) -> None:
    process.steps(40, 41, 42, total=90)
    process.begins()
    process.steps(40, 41)
    report = process.report
    assert (report.began, report.run, report.before, report.total) == (40, 1, 42, 90)
    assert speeds(report) == {3: (3, 1500.0)}


def test_a_checkpoint_has_the_steps_reported_last_or_those_that_are_given(process: Process, tmp_path: Path) -> None:
    process.steps(0, 5)
    with elastic.save(tmp_path / "step-5.pt") as draft:
        Path(draft).touch()
    assert process.report.checkpoint == 5
    with elastic.save(tmp_path / "step-4.pt", step=4) as draft:
        Path(draft).touch()
    assert process.report.checkpoint == 4
    with pytest.raises(KeyError), elastic.save(tmp_path / "step-6.pt", step=6):
        raise KeyError
    assert process.report.checkpoint == 4, "it was not completed"
    process.begins()
    process.steps(4)
    assert process.report.checkpoint == 4


def test_a_script_without_steps_may_save_checkpoints(process: Process, tmp_path: Path) -> None:
    with elastic.save(tmp_path / "step-5.pt") as draft:
        Path(draft).touch()
    assert process.report is None


@pytest.mark.parametrize("name", ["LOCAL_RANK", "HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"])
def test_of_a_workers_processes_the_first_one_reports(
    process: Process, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    process.steps(0, 1)
    assert process.report is None
    assert (process.pulse / "beat").exists()
    monkeypatch.setenv(name, "0")
    process.steps(2)
    assert process.report.step == 2


def test_outside_of_a_job_nothing_is_written(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COCKPIT_PULSE_FILE")
    process.steps(0, 1)
    assert process.report is None


@pytest.mark.parametrize("wrong", [(-1, None), (3, -5)])
def test_a_number_below_zero_is_refused(process: Process, wrong: tuple[int, int | None]) -> None:
    with pytest.raises(ValueError, match="give the steps done so far, from 0"):
        elastic.step(*wrong)


def test_a_file_system_that_takes_nothing_does_not_end_the_training(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COCKPIT_PULSE_FILE", "/nowhere/beat")
    process.steps(0, 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"step": 3}',
        b'{"step": -3, "began": 0}',
        b'{"step": 1e300, "began": 0}',
        b'{"step": 99999999999999999999, "began": 0}',
        b'{"step": 3, "began": "0"}',
        b'{"step": 3, "began": 0, "speeds": [[0, 1, 1]]}',
        b'{"step": 3, "began": 0, "speeds": [[1, 1, NaN]]}',
        b'{"step": 3, "began": 0, "speeds": [' + b",".join([b"[1,1,1]"] * 65) + b"]}",
    ],
)
def test_what_is_no_report_is_not_read(process: Process, content: bytes) -> None:
    process.writes(content)
    assert process.report is None
    # The script, too, begins anew where it finds one that it cannot read.
    process.steps(7)
    assert (process.report.step, process.report.run) == (7, 0)


def test_a_report_that_is_being_written_is_not_read(process: Process) -> None:
    process.steps(0, 1)
    file = process.pulse / "steps"
    file.write_bytes(file.read_bytes().replace(b'"step": 1', b'"step": 9'))
    assert process.report is None


def test_the_engine_follows_no_link_and_waits_for_no_pipe(process: Process, tmp_path: Path) -> None:
    process.steps(0, 1)
    file = process.pulse / "steps"
    file.rename(tmp_path / "secret")
    file.symlink_to(tmp_path / "secret")
    assert process.report is None
    file.unlink()
    os.mkfifo(file)
    assert process.report is None
    file.unlink()
    file.mkdir()
    assert process.report is None
