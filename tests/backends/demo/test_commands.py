"""The demo at the command line: the real program, nothing but its output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LAB = Path(__file__).with_name("lab.toml")

pytestmark = pytest.mark.real


class Demo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), "HOME": str(folder), "TZ": "UTC"}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "cockpit.cli", *words],
            env=self._env,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    @property
    def left_behind(self) -> list[Path]:
        return list(self.folder.iterdir())


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


@pytest.mark.req("UI-50")
def test_the_demo_is_shown_at_its_own_time_and_leaves_no_files(demo: Demo) -> None:
    code, out, err = demo("demo")
    assert (code, err) == (0, "")
    assert out.startswith("campus · DEMO: 24 nodes")
    assert "waits for" in out
    assert demo.left_behind == []


@pytest.mark.req("UI-50")
def test_a_command_on_the_demo_prints_the_same_each_time(demo: Demo) -> None:
    first, second, other = (
        demo(*words, "jobs", "-o", "json")
        for words in (("-c", "demo"), ("demo", "--headless"), ("demo", "--seed", "2", "--headless"))
    )
    assert first[0] == 0
    rows, again, others = (json.loads(each[1])["rows"] for each in (first, second, other))
    assert [row["id"] for row in rows] == [row["id"] for row in again]
    assert [row["name"] for row in rows] != [row["name"] for row in others]


def test_the_user_me_is_the_demos_user(demo: Demo) -> None:
    code, out, _ = demo("demo", str(LAB), "--headless", "jobs", "--all", "--filter", "user:me", "-o", "json")
    assert code == 0
    assert {row["user"] for row in json.loads(out)["rows"]} == {"ann"}


def test_waiting_runs_at_the_speed_of_the_demo(demo: Demo) -> None:
    spec = demo.folder / "mine.json"
    spec.write_text(json.dumps({"name": "mine", "command": "sleep 1000", "output": "./out", "specs": [{"cards": 0}]}))
    code, out, _ = demo("demo", str(LAB), "--speed", "9000", "--headless", "submit", str(spec))
    assert code == 0
    running = next(
        row["id"]
        for row in json.loads(demo("demo", str(LAB), "--headless", "jobs", "-o", "json")[1])["rows"]
        if row["state"] == "running"
    )
    assert out.startswith("submitted mine as ")
    assert demo("demo", str(LAB), "--speed", "9000", "--headless", "wait", str(running), "--timeout", "50")[0] != 124


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("demo", "nowhere"), 65, "There is no demo 'nowhere'"),
        (("demo", "--speed", "0"), 64, "--speed"),
        (("demo", "--headless", "jbos"), 64, "did you mean jobs"),
        (("-c", "nowhere", "jobs"), 65, "'demo'"),
    ],
)
def test_an_invalid_demo_command_is_reported_and_leaves_no_files(
    demo: Demo, words: tuple[str, ...], code: int, said: str
) -> None:
    done = demo(*words)
    assert (done[0], done[1]) == (code, "")
    assert said in done[2]
    assert demo.left_behind == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.req("UI-50")
def test_a_demo_ended_by_a_signal_leaves_no_files(demo: Demo, number: signal.Signals) -> None:
    process = demo.start("demo", str(LAB), "--headless", "jobs", "--watch")
    assert process.stdout is not None
    assert process.stdout.readline().startswith('{"version":1,"change":"row"')
    assert len(demo.left_behind) == 1
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert demo.left_behind == []


@pytest.mark.req("FL-06", "UI-50")
def test_the_fleet_shows_the_cluster_of_each_job_and_how_each_is_bound_to(demo: Demo) -> None:
    code, out, _ = demo("demo", "fleet", "--headless", "jobs")
    header, *rows = out.splitlines()
    at = header.index("CLUSTER")
    assert (code, {row[at:].split()[0].strip(",") for row in rows if " running " in row}) == (
        0,
        {"north", "east", "west"},
    )
    assert "CLUSTER" not in demo("demo", "campus", "--headless", "jobs")[1]
    assert (
        "# west is bound to by totals: Kubernetes 1.26.15 is older than 1.28"
        in demo("demo", "fleet", "--headless", "cluster", "show")[1]
    )
