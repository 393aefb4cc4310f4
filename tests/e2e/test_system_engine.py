"""One engine for a whole machine, run by root: each job under its submitter's credentials, out of others' reach."""

from __future__ import annotations

import json
import os
import pwd
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.protocol.operations import SHELL
from cockpit.runtime.operations import OPERATIONS
from tests.e2e.cockpit_user import eventually
from tests.e2e.people import ANN, BOB, LAB
from tests.e2e.system_engine import SystemEngine, system_engine
from tests.forged import ABOUT_A_JOB, arguments_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

CLUSTER = f"""
[machine]
cards = [{{ model = "A100", count = 2, slices = 4 }}]

[[projects]]
name = "vision"
users = ["{BOB}"]
groups = ["{LAB}"]
"""

ASKS = """
import json, pathlib, sys
from cockpit.backends.local.channel import Channel
from cockpit.errors import RequestRefused
import msgspec

for operation, args, request in json.loads(sys.argv[1]):
    channel = Channel.connect("/run/cockpit-cluster/engine.sock")
    number = channel._send(operation, msgspec.Raw(msgspec.msgpack.encode(args)), request)
    try:
        said = [msgspec.msgpack.decode(channel._answer(number).ok)]
    except RequestRefused as no:
        said = [no.refusal.kind, no.refusal.message]
    print(json.dumps(said, default=str))
    channel.close()
"""
"""Raw frames, each over a connection of its own; the first answer to each is printed."""


@pytest.fixture(scope="module")
def engine(everybodys_python: str, people: None) -> Iterator[SystemEngine]:
    with system_engine(everybodys_python, CLUSTER) as engine:
        yield engine


@pytest.fixture
def anns_job(engine: SystemEngine) -> Iterator[str]:
    """Runs, with a card and a half."""
    card = {"cpus": 1, "memory": "64M", "cards": 1}
    job = engine.ann.submit("echo secret; sleep 300", name="anns-job", specs=[card], terminal=True)
    eventually(lambda: engine.root.row("job", job)["state"] == "running")
    yield job
    engine.ann.ok("cancel", job, "--now", "--yes")
    engine.ann.wait(job)


def asks(person: CockpitUser, *requests: tuple[str, dict[str, Any], str]) -> list[list[Any]]:
    """Their answers: what was said, or kind and message of the refusal."""
    return [json.loads(line) for line in person.python(ASKS, json.dumps(requests)).splitlines()]


@pytest.mark.req("TR-14")
def test_a_job_has_its_submitters_credentials_and_no_more(engine: SystemEngine) -> None:
    script = """
id -u; id -g; id -G; grep -E '^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs):' /proc/self/status
touch /workspace/outputs/made; echo x > /etc/cockpit-note
"""
    job = engine.ann.submit(script, name="who")
    assert engine.ann.wait(job) == 0, engine.ann.ok("logs", job, "--stderr")
    entry = pwd.getpwnam(ANN)
    uid, gid, groups, *status = engine.ann.ok("logs", job).splitlines()
    assert (int(uid), int(gid)) == (entry.pw_uid, entry.pw_gid)
    assert set(map(int, groups.split())) == set(os.getgrouplist(ANN, entry.pw_gid))
    assert len(set(groups.split())) == 2
    assert [line.split()[1].strip("0") for line in status] == ["", "", "", "", "1"]
    made = engine.ann.work / "who/out/made"
    assert (made.stat().st_uid, made.stat().st_gid) == (entry.pw_uid, entry.pw_gid)
    assert not Path("/etc/cockpit-note").exists()


@pytest.mark.req("TR-14", "JT-40")
def test_a_shell_has_the_submitters_credentials_for_every_user_who_opens_it(
    engine: SystemEngine, anns_job: str
) -> None:
    looks = ("sh", "-c", "id -u; grep -E '^(CapEff|CapBnd):' /proc/self/status | tr -d '0\\n\\t'")
    expected = f"{pwd.getpwnam(ANN).pw_uid}\nCapEff:CapBnd:"
    assert engine.ann.ok("shell", anns_job, "--", *looks) == expected
    assert engine.root.ok("shell", anns_job, "--", *looks) == expected


