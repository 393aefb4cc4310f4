from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from cockpit.backends.demo.fixture import Printing, read_fixture
from cockpit.backends.demo.printing import complained, printed
from cockpit.backends.demo.scripts import Scripts
from cockpit.model.attempt import ExitStatus
from cockpit.model.spec import JobSpec
from tests.backends.demo.conftest import LAB

HOUR = 3_600_000


@pytest.mark.parametrize("printing", Printing)
def test_a_longer_run_only_adds_to_what_was_printed(printing: Printing) -> None:
    texts = [printed(printing, HOUR, elapsed, Random(4)) for elapsed in range(0, HOUR + 1, HOUR // 37)]
    texts.append(printed(printing, HOUR, HOUR, Random(4)))
    for shorter, longer in pairwise(texts):
        assert longer.startswith(shorter)
    assert len(set(texts)) > 30


def test_a_progress_bar_redraws_its_line() -> None:
    text = printed(Printing.PROGRESS, HOUR, HOUR, Random(4))
    assert "\r" in text
    assert "100%" in text


def test_a_short_run_prints_a_little() -> None:
    assert 1 <= printed(Printing.TRAINING, 5_000, 5_000, Random(1)).count("step ") <= 3


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
    text = complained(status, Random(1))
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
