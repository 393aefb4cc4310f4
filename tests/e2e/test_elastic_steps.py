"""The steps of a real training: reported by its script, known after the death of the engine, lost by interruptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.cockpit_user import eventually
from tests.e2e.test_elastic import ONE, RULES, WAITS

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

SCRIPT = """
import os, sys, time
from cockpit import elastic

outputs, step = os.environ["COCKPIT_OUTPUTS"], 0
path = elastic.latest_checkpoint("step-*.txt")
if path is not None:
    step = int(open(path).read())
elastic.step(step, total_steps=5000)
while not os.path.exists(outputs + "/finish"):
    if not elastic.check_alive():
        sys.exit(255)
    if step < int(open(outputs + "/gate").read()):
        step += 1
        elastic.step(step)
        if step % 10 == 0 and elastic.world()["rank"] == 0:
            with elastic.save(f"{outputs}/step-{step}.txt") as draft, open(draft, "w") as stream:
                stream.write(str(step))
    time.sleep(0.01)
"""
"""Each worker goes on to the step in the file `gate`; it saves a checkpoint every ten steps, and none when it ends."""
PRINTS = """
i=0
while [ ! -e /workspace/outputs/finish ]; do
    i=$((i + 1))
    [ $i -gt 40 ] || echo "this iteration hardware time is 200.5 and e2e time is 250.0 ms."
    sleep 0.02
done
"""


class Training:
    """A job of the script above."""

    def __init__(self, user: CockpitUser, **elastic: object) -> None:
        self.user = user
        user.configure("cluster.toml", RULES)
        user.write("train/algo/train.py", SCRIPT)
        self.open_until(0)
        command = "python3 /workspace/algorithm/train.py"
        self.job = user.submit("", name="train", command=command, output="out", qos="low", specs=ONE, elastic=elastic)

    def open_until(self, step: int) -> None:
        self.user.write("out/gate.new", str(step)).rename(self.user.work / "out/gate")

    @property
    def known(self) -> dict[str, Any]:
        return dict(self.user.row("job", self.job)["training"])

    def reaches(self, step: int) -> None:
        self.open_until(step)
        eventually(lambda: self.known["step"] == step)

    def resumed(self) -> list[str]:
        return [row["sentence"] for row in self.user.rows("events", self.job) if row["event"] == "training_resumed"]


@pytest.mark.req("EL-04", "EL-03")
def test_the_steps_that_a_suspension_costs_are_known_although_the_engine_died(user: CockpitUser) -> None:
    training = Training(user, workers=2, min_workers=2)
    training.reaches(25)
    eventually(lambda: training.known["checkpoint_step"] == 20)
    assert training.known["total_steps"] == 5000
    user.kill_engine()
    eventually(lambda: training.known["step"] == 25)
    assert training.known["interruptions"] == [], "an engine that restarts interrupts nothing"
    urgent = user.submit(WAITS, name="urgent", output="urgent", qos="high", specs=ONE, nodes=2, mode="pytorch")
    user.until(urgent, "running")
    assert training.known["steps_lost"] is None
    user.write("urgent/gate", "")
    training.reaches(30)
    (lost,) = training.known["interruptions"]
    assert (lost["cause"], lost["step_reached"], lost["step_resumed"], lost["steps_lost"]) == ("preempted", 25, 20, 5)
    sentence = "trains on after a preemption: 5 steps lost (step 25 reached, resumed from step 20)"
    assert training.resumed() == [sentence]
    page = user.ok("job", training.job)
    assert sentence in page
    assert "Training: step 30 of 5000, checkpoint at step 30" in page


@pytest.mark.req("EL-01", "EL-07")
def test_the_speed_gives_the_end_with_other_numbers_of_workers(user: CockpitUser) -> None:
    training = Training(user, workers=2, min_workers=1, max_workers=2, worker_restart_policy="OnFailure")
    training.reaches(60)
    explained = user.row("explain", training.job)["training"]
    ends = {each["workers"]: each for each in explained["ends"]}
    assert [*ends] == [1, 2]
    assert (ends[2]["source"], ends[1]["source"]) == ("measured", "proportional")
    assert ends[1]["steps_per_second"] == pytest.approx(ends[2]["steps_per_second"] / 2)
    assert ends[2]["end_at"] < ends[1]["end_at"]
    text = user.ok("explain", training.job)
    assert "with 2 workers (now)" in text
    assert "assumed proportional: it has had one size" in text
    # The first worker is killed; the second one, which is rank 0 now, goes on with its steps.
    user.run("shell", f"{training.job}/0", "--", "sh", "-c", "kill -9 $(pgrep -f train.py)")
    eventually(lambda: len(user.rows("job", training.job, "--replicas")) == 3)
    training.open_until(5000)
    eventually(lambda: training.resumed() != [])
    assert training.resumed()[0].startswith("trains on after the end of a worker: no steps lost ")
    workers = user.row("job", training.job)["rings"][-1]["workers"]
    assert [(each["rank"], each["replica"]) for each in workers] == [(0, 1), (1, 2)]
    user.write("out/finish", "")


@pytest.mark.req("EL-13")
def test_iterations_in_the_log_are_counted_where_the_script_reports_no_steps(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    job = user.submit(PRINTS, name="train", output="out", specs=ONE, elastic={"workers": 2, "min_workers": 1})
    eventually(lambda: user.row("job", job)["training"]["step"] == 40)
    known = user.row("job", job)["training"]
    assert known["counted_in_log"] is True
    assert known["speeds"] == [{"workers": 2, "steps": 40, "steps_per_second": 4.0}]
    assert known["steps_lost"] is None
    assert "40 iterations counted in the log of its first worker; steps not known" in user.ok("job", job)
    user.write("out/finish", "")
