"""Engines killed at any moment: what was accepted is there once, runs once, and ends as it did."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from tests.e2e.aftermath import ENDED, accounting, check_journal, engine_process, journal, kill, lives, state_folder
from tests.e2e.cockpit_user import CockpitUser, eventually

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

RAN = "echo ran >> /workspace/outputs/ran"
SCRIPTS = {
    "ok": f"{RAN}; exit 0",
    "fails": f"{RAN}; exit 3",
    "lasts": f"{RAN}; sleep 0.4; exit 5",
    "waits": f"{RAN}; until test -e /workspace/outputs/go; do sleep 0.02; done; exit 6",
}
CODES = {"ok": 0, "fails": 3, "lasts": 5, "waits": 6}
NODES = """
overcommit = true
[[nodes]]
name = "big"
cpus = 64
memory = "64G"
"""


@pytest.fixture
def careful(user: CockpitUser) -> CockpitUser:
    """One whose engine checks its own promises, on a node with room for everything."""
    user.configure("config.toml", "invariants = true\n")
    user.configure("cluster.toml", NODES)
    return user


def spec(user: CockpitUser, kind: str, name: str) -> dict[str, Any]:
    return json.loads(user.job(SCRIPTS[kind], name=name, terminal=True).read_text())


def times_run(user: CockpitUser, name: str) -> int:
    ran = user.work / name / "out/ran"
    return len(ran.read_text().splitlines()) if ran.exists() else 0


def let_go(user: CockpitUser, name: str) -> None:
    (user.work / name / "out").mkdir(parents=True, exist_ok=True)
    (user.work / name / "out/go").touch()


def job_ids(out: bytes) -> list[int]:
    return [int(line.split()[-1]) for line in out.decode().splitlines() if line.startswith("submitted")]


# ── At random moments ────────────────────────────────────────────────────────────────────────────────────────────────

KILLS = 4


@pytest.mark.req("TR-01", "TR-02")
@pytest.mark.parametrize("seed", range(6))
def test_an_engine_killed_at_random_times_recovers(careful: CockpitUser, seed: int) -> None:
    chance = random.Random(seed)
    accepted: dict[int, str] = {}
    kinds: dict[str, str] = {}
    for turn in range(KILLS):
        batch = {f"{turn}-{n}": chance.choice(list(SCRIPTS)) for n in range(chance.choice([1, 1, 4]))}
        kinds |= batch
        accepted |= submit_and_kill(careful, batch, chance.uniform(0, 0.45))
    for name, kind in kinds.items():
        if kind == "waits":
            let_go(careful, name)
    assert sorted(accepted.values()) == sorted(kinds), "each retried submission was accepted in the end"
    assert careful.run("wait", *map(str, accepted), "--timeout", "20").returncode in {0, 3, 5, 6}
    check_aftermath(careful, accepted, kinds)


def submit_and_kill(user: CockpitUser, batch: dict[str, str], moment: float) -> dict[int, str]:
    """Kill the engine so many seconds into a submission; the ids that it was told, with their names."""
    lines = [json.dumps(spec(user, kind, name)) for name, kind in batch.items()]
    file = user.write("batch.jsonl", "\n".join(lines))
    submitting = user.start("submit", str(file), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with contextlib.suppress(subprocess.TimeoutExpired):
        submitting.wait(moment)
    kill(engine_process(user))
    out, err = submitting.communicate(timeout=30)
    assert submitting.returncode == 0, err.decode()
    return dict(zip(job_ids(out), batch, strict=True))


def check_aftermath(user: CockpitUser, accepted: dict[int, str], kinds: dict[str, str]) -> None:
    rows = {int(row["id"]): row for row in user.rows("jobs", "--all")}
    assert {job: row["name"] for job, row in rows.items()} == accepted
    for job, name in accepted.items():
        code = CODES[kinds[name]]
        assert (rows[job]["state"], rows[job]["exit_code"]) == ("error" if code else "succeeded", code), rows[job]
        assert times_run(user, name) == 1, name
        assert (rows[job]["held_until"] is not None) == (code != 0)
    held = [job for job, row in rows.items() if row["held_until"] is not None]
    for job in held[:1]:
        assert user.ok("shell", str(job), "--", "cat", "/workspace/outputs/ran") == "ran\n"
    assert user.row("engine", "status")["trouble"] == []
    state = check_journal(user)
    eventually(lambda: accounting(user).keys() == accepted.keys())
    for job, row in accounting(user).items():
        assert row == msgspec.to_builtins(state.jobs[job]) or row["state"] == str(state.jobs[job].state)
    assert "Traceback" not in (state_folder(user) / "engine.log").read_text()
    eventually(lambda: sorted(containers(user)) == sorted(f"{job}.1.0" for job in held))


def containers(user: CockpitUser) -> list[str]:
    return [path.name for path in (state_folder(user) / "containers").iterdir()]


# ── At the points that matter ────────────────────────────────────────────────────────────────────────────────────────


def dies_at(user: CockpitUser, point: str) -> int:
    """Start an engine that will; its pid."""
    user.env["COCKPIT_DIE_AT"] = point
    user.ok("engine", "start")
    del user.env["COCKPIT_DIE_AT"]
    pid = engine_process(user)
    assert pid is not None
    return pid


@pytest.mark.req("TR-01")
def test_a_lost_answer_is_sent_again_and_no_job_is_doubled(careful: CockpitUser) -> None:
    dying = dies_at(careful, "appended JobSubmitted")
    job = careful.submit(SCRIPTS["ok"])
    assert not lives(dying)
    assert careful.wait(job) == 0
    assert [row["id"] for row in careful.rows("jobs", "--all")] == [1]
    assert times_run(careful, "job") == 1
    requests = [record.request for record in journal(careful) if record.origin == "socket"]
    assert len(requests) == len(set(requests)) == 1


@pytest.mark.req("TR-01")
@pytest.mark.parametrize(
    "point",
    [
        "appended JobPlaced",
        "spawning 1.1.0",
        "planned 1.1.0",
        "spawned 1.1.0",
        "appended ReplicaStarted",
        "appended JobEnded",
        "removing 1.1.0",
        "trashed 1.1.0",
    ],
)
def test_an_engine_killed_between_a_decision_and_its_effect_recovers(careful: CockpitUser, point: str) -> None:
    dying = dies_at(careful, point)
    job = careful.submit(SCRIPTS["ok"])
    eventually(lambda: not lives(dying))
    assert careful.wait(job) == 0
    assert times_run(careful, "job") == 1
    check_journal(careful)
    eventually(lambda: containers(careful) == [])
    eventually(lambda: accounting(careful).keys() == {int(job)})
    eventually(lambda: not list((state_folder(careful) / "trash").glob("*")))


# ── The engine's absence ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("TR-01", "JT-40")
def test_jobs_that_end_while_no_engine_runs_have_their_actual_ends(careful: CockpitUser) -> None:
    first, second = (careful.submit(SCRIPTS["waits"], name=name, terminal=True) for name in ("first", "second"))
    eventually(lambda: times_run(careful, "first") == times_run(careful, "second") == 1)
    holders = [careful.holder_pid(job) for job in (first, second)]
    kill(engine_process(careful))
    let_go(careful, "first")
    eventually((state_folder(careful) / f"containers/{first}.1.0/exit.json").exists)
    eventually(lambda: careful.row("job", first)["state"] == "error")
    assert careful.row("job", first)["exit_code"] == 6
    eventually(lambda: careful.row("job", second)["state"] == "running")
    assert [careful.holder_pid(job) for job in (first, second)] == holders, "the same containers"
    assert careful.ok("shell", first, "--", "cat", "/workspace/outputs/ran") == "ran\n"
    let_go(careful, "second")
    assert careful.wait(second) == 6
    assert times_run(careful, "first") == times_run(careful, "second") == 1


@pytest.mark.req("TR-01", "TR-03")
def test_a_stopped_engine_is_reported_and_restarted(careful: CockpitUser) -> None:
    job = careful.submit(SCRIPTS["waits"])
    eventually(lambda: times_run(careful, "job") == 1)
    stopped = engine_process(careful)
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    silent = impatiently(careful, "jobs")
    assert silent.returncode == 69
    assert "does not answer" in silent.stderr
    assert "engine restart" in silent.stderr
    (status,) = json.loads(impatiently(careful, "engine", "status", "-o", "json").stdout)["rows"]
    assert status["pid"] == stopped
    assert "does not answer" in status["trouble"][0]
    careful.ok("engine", "restart")
    assert engine_process(careful) != stopped
    assert careful.row("job", job)["state"] == "running"
    let_go(careful, "job")
    assert careful.wait(job) == 6


IMPATIENT = """
import sys
from cockpit.backends.local import channel
from cockpit.cli import main
channel.ANSWER_SECONDS = 0.3
sys.exit(main())
"""


def impatiently(user: CockpitUser, *words: str) -> subprocess.CompletedProcess[str]:
    """The command, waiting for an answer less long than it would."""
    return subprocess.run(
        [sys.executable, "-c", IMPATIENT, *words], env=user.env, capture_output=True, text=True, check=False
    )


# ── Containers killed from outside ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("TR-01", "JT-31")
@pytest.mark.parametrize("engine_too", [False, True])
def test_a_killed_holder_ends_its_job_as_lost(careful: CockpitUser, engine_too: bool) -> None:
    job = careful.submit(SCRIPTS["waits"], terminal=True)
    eventually(lambda: careful.row("job", job)["state"] == "running")
    eventually(lambda: times_run(careful, "job") == 1)
    kill(careful.holder_pid(job), engine_process(careful) if engine_too else None)
    assert careful.wait(job) == 255
    found = careful.row("job", job)
    assert (found["state"], found["held_until"] is not None) == ("error", True)
    entered = careful.run("shell", job, "--", "cat", "/workspace/outputs/ran")
    assert (entered.returncode, entered.stdout) == (0, b"ran\n"), "its files are still there"
    assert times_run(careful, "job") == 1
    check_journal(careful)


@pytest.mark.req("TR-01", "JT-40")
@pytest.mark.parametrize("engine_too", [False, True])
def test_a_shell_opens_in_a_held_container_whose_holder_was_killed(careful: CockpitUser, engine_too: bool) -> None:
    job = careful.submit(f"{RAN}; echo kept > /etc/kept; exit 3", terminal=True)
    assert careful.wait(job) == 3
    kill(careful.holder_pid(job), engine_process(careful) if engine_too else None)
    assert careful.ok("shell", job, "--", "cat", "/etc/kept") == "kept\n"
    assert careful.row("job", job)["exit_code"] == 3
    assert times_run(careful, "job") == 1
    careful.ok("holds", "end", job, "--yes")
    eventually(lambda: containers(careful) == [])


@pytest.mark.req("TR-01")
@pytest.mark.parametrize("seed", range(4))
def test_a_job_runs_at_most_once_if_engine_and_holder_are_killed_during_its_start(
    careful: CockpitUser, seed: int
) -> None:
    """The command ran once or not at all, and what the engine says of it fits."""
    careful.ok("engine", "start")
    job = careful.submit(SCRIPTS["ok"])
    claim = state_folder(careful) / f"containers/{job}.1.0/shim.json"
    eventually(lambda: claim.exists() or times_run(careful, "job"))
    for _ in range(random.Random(seed).randrange(60_000)):
        pass
    with contextlib.suppress(FileNotFoundError):
        kill(careful.holder_pid(job), engine_process(careful))
    careful.wait(job)
    found = careful.row("job", job)
    assert found["state"] in ENDED
    assert times_run(careful, "job") <= 1
    if found["exit_code"] == 0:
        assert times_run(careful, "job") == 1
    check_journal(careful)
    eventually(lambda: containers(careful) == [])