@pytest.mark.req("TR-14")
def test_a_setuid_program_gains_nothing(engine: SystemEngine) -> None:
    tools = engine.ann.work / "tools"
    tools.mkdir()
    shutil.copy2("/usr/bin/id", tools / "id")
    (tools / "id").chmod(0o4755)
    job = engine.ann.submit(
        "/workspace/volume/tools/id -u", name="setuid", volumes=[{"name": "tools", "path": str(tools)}]
    )
    assert engine.ann.wait(job) == 0, engine.ann.ok("logs", job, "--stderr")
    assert engine.ann.ok("logs", job).strip() == str(pwd.getpwnam(ANN).pw_uid)


@pytest.mark.req("TR-14")
@pytest.mark.parametrize("field", ["algorithm", "output", "volumes[0]"])
def test_a_path_that_its_submitter_may_not_read_is_refused(engine: SystemEngine, field: str) -> None:
    secret = engine.root.folder / "secret"
    secret.mkdir(mode=0o700, exist_ok=True)
    inside = str(secret / "inside")
    Path(inside).mkdir(exist_ok=True)
    fields: dict[str, Any] = {
        "algorithm": {"algorithm": {"path": inside}},
        "output": {"output": inside},
        "volumes[0]": {"volumes": [{"name": "v", "path": inside}]},
    }[field]
    job = engine.ann.submit("true", name="reads-secrets", **fields)
    assert engine.ann.wait(job) == 255
    assert f"{field}: {inside}: permission denied for user {ANN}" in engine.ann.ok("events", job)


@pytest.mark.req("TR-14", "TR-09")
def test_no_data_of_another_users_job_is_shown(engine: SystemEngine, anns_job: str) -> None:
    bob = engine.bob
    assert bob.rows("jobs") == bob.rows("jobs", "--all") == bob.rows("holds") == []
    assert {row["job"] for row in bob.rows("events")} == {None}
    assert bob.row("engine", "status")["jobs"] == 0
    node = bob.row("nodes")
    shown = json.dumps(node) + bob.ok("nodes", "-o", "wide") + bob.ok("overview")
    assert "anns-job" not in shown
    assert ANN not in shown
    assert "anns-job" in json.dumps(engine.ann.row("nodes"))
    for words in (("job", anns_job), ("events", anns_job), ("logs", anns_job), ("wait", anns_job)):
        done = bob.run(*words)
        assert (done.returncode, done.stdout) == (66, b""), words
    watching = asks(bob, ("subscribe", {"first": 10}, ""), ("jobs", {"ended": True}, ""))
    assert all(not page[0]["columns"][0] and not page[0]["counts"] for page in watching)


@pytest.mark.req("TR-09", "TR-14", "JT-60")
def test_every_forged_request_about_anothers_job_is_not_found(engine: SystemEngine, anns_job: str) -> None:
    before = engine.root.rows("events", anns_job)
    job = int(anns_job)
    forged = [(each, arguments_for(each, job), f"forged-{each}") for each in (*ABOUT_A_JOB, "events")]
    missing = [(each, arguments_for(each, 10**6), "") for each, _, _ in forged]
    answers, of_nothing = asks(engine.bob, *forged), asks(engine.bob, *missing)
    assert [answer[0] for answer in answers] == ["not_found"] * len(forged)
    assert [answer[1].replace(anns_job, "N", 1) for answer in answers] == [
        answer[1].replace(str(10**6), "N", 1) for answer in of_nothing
    ], "a job that one may not see is told from one that is not there"
    assert engine.root.rows("events", anns_job) == before


@pytest.mark.req("TR-09", "JT-60")
def test_a_stored_answer_opens_no_other_users_container(engine: SystemEngine, anns_job: str) -> None:
    """The id of a request that was once accepted says nothing about another request."""
    own = {"specs": [{"name": "bobs", "command": "true", "output": f"{engine.bob.folder}/out"}]}
    forged = [(each, arguments_for(each, int(anns_job)), "reused") for each in ABOUT_A_JOB]
    accepted, *answers = asks(engine.bob, ("submit", own, "reused"), *forged)
    assert "ids" in accepted[0]
    opened = dict(zip(ABOUT_A_JOB, answers, strict=True))
    assert opened[SHELL][0] == "not_found"
    assert {row["event"] for row in engine.root.rows("events", anns_job)}.isdisjoint({"shell_opened", "job_edited"})
    assert engine.root.row("job", anns_job)["state"] == "running"


