"""The example of docs/elastic.md with real workers: however they come and go, it trains as one process alone does."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cockpit_user import ROOT, CockpitUser, eventually
from tests.torch_launcher import SYSTEM_PYTHON, needs_torch, require_launcher

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

EXAMPLE = ROOT / "docs/examples/elastic_training.py"
RULES = """
overcommit = true
nodes = [
    { name = "n1", cpus = 1, memory = "1G" },
    { name = "n2", cpus = 1, memory = "1G" },
    { name = "n3", cpus = 1, memory = "1G" },
]

[preemption]
type = "preempt/qos"
mode = ["REQUEUE"]

[[qos]]
name = "low"
grace_time = "60s"

[[qos]]
name = "high"
priority = 9
preempt = ["low"]
"""
ONE = [{"cpus": 1, "memory": "900M"}]
STEPS, GLOBAL_BATCH, SAMPLES = 50, 24, 240
GATED = """
import os, pathlib, sys, time
sys.path.insert(0, os.path.dirname(__file__))
import cockpit.elastic as elastic
import elastic_training as example

outputs, replica = pathlib.Path(os.environ["COCKPIT_OUTPUTS"]), os.environ["COCKPIT_REPLICA"]
report = example.report

def waits_at_the_gate(training, ring):
    report(training, ring)
    draft = outputs / f".at.{replica}"
    draft.write_text(f"{training.step} {ring.size}")
    draft.rename(outputs / f"at.{replica}")
    while training.step >= int((outputs / "gate").read_text()) and elastic.check_alive():
        time.sleep(0.01)

example.report = waits_at_the_gate
example.main()
"""
"""The example, in which each worker waits after the step whose number is in the file `gate`, unless it has to end."""
KILLS = "for each in /proc/[0-9]*; do grep -q [g]ated.py $each/cmdline && kill -9 ${each#/proc/}; done; true"
WAITS = "while [ ! -e /workspace/outputs/gate ]; do sleep 0.05; done"


class Run:
    """The disturbed run, step by step."""

    def __init__(self, user: CockpitUser) -> None:
        self.user = user
        self.out = user.work / "train/out"
        user.write("train/algo/elastic_training.py", EXAMPLE.read_text())
        user.write("train/algo/gated.py", GATED)
        self.open_until(0)
        self.job = user.submit(
            "",
            name="train",
            command=f"{SYSTEM_PYTHON} /workspace/algorithm/gated.py",
            specs=ONE,
            qos="low",
            elastic={"workers": 3, "min_workers": 1, "worker_restart_policy": "OnFailure"},
        )

    def open_until(self, step: int) -> None:
        self.user.write("train/out/gate.new", str(step)).rename(self.out / "gate")

    def waits(self, step: int, *replicas: int) -> None:
        """Until these workers wait at the gate, in a ring of their own."""
        self.open_until(step)
        expected = f"{step} {len(replicas)}"
        try:
            eventually(lambda: [self._at(each) for each in replicas] == [expected] * len(replicas))
        except AssertionError as error:
            raise AssertionError(self.story()) from error

    def _at(self, replica: int) -> str:
        with suppress(FileNotFoundError):
            return (self.out / f"at.{replica}").read_text()
        return ""

    def story(self) -> str:
        logs = [
            self.user.run("logs", f"{self.job}/{replica}", *more)
            for replica in range(6)
            for more in ((), ("--stderr",))
        ]
        said = b"\n".join(each.stdout for each in logs).decode()
        return f"{said}\n{self.user.ok('events', self.job)}"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The result of the example as one process without cockpit."""
    require_launcher()
    folder = tmp_path_factory.mktemp("undisturbed")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COCKPIT_CHECKPOINTS": str(folder)}
    subprocess.run([SYSTEM_PYTHON, EXAMPLE], env=env, check=True, capture_output=True)
    return json.loads((folder / "result.json").read_text())


def check_result(result: dict[str, Any], undisturbed: dict[str, Any]) -> None:
    assert len(result["losses"]) == len(result["ledger"]) == STEPS
    assert {len(samples) for samples in result["ledger"]} == {GLOBAL_BATCH}
    each_epoch = SAMPLES // GLOBAL_BATCH
    for first in range(0, STEPS, each_epoch):
        used = [sample for samples in result["ledger"][first : first + each_epoch] for sample in samples]
        assert sorted(used) == list(range(SAMPLES))
    assert result["losses"][-1] == pytest.approx(undisturbed["losses"][-1], rel=0.01)


@needs_torch
@pytest.mark.req("EL-01", "EL-02", "EL-03")
def test_a_disturbed_training_has_the_batches_steps_and_loss_of_an_undisturbed_one(
    user: CockpitUser, undisturbed: dict[str, Any]
) -> None:
    check_result(undisturbed, undisturbed)
    user.configure("cluster.toml", RULES)
    run = Run(user)
    run.waits(5, 0, 1, 2)
    # A spot node is reclaimed: its worker leaves, and the others continue.
    user.ok("nodes", "drain", "n3", "--reason", "spot", "--within", "60s")
    run.waits(10, 0, 1)
    # The first worker, at whose store the others meet, is killed, and another one comes.
    user.run("shell", f"{run.job}/0", "--", "sh", "-c", KILLS)
    run.waits(15, 1, 3)
    # The second node is reclaimed.
    user.ok("nodes", "drain", "n2", "--reason", "spot", "--within", "60s")
    run.waits(20, 3)
    # The last node is taken by an urgent job: the training is suspended with a checkpoint.
    urgent = user.submit(WAITS, name="urgent", output="urgent", qos="high", specs=ONE)
    user.until(urgent, "running")
    assert user.row("jobs", "--filter", f"id:{run.job}")["state"] == "suspended"
    # It resumes from there on the nodes that come back, and grows.
    user.ok("nodes", "resume", "n2")
    user.ok("nodes", "resume", "n3")
    eventually(lambda: user.row("jobs", "--filter", f"id:{run.job}", "--columns", "nodes") == {"nodes": 2})
    run.waits(30, 0, 1)
    (user.work / "urgent/gate").touch()
    run.open_until(STEPS + 1)
    assert user.wait(run.job) == 0, run.story()
    check_result(json.loads((run.out / "result.json").read_text()), undisturbed)
    row = user.row("jobs", "--all", "--filter", f"id:{run.job}")
    assert (row["state"], row["attempt"]) == ("succeeded", 2)
