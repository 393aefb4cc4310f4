"""Run the engine process, from start to stop.

1. Journal the start and what changed since the last one: nodes, rules, accounts, catalogue (`_starting_events`).
2. Recover: adopt the containers that still run, and repeat effects that a killed engine may not have carried out.
3. Start scheduling and timers, and watch the starts that the engine before this one has promised.
4. Serve clients until SIGTERM, SIGINT or the `stop` operation.
5. Remove the socket, journal the stop, and write a snapshot. Jobs keep running.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from cockpit.engine import configure, decide, reactions
from cockpit.engine.catalogue.changes import take_over_catalogue
from cockpit.engine.effects import FreezeReplica, KeepContainer, RecordEnded, ThawReplica
from cockpit.model import events
from cockpit.model.job import OCCUPYING, JobState
from cockpit.model.refusal import Refusal
from cockpit.runtime import predicting
from cockpit.runtime.host import Act
from cockpit.runtime.server import Server

if TYPE_CHECKING:
    import socket as sockets
    from collections.abc import Iterator, Sequence

    from cockpit.engine.effects import Effect, StartReplica
    from cockpit.engine.machine import Machine
    from cockpit.formats.cluster.file import ClusterSetup
    from cockpit.model.events import EventBody
    from cockpit.model.job import Job
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.host import Host

_OWN = Act(actor="engine", origin="engine")


async def serve(engine: Engine, listener: sockets.socket, setup: ClusterSetup) -> None:
    """Serve clients on `listener` until SIGTERM, SIGINT or the `stop` operation. Jobs keep running afterwards."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, engine.stopping.set)
    server = Server(engine)
    # Clients that connect meanwhile wait in the backlog of the listening socket.
    await _begin(engine, setup)
    engine.begun.set()
    await server.start(listener)
    await engine.stopping.wait()
    engine.socket.unlink(missing_ok=True)  # first: a client refused on an existing socket takes the engine for crashed
    await server.stop()
    try:
        await engine.host.act(lambda _machine, _now: [events.EngineStopped(engine.version)], _OWN)
    finally:
        if engine.members is not None:
            await engine.members.stop()
        await engine.host.stop()


async def _begin(engine: Engine, setup: ClusterSetup) -> None:
    await engine.host.act(lambda machine, _: _starting_events(engine, machine, setup), _OWN)
    await recover(engine.host)
    await engine.host.start()
    if engine.members is not None:
        await engine.members.begin(engine.host)
    await predicting.load_promises(engine)


def _starting_events(engine: Engine, machine: Machine, setup: ClusterSetup) -> Sequence[EventBody]:
    """Return the events of a start. Refused rules stay out, and `engine status` says so until the next start."""
    rules = configure.take_over_rules(machine.state, setup.cluster, sealed=setup.sealed)
    if isinstance(rules, Refusal):
        engine.troubles += (rules.message,)
        print(f"cockpit engine: {rules.message}", file=sys.stderr)  # noqa: T201 - stderr is the engine's log
        rules = []
    return [
        events.EngineStarted(engine.version, os.getpid()),
        *decide.nodes_changed(machine, setup.nodes),
        *rules,
        *configure.take_over_accounts(machine.state, setup.accounts),
        *take_over_catalogue(machine.state, setup.catalogue),
    ]


_BEFORE_ITS_START = {JobState.PRECHECKING, JobState.STAGING}
"""States of a placed job that has no container yet."""


def _messages_to_running(job: Job) -> Iterator[Effect]:
    """Repeat the signals and worker lists that the job's running replicas may not have received."""
    yield from reactions.notices_to_workers(job)
    if job.ending is not None:
        yield from reactions.signals_of(job)
    elif job.leaving:
        yield from reactions.recalls_of(job)


async def recover(host: Host) -> None:
    """Bring the containers in line with the journal after a time without an engine.

    Adopt the containers that should run or be held (the executor reports replicas that ended meanwhile), then repeat
    the effects that a killed engine may not have carried out. Every effect may be carried out twice without harm.
    """
    jobs = list(host.machine.state.jobs.values())
    expected: list[StartReplica] = []
    held: list[KeepContainer] = []
    for job in jobs:
        # Jobs before their start have no container to adopt; their effects are repeated below.
        if job.state in OCCUPYING and job.state not in _BEFORE_ITS_START and job.attempt is not None:
            live = {replica.rank for replica in job.attempt.replicas if replica.ended_at is None}
            expected += [start for start in reactions.starts_of(job) if start.replica.rank in live]
        elif job.kept:
            effects = reactions.containers_after_end(job)
            held += [effect for effect in effects if isinstance(effect, KeepContainer)]
    # Before the effects, which act on containers that the executor must know.
    await host.executor.adopt(expected, held)
    for job in jobs:
        host.run_effects(tuple(_effects_to_repeat(job)))


def _effects_to_repeat(job: Job) -> Iterator[Effect]:
    """Return the effects of the job's state that a killed engine may not have carried out."""
    if job.state is JobState.PRECHECKING:
        yield from reactions.checks_of(job)
    if job.state is JobState.STAGING:
        live = set(reactions.live_replicas(job))
        yield from (effect for effect in reactions.stages_of(job) if effect.replica in live)
    # Whether the containers are frozen is not known here; doing either twice does no harm.
    if job.suspension is not None:
        yield from map(FreezeReplica, reactions.live_replicas(job))
    elif job.attempt is not None and job.attempt.resumed_at is not None and job.state in OCCUPYING:
        yield from map(ThawReplica, reactions.live_replicas(job))
    if job.state in OCCUPYING:
        yield from _messages_to_running(job)
    if job.ended:
        yield RecordEnded(job.id)
