"""The engine's life as a process: recover what was, adopt what runs, then serve until told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from cockpit.engine import configure, decide, reactions
from cockpit.engine.catalogue.changes import catalogue_filed
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
    """Serve on `listener` until SIGTERM, SIGINT or the `stop` operation. Jobs go on after it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, engine.stopping.set)
    server = Server(engine)
    await _begin(engine, setup)
    await server.start(listener)
    await engine.stopping.wait()
    engine.socket.unlink(missing_ok=True)  # before anybody is refused there: that would look like an engine that died
    await server.stop()
    try:
        await engine.host.act(lambda _machine, _now: [events.EngineStopped(engine.version)], _OWN)
    finally:
        await engine.host.stop()


async def _begin(engine: Engine, setup: ClusterSetup) -> None:
    await engine.host.act(lambda machine, _: _beginning(engine, machine, setup), _OWN)
    await recover(engine.host)
    await engine.host.start()
    await predicting.take_up_promises(engine)


def _beginning(engine: Engine, machine: Machine, setup: ClusterSetup) -> Sequence[EventBody]:
    """Rules that may not be taken over stay out, and the engine tells so for as long as it runs."""
    rules = configure.configured(machine.state, setup.cluster, sealed=setup.sealed)
    if isinstance(rules, Refusal):
        engine.troubles += (rules.message,)
        print(f"cockpit engine: {rules.message}", file=sys.stderr)  # noqa: T201 - stderr is the engine's log
        rules = []
    return [
        events.EngineStarted(engine.version, os.getpid()),
        *decide.nodes_changed(machine, setup.nodes),
        *rules,
        *configure.accounts_begun(machine.state, setup.accounts),
        *catalogue_filed(machine.state, setup.catalogue),
    ]


_BEFORE_ITS_START = {JobState.PRECHECKING, JobState.STAGING}


def _told_again(job: Job) -> Iterator[Effect]:
    """What those may not have heard that run."""
    yield from reactions.notices_to_workers(job)
    if job.ending is not None:
        yield from reactions.signals_of(job)
    elif job.leaving:
        yield from reactions.recalls_of(job)


async def recover(host: Host) -> None:
    """Meet the world as it is after an engine's absence: adopt what runs, repeat the effects that may be missing."""
    jobs = list(host.machine.state.jobs.values())
    expected: list[StartReplica] = []
    kept: list[KeepContainer] = []
    for job in jobs:
        if job.state in OCCUPYING and job.state not in _BEFORE_ITS_START and job.attempt is not None:
            live = {each.rank for each in job.attempt.replicas if each.ended_at is None}
            expected += [start for start in reactions.starts_of(job) if start.replica.rank in live]
        elif job.kept:
            kept += [each for each in reactions.containers_after_end(job) if isinstance(each, KeepContainer)]
    await host.executor.adopt(expected, kept)
    for job in jobs:
        host.run_effects(tuple(_repeated(job)))


def _repeated(job: Job) -> Iterator[Effect]:
    """What an engine that was killed may have left undone."""
    if job.state is JobState.PRECHECKING:
        yield from reactions.checks_of(job)
    if job.state is JobState.STAGING:
        live = set(reactions.live_replicas(job))
        yield from (each for each in reactions.stages_of(job) if each.replica in live)
    if job.suspension is not None:
        yield from map(FreezeReplica, reactions.live_replicas(job))
    elif job.attempt is not None and job.attempt.resumed_at is not None and job.state in OCCUPYING:
        yield from map(ThawReplica, reactions.live_replicas(job))
    if job.state in OCCUPYING:
        yield from _told_again(job)
    if job.ended:
        yield RecordEnded(job.id)
