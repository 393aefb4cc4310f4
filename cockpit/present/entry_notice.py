"""The notice that a user sees before a container's first prompt."""

from __future__ import annotations

# A module of its own, which imports nothing: a shell opens without loading what describes jobs (`entering.py`).

PLAIN = (
    "No container: this is a plain process of yours. What you change here is changed for good; $COCKPIT_WORKSPACE is "
    "what /workspace would be."
)


def entry_notice(*, kept: bool, remounted: bool, cards_freed: bool, plain: bool = False) -> str:
    """Return what differs in a held container from the running job, and what a plain process lacks; empty: no
    difference."""
    if not kept:
        return PLAIN if plain else ""
    gone = "its processes and /tmp are gone" if remounted else "its processes are gone"
    cards = "; its cards are free (debug_hold: {cards: keep} keeps them)" if cards_freed else ""
    if plain:
        return f"{PLAIN} Its processes are gone, its files may have been changed by others since{cards}."
    return f"The files are as the job left them; {gone}{cards}."
