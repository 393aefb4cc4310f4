"""The sentences about what each member cluster of a fleet has for a waiting job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.model.fleet import BindingMode
from cockpit.model.reasons import Resource
from cockpit.present import units
from cockpit.present.moments import clock, iso
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.model.fleetoutlook import MemberOutlook
    from cockpit.present.columns import Context


def member_lines(members: Iterable[MemberOutlook], context: Context) -> Iterator[Line]:
    """Yield one line for each member: when the job would start if it were bound to it alone, what is free, and why
    it does not start there."""
    for each in members:
        where = Span(f"{INDENT}on {safe(each.cluster)}: ", MUTED)
        yield line(where, Span(when(each, context), STRONG), f"  {amounts(each)}; {why(each, context)}")


def when(each: MemberOutlook, context: Context) -> str:
    """Return when the job would start on this member alone: `now`, `in 25 min`."""
    if each.starts_now:
        return "now"
    if each.likely_at is None:
        return "not known when"
    return f"in {units.spoken(max(0, (each.likely_at - context.now) // 1000))}"


def amounts(each: MemberOutlook) -> str:
    """Return what is free there and what is asked: `5 of 8 cards free`, of what is short, else of the cards."""
    match each.short:
        case Resource.CPUS:
            return f"{each.free_cpus} CPUs free of the {each.cpus} asked"
        case Resource.MEMORY:
            return f"{units.memory(each.free_memory_mib)} of memory free of the {units.memory(each.memory_mib)} asked"
        case _ if each.card_milli:
            free, asked = units.counted_cards(each.free_card_milli), units.cards(each.card_milli)
            return f"{free} free of the {asked:g} asked"
        case _:
            return f"{each.free_cpus} CPUs free of the {each.cpus} asked"


def why(each: MemberOutlook, context: Context) -> str:
    """Return why the job does not start there, or that it fits."""
    if each.out:
        return safe(each.out)
    if each.in_vain_at is not None:
        at = clock(each.in_vain_at, context.now, context.zone)
        return f"it could not place the job at {at}, and has released nothing since"
    how = "by totals" if each.mode is BindingMode.TOTALS else "on its nodes"
    return f"{how}, {each.fitting} of {units.counted(each.replicas, 'replica')} fit"


def members_json(members: Iterable[MemberOutlook], context: Context) -> list[dict[str, Any]]:
    """Return one object for each member."""
    return [
        {
            "cluster": each.cluster,
            "mode": str(each.mode),
            "starts_now": each.starts_now,
            "likely_at": iso(each.likely_at) if each.likely_at is not None else None,
            "replicas": {"used": each.fitting, "total": each.replicas},
            "cpus": {"free": each.free_cpus, "asked": each.cpus},
            "memory_mib": {"free": each.free_memory_mib, "asked": each.memory_mib},
            "cards": {"free": units.cards(each.free_card_milli), "asked": units.cards(each.card_milli)},
            "short": str(each.short) if each.short is not None else None,
            "sentence": f"{amounts(each)}; {why(each, context)}",
        }
        for each in members
    ]
