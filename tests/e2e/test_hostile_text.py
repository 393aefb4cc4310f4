"""Text from outside, through every command against a real engine, judged by the raw bytes that come out."""

from __future__ import annotations

import json
import os
import pty
import select
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser
from tests.e2e.hostile_jobs import EVIL, SAYABLE, a_hostile_job, obeyed
from tests.hostile import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

FORMS = ("table", "wide", "csv", "json", "jsonl")
LISTS = (("jobs",), ("jobs", "--all"), ("nodes",), ("holds",), ("events",), ("job", "{job}"), ("engine", "status"))


def harmful(data: bytes, spared: str = "\n") -> set[str]:
    """Characters in a command's output that a terminal would obey or not draw. The bytes must be UTF-8."""
    return obeyed(data.decode("utf-8", "strict"), spared)


def assert_harmless(done: CompletedProcess[bytes], *, spared: str = "\n") -> None:
    assert harmful(done.stdout, spared) == set(), (done.args, done.stdout[:2000])
    assert harmful(done.stderr, "\n\t") == set(), (done.args, done.stderr[:2000])
    assert b"defect" not in done.stderr, done.stderr


@pytest.fixture(scope="module")
def user() -> Iterator[CockpitUser]:
    """Their cluster's nodes and folders have names that attack, as far as such names are taken."""
    with tempfile.TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as path:
        somebody = CockpitUser(Path(path))
        yield somebody
        somebody.leave()


@pytest.fixture(scope="module")
def job(user: CockpitUser) -> str:
    return a_hostile_job(user)


@pytest.mark.req("TR-05", "UI-40")
@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_is_escaped_in_every_list_and_format(user: CockpitUser, job: str, form: str) -> None:
    for words in LISTS:
        done = user.run(*(word.format(job=job) for word in words), "-o", form)
        assert done.returncode == 0, done.stderr
        assert_harmless(done, spared="\n\t" if words[0] == "job" else "\n")


@pytest.mark.req("TR-05")
def test_hostile_text_is_escaped_in_job_details_and_messages(user: CockpitUser, job: str) -> None:
    for words in (
        (),
        ("overview",),
        ("doctor",),
        ("cancel", "7", "--yes"),
        ("hold", "8"),
        ("release", "9"),
        ("events", job),
    ):
        assert_harmless(user.run(*words))


@pytest.mark.req("TR-05")
def test_a_log_is_raw_for_a_program_and_escaped_for_a_person(user: CockpitUser, job: str) -> None:
    printed = "\n".join(SAYABLE.values()).encode()
    assert user.run("logs", job).stdout == printed
    assert user.run("logs", job, "--stderr").stdout == printed
    shown = on_a_terminal(user, "logs", job)
    assert harmful(shown.replace(b"\r\n", b"\n"), "\n\t") == set()
    assert b"\\x1b]0;owned\\x07" in shown
    assert "训练任务".encode() in shown
    for words in (("jobs",), ("job", job), ("events",)):
        assert harmful(on_a_terminal(user, *words).replace(b"\r\n", b"\n"), "\n\t") == set()


@pytest.mark.req("TR-05", "JT-01")
def test_invisible_names_are_refused_with_the_field(user: CockpitUser) -> None:
    lines = [{"name": text, "command": "true", "output": "./o"} for text in UNSEEN.values()]
    done = user.run("submit", str(user.write("names.jsonl", "\n".join(map(json.dumps, lines)))))
    assert done.returncode == 65
    assert_harmless(done)
    told = done.stderr.decode().splitlines()
    assert {int(line.split("names.jsonl:")[1].split(":")[0]) for line in told} == set(range(1, len(lines) + 1))
    assert all(": name: " in line for line in told)


