from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from cockpit.backends.demo.fixture import Printing, read_fixture
from cockpit.backends.demo.printing import BAR, LEAST_MS, LINES, LogFiles, error_output, printed_until
from cockpit.backends.demo.scripts import Script, Scripts
from cockpit.engine.steps import StepLog
from cockpit.model.asking import WRITTEN_STREAMS
from cockpit.model.attempt import ExitStatus
from cockpit.model.ids import JobId, Millis, ReplicaId
from cockpit.model.spec import JobKind, JobSpec, Mode
from cockpit.runtime.clock import VirtualClock
from cockpit.runtime.logs import log_path
from tests.backends.demo.conftest import LAB
from tests.doubles.samples import job

HOUR = 3_600_000


@pytest.mark.parametrize("printing", Printing)
def test_a_longer_run_only_adds_to_what_was_printed(printing: Printing) -> None:
    texts = [printed_until(printing, HOUR, elapsed, Random(4)) for elapsed in range(0, HOUR + 1, HOUR // 37)]
    texts.append(printed_until(printing, HOUR, HOUR, Random(4)))
    for shorter, longer in pairwise(texts):
        assert longer.startswith(shorter)
    assert len(set(texts)) > 30


def test_a_progress_bar_redraws_its_line() -> None:
    text = printed_until(Printing.PROGRESS, HOUR, HOUR, Random(4))
    assert "\r" in text
    assert "100%" in text


@pytest.mark.parametrize("lines", [1, 3, 10, 15, 25, 240])
def test_every_epoch_of_a_run_is_completed_whatever_its_length(lines: int) -> None:
    total_ms = lines * LEAST_MS
    _, *epochs, after, saved, _ = printed_until(Printing.PROGRESS, total_ms, total_ms, Random(4)).split("\n")
    assert (after, saved) == ("", "saved /workspace/outputs/model.safetensors")
    most = min(10, lines)
    ends = [epoch.rpartition("\r")[2].partition(" [loss")[0] for epoch in epochs]
    assert ends == [f"Epoch {number:>2}/{most}: 100%|{'█' * BAR}| 1000/1000" for number in range(1, most + 1)]
    assert sum(epoch.count("\r") for epoch in epochs) == lines
    bars = [re.findall(r"\|(.*?)\|", epoch) for epoch in epochs]
    assert all(len(bar) == BAR for each in bars for bar in each)
    assert all(each == sorted(each, key=lambda bar: bar.count("█")) for each in bars)


FIRST_LINES = {
    Printing.TRAINING: "step    25/6000  epoch 0.01  loss 2.7761  lr 1.66e-06  grad 0.73  14.3k tok/s",
    Printing.PROGRESS: f"\rEpoch  1/10:   4%|█{' ' * 19}|   42/1000 [loss=0.3076]",
    Printing.EVALUATION: "batch    1/240  accuracy 0.8428  216.2 ms",
    Printing.SHARDS: "shard 0001/0240: 18622 documents, 3 dropped",
    Printing.NOTEBOOK: "[I ServerApp] 200 GET /api/kernels (10.1.0.40) 5.60ms",
}


@pytest.mark.parametrize("printing", Printing)
def test_each_kind_of_job_prints_its_own_lines(printing: Printing) -> None:
    text = printed_until(printing, HOUR, HOUR // LINES, Random(4))
    assert text.removesuffix("\n").rpartition("\n")[2] == FIRST_LINES[printing]


def test_a_training_run_learns() -> None:
    text = printed_until(Printing.TRAINING, HOUR, HOUR, Random(4))
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", text)]
    rates = [float(rate) for rate in re.findall(r"lr (\S+)", text)]
    assert losses[0] > 2.6 > 1.1 > losses[-1] > 0.85
    assert max(rates) == rates[11], "it warms up in the first twentieth"
    assert re.findall(r"checkpoint-(\d+)", text) == ["1000", "2000", "3000", "4000", "5000", "6000"]
    assert text.count("epoch 3.00") == text.count("step  6000/6000") == 1
    assert text.endswith("saved /workspace/outputs/checkpoint-6000\nsaved /workspace/outputs/final\ndone\n")


def test_an_evaluation_converges() -> None:
    shares = re.findall(r"accuracy (\S+)", printed_until(Printing.EVALUATION, HOUR, HOUR, Random(4)))
    assert 0.835 < float(shares[-1]) < 0.85
    assert all(float(share) <= 1 for share in shares)


def test_a_short_run_prints_a_little() -> None:
    assert printed_until(Printing.TRAINING, 5_000, 5_000, Random(1)).count("step ") == 2
    assert printed_until(Printing.TRAINING, 4_000, 4_000, Random(1)).count("step ") == 2
    assert printed_until(Printing.TRAINING, 0, 0, Random(1)).count("step ") == 0
    assert printed_until(Printing.TRAINING, 0, 1, Random(1)).count("step ") == 1
    assert printed_until(Printing.TRAINING, 5_000, 90_000, Random(1)).endswith("done\n")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (ExitStatus(code=0), ""),
        (ExitStatus(code=1), "Traceback (most recent call last):"),
        (ExitStatus(code=3), "error: manifest.txt"),
        (ExitStatus(signal=15), "SIGTERM"),
        (ExitStatus(signal=9, oom=True), ""),
        (ExitStatus(lost="gone"), ""),
    ],
)
def test_a_failure_complains_in_its_own_way(status: ExitStatus, said: str) -> None:
    text = error_output(status, Random(1))
    assert said in text
    assert bool(text) == bool(said)


@pytest.mark.parametrize(
    ("command", "seconds", "code"),
    [
        ("sleep 90", 90, 0),
        ("bash -c 'sleep 40; exit 3'", 40, 3),
        ("false", 5, 1),
        ("bash -c 'exit 300'", 5, 300 & 255),
    ],
)
def test_a_users_command_decides_the_run_time_and_the_exit_code(command: str, seconds: int, code: int) -> None:
    scripts = Scripts(read_fixture(LAB), 1)
    script = scripts.of(JobSpec(name="mine", command=command, output="/o"))
    assert (script.runs_ms, script.exit) == (seconds * 1000, ExitStatus(code=code))


def test_a_script_depends_on_seed_and_job_alone() -> None:
    fixture = read_fixture(LAB)
    spec = JobSpec(name="train-4", command="python train.py", output="/o", time_limit_seconds=3600)
    assert Scripts(fixture, 1).of(spec) == Scripts(fixture, 1).of(spec)
    assert len({Scripts(fixture, seed).of(spec).runs_ms for seed in range(20)}) > 10


def test_a_template_decides_how_long_its_jobs_run_and_how_they_end() -> None:
    fixture = read_fixture(LAB)
    scripts = [
        Scripts(fixture, seed).of(
            JobSpec(name="train-4", command="x", output="/o", time_limit_seconds=3600, nodes=3, mode=Mode.PYTORCH)
        )
        for seed in range(300)
    ]
    by_end: dict[ExitStatus, list[int | None]] = {}
    for script in scripts:
        by_end.setdefault(script.exit, []).append(script.runs_ms)
    timeouts = [runs for runs in by_end[ExitStatus(code=0)] if runs is None]
    done = [runs for runs in by_end.pop(ExitStatus(code=0)) if runs is not None]
    assert timeouts
    assert 0.2 * HOUR <= min(done) < 0.25 * HOUR
    assert 0.9 * HOUR < max(done) <= 0.95 * HOUR
    oom = ExitStatus(signal=9, oom=True)
    assert {oom, ExitStatus(code=1)} < set(by_end)
    assert any("holder process is gone" in each.lost for each in by_end)
    failed = [runs or 0 for each in by_end.values() for runs in each]
    assert 0.01 * HOUR <= min(failed) < max(failed) <= 0.35 * HOUR
    assert {script.decisive_rank for script in scripts} == {0, 1, 2}
    assert {7_500 <= script.begins_ms < 15_000 for script in scripts} == {True}
    winding = [script.winds_down_ms for script in scripts]
    assert 0.1 < winding.count(None) / len(winding) < 0.3
    assert all(500 <= each < 20_000 for each in winding if each is not None)


def test_the_replica_that_fails_ends_the_others_wait() -> None:
    script = Script(printing=Printing.TRAINING, begins_ms=1, runs_ms=70, exit=ExitStatus(code=1), decisive_rank=2)
    assert [script.runs_of(rank) for rank in range(4)] == [None, None, 70, None]
    assert replace(script, exit=ExitStatus(code=0)).runs_of(0) == 70


def test_an_interactive_job_runs_until_a_user_ends_it() -> None:
    spec = JobSpec(name="train-1", command="jupyter lab", output="/o", kind=JobKind.INTERACTIVE)
    script = Scripts(read_fixture(LAB), 1).of(spec)
    assert (script.printing, script.runs_ms, script.exit) == (Printing.NOTEBOOK, None, ExitStatus(code=0))


def test_another_command_runs_some_minutes() -> None:
    scripts = Scripts(read_fixture(LAB), 1)
    runs = [scripts.of(JobSpec(name=f"own{number}", command="./x", output="/o")).runs_ms for number in range(200)]
    assert 120_000 <= min(runs) < 180_000 < 850_000 < max(runs) <= 900_000


@pytest.mark.parametrize(
    ("runs", "hours", "lines"),
    [
        ("limit", 0.65, 120),  # as if the run were 1.3 limits long
        ("fails", 0.5, 120),  # a failure comes in the middle of what a whole run would print
        ("succeeds", 0.25, 120),
    ],
)
def test_a_log_is_as_long_as_the_part_of_the_run_that_has_passed(
    tmp_path: Path, runs: str, hours: float, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {
        "limit": Script(printing=Printing.TRAINING, begins_ms=0, runs_ms=None, exit=ExitStatus(code=0)),
        "fails": Script(printing=Printing.TRAINING, begins_ms=0, runs_ms=1, exit=ExitStatus(code=1)),
        "succeeds": Script(printing=Printing.TRAINING, begins_ms=0, runs_ms=HOUR // 2, exit=ExitStatus(code=0)),
    }[runs]
    scripts = Scripts(read_fixture(LAB), 1)
    monkeypatch.setattr(scripts, "of", lambda _: script)
    ended = job(7)
    spec = replace(ended.spec, time_limit_seconds=3600)
    assert ended.attempt is not None
    begun = replace(ended.attempt.replicas[0], started_at=Millis(HOUR), ended_at=None, exit=None)
    clock = VirtualClock(Millis(HOUR + int(hours * HOUR)))
    logs = LogFiles(tmp_path, scripts, clock, StepLog())
    going = replace(ended, spec=spec, attempt=replace(ended.attempt, replicas=(begun,)))
    logs.bring_up(going)
    logs.bring_up(going)
    path, errors = (log_path(tmp_path, ReplicaId(JobId(7), 1, 0), stream) for stream in WRITTEN_STREAMS)
    assert path.read_text().count("step ") == lines
    assert errors.read_text() == ""
    over = replace(begun, ended_at=clock.now(), exit=ExitStatus(code=1))
    clock.advance(HOUR)
    logs.bring_up(replace(going, attempt=replace(ended.attempt, replicas=(over,))))
    assert path.read_text().count("step ") == lines
    assert errors.read_text().startswith("Traceback")
    waiting = replace(begun, rank=1, started_at=None)
    logs.bring_up(replace(going, attempt=replace(ended.attempt, replicas=(waiting,))))
    logs.bring_up(replace(going, attempt=None))
    assert len(list(tmp_path.rglob("*.std*"))) == 2
