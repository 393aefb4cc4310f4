"""Other weights for priorities, over the socket: in force at once, and written into cluster.toml, which the engine
reads when it starts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.configure import reweighed
from cockpit.errors import CockpitError, RequestRefused
from cockpit.formats.cluster.weights import with_weights
from cockpit.model.refusal import Refusal
from cockpit.model.view import WeightsSet

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.model.cluster import Priority
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext


async def set_weights(engine: Engine, context: RequestContext, args: messages.SetWeightsArgs) -> bytes:
    """Answered when they are in force; what cannot be written into the file is told with the answer, and by the engine
    for as long as it runs."""
    act = context.act(durable=True)
    outcome = await engine.host.act(lambda machine, _: reweighed(machine.state, args.weights), act)
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    priority = engine.host.machine.state.cluster.priority
    trouble = await asyncio.to_thread(_write_back, engine.cluster_file, priority)
    if trouble:
        engine.troubles = (*(each for each in engine.troubles if each != trouble), trouble)
    file = str(engine.cluster_file) if engine.cluster_file is not None and not trouble else ""
    answer = msgspec.msgpack.encode(WeightsSet(priority.weights, file, trouble))
    await engine.requests.remember(context, answer)
    return answer


def _write_back(file: Path | None, priority: Priority) -> str:
    """Why the file does not say the same; empty: it does, or there is none to be read."""
    if file is None:
        return ""
    try:
        text = with_weights(_text(file), priority, str(file))
        half = file.with_name(f"{file.name}.half")
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        half.write_text(text, encoding="utf-8")
        if file.exists():
            half.chmod(file.stat().st_mode & 0o777)
        half.replace(file)
    except (OSError, UnicodeDecodeError, CockpitError) as error:
        return (
            f"{file} could not be written ({error}): the new weights are in force until the engine starts again, and "
            "then those of the file; write them there to keep them."
        )
    return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
