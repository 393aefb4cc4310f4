"""The engine's life as a process: recover what was, adopt what runs, then serve until told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from cockpit.engine import decide, reactions
from cockpit.engine.effects import KeepContainer, RecordEnded
from cockpit.model import events
from cockpit.model.job import OCCUPYING
from cockpit.runtime.host import Act
from cockpit.runtime.server import Server

if TYPE_CHECKING:
    import socket as sockets
    from collections.abc import Sequence

    from cockpit.engine.effects import StartReplica
    from cockpit.model.node import Node
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.host import Host

_OWN = Act(actor="engine", origin="engine")


async def serve(engine: Engine, listener: sockets.socket, nodes: Sequence[Node]) -> None:
    """Serve on `listener` until SIGTERM, SIGINT or the `stop` operation. Jobs go on after it."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, engine.stopping.set)
    server = Server(engine)
    await _begin(engine, nodes)
    await server.start(listener)
    await engine.stopping.wait()
    await server.stop()
    try:
        await engine.host.act(lambda _machine, _now: [events.EngineStopped(engine.version)], _OWN)
    finally:
        await engine.host.stop()


async def _begin(engine: Engine, nodes: Sequence[Node]) -> None:
    started = events.EngineStarted(engine.version, os.getpid())
    await engine.host.act(lambda machine, _: [started, *decide.nodes_changed(machine, nodes)], _OWN)
    await recover(engine.host)
    await engine.host.start()


async def recover(host: Host) -> None:
    """Meet the world as it is after an engine's absence: adopt what runs, repeat the effects that may be missing."""
    jobs = list(host.machine.state.jobs.values())
    expected: list[StartReplica] = []
    kept: list[KeepContainer] = []
    for job in jobs:
        if job.state in OCCUPYING and job.attempt is not None:
            live = {each.rank for each in job.attempt.replicas if each.ended_at is None}
            expected += [start for start in reactions.starts_of(job) if start.replica.rank in live]
        elif job.kept:
            kept += [each for each in reactions.containers_after_end(job) if isinstance(each, KeepContainer)]
    await host.executor.adopt(expected, kept)
    for job in jobs:
        if job.ending is not None:
            host.run_effects(tuple(reactions.signals_of(job)))
        if job.ended:
            host.run_effects((RecordEnded(job.id),))
