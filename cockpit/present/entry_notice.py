"""What a person should know of a container before its first prompt."""

from __future__ import annotations

PLAIN = (
    "No container: this is a plain process of yours. What you change here is changed for good; $COCKPIT_WORKSPACE is "
    "what /workspace would be."
)


def entry_notice(*, kept: bool, remounted: bool, cards_freed: bool, plain: bool = False) -> str:
    """What of a kept container is not as it was, and what a plain process lacks; nothing where all is as in the job."""
    if not kept:
        return PLAIN if plain else ""
    gone = "its processes and /tmp are gone" if remounted else "its processes are gone"
    cards = "; its cards are free (debug_hold: {cards: keep} keeps them)" if cards_freed else ""
    if plain:
        return f"{PLAIN} Its processes are gone, its files may have been changed by others since{cards}."
    return f"The files are as the job left them; {gone}{cards}."
