"""When torchrun is started on a worker of an elastic job, and again."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pytest

from cockpit import elastic, elastic_torchrun
from tests.launch.elastic_workers import Workers, listed
from tests.torch_launcher import SYSTEM_PYTHON, needs_torch, require_launcher

pytestmark = pytest.mark.req("EL-01", "EL-03")


class Torchrun:
    """Programs in place of torchrun: one after the other, and the rings for which they were started."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.rings: list[list[str]] = []
        self.programs: list[str] = []

    def command(self, ring: dict, env: dict[str, str], arguments: list[str]) -> list[str]:
        self.rings.append([host.rpartition("-")[2] for host in ring["hosts"]])
        return ["sh", "-c", self.programs[min(len(self.rings), len(self.programs)) - 1]]

    def run(self, *programs: str) -> int:
        self.programs = [*programs]
        return elastic_torchrun.Supervisor([]).run()


@pytest.fixture
def torchrun(workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On worker 1, whose workers become those of the file `next` as soon as a program renames it."""
    made = Torchrun(workers)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(elastic_torchrun, "command", made.command)
    monkeypatch.setattr(elastic_torchrun, "_NEWS_SECONDS", 0.2)
    monkeypatch.setattr(elastic_torchrun, "_LOOK_SECONDS", 0.005)
    before = signal.getsignal(signal.SIGTERM)
    yield made
    signal.signal(signal.SIGTERM, before)
    elastic._State.callbacks, elastic._State.watching = (), None


def test_the_end_of_the_script_is_that_of_the_worker(torchrun: Torchrun) -> None:
    assert torchrun.run("exit 0") == 0
    assert torchrun.rings == [["0", "1", "2"]]


def test_it_starts_again_with_the_new_hosts(torchrun: Torchrun) -> None:
    Path("next").write_bytes(listed(1, 2, leaving=(0,)))
    assert torchrun.run("mv next workers.json; exit 255", "exit 0") == 0
    assert torchrun.rings == [["0", "1", "2"], ["1", "2"]]


def test_the_notice_may_come_after_the_end_of_the_script(torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_torchrun, "_NEWS_SECONDS", 20)
    Path("next").write_bytes(listed(1, 2))
    assert torchrun.run("(sleep 0.1; mv next workers.json) & exit 1", "exit 0") == 0
    assert torchrun.rings[-1] == ["1", "2"]


def test_a_script_that_fails_without_a_change_is_tried_four_times(torchrun: Torchrun) -> None:
    assert torchrun.run("exit 7") == 7
    assert len(torchrun.rings) == 4


def test_a_worker_that_has_to_end_starts_nothing_more(torchrun: Torchrun) -> None:
    Path("next").write_bytes(listed(0, 2, leaving=(1,)))
    assert torchrun.run("mv next workers.json; exit 255") == -1
    assert len(torchrun.rings) == 1


def test_a_script_that_ignores_the_change_is_terminated(torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_torchrun, "PATIENCE_SECONDS", 0.05)
    Path("next").write_bytes(listed(0, 1))
    assert torchrun.run("mv next workers.json; exec sleep 60", "exit 0") == 0
    assert torchrun.rings[-1] == ["0", "1"]


def test_a_script_on_a_worker_that_has_to_end_is_left_alone(
    torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elastic_torchrun, "PATIENCE_SECONDS", 0.01)
    Path("next").write_bytes(listed(0, leaving=(1,)))
    seen = threading.Event()
    stop = elastic.on_change(lambda _: seen.set())
    script = "trap 'touch asked' TERM; mv next workers.json; while [ ! -e saved ]; do sleep 0.02; done; exit 255"
    threading.Thread(target=lambda: seen.wait(20) and Path("saved").touch()).start()
    assert torchrun.run(script) == -1
    assert not Path("asked").exists()
    stop()


def test_the_command_names_the_ring_and_passes_on_the_users_options() -> None:
    ring = {"size": 2, "rank": 0, "hosts": ["train-worker-1", "train-worker-3"]}
    env = {"COCKPIT_JOB_ID": "7", "COCKPIT_ATTEMPT": "2", "COCKPIT_SLOTS": "4"}
    assert elastic_torchrun.command(ring, env, ["--tee=1", "train.py"]) == [
        *(sys.executable, "-u", "-m", "torch.distributed.run"),
        "--monitor_interval=1",
        "--nnodes=2",
        "--nproc_per_node=4",
        "--rdzv_backend=static",
        "--node_rank=0",
        f"--rdzv_endpoint=train-worker-1:{29400 + crc32(b'7.2.train-worker-1.train-worker-3') % 1000}",
        "--rdzv_id=7.2.train-worker-1.train-worker-3",
        "--tee=1",
        "train.py",
    ]
    assert elastic_torchrun.environment(ring, env)["COCKPIT_RING"] == "train-worker-1,train-worker-3"


def test_torchrun_that_waits_for_others_is_ended_at_once(torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a script there is nothing to wait for, and in its rendezvous it handles no signal."""
    monkeypatch.setattr(elastic_torchrun, "_TERM_SECONDS", 0.05)
    # A program without children that becomes one that ignores the signal.
    waits = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.rename('next', 'workers.json'); "
    waits += "signal.pause()"
    Path("next").write_bytes(listed(0, 1))
    assert torchrun.run(f'exec {shlex.quote(sys.executable)} -c "{waits}"', "exit 0") == 0
    assert torchrun.rings[-1] == ["0", "1"]


@needs_torch
@pytest.mark.real
@pytest.mark.req("EL-01")
def test_the_rank_of_the_script_is_that_of_its_worker(tmp_path: Path) -> None:
    """By the order of starts, of which the last one has the first rank."""
    require_launcher()
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\n"
        "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "open(sys.argv[1], 'w').write(f'{dist.get_rank()} of {dist.get_world_size()}')\n"
        "dist.barrier()\n"
    )
    env = {"COCKPIT_JOB_ID": str(os.getpid()), "COCKPIT_ATTEMPT": "1"}
    running = []
    for rank in (2, 1, 0):
        ring = {"size": 3, "rank": rank, "hosts": ["localhost", "localhost", "localhost"]}
        words = elastic_torchrun.command(
            ring, env, ["--redirects=1", "--tee=1", str(script), str(tmp_path / f"rank.{rank}")]
        )
        running.append(subprocess.Popen([SYSTEM_PYTHON, *words[1:]], stderr=subprocess.DEVNULL))
    assert [each.wait(400) for each in running] == [0, 0, 0]
    assert [(tmp_path / f"rank.{rank}").read_text() for rank in range(3)] == ["0 of 3", "1 of 3", "2 of 3"]


