"""Sentences for what a fleet decides and why a job waits for its clusters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import assert_never

from cockpit.formats.bindingevent import REASON, binding_message, bindings_of
from cockpit.model import events
from cockpit.model.fleet import Member
from cockpit.model.ids import Millis
from cockpit.model.reasons import ClusterShort, NoRoomThere
from cockpit.present import units
from cockpit.present.moments import clock
from cockpit.present.phrases import amount, bare_amount, listed
from cockpit.present.safe import safe

FleetReason = ClusterShort | NoRoomThere
BindingEvent = events.MemberPlaced | events.BindingGivenUp


def fleet_clauses(reason: FleetReason, now: Millis, zone: tzinfo | None) -> tuple[str, ...]:
    """What stands in the way, then what else is to know of it."""
    match reason:
        case ClusterShort():
            wanted = amount(reason.resource, reason.wanted, reason.card_models)
            free = bare_amount(reason.resource, reason.free)
            return f"waits for {wanted} in one cluster", f"{safe(reason.member)} has {free} free in all"
        case NoRoomThere():
            names = listed(reason.members)
            had = f"{names} had no room for it at {clock(reason.since, now, zone)}, though enough is free in all"
            return had, "tried again once something comes free there"
        case _:
            assert_never(reason)


def bound_sentence(members: Sequence[str]) -> str:
    """The known event, word for word."""
    return f"{REASON}: {safe(binding_message(bindings_of(members)))}"


def binding_sentence(body: BindingEvent) -> str:
    """What a cluster of the fleet said to what was bound to it."""
    match body:
        case events.MemberPlaced():
            nodes = listed(each.node for each in body.placement)
            return f"{safe(body.member)} found room for {units.counted(len(body.placement), 'replica')}: {nodes}"
        case events.BindingGivenUp():
            return f"{listed(body.members)} had no room for it in time; {_afterwards(body)}"
        case _:
            assert_never(body)


def _afterwards(body: events.BindingGivenUp) -> str:
    return "revoked, it waits in its queue to be let out again" if body.revoked else "given up, it is scheduled again"


def member_lines(members: Sequence[Member]) -> list[str]:
    """How each cluster of a fleet is bound to, as comments of its rules."""
    return [f"# {safe(each.name)} is bound to by {each.mode}{_because(each)}" for each in members]


def _because(member: Member) -> str:
    return f": {safe(member.why_totals)}" if member.why_totals else ""
