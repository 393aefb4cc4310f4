"""What administrators ask of staged copies: which there are, and that one goes before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import RequestRefused
from cockpit.model import events
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cockpit.engine.machine import Machine
    from cockpit.model.events import EventBody
    from cockpit.model.ids import Millis
    from cockpit.model.staging import StagedCopy
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext


_DONE = msgspec.msgpack.encode(None)


async def staged(engine: Engine, _asked: RequestContext, _args: messages.NoArgs) -> list[StagedCopy]:
    """Copies that are there or being made; who is last used first."""
    found = await engine.host.executor.copies()
    return sorted(found, key=lambda each: (each.used_at, each.key))


async def unstage(engine: Engine, context: RequestContext, args: messages.NameArgs) -> bytes:
    """Remove a copy that nobody uses."""
    executor = engine.host.executor

    async def decision(_machine: Machine, _now: Millis) -> Sequence[EventBody] | Refusal:
        found = [each for each in await executor.copies() if args.name and each.key.startswith(args.name)]
        if len(found) != 1:
            return _unclear(args.name, len(found))
        if not await executor.remove_copy(found[0].key):
            return Refusal(RefusalKind.CONFLICT, f"Copy {found[0].key[:12]} is in use; it goes after its last job.")
        return [events.CopyRemoved(found[0].what, found[0].source, found[0].key)]

    outcome = await engine.host.act(decision, context.act(), lambda _: _DONE)
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    return outcome


def _unclear(name: str, count: int) -> Refusal:
    if count:
        return Refusal(RefusalKind.INVALID, f"{count} copies begin with {visible(name)}; write more of the key.")
    return Refusal(RefusalKind.NOT_FOUND, f'There is no copy "{visible(name)}"; `cockpit staged` lists them.')