def test_a_torchrun_that_waits_for_workers_that_are_gone_is_ended_soon_and_for_good(
    torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elastic_torchrun, "_IDLE_SECONDS", 0.05)
    monkeypatch.setattr(elastic_torchrun, "_TERM_SECONDS", 0.05)
    Path("next").write_bytes(listed(0, 1))
    # as torchrun at its exit barrier: no script runs any more, and signals have to wait
    waits = "trap '' TERM; sleep 0.3; mv next workers.json; while :; do read line < pipe; done"
    os.mkfifo("pipe")
    assert torchrun.run(waits, "exit 0") == 0
    assert torchrun.rings[-1] == ["0", "1"]


def test_a_script_that_runs_on_has_its_time_and_is_killed_with_torchrun(
    torchrun: Torchrun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elastic_torchrun, "_IDLE_SECONDS", 0.01)
    monkeypatch.setattr(elastic_torchrun, "_TERM_SECONDS", 0.05)
    Path("next").write_bytes(listed(0, 1))
    script = "trap '' TERM; (echo $BASHPID > script; exec sleep 60) & mv next workers.json; while :; do wait; done"
    monkeypatch.setattr(elastic_torchrun, "PATIENCE_SECONDS", 0.5)
    assert torchrun.run(f"exec bash -c {shlex.quote(script)}", "exit 0") == 0
    with suppress(ProcessLookupError):  # it is reaped already
        ended, _, _ = select.select([os.pidfd_open(int(Path("script").read_text()))], [], [], 20)
        assert ended
