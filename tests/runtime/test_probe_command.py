from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from cockpit.runtime.probe_command import LONGEST_ANSWER, Outcome, printable, probe_command


def test_a_command_returns_its_output_and_exit_code(tools) -> None:
    tools("tool", 'echo "hello $1"; echo trouble >&2; exit 3')
    answer = probe_command(("tool", "you; rm -rf $HOME"))
    assert (answer.outcome, answer.code, answer.ok) == (Outcome.ANSWERED, 3, False)
    assert answer.text == "hello you; rm -rf $HOME\ntrouble\n"


def test_programs_speak_the_c_locale_and_read_nothing(tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    tools("tool", 'echo "$LC_ALL"; cat')
    assert probe_command(("tool",)).text == "C\n"


def test_absent_and_unstartable_programs(tools) -> None:
    assert probe_command(("no-such-tool",)).outcome is Outcome.ABSENT
    tools("broken", "").write_bytes(b"\x7fELF not really")
    assert probe_command(("broken",)).outcome is Outcome.ABSENT
    assert probe_command(("broken", "nul\0byte")).outcome is Outcome.ABSENT


@pytest.mark.req("TR-03")
def test_a_hung_program_and_its_children_are_killed(tools, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "life")
    life = os.open(tmp_path / "life", os.O_RDONLY | os.O_NONBLOCK)
    tools("tool", f"echo begun; trap '' TERM; sleep 1000 > {tmp_path}/life & sleep 1000")
    answer = probe_command(("tool",), seconds=0.3)
    assert (answer.outcome, answer.text) == (Outcome.HUNG, "begun\n")
    assert _hangs_up(life)


def test_a_hung_program_with_closed_output_is_killed_too(tools) -> None:
    tools("tool", "exec sleep 1000 >&- 2>&-")
    assert probe_command(("tool",), seconds=0.3).outcome is Outcome.HUNG


def test_an_endless_answer_is_cut(tools) -> None:
    tools("tool", "exec yes")
    answer = probe_command(("tool",), seconds=30)
    assert answer.outcome is Outcome.ENDLESS
    assert len(answer.text) == LONGEST_ANSWER


def test_hostile_bytes_are_escaped(tools) -> None:
    tools("tool", r"printf '\033]0;title\007 \377 [bold]\n'")
    assert probe_command(("tool",)).first_line == "?]0;title? � [bold]"
    assert printable(" a\tb\n" + "x" * 100) == "a?b?" + "x" * 59


def _hangs_up(pipe: int) -> bool:
    """Whether the last one that held the other end is gone; waits for it to finish dying."""
    poll = select.poll()
    poll.register(pipe, 0)
    gone = bool(poll.poll(5000))
    os.close(pipe)
    return gone
