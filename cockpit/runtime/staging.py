"""The socket's operations on staged copies: list them, and remove one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import RequestRefused, StoreError
from cockpit.model import events
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.text import visible
from cockpit.runtime.troubles import cause_of

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


async def staged(engine: Engine, _context: RequestContext, _args: messages.NoArgs) -> list[StagedCopy]:
    """Return the finished copies and those in progress, the least recently used first."""
    copies = await engine.host.executor.copies()
    return sorted(copies, key=lambda copy: (copy.used_at, copy.key))


async def unstage(engine: Engine, context: RequestContext, args: messages.NameArgs) -> bytes:
    """Remove a copy that no job uses, named by its key or the beginning of it."""
    executor = engine.host.executor
    removed: list[str] = []

    # Decided under the write lock, so that the removal and its event are one change.
    async def decision(_machine: Machine, _now: Millis) -> Sequence[EventBody] | Refusal:
        copies = [copy for copy in await executor.copies() if args.name and copy.key.startswith(args.name)]
        if len(copies) != 1:
            return _not_one(args.name, len(copies))
        (copy,) = copies
        if not await executor.remove_copy(copy.key):
            return Refusal(RefusalKind.CONFLICT, f"Copy {copy.key[:12]} is in use; remove it after its last job.")
        removed.append(copy.key[:12])
        return [events.CopyRemoved(copy.what, copy.source, copy.key)]

    try:
        outcome = await engine.host.act(decision, context.act(), lambda _: _DONE)
    except StoreError as error:
        if not removed:
            raise
        message = f"Copy {removed[0]} was removed, but the event of it was not stored. {cause_of(error)}"
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, message, store=not error.passing)) from error
    if isinstance(outcome, Refusal):
        raise RequestRefused(outcome)
    return outcome


def _not_one(name: str, count: int) -> Refusal:
    if count:
        return Refusal(RefusalKind.INVALID, f"{count} copies begin with {visible(name)}; write more of the key.")
    return Refusal(RefusalKind.NOT_FOUND, f'There is no copy "{visible(name)}"; `cockpit staged` lists them.')
