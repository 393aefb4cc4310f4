"""Runs Slurm's commands as processes on this machine, found on PATH."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from cockpit.backends.base import ShellSession
from cockpit.backends.slurm.wire.calls import DATABASE_PROGRAMS, NOTHING_ABSENT, AnswerLost, Printed, all_of
from cockpit.errors import Unreachable
from cockpit.model.asking import ShellRequest

_STEERING = ("SQUEUE_", "SINFO_", "SACCT_", "SPRIO_", "SSHARE_", "SLURM_TIME_FORMAT", "SLURM_JSON", "SLURM_CLUSTERS")
"""Prefixes of environment variables that change what Slurm's commands print; they are removed."""

_CLOSING_SECONDS = 5
"""How long the pipes of a killed program are waited for: a child in a session of its own may keep them open."""


class LocalCommands:
    """Runs commands on this machine; implements `wire.calls.Commands`."""

    name = "this machine"
    on_this_disk = True
    database_programs = DATABASE_PROGRAMS
    absent = NOTHING_ABSENT

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = {name: value for name, value in env.items() if not name.startswith(_STEERING)}

    async def run(self, argv: Sequence[str], *, seconds: float, stdin: bytes = b"", reading: bool = True) -> Printed:
        # A changing command keeps the user's zone: the local times in a batch script's own options are by that zone.
        process = await self._start(argv, {**self._env, "TZ": "UTC"} if reading else self._env)
        try:
            async with asyncio.timeout(seconds):
                return await _talk(process, stdin, argv[0])
        except TimeoutError:
            # It may have sent its request before it was killed, so a change may have taken effect.
            raise AnswerLost(f"{argv[0]} has not answered within {seconds:g} s.") from None
        finally:
            await _end(process)

    async def shown(self, argv: Sequence[str], stdin: str) -> tuple[str, ...]:
        del stdin
        return tuple(argv)

    async def open_shell(self, argv: Sequence[str], request: ShellRequest) -> ShellSession:
        from cockpit.backends.slurm.wire.terminal import at_terminal

        return at_terminal(argv, self._env, request)

    async def close(self) -> None:
        """Do nothing: no connection is open between two commands."""

    async def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> asyncio.subprocess.Process:
        """Start the program. Raises `Unreachable`."""
        pipe = asyncio.subprocess.PIPE
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=env,
                # A session of its own, so that the program and its children can be killed as one group.
                start_new_session=True,
            )
        except OSError as error:
            raise Unreachable(f"{argv[0]} cannot be run on this machine: {error.strerror or error}.") from None


async def _talk(process: asyncio.subprocess.Process, stdin: bytes, program: str) -> Printed:
    """Write the input, read both outputs, and wait for the end."""
    assert process.stdout is not None
    assert process.stderr is not None
    # at the same time: a program whose pipe is full would wait for ever
    try:
        async with asyncio.TaskGroup() as tasks:
            out = tasks.create_task(all_of(process.stdout, program))
            err = tasks.create_task(all_of(process.stderr, program))
            tasks.create_task(_feed(process, stdin))
    except ExceptionGroup as errors:
        # The callers handle single errors, and one of the three is enough to stop.
        raise errors.exceptions[0] from None
    code = await process.wait()
    return Printed(out.result().decode(errors="replace"), err.result().decode(errors="replace"), code)


async def _feed(process: asyncio.subprocess.Process, stdin: bytes) -> None:
    assert process.stdin is not None
    # A program that does not read its input to the end is no error.
    with suppress(ConnectionError):
        process.stdin.write(stdin)
        await process.stdin.drain()
    process.stdin.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the program and its children: the child of a wrapper script would keep waiting for the controller."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # asyncio takes a program for ended once its pipes are closed, and stops reading a pipe whose
        # buffer is full: `wait` alone would never return
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await process.communicate()
