"""A batch in real containers: each task has its own command and algorithm, and a folder that it does not know of."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.doubles.tensorboard import stand_in

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

WRITES = """#!/bin/sh
echo $1 from $(pwd) > $COCKPIT_OUTPUTS/result
cp /workspace/algorithm/which $COCKPIT_OUTPUTS/
exit $2
"""


def submit_batch(user: CockpitUser, *commands: str, **fields: object) -> str:
    """Each task's algorithm is a folder of its own; the batch's id."""
    tasks = []
    for index, command in enumerate(commands):
        user.write(f"algo{index}/t.sh", WRITES, 0o755)
        user.write(f"algo{index}/which", str(index))
        tasks.append({"command": f"/workspace/algorithm/t.sh {command}", "algorithm": f"./algo{index}"})
    specs = [{"cpus": 1, "memory": "256M"}]
    job = {"name": "tune", "kind": "batch", "output": "./out", "tasks": tasks, "specs": specs, **fields}
    return user.ok("submit", str(user.write("tune.json", json.dumps(job)))).split()[-1]


@pytest.mark.req("JT-03", "JT-06", "JT-07")
def test_each_task_writes_into_its_own_folder_without_changes_to_the_script(user: CockpitUser) -> None:
    batch = submit_batch(user, "a 0", "b 3", "c 0")
    assert user.wait(batch) == 3
    for index, letter in enumerate("abc"):
        folder = user.work / f"out/tune-{index}"
        assert (folder / "result").read_text() == f"{letter} from /workspace/algorithm\n"
        assert (folder / "which").read_text() == str(index)
    assert sorted(each.name for each in (user.work / "out").iterdir()) == ["tune-0", "tune-1", "tune-2"]
    row = user.row("jobs", "--all", "--fold", "--filter", "kind:batch")
    assert (row["id"], row["tasks"], row["progress"]) == (int(batch), 3, {"used": 3, "total": 3})
    states = [(each["task"], each["state"]) for each in user.row("job", batch)["batch"]]
    assert states == [(0, "succeeded"), (1, "error"), (2, "succeeded")]


@pytest.mark.req("JT-03", "JT-33", "JT-36")
def test_one_task_and_the_whole_batch_are_acted_on(user: CockpitUser) -> None:
    batch = submit_batch(user, "a 0", "b 0", hold=True)
    user.ok("cancel", f"{batch}_1")
    assert [each["state"] for each in user.row("job", batch)["batch"]] == ["queued", "stopped"]
    user.ok("clone", batch, "--name", "again")
    user.ok("clone", f"{batch}_1", "--name", "alone")
    again, alone = (
        user.row("jobs", "--all", "--fold", "--filter", "name:again"),
        user.row("jobs", "--all", "--filter", "name:alone"),
    )
    assert (again["kind"], again["tasks"], alone["kind"]) == ("batch", 2, "regular")
    assert user.wait(str(again["id"])) == 0
    assert (user.work / "out/again-1/result").read_text().startswith("b from")
    user.ok("cancel", batch)


@pytest.mark.req("JT-41")
def test_tensorboard_shows_a_run_for_each_task_until_it_is_stopped(user: CockpitUser) -> None:
    batch = submit_batch(user, "a 0", "b 0")
    user.wait(batch)
    user.env["PATH"] = stand_in(user.folder / "bin")
    address = user.ok("tensorboard", batch).strip()
    with urllib.request.urlopen(f"{address}data/runs", timeout=60) as answer:
        assert json.loads(answer.read()) == ["tune-0", "tune-1"]
    assert user.ok("tensorboard", f"{batch}_1").strip() == address
    assert b"TensorBoard is stopped" in user.run("tensorboard", batch, "--stop").stderr
    assert b"no TensorBoard of it runs" in user.run("tensorboard", batch, "--stop").stderr


@pytest.mark.req("JT-06")
def test_a_missing_folder_is_reported_by_the_local_engine_and_not_by_a_demo(user: CockpitUser) -> None:
    told = "algorithm: {} is not there now; the job fails if it is not when it starts"
    file = user.job("true", algorithm={"path": "./lost"}, hold=True)
    asked = user.run("submit", str(file))
    assert (asked.returncode, told.format(user.work / "lost") in asked.stderr.decode()) == (0, True)
    assert user.run("demo", "--headless", "submit", str(file)).stderr == b""
    assert user.run("-c", "demo", "submit", str(file)).stderr == b""
