from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, signal
from cockpit.runtime.exit_signals import exiting_on_signals

signal.signal(signal.SIGCONT, lambda *_: print("takes the screen again"))
atexit.register(lambda: (os.kill(os.getpid(), signal.SIGCONT), print("tidied")))
with exiting_on_signals():
    os.kill(os.getpid(), {number})
"""

DEAF = """
import os, signal, time
from cockpit.runtime import exit_signals

class Passing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

exit_signals.REPEAT_SECONDS = 0.1
exit_signals.exit_on_signals()
Passing()
while True:
    time.sleep(60)
"""

LOST_INSIDE = """
import os, signal, time
from cockpit.runtime import exit_signals

exit_signals.REPEAT_SECONDS = 0.1
exit_signals.exit_on_signals()
try:
    with exit_signals.exiting_on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
except SystemExit:
    while True:
        time.sleep(60)
"""


ASKED = """
import asyncio, os, signal
from cockpit.runtime import exit_signals

exit_signals.GRACE_SECONDS = 0.1

async def run():
    ends = asyncio.get_running_loop().create_future()
    exit_signals.leave_when_asked(lambda code: {answer})
    drawing = asyncio.create_task(draw())
    return await ends

async def draw():
    os.kill(os.getpid(), {number})
    print("drawn whole")

raise SystemExit(asyncio.run(run()))
"""


@pytest.mark.req("UI-50", "TR-10")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("answer", ["ends.set_result(code)", "None"])
def test_a_program_that_is_asked_ends_by_itself_or_is_ended_soon(number: signal.Signals, answer: str) -> None:
    program = ASKED.format(number=int(number), answer=answer)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (128 + number, "drawn whole\n")
    assert not done.stderr


@pytest.mark.req("UI-50")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_fatal_signal_exits_and_the_screen_is_not_used_again(number: signal.Signals) -> None:
    program = PROGRAM.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "tidied\n", "")


@pytest.mark.req("UI-50")
def test_a_suppressed_exit_is_raised_again() -> None:
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert "Exception ignored" in done.stderr


@pytest.mark.req("UI-50")
def test_an_exit_is_raised_again_after_a_part_that_shut_down_by_itself() -> None:
    done = subprocess.run([sys.executable, "-c", LOST_INSIDE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM


def test_signal_handlers_are_restored_afterwards() -> None:
    from cockpit.runtime.exit_signals import DEADLY, exiting_on_signals

    # Another test may have left handlers here, with which nothing would change.
    before = {number: signal.signal(number, signal.SIG_DFL) for number in DEADLY}
    try:
        with exiting_on_signals():
            assert all(signal.getsignal(number) != signal.SIG_DFL for number in DEADLY)
        assert all(signal.getsignal(number) == signal.SIG_DFL for number in DEADLY)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
