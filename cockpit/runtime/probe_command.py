"""Run an installed program for its output, with limits on its time and output.

It is meant for `nvidia-smi`, `bwrap --version` and the like: such programs may hang in the kernel, print garbage, or
print forever. A call takes at most its time limit and `LONGEST_ANSWER` bytes. No function here raises.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from cockpit.runtime.clock import Deadline

TIME_LIMIT_SECONDS = 5.0
LONGEST_ANSWER = 1 << 20
"""Most bytes that are read of a program's output."""
REAP_SECONDS = 0.5
"""Longest wait for a killed program. One that hangs in a driver cannot die, and is not waited for any longer."""


class Outcome(StrEnum):
    ANSWERED = "answered"
    """The program ended by itself, with the exit code `code`."""
    ABSENT = "absent"
    """There is no such program, or it could not be started (`text` says why)."""
    HUNG = "hung"
    """The program did not end within its time limit and was killed."""
    ENDLESS = "endless"
    """The program printed more than `LONGEST_ANSWER` bytes and was killed."""


class Answer(msgspec.Struct, frozen=True):
    outcome: Outcome
    code: int = -1
    text: str = ""
    """Standard output and error together; undecodable bytes are replaced."""

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.ANSWERED and self.code == 0

    @property
    def first_line(self) -> str:
        """The first non-empty line, without control characters, at most 200 characters long."""
        return printable(next((line for line in self.text.splitlines() if line.strip()), ""), 200)


Probe = Callable[[Sequence[str]], Answer]
"""The type of `probe_command` with its default time limit; checks take it as an argument, so that tests replace it."""


def printable(text: str, longest: int = 63) -> str:
    """Make foreign text safe for one line of a table: trim and shorten it, and replace control characters by `?`."""
    return "".join(char if char.isprintable() else "?" for char in text.strip())[:longest]


def probe_command(command: Sequence[str], seconds: float = TIME_LIMIT_SECONDS) -> Answer:
    """Run `command` (a vector, found on PATH) in the C locale without input, for at most `seconds`."""
    program = shutil.which(command[0])
    if program is None:
        return Answer(Outcome.ABSENT)
    try:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            # A group of its own, so that what the program has started can be killed with it.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Answer(Outcome.ABSENT, text=str(error))
    return _answer(process, Deadline(seconds))


def _answer(process: subprocess.Popen[bytes], deadline: Deadline) -> Answer:
    assert process.stdout is not None
    with process.stdout as pipe:
        output, outcome = _read(pipe.fileno(), deadline)
    code = -1
    if outcome is Outcome.ANSWERED:
        # It has closed its output, which is not its end yet.
        try:
            code = process.wait(deadline.seconds_left)
        except subprocess.TimeoutExpired:
            outcome = Outcome.HUNG
    if outcome is not Outcome.ANSWERED:
        _kill(process)
    return Answer(outcome, code, output.decode(errors="replace"))


def _read(pipe: int, deadline: Deadline) -> tuple[bytes, Outcome]:
    """Read until the program closes its output, the time is over, or the output is too long."""
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        # `select` returns nothing when the time is over.
        while not deadline.over and selector.select(deadline.seconds_left):
            piece = os.read(pipe, 1 << 16)
            if not piece:
                return bytes(output), Outcome.ANSWERED
            output += piece
            if len(output) > LONGEST_ANSWER:
                return bytes(output[:LONGEST_ANSWER]), Outcome.ENDLESS
    return bytes(output), Outcome.HUNG


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(REAP_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        process.returncode = -signal.SIGKILL  # otherwise Popen warns when it is collected, and tries to reap it forever
