"""Whole commands, from the spawn of their process to its end, against a real engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import pytest

from tests.bench.figures import Figures, Peer
from tests.e2e.cockpit_user import CockpitUser, a_new_user, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = 21
IDLE_SECONDS = 5
INSTALLED = "from cockpit.cli import command; command()"
"""What the installed script runs."""


def milliseconds_to_run(*code_and_arguments: str, env: dict[str, str] | None = None) -> float:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
        before = perf_counter()
        subprocess.run([sys.executable, "-c", *code_and_arguments], check=True, stdout=reader.stdin, env=env)
        return (perf_counter() - before) * 1000


def rounds_of(user: CockpitUser, *words: str) -> list[float]:
    """The first is not counted: it finds cold caches."""
    return [milliseconds_to_run(INSTALLED, *words, env=user.env) for _ in range(ROUNDS + 1)][1:]


def submit_waiting(user: CockpitUser, number: int) -> None:
    """One job that runs and takes every CPU, the others wait for it; a person holds every second one back."""
    spec = {"cpus": os.cpu_count(), "memory": "64M", "cards": 0}
    lines = [
        {
            "name": f"train-bert-{each}",
            "command": f"python3 train.py --fold {each} --learning-rate 3e-4" if each else "sleep 3600",
            "output": f"./out-{each}",
            "specs": [spec],
            "hold": each % 2 == 1,
        }
        for each in range(number)
    ]
    user.ok("submit", str(user.write("many.jsonl", "\n".join(map(json.dumps, lines)))))
    eventually(lambda: '"running"' in user.ok("jobs", "-o", "json", "--filter", "id:1"))


@pytest.fixture(scope="module")
def crowded() -> Iterator[CockpitUser]:
    with a_new_user() as user:
        submit_waiting(user, 10_000)
        yield user


def test_start_of_a_command(figure: Figures):
    ours = [milliseconds_to_run(INSTALLED, "--version") for _ in range(ROUNDS)]
    bare = [milliseconds_to_run("pass") for _ in range(ROUNDS)]
    figure("PF-10", "of it, starting Python with headless loaded", median(ours), peer=Peer("bare Python", median(bare)))


def test_listing_ten_thousand_jobs(crowded: CockpitUser, figure: Figures):
    figure.spread("PF-10", "jobs -o json, 10 000 jobs", rounds_of(crowded, "jobs", "-o", "json"))
    figure("PF-10", "jobs, a table of 10 000, median", median(rounds_of(crowded, "jobs")))
    figure("PF-10", "jobs --filter over 10 000, median", median(rounds_of(crowded, "jobs", "--filter", "name~bert-77")))


def test_listing_a_hundred_jobs(figure: Figures):
    with a_new_user() as user:
        submit_waiting(user, 100)
        figure("PF-10", "jobs -o json, 100 jobs, median", median(rounds_of(user, "jobs", "-o", "json")))


def test_an_idle_engine_takes_no_cpu(crowded: CockpitUser, figure: Figures):
    pid = crowded.engine_pid()
    before = cpu_seconds(pid)
    time.sleep(IDLE_SECONDS)
    figure("PF-15", "idle engine, 10 000 held jobs, CPU", (cpu_seconds(pid) - before) / IDLE_SECONDS * 100)


def test_entering_a_kept_container(figure: Figures):
    with a_new_user() as user:
        job = user.submit("exit 3", terminal=True)
        user.wait(job)
        figure("PF-30", "cockpit shell ID -- true, whole process", median(rounds_of(user, "shell", job, "--", "true")))


def cpu_seconds(pid: int) -> float:
    """Of all its threads, as /proc counts them: in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
