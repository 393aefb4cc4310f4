"""Processes that end just when they are signalled."""

from __future__ import annotations

import asyncio
import logging
import signal

import pytest

from cockpit.runtime.containers.staging import fetching
from cockpit.runtime.tasks import signal_process

TIMES = 60
"""Of two processes one had lost its exit code."""


@pytest.mark.req("TR-04")
async def test_a_process_that_ends_by_itself_keeps_its_exit_code(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "asyncio")
    async with asyncio.timeout(60):
        for _ in range(TIMES):
            process = await a_process("exit 3")
            await fetching._end(process)
            assert process.returncode in (3, -signal.SIGTERM)
    assert not caplog.messages


async def test_a_running_process_gets_the_signal_and_an_ended_one_does_not() -> None:
    process = await asyncio.create_subprocess_exec("sleep", "100")
    signal_process(process, signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await process.wait() == -signal.SIGTERM
    signal_process(process, signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM


async def a_process(script: str) -> asyncio.subprocess.Process:
    """One that has closed its output, and so is about to end."""
    process = await asyncio.create_subprocess_exec("sh", "-c", script, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.read()
    return process
