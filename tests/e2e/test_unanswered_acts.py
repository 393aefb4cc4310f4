"""Every verb that changes something, where the engine has done it and the answer never comes."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest

from cockpit.headless.registry import ACTING
from tests.doubles.faulty_proxy import Fault, FaultyProxy
from tests.e2e.cockpit_user import a_new_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.req("TR-01")]
ONLY_ON_SLURM = {"update", "top"}
MAY_BE_REFUSED = {
    ("staged", "remove"),
    ("quota", "remove"),
    ("nodes", "resume"),
    ("resume", "3"),
    ("reclaim", "no-such"),
    ("unblock", "1"),
}
"""There is no such copy, node or block list; the tree or the drain may come after; the CPUs may be taken."""
QUOTA = """\
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec:
  root: {name: root, max: {cpu: 100}, min: {cpu: 100}}
"""


@pytest.fixture(scope="module")
def user() -> Iterator[CockpitUser]:
    with a_new_user() as somebody:
        yield somebody


@contextmanager
def answers_to_acts_swallowed(user: CockpitUser) -> Iterator[None]:
    folder = user.folder / "run/cockpit-cluster"
    engine = (folder / "engine.sock").rename(folder / "behind.sock")
    with FaultyProxy(folder / "engine.sock", engine, Fault(once=False, swallows_acts=True)):
        yield
    engine.rename(folder / "engine.sock")


def command_lines(user: CockpitUser) -> list[tuple[str, ...]]:
    """A command line for each verb, on things of its own which are made here."""

    numbers = count()

    def held() -> str:
        return user.submit("true", name=f"held-{next(numbers)}", hold=True)

    def runs(name: str) -> str:
        job = user.submit("sleep 999", name=name, specs=[{"cpus": 1, "memory": "64M", "cards": 0}])
        user.until(job, "running")
        return job

    def failed(name: str) -> str:
        job = user.submit("exit 3", name=name, terminal=True, specs=[{"cpus": 1, "memory": "64M", "cards": 0}])
        user.until(job, "error")
        return job

    kept, let_go, suspended = failed("bad"), failed("worse"), runs("rests")
    user.ok("suspend", suspended)
    running, requeued = runs("runs"), runs("anew")
    size = {"workers": 2, "min_workers": 1, "max_workers": 3}
    elastic = user.submit("sleep 999", name="grows", hold=True, specs=[{"cpus": 1, "memory": "64M"}], elastic=size)
    ended = held()
    user.ok("cancel", ended, "--yes")
    for words in (("add", "kept"), ("add", "gone"), ("add-qos", "kept"), ("add-qos", "gone")):
        user.ok("accounts", *words)
    for name in ("kept", "gone"):
        user.ok("catalogue", "add", "volume", name, "path=/tmp")
        user.ok("accounts", "add-user", f"user-{name}", "--account", "kept")
    user.ok("accounts", "add-coordinator", "kept", "user-kept")
    user.ok("catalogue", "add", "project", "speech", "users=ann")
    node = user.rows("nodes")[0]["name"]
    reserved = ("--nodes", node, "--duration", "1h", "--users", "root", "--start")
    user.ok("reservations", "create", "gone", *reserved, "2098-01-01T00:00")
    catalogue = user.write("catalogue.toml", '[[volumes]]\nname = "applied"\npath = "/tmp"\n')
    return [
        ("submit", str(user.job("true", name="new", hold=True))),
        ("edit", held(), str(user.write("part.yaml", "nice: 5\n"))),
        ("clone", held()),
        ("cancel", held(), "--yes"),
        ("hold", user.submit("true", name="waits", dependencies=f"afterok:{held()}")),
        ("release", held()),
        ("suspend", running),
        ("resume", suspended),
        ("requeue", requeued, "--yes"),
        ("delete", ended, "--yes"),
        ("set-priority", held(), "urgent"),
        ("set-time-limit", held(), "1h"),
        ("session", "--detach"),
        ("train", held(), "--", "true"),
        ("priority", "--weights", "age=5", "--apply", "--yes"),
        ("lab", "--weights", "age=6", "--apply", "--yes"),
        ("nodes", "drain", node, "--reason", "fan"),
        ("nodes", "resume", node),
        ("reclaim", "no-such"),
        ("unblock", "1", node),
        ("scale", elastic, "3"),
        ("holds", "extend", kept, "--by", "1h"),
        ("holds", "end", let_go),
        ("reservations", "create", "new", *reserved, "2099-01-01T00:00"),
        ("reservations", "create", "soon", *reserved[:-1], "--start", "now+20000h"),
        ("reservations", "end", "gone"),
        ("quota", "apply", str(user.write("quota.yaml", QUOTA))),
        ("quota", "remove"),
        ("staged", "remove", "abcd"),
        ("accounts", "add", "new"),
        ("accounts", "modify", "kept", "MaxJobs=4"),
        ("accounts", "remove", "gone"),
        ("accounts", "add-user", "user-new", "--account", "kept"),
        ("accounts", "modify-user", "user-kept", "--account", "kept", "--shares", "4"),
        ("accounts", "remove-user", "user-gone", "--account", "kept"),
        ("accounts", "add-qos", "new"),
        ("accounts", "modify-qos", "kept", "MaxJobsPerUser=4"),
        ("accounts", "remove-qos", "gone"),
        ("accounts", "add-coordinator", "kept", "user-kept"),
        ("accounts", "remove-coordinator", "kept", "user-kept"),
        ("catalogue", "add", "volume", "new", "path=/tmp"),
        ("catalogue", "set", "volume", "kept", "path=/var"),
        ("catalogue", "set", "project", "speech", "users=+bob"),
        ("catalogue", "remove", "volume", "gone"),
        ("catalogue", "apply", str(catalogue)),
    ]


def test_no_verb_reports_an_unanswered_request_as_not_done(user: CockpitUser) -> None:
    user.env["COCKPIT_ACT_PATIENCE"] = "1"
    lines = command_lines(user)
    verbs = {" ".join(words[:size]) for words in lines for size in (1, 2)} & ACTING
    assert verbs == ACTING - ONLY_ON_SLURM
    with answers_to_acts_swallowed(user), ThreadPoolExecutor(4) as threads:
        unanswered = list(threads.map(lambda words: user.run(*words), lines))
    requests = []
    for words, done in zip(lines, unanswered, strict=True):
        assert done.returncode == 73, (words, done)
        assert b"The request may have been accepted" in done.stderr, (words, done)
        assert not re.search(rb"nothing was|not accepted|run the command again", done.stderr, re.IGNORECASE), words
        (request,) = set(re.findall(r"--request(?:-id)? ([0-9a-f]+)", done.stderr.decode()))
        requests.append(request)
    jobs = len(user.rows("jobs", "--all"))
    for words, request in zip(lines, requests, strict=True):
        seen = user.run("jobs", "--request", request)
        assert b"No request" not in seen.stderr, (words, seen)
        separator = words.index("--") if "--" in words else len(words)
        again = user.run(*words[:separator], "--request-id", request, *words[separator:])
        assert again.returncode == seen.returncode, (words, seen, again)
        if words[:2] not in MAY_BE_REFUSED:
            assert again.returncode == 0, (words, again)
    assert len(user.rows("jobs", "--all")) == jobs, "the repeats have submitted nothing"


def test_another_content_of_a_file_under_the_same_id_is_another_request(user: CockpitUser) -> None:
    line = ("submit", "--request-id", "by-file", str(user.job("true", name="content", hold=True)))
    first = user.ok(*line)
    assert user.ok(*line) == first
    assert str(user.job("true", name="content", hold=True, nice=5)) == line[-1]
    assert user.run(*line).returncode == 67


def test_the_repeat_of_a_command_that_names_what_it_removed_gives_the_first_answer(user: CockpitUser) -> None:
    job = user.submit("true", name="once-there", hold=True)
    user.ok("cancel", "--yes", job)
    user.ok("delete", "--yes", "--request-id", "tidy", "once-there")
    again = user.run("delete", "--yes", "--request-id", "tidy", "once-there")
    assert (again.returncode, again.stdout) == (0, b"deleted once-there\n")
    other = user.run("delete", "--yes", "--request-id", "tidy", "never-there")
    assert other.returncode == 66


def test_a_verb_on_several_jobs_names_those_not_tried_and_is_safely_repeated(user: CockpitUser) -> None:
    user.env["COCKPIT_ACT_PATIENCE"] = "1"
    jobs = [user.submit("true", name=name, hold=True) for name in ("one", "two", "three")]
    with answers_to_acts_swallowed(user):
        done = user.run("cancel", "--yes", *jobs)
    assert done.returncode == 73
    assert f"Not tried, since {jobs[0]} was not answered: {jobs[1]}, {jobs[2]}" in done.stderr.decode()
    (request,) = set(re.findall(r"--request-id ([0-9a-f]+)", done.stderr.decode()))
    assert user.ok("cancel", "--yes", "--request-id", request, *jobs).splitlines() == [
        f"cancelled {job}" for job in jobs
    ]
