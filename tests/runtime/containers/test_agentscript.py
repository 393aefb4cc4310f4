"""The command that replaces a remote shell."""

from __future__ import annotations

import pytest

from cockpit.runtime.containers import agentscript

pytestmark = pytest.mark.req("LA-10")


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        ("job-1 hostname", "job-1", "hostname"),
        ("ann@job-1 echo a b", "job-1", "echo a b"),
        ("-x -p 22 -o StrictHostKeyChecking=no job-1 -l", "job-1", "-l"),
        ("-p22 -tt job-1 true", "job-1", "true"),
        ("-q", "", ""),
        ("-p", "", ""),
        ("job-1", "job-1", ""),
        ("", "", ""),
    ],
)
def test_options_of_ssh_are_passed_over(words: str, host: str, command: str):
    assert agentscript.parsed(words.split()) == (host, command)


@pytest.mark.parametrize("words", ["", "job-1", "../job-1 true"])
def test_without_host_and_command_the_usage_is_printed(words: str, capsys):
    assert agentscript.main(words.split()) == 255
    assert capsys.readouterr().err == "usage: agent HOST COMMAND...\n"


@pytest.fixture
def hosts(monkeypatch):
    text = "127.0.0.1 localhost\n198.18.0.2 job-0 first\n"
    monkeypatch.setattr(agentscript.Path, "read_text", lambda *_, **__: text)


@pytest.mark.parametrize(("name", "known"), [("job-0", True), ("first", True), ("198.18.0.2", False), ("job", False)])
def test_hosts_of_the_job_are_those_of_its_hosts_file(hosts, name: str, known: bool):
    assert agentscript.is_of_the_job(name) == known


def test_a_host_of_another_job_is_refused_at_once(hosts, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(agentscript, "FOLDER", str(tmp_path))
    monkeypatch.setattr(agentscript.time, "sleep", lambda _: pytest.fail("it waited"))
    assert agentscript.main(["other-0", "true"]) == 255
    assert "only replicas of the same job are" in capsys.readouterr().err


def test_a_container_that_is_still_being_made_is_awaited_for_a_time(hosts, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(agentscript, "FOLDER", str(tmp_path))
    now = iter([0, 100, 299, 301])
    waits: list[float] = []
    monkeypatch.setattr(agentscript.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(agentscript.time, "sleep", waits.append)
    assert agentscript.main(["job-0", "true"]) == 255
    assert len(waits) == 2
