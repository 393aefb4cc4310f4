"""A person, or a script, whose command is not answered: what they are told, and how they go on without harm."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.doubles.faulty_proxy import Fault, FaultyProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.req("TR-01")]
NO_ANSWERS = Fault(to_client=0, stalls=True, once=False)


@contextmanager
def faulty(user: CockpitUser, fault: Fault) -> Iterator[None]:
    """What lies between the user's commands and their engine, which must run."""
    folder = user.folder / "run/cockpit-cluster"
    engine = (folder / "engine.sock").rename(folder / "behind.sock")
    with FaultyProxy(folder / "engine.sock", engine, fault):
        yield
    engine.rename(folder / "engine.sock")


def test_a_submission_that_is_not_answered_is_found_and_repeated_without_a_second_job(user: CockpitUser) -> None:
    user.env["COCKPIT_ACT_PATIENCE"] = "2"
    file = str(user.job("true", name="nine", hold=True))
    user.ok("jobs")
    with faulty(user, NO_ANSWERS):
        done = user.run("submit", file)
    assert done.returncode == 73
    assert b"may have been accepted" in done.stderr
    assert b"not accepted" not in done.stderr
    (request,) = set(re.findall(r"--request(?:-id)? ([0-9a-f]+)", done.stderr.decode()))
    (row,) = user.rows("jobs", "--request", request)
    assert row["name"] == "nine"
    assert user.ok("submit", "--request-id", request, file).split()[-1] == str(row["id"])
    assert len(user.rows("jobs", "--all")) == 1


def test_a_script_repeats_its_commands_with_its_own_request_ids(user: CockpitUser) -> None:
    """Over a killed engine and a restart; a verb on several jobs has an id for each."""
    first = user.submit("true", name="first", hold=True)
    files = [str(user.job("true", name=name, hold=True, dependencies=f"afterok:{first}")) for name in ("a", "b", "c")]
    submitted = user.ok("submit", "--request-id", "nightly", *files)
    user.kill_engine()
    assert user.ok("submit", "--request-id", "nightly", *files) == submitted
    ids = [line.split()[-1] for line in submitted.splitlines()]
    released = user.ok("release", "--request-id", "let-go", *ids[:2])
    user.ok("hold", *ids[:2])
    user.ok("engine", "restart")
    assert user.ok("release", "--request-id", "let-go", *ids[:2]) == released
    assert {user.looked_at(job)["reason"]["type"] for job in ids} == {"held"}, "the repeat has released nothing"
    other = user.run("cancel", "--request-id", "nightly", ids[2], "--yes")
    assert (other.returncode, b"was used before" in other.stderr) == (67, True)
    assert [row["id"] for row in user.rows("jobs", "--request", "nightly")] == list(map(int, ids))


def test_the_outcome_of_a_request_decides_the_exit_code(user: CockpitUser) -> None:
    never = user.run("jobs", "--request", "never")
    assert (never.returncode, never.stdout) == (66, b"")
    assert b"No request never of yours has been accepted so far" in never.stderr
    refused = user.run("hold", "4711", "--request-id", "bad")
    assert user.run("hold", "4711", "--request-id", "bad").stderr == refused.stderr
    seen = user.run("jobs", "--request", "bad")
    assert (refused.returncode, seen.returncode) == (66, 66)
    assert b"Request bad (hold) was refused" in seen.stderr
    job = user.submit("true", name="one", hold=True)
    user.ok("cancel", "--request-id", "away", "--yes", job)
    done = user.run("jobs", "--request", "away")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Request away (cancel) was accepted" in done.stderr
    for wrong in ("", "two words", "#1", "x" * 101, "ä"):
        assert user.run("hold", job, f"--request-id={wrong}").returncode == 64


