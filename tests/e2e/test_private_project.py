"""A project, its jobs, catalogue and files, as a user of another project may see them: nowhere."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually
from tests.e2e.people import ANN, BOB, CAROL
from tests.e2e.system_engine import SystemEngine, system_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts"), pytest.mark.req("JT-60", "TR-09")]

CLUSTER = f"""
overcommit = true
[[projects]]
name = "zqjxsecret"
users = ["{ANN}", "{CAROL}"]
[[projects]]
name = "other"
users = ["{BOB}"]
[[nodes]]
name = "n1"
cpus = 2
memory = "2G"
"""
SMALL = [{"cpus": 1, "memory": "64M"}]


@pytest.fixture(scope="module")
def engine(everybodys_python: str, people: None) -> Iterator[SystemEngine]:
    with system_engine(everybodys_python, CLUSTER) as engine:
        yield engine


@pytest.fixture(scope="module")
def jobs(engine: SystemEngine) -> list[str]:
    """Jobs of the project: running, ended, held for debugging, waiting, refused; and an entry of its catalogue."""
    ann = engine.ann
    secret = {"project": "zqjxsecret", "access": "rw", "specs": SMALL, "env": {"ZQENV": "zqjxvalue"}}
    (ann.work / "zqjxdata").mkdir(exist_ok=True)
    (ann.work / "zqjxdata").chmod(0o755)
    ann.ok("catalogue", "add", "dataset", "zqjxsecret/zqjxcorpus", f"path={ann.work}/zqjxdata", "access=ro")
    ended = ann.submit("echo zqjxoutput; touch /workspace/zqjxfile", name="zqjxended", **secret)
    ann.run("wait", ended)
    failed = ann.submit("echo zqjxoutput >&2; exit 3", name="zqjxfailed", **secret)
    ann.run("wait", failed)
    running = [ann.submit("echo zqjxoutput; sleep 500", name=f"zqjxrunning{n}", **secret) for n in range(2)]
    eventually(lambda: {row["state"] for row in ann.rows("jobs") if "running" in row["name"]} == {"running"})
    waiting = ann.submit("true", name="zqjxwaiting", **secret)
    batch = ann.submit("true", name="zqjxbatch", hold=True, **secret)
    engine.root.ok("set-priority", waiting, "very-urgent")
    return [ended, failed, *running, waiting, batch]


def texts(user: CockpitUser, *words: str) -> str:
    done = user.run(*words)
    return f"{words}: {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}"


def leaks(user: CockpitUser, *words: str) -> str:
    """What the command says, if it says anything of the project."""
    said = texts(user, *words)
    told = said.partition("\n")[2]
    own = [each for each in words if each.startswith("zqjx")]
    for each in own:
        told = told.replace(each, "")
    return said if "zqjx" in told or ANN in told or CAROL in told or "Traceback" in told else ""


def about(job: str) -> list[tuple[str, ...]]:
    """Every command about one job, by id or by name."""
    named = ["job", "explain", "usage", "trials", "events", "logs", "wait", "clone", "cancel", "hold", "release"]
    named += ["suspend", "resume", "requeue", "delete", "shell", "holds end", "tensorboard", "edit"]
    lines = [(*each.split(), job) for each in named]
    return [*lines, ("set-priority", job, "low"), ("set-time-limit", job, "1h"), ("holds", "extend", job, "1h")]


def test_no_command_tells_of_the_project(engine: SystemEngine, jobs: list[str]) -> None:
    bob = engine.bob
    own = bob.submit("true", name="own", specs=[{"cpus": 2, "memory": "64M"}], project="other")
    lists = ["overview", "jobs", "clusters", "starts", "priority", "nodes", "cards", "queues", "quota", "holds"]
    lists += ["reservations", "staged", "events", "accounts", "catalogue", "accounting", "cluster"]
    lines: list[tuple[str, ...]] = [(each, *more) for each in lists for more in ((), ("-o", "json"))]
    lines += [(each, own, *more) for each in ("job", "explain", "usage") for more in ((), ("-o", "json"))]
    lines += [("jobs", "--all", "-o", "json"), ("jobs", "--all"), ("nodes", "--all"), ("events", own)]
    lines += [("accounting", "--by", each) for each in ("user", "project", "account")]
    lines += [("accounting", "hours", "--by", each) for each in ("user", "project", "account")]
    lines += [("jobs", "--filter", f"user:{ANN}"), ("jobs", "--filter", "project:zqjxsecret"), ("engine", "status")]
    lines += [("accounting", "--user", ANN), ("cluster", "export"), ("catalogue", "export"), ("doctor",)]
    lines += [("catalogue", "show", "dataset", "zqjxcorpus"), ("catalogue", "list", "dataset"), ("snapshot", "/tmp/s")]
    job = str(bob.job("true", name="mine", specs=SMALL, project="other"))
    lines += [("predict", job), ("submit", "--dry-run", job), ("launch", "--dry-run", job)]
    for job_id in (jobs[1], jobs[2], "zqjxwaiting"):
        lines += about(job_id)
    said = [found for words in lines if (found := leaks(bob, *words))]
    assert not said, "\n".join(said)


def test_what_is_private_is_refused_like_what_does_not_exist(engine: SystemEngine, jobs: list[str]) -> None:
    bob = engine.bob

    def submitted(**fields: object) -> tuple[str, ...]:
        return ("submit", str(bob.job("true", name="oracle", hold=True, **fields)))

    def said(words: tuple[str, ...], name: str) -> str:
        return re.sub(rf"\b{name}\b", "NAME", texts(bob, *words))

    for private, absent in ((jobs[1], "99999"), ("zqjxwaiting", "zqjxnothing")):
        for one, other in zip(about(private), about(absent), strict=True):
            assert said(one, private) == said(other, absent)
    for private, absent in ((jobs[0], "99999"), (jobs[-1], "99999")):
        one = said(submitted(specs=SMALL, dependencies=[f"afterok:{private}"]), private)
        assert one == said(submitted(specs=SMALL, dependencies=[f"afterok:{absent}"]), absent)
    one = said(submitted(specs=SMALL, project="zqjxsecret"), "zqjxsecret")
    assert one == said(submitted(specs=SMALL, project="zqjxnothing"), "zqjxnothing")
    show = ("catalogue", "show", "dataset")
    assert said((*show, "zqjxcorpus"), "zqjxcorpus") == said((*show, "zqjxnothing"), "zqjxnothing")
    one = said(submitted(specs=SMALL, project="other", datasets=[{"name": "zqjxcorpus"}]), "zqjxcorpus")
    assert one == said(submitted(specs=SMALL, project="other", datasets=[{"name": "zqjxnothing"}]), "zqjxnothing")


def test_no_watch_tells_of_the_project(engine: SystemEngine, jobs: list[str]) -> None:
    bob, ann = engine.bob, engine.ann
    watches = [
        bob.start(*words, "-o", "json", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        for words in (("jobs", "--watch"), ("events", "--follow"), ("nodes", "--watch"), ("priority", "--watch"))
    ]
    last = ann.submit("true", name="zqjxlater", project="zqjxsecret", access="rw", specs=SMALL)
    ann.ok("cancel", *jobs[2:4], "--now", "--yes")
    ann.run("wait", last)
    for each in watches:
        each.terminate()
    said = b"".join(each.communicate(timeout=30)[0] for each in watches).decode()
    assert "zqjx" not in said
    assert ANN not in said
    assert json.dumps(CAROL) not in said
