"""When jobs start, on a real engine with real containers: arrays, chains, begin times, holds, urgent jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

SMALL = [{"cpus": 1, "memory": "64M"}]


@pytest.mark.req("SC-10", "JT-25")
def test_a_throttled_array_runs_two_tasks_at_once_with_their_task_ids(user: CockpitUser) -> None:
    script = (
        "echo $SLURM_ARRAY_JOB_ID/$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT"
        "/$SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX; sleep 0.3"
    )
    array = user.submit(script, name="sweep", array="1-7:2%2", specs=SMALL)
    assert user.wait(array, timeout=60) == 0
    for index in (1, 3, 5, 7):
        assert user.ok("logs", f"{array}_{index}").strip() == f"{array}/{index}/4/1-7"
    events = [json.loads(user.ok("job", f"{array}_{index}", "-o", "json"))["rows"][0] for index in (1, 3, 5, 7)]
    spans = [(row["started_at"], row["ended_at"]) for row in events]
    assert all(sum(begin < other < end for begin, end in spans) < 2 for other, _ in spans)


@pytest.mark.req("SC-10")
def test_a_task_and_the_rest_of_its_array_are_cancelled(user: CockpitUser) -> None:
    array = user.submit("sleep 60", name="sweep", array="0-3", hold=True, specs=SMALL)
    user.ok("release", f"{array}_2")
    user.until(str(int(array) + 2), "running")
    user.ok("cancel", f"{array}_2", "--now", "--yes")
    assert user.wait(f"{array}_2") != 0
    assert user.ok("cancel", array, "--yes").strip() == f"cancelled {array}"
    assert user.wait(array) == 255
    assert user.run("cancel", array, "--yes").returncode != 0


@pytest.mark.req("SC-10", "JT-25")
def test_a_chain_of_dependencies_follows_how_each_job_ends(user: CockpitUser) -> None:
    first = user.submit("exit 0", name="first", specs=SMALL)
    second = user.submit("exit 3", name="second", dependencies=f"afterok:{first}", specs=SMALL)
    repair = user.submit("exit 0", name="repair", dependencies=[f"afternotok:{second}"], specs=SMALL)
    never = user.submit("exit 0", name="never", dependencies=[f"afterok:{second}"], specs=SMALL)
    assert [user.wait(job) for job in (first, second, repair)] == [0, 3, 0]
    row = user.row("jobs", "--filter", f"id:{never}")
    assert (row["state"], row["reason"]["type"]) == ("queued", "dependency_never")
    refused = user.run("submit", str(user.job("true", name="other", dependencies="afterok:999")))
    assert b"there is no job 999" in refused.stderr
    late = user.submit("exit 0", name="late", dependencies=f"afterok:{first}", specs=SMALL)
    assert user.wait(late) == 0


@pytest.mark.req("SC-10", "JT-25")
def test_a_held_job_starts_neither_at_its_begin_time_nor_before(user: CockpitUser) -> None:
    held = user.submit("true", name="held", hold=True, begin_at="now+1s", specs=SMALL)
    later = user.submit("true", name="later", begin_at="now+1h", specs=SMALL)
    reasons = {str(row["id"]): row["reason"]["type"] for row in user.rows("jobs")}
    assert reasons == {held: "held", later: "begins_later"}
    user.ok("edit", later, str(user.job("true", name="later", begin_at="now+2s", specs=SMALL)))
    assert user.wait(later) == 0
    assert user.row("jobs", "--filter", f"id:{held}")["state"] == "queued"
    user.ok("release", held)
    assert user.wait(held) == 0


@pytest.mark.req("SC-11", "JT-34")
def test_urgent_jobs_are_bounded_at_submission_and_afterwards(user: CockpitUser) -> None:
    user.configure("cluster.toml", "urgent_jobs = 1\n")
    first = user.submit("true", name="first", priority="urgent", hold=True, specs=SMALL)
    second = user.submit("true", name="second", hold=True, specs=SMALL)
    for words in (
        ("submit", str(user.job("true", name="third", priority="urgent", hold=True, specs=SMALL))),
        ("set-priority", second, "urgent"),
    ):
        refused = user.run(*words).stderr.decode()
        assert "at most 1 of a user's jobs" in refused
        assert f"now they are {first}." in refused
    user.ok("set-priority", first, "normal")
    user.ok("set-priority", second, "urgent")
    user.ok("release", second)
    assert user.wait(second) == 0
    eventually(lambda: user.run("set-priority", first, "urgent").returncode == 0)
