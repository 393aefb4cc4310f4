"""The operations that show a fleet's table, and what a cluster itself has of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cockpit.engine.access import is_owner, may_see
from cockpit.engine.fleet.rows import Link, fleet_shown, own_job
from cockpit.engine.views.redaction import shown_job, shown_to
from cockpit.errors import RequestRefused
from cockpit.model.capabilities import NO_FLEET
from cockpit.model.fleetrow import FleetShown, MemberObject
from cockpit.model.ids import JobId
from cockpit.model.masking import without_secrets
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.runtime.request_context import visible_job

if TYPE_CHECKING:
    from cockpit.model.attempt import RemotePart
    from cockpit.model.job import Job
    from cockpit.protocol import messages
    from cockpit.runtime.engine import Engine
    from cockpit.runtime.fleet.remote import RemoteMember
    from cockpit.runtime.request_context import RequestContext


async def fleet(engine: Engine, context: RequestContext, args: messages.FleetArgs) -> FleetShown:
    """Return the fleet's table, of the jobs that the user may see. Refused by an engine that is no fleet."""
    if engine.members is None:
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, NO_FLEET))
    only = None if args.job is None else {(await visible_job(engine, context.actor, args.job)).id}
    if args.jobs:
        only = {JobId(each) for each in args.jobs}
    return fleet_shown(
        engine.host.machine,
        engine.members.machines,
        lambda each: may_see(context.actor, each),
        engine.host.clock.now(),
        links={name: _link(remote) for name, remote in engine.members.remote.items()},
        only=only,
        pods=args.pods,
    )


def _link(remote: RemoteMember) -> Link:
    seen = {each.own: each for each in remote.seen}
    refusals = {order.job: because for order, because in remote.refusals.items()}
    return Link(seen, remote.heard_at, remote.silence, refusals)


async def own_object(engine: Engine, context: RequestContext, args: messages.OwnObjectArgs) -> MemberObject:
    """Return the record that the engine has of the job; on a fleet that of a member."""
    job = await visible_job(engine, context.actor, args.job)
    cluster, there = engine.cluster, job
    if engine.members is not None:
        over_links = engine.members.remote
        mine = [each for each in _linked(job) if each.member in over_links and args.cluster in ("", each.member)]
        if mine:
            linked = await over_links[mine[0].member].own_object(mine[0].own)
            # The member answers the host, which is the owner there.
            own = is_owner(context.actor, job)
            return linked if own else msgspec.structs.replace(linked, text=without_secrets(linked.text))
        found = own_job(job, engine.members.machines, args.cluster)
        if isinstance(found, Refusal):
            raise RequestRefused(found)
        cluster, there = found
    shown = shown_job(shown_to(context.actor, engine.host.machine.state.jobs), there, own=is_owner(context.actor, job))
    text = msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    return MemberObject(cluster=cluster, own=str(JobId(there.id)), form="json", text=text)


def _linked(job: Job) -> tuple[RemotePart, ...]:
    """Return the parts that members over links have of the job."""
    return job.attempt.remote if job.attempt is not None else ()
