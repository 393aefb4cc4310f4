from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, signal
from cockpit.runtime.leaving import leaving_politely

signal.signal(signal.SIGCONT, lambda *_: print("takes the screen again"))
atexit.register(lambda: (os.kill(os.getpid(), signal.SIGCONT), print("tidied")))
with leaving_politely():
    os.kill(os.getpid(), {number})
"""

DEAF = """
import os, signal, time
from cockpit.runtime import leaving

class Passing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

leaving.INSISTS_AFTER = 0.1
leaving.leave_politely()
Passing()
while True:
    time.sleep(60)
"""

LOST_INSIDE = """
import os, signal, time
from cockpit.runtime import leaving

leaving.INSISTS_AFTER = 0.1
leaving.leave_politely()
try:
    with leaving.leaving_politely():
        os.kill(os.getpid(), signal.SIGTERM)
except SystemExit:
    while True:
        time.sleep(60)
"""


ASKED = """
import asyncio, os, signal
from cockpit.runtime import leaving

leaving.PATIENCE = 0.1

async def run():
    ends = asyncio.get_running_loop().create_future()
    leaving.leave_when_asked(lambda code: {answer})
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
    from cockpit.runtime.leaving import DEADLY, leaving_politely

    before = [signal.getsignal(number) for number in DEADLY]
    with leaving_politely():
        assert all(signal.getsignal(number) not in before for number in DEADLY)
    assert [signal.getsignal(number) for number in DEADLY] == before
