"""Open a shell in a replica's container.

The engine journals the user who enters, and passes the shell's file descriptors to the client. Input and output do not
go through the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine import decide
from cockpit.errors import RequestRefused
from cockpit.model.asking import ShellOpened, ShellRequest
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.job import BEGINNING, JobState
from cockpit.model.refusal import Refusal
from cockpit.runtime.containers.entering import Terminal

if TYPE_CHECKING:
    from cockpit.engine.machine import Machine
    from cockpit.model.ids import Millis
    from cockpit.model.job import Job
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext

SHELL_ARGS = ShellRequest
START_SECONDS = 5.0
"""Longest wait for a container that is being made or that is about to be held."""


class OpenedShell(msgspec.Struct, frozen=True):
    """The answer and the descriptors sent with it: the control socket, then the terminal or the three pipes."""

    answer: ShellOpened
    fds: tuple[int, ...]


async def open_shell(engine: Engine, context: RequestContext, request: ShellRequest) -> OpenedShell:
    """Start a shell or a command in a container. Raises `RequestRefused` if there is no container to enter."""

    def decision(machine: Machine, _now: Millis) -> decide.Decision:
        job = machine.state.jobs.get(JobId(request.job))
        if job is None:
            return decide.only_in_accounting(request.job)
        return decide.open_shell(job, request.rank, request.command, request.term if request.terminal else "")

    await _wait_for_start(engine, JobId(request.job))
    # Journalled before the shell exists: no access goes unrecorded.
    outcome = await engine.host.act(decision, context.act())
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    job = engine.host.machine.state.jobs[JobId(request.job)]
    assert job.attempt is not None
    replica = ReplicaId(job.id, job.attempt.number, request.rank)
    await engine.host.settled(replica, START_SECONDS)  # the container may be about to be held
    entered = await engine.host.executor.enter(
        replica,
        request.command,
        terminal=Terminal(request.rows, request.columns, request.term) if request.terminal else None,
        label=f"{job.spec.name}-{request.rank}",
    )
    facts = entered.facts
    answer = ShellOpened(
        terminal=entered.terminal_fd is not None,
        kept=facts.kept,
        remounted=facts.remounted,
        cards_freed=facts.cards_freed,
        plain=facts.plain,
    )
    streams = (entered.terminal_fd,) if entered.terminal_fd is not None else entered.pipe_fds or ()
    return OpenedShell(answer, (entered.control_fd, *streams))


async def _wait_for_start(engine: Engine, job: JobId) -> None:
    """Wait a moment for a job that was just submitted: for the next scheduling pass, and for a start in progress."""
    host = engine.host

    def is_coming() -> bool:
        live_job = host.machine.state.jobs.get(job)
        # A queued job counts while its fate is open: no pass has seen this version of it, or one has just started it.
        return live_job is not None and (
            live_job.state in BEGINNING or (live_job.state is JobState.QUEUED and is_open(live_job))
        )

    def is_open(live_job: Job) -> bool:
        plan = host.plan
        return plan is None or plan.version < live_job.version or any(start.job == job for start in plan.starts)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS), host.changed:
            await host.changed.wait_for(lambda: not is_coming())