@pytest.mark.req("JT-02", "JT-60", "TR-14")
def test_a_shared_job_is_open_to_the_members_of_its_project(engine: SystemEngine) -> None:
    """Whoever enters it is in there as its owner, and the event says who it was."""
    ids = {
        access: engine.ann.submit("echo shown; sleep 300", name=f"shared-{access}", project="vision", access=access)
        for access in ("rw", "ro")
    }
    for job in ids.values():
        eventually(lambda job=job: engine.root.row("job", job)["state"] == "running")
        eventually(lambda job=job: engine.bob.ok("logs", job) == "shown\n")
        assert engine.carol.run("logs", job).returncode == 66
    assert engine.bob.ok("shell", ids["rw"], "--", "id", "-u").strip() == str(pwd.getpwnam(ANN).pw_uid)
    assert ("shell_opened", BOB) in {(row["event"], row["actor"]) for row in engine.ann.rows("events", ids["rw"])}
    denied = engine.bob.run("shell", ids["ro"], "--", "id", "-u")
    assert (denied.returncode, b"may only look at it" in denied.stderr) == (77, True)
    engine.bob.ok("cancel", ids["rw"], "--now", "--yes")
    engine.ann.ok("cancel", ids["ro"], "--now", "--yes")


@pytest.mark.req("TR-14", "UI-44")
def test_the_doctor_looks_at_the_engine_that_commands_talk_to(engine: SystemEngine) -> None:
    rows = json.loads(engine.bob.run("doctor", "-o", "json").stdout)["rows"]
    found = {row["subject"]: row["found"] for row in rows}
    assert found["state folder"] == "/var/lib/cockpit-cluster, which only root can read"
    assert found["socket folder"] == "/run/cockpit-cluster"


@pytest.mark.req("TR-09", "TR-14")
def test_only_root_stops_the_engine(engine: SystemEngine) -> None:
    pid = engine.root.engine_pid()
    assert asks(engine.ann, ("stop", {"jobs": True}, "stop"))[0][0] == "denied"
    for words in (("engine", "stop"), ("engine", "stop", "--jobs", "--yes"), ("engine", "restart")):
        done = engine.ann.run(*words)
        assert done.returncode == 77, done.stderr
        assert b"sudo" in done.stderr or b"administrator" in done.stderr
    assert engine.ann.run("engine", "start", "--system").returncode in {0, 77}
    assert engine.root.engine_pid() == pid


@pytest.mark.req("TR-11", "TR-14")
def test_events_name_the_user_that_the_kernel_named(engine: SystemEngine) -> None:
    job = engine.ann.submit("true", name="named", hold=True)
    engine.root.ok("release", job)
    engine.ann.wait(job)
    actors = {row["event"]: row["actor"] for row in engine.ann.rows("events", job)}
    assert (actors["job_submitted"], actors["job_held"], actors["job_released"]) == (ANN, ANN, "root")


@pytest.mark.req("TR-14")
def test_names_of_others_jobs_do_not_leak_through_a_refusal(engine: SystemEngine, anns_job: str) -> None:
    path = engine.bob.job("true", name="anns-job", project=ANN)
    refused = engine.bob.run("submit", str(path))
    assert refused.returncode == 65
    assert b"another job of project" in refused.stderr
    assert f"job {anns_job}".encode() not in refused.stderr


def test_the_socket_is_for_all_and_the_state_for_root(engine: SystemEngine) -> None:
    root = engine.machine.root
    assert (root / "run/cockpit-cluster/engine.sock").stat().st_mode & 0o777 == 0o666
    assert (root / "run/cockpit-cluster").stat().st_mode & 0o777 == 0o755
    assert (root / "var/lib/cockpit-cluster").stat().st_mode & 0o777 == 0o700
    assert set(OPERATIONS) >= set(ABOUT_A_JOB) - {SHELL}


@pytest.mark.req("UI-44")
def test_the_doctor_of_an_ordinary_user_tries_nothing_in_the_folder_of_root(engine: SystemEngine) -> None:
    said = {row["subject"]: row["found"] for row in engine.bob.rows("doctor")}
    assert said["state folder"] == "/var/lib/cockpit-cluster, which only root can read"
    assert [found for found in said.values() if "could not be checked" in found] == []
    assert "overlays" not in said