def test_a_repeat_on_several_jobs_by_name_gives_the_first_answers(user: CockpitUser) -> None:
    """Names that the first run removed, or that a new job has by now, are still those jobs'."""
    for name in ("one", "two", "three"):
        user.submit("true", name=name, hold=True)
    user.ok("cancel", "--request-id", "stop", "-y", "one", "two")
    again = user.submit("true", name="one", hold=True)
    assert user.ok("cancel", "--request-id", "stop", "-y", "one", "two") == "cancelled one\ncancelled two\n"
    assert user.row("jobs", "--filter", f"id:{again}")["state"] == "queued", "the repeat has left the new job alone"
    user.ok("cancel", "-y", again, "three")
    user.ok("delete", "-y", again)
    user.ok("delete", "--request-id", "clean", "-y", "one", "two", "three")
    assert user.ok("delete", "--request-id", "clean", "-y", "one", "two", "three").count("deleted") == 3
    unlike = user.run("delete", "--request-id", "clean", "-y", "one", "three")
    assert (unlike.returncode, b"No job is named one" in unlike.stderr) == (66, True)
    assert not user.rows("jobs", "--all")


def test_a_repeat_goes_on_with_the_jobs_that_the_first_run_did_not_reach(user: CockpitUser) -> None:
    user.env["COCKPIT_ACT_PATIENCE"] = "2"
    for name in ("one", "two"):
        user.ok("cancel", "-y", user.submit("true", name=name, hold=True))
    with faulty(user, Fault(swallows_acts=True, once=False)):
        done = user.run("delete", "-y", "--request-id", "clean", "one", "two")
    assert (done.returncode, b"Not tried" in done.stderr) == (73, True)
    assert user.ok("delete", "-y", "--request-id", "clean", "one", "two").count("deleted") == 2
    assert not user.rows("jobs", "--all")


def test_a_repeat_that_names_one_job_leaves_another_job_of_that_name_alone(user: CockpitUser) -> None:
    """Neither is the other job named as the one that was changed."""

    def failed() -> str:
        job = user.submit("exit 3", name="bad", terminal=True, specs=[{"cpus": 1, "memory": "64M", "cards": 0}])
        user.until(job, "error")
        return job

    extend = ("holds", "extend", "bad", "--by", "1h", "--request-id", "longer")
    edit = ("edit", "waits", str(user.write("part.yaml", "nice: 5\n")), "--request-id", "nicer")
    first, waits = failed(), user.submit("true", name="waits", hold=True)
    assert f"job {first} is held until" in user.ok(*extend)
    assert user.ok(*edit) == f"edited {waits}\n"
    user.ok("cancel", "-y", waits)
    user.ok("delete", "-y", first, waits)
    second, other = failed(), user.submit("true", name="waits", hold=True)
    until = user.row("jobs", "--all", "--filter", f"id:{second}")["held_until"]
    for line, op in ((extend, "extend hold"), (edit, "edit")):
        again = user.run(*line)
        assert (again.returncode, again.stdout) == (0, b""), again
        assert re.fullmatch(rf"Request \w+ \({op}\) was accepted at \S+\.\n", again.stderr.decode()), again
    assert user.row("jobs", "--all", "--filter", f"id:{second}")["held_until"] == until
    assert "nice" not in user.ok("job", other)
    user.ok("cancel", "-y", other)
    user.ok("delete", "-y", second, other)
    assert [user.run(*line).returncode for line in (extend, edit)] == [0, 0], "the names are gone"


def test_the_repeat_of_a_copy_whose_model_is_gone_prints_the_id_of_the_copy(user: CockpitUser) -> None:
    model = user.submit("true", name="model", hold=True)
    lines = (
        ("clone", model, str(user.write("held.yaml", "hold: true\n")), "--request-id", "copy"),
        ("session", "--from", "model", "--detach", "--request-id", "look"),
    )
    first = [user.ok(*line) for line in lines]
    user.ok("cancel", "-y", model)
    user.ok("delete", "-y", model)
    assert [user.ok(*line) for line in lines] == first
