"""The socket's operations on accounting: list ended jobs, and sum up allocated resources over time. They only read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.engine.views.spending import ended_seen, is_open
from cockpit.engine.views.spending import spending as spending_shown
from cockpit.model.ids import Millis
from cockpit.protocol.pages import pieces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import msgspec

    from cockpit.model.accounting import Spending
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.request_context import RequestContext

MOST_JOBS = 100_000


async def accounting(
    engine: Engine, context: RequestContext, args: messages.AccountingArgs
) -> AsyncIterator[list[msgspec.Raw]]:
    """Return the ended jobs that the user may see, newest first, in pieces."""
    since, until = (None if at is None else Millis(at) for at in (args.since, args.until))
    alone = not context.actor.admin and not context.actor.projects
    user = args.user or (context.actor.name if alone else None)
    jobs = await engine.host.journal.ended_jobs(limit=MOST_JOBS, user=user, since=since, until=until)
    for piece in pieces(ended_seen(jobs, engine.host.machine.state, context.actor)):
        yield piece


async def spending(engine: Engine, context: RequestContext, args: messages.SpendingArgs) -> Spending:
    """Return the allocated resources per time span: by account for all users, by name for those the user may see."""
    edges, state = [Millis(at) for at in sorted(args.edges)], engine.host.machine.state
    live = [job.id for job in state.jobs.values() if is_open(job)]
    past = await engine.host.journal.spent(edges, live)
    return spending_shown(state, past, edges, context.actor, engine.host.clock.now())
