"""Ask an installed program a question, and survive any answer.

For `nvidia-smi`, `bwrap --version` and the like: such programs hang in the kernel, print garbage, or print forever.
An answer costs at most its time limit and `LONGEST_ANSWER` bytes, and nothing in here raises.
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
REAP_SECONDS = 0.5
"""How long to wait for a killed program: one that hangs in a driver cannot even die, and is then left behind."""


class Outcome(StrEnum):
    ANSWERED = "answered"
    """It ended by itself; `code` says how."""
    ABSENT = "absent"
    """There is no such program, or it could not be started (`text` says why)."""
    HUNG = "hung"
    """It did not end within its time and was killed."""
    ENDLESS = "endless"
    """It printed more than anybody wants to read and was killed."""


class Answer(msgspec.Struct, frozen=True):
    outcome: Outcome
    code: int = -1
    text: str = ""
    """Standard output and error as they came; undecodable bytes replaced."""

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.ANSWERED and self.code == 0

    @property
    def first_line(self) -> str:
        """For showing: no control characters, at most 200 characters."""
        return printable(next((line for line in self.text.splitlines() if line.strip()), ""), 200)


Probe = Callable[[Sequence[str]], Answer]
"""What `ask` is, with its default time limit: probes take it as an argument."""


def printable(text: str, longest: int = 63) -> str:
    """`text` from outside made fit for one line of a table: trimmed, control characters as `?`, cut."""
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
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Answer(Outcome.ABSENT, text=str(error))
    return _listen(process, Deadline(seconds))


def _listen(process: subprocess.Popen[bytes], deadline: Deadline) -> Answer:
    assert process.stdout is not None
    with process.stdout as pipe:
        said, outcome = _read(pipe.fileno(), deadline)
    code = -1
    if outcome is Outcome.ANSWERED:
        try:
            code = process.wait(deadline.seconds_left)
        except subprocess.TimeoutExpired:
            outcome = Outcome.HUNG
    if outcome is not Outcome.ANSWERED:
        _kill(process)
    return Answer(outcome, code, said.decode(errors="replace"))


def _read(pipe: int, deadline: Deadline) -> tuple[bytes, Outcome]:
    """Everything until the other end closes, the time is over, or it is too much."""
    said = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not deadline.over and selector.select(deadline.seconds_left):
            piece = os.read(pipe, 1 << 16)
            if not piece:
                return bytes(said), Outcome.ANSWERED
            said += piece
            if len(said) > LONGEST_ANSWER:
                return bytes(said[:LONGEST_ANSWER]), Outcome.ENDLESS
    return bytes(said), Outcome.HUNG


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(REAP_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        process.returncode = -signal.SIGKILL  # else Popen warns about it when collected, and tries to reap it for ever