BROKEN_FILES = {
    "a.yaml": "name: [{evil}\n",
    "b.yaml": '{evil}: 1\nname: "{evil}"\n',
    "c.json": '{{"name": "{evil}", "command": 3, "output": ["{evil}"], "{evil}": 1}}',
    "d.yaml": "name: x\ncommand: 'true; {evil}'\noutput: o\nspecs: [{{cpus: '{evil}', memory: '{evil}'}}]\n",
    "e.yaml": "name: x\ncommand: 'true'\noutput: o\ntime_limit: '{evil}'\nhome: '{evil}'\nnode_names: ['{evil}']\n",
    "f.jsonl": '{{"name": "x"}}\n{evil}\n',
}


@pytest.mark.req("TR-05")
@pytest.mark.parametrize("name", BROKEN_FILES)
def test_errors_in_job_files_quote_escaped_text(user: CockpitUser, name: str) -> None:
    for text in (EVIL, UNSEEN["escape sequence"], UNSEEN["bidi override"], "\ud800"):
        path = user.work / name
        path.write_bytes(BROKEN_FILES[name].format(evil=text).encode("utf-8", "surrogatepass"))
        done = user.run("submit", str(path))
        assert done.returncode == 65, done
        assert_harmless(done)


@pytest.mark.req("TR-05")
def test_names_of_files_clusters_and_columns_are_escaped(user: CockpitUser) -> None:
    evil = EVIL.replace("\n", "").replace("/", "") + os.fsdecode(b"\xff\x9b")
    broken = user.work / f"{evil[:30]}.yaml"
    broken.write_text("name: ''\n")
    for words in (
        ("submit", str(broken)),
        ("submit", str(user.work / f"missing-{evil[:30]}")),
        ("jobs", "-c", evil),
        ("jobs", "--columns", evil),
        ("jobs", "--sort", evil),
        ("jobs", "--filter", f"name:{evil}"),
        ("jobs", "--filter", evil),
        ("jobs", f"--{evil}"),
        ("job", evil),
        ("job", f"{evil}:1"),
        ("wait", "1", "--timeout", evil),
        (evil,),
        ("schema", evil),
        ("holds", "extend", "1", "--by", evil),
        ("logs", "1", "--tail", evil),
    ):
        done = user.run(*words)
        assert done.returncode not in {70, 1}, done
        assert_harmless(done)


@pytest.mark.req("TR-05")
@pytest.mark.parametrize(
    "variable", ["COCKPIT_CLUSTER", "COCKPIT_HOLD_WINDOW", "COCKPIT_STATE_FOLDER", "COCKPIT_PIDS_LIMIT"]
)
def test_environment_variables_are_escaped(user: CockpitUser, variable: str) -> None:
    before = dict(user.env)
    user.env[variable] = EVIL + "\udcff"
    try:
        for words in (("jobs",), ("engine", "status"), ("engine", "status", "-o", "json"), ("doctor",)):
            assert_harmless(user.run(*words))
    finally:
        user.env.clear()
        user.env.update(before)


@pytest.mark.req("TR-05")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.toml", "hold_window = '{evil}'\n"),
        ("config.toml", '"{evil}" = 1\n'),
        ("config.toml", "= {evil}\n"),
        ("cluster.toml", "[[nodes]]\nname = '{evil}'\ncpus = '{evil}'\n"),
        ("cluster.toml", "= {evil}\n"),
    ],
)
def test_errors_in_settings_are_escaped(folder: Path, name: str, content: str) -> None:
    """Of cluster.toml by the engine, which does not start, in its last words."""
    somebody = CockpitUser(folder)
    somebody.configure(name, content.format(evil="a\x9b31m\u202e\u2028\ufeffb"))
    for words in (("jobs",), ("engine", "start")):
        done = somebody.run(*words)
        assert done.returncode not in {0, 70}, done
        assert name.encode() in done.stderr
        assert_harmless(done)


def on_a_terminal(user: CockpitUser, *words: str) -> bytes:
    """What a command writes to a terminal of 200 columns."""
    master, slave = pty.openpty()
    process = user.start(*words, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    said, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            part = os.read(master, 1 << 16)
        except OSError:
            break
        if not part:
            break
        said += part
    os.close(master)
    assert process.wait(60) == 0
    return said
