"""Sentences for what a fleet decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from cockpit.formats.bindingevent import REASON, binding_message, bindings_of
from cockpit.model import events
from cockpit.model.fleet import Member
from cockpit.present import units
from cockpit.present.phrases import listed
from cockpit.present.safe import safe

BindingEvent = events.MemberPlaced | events.BindingGivenUp


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
