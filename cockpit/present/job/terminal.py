"""The Terminal tab of a job's page: whether its container can be entered, by which key, and who has entered it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cockpit.model import events
from cockpit.model.job import JobState
from cockpit.present.entering import container_words
from cockpit.present.folding import command_id
from cockpit.present.job.hold_words import uncovered_words
from cockpit.present.job.running import NO_CONTAINER
from cockpit.present.moments import clock
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, key_hint, line, small_table
from cockpit.present.states import seconds_left
from cockpit.present.units import countdown

if TYPE_CHECKING:
    from cockpit.model.attempt import Attempt
    from cockpit.model.jobdetail import JobDetail
    from cockpit.present.job.answer import PanelContext

NO_CONTAINER_YET: Final = "It has no container yet: you can open a shell once it runs."
GONE: Final = "Its container is gone. With `terminal: true` a job that fails has its container held for a shell."
HANDED_OVER: Final = "The terminal is the shell's until it ends: vim, htop and less work; exit or Ctrl-D returns."
NO_SHELL: Final = "No shell has been opened."
UNWATCHED: Final = "The engine does not record when a shell ends."


def terminal_tab(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the tab's harmless lines."""
    row, attempt = detail.row, detail.job.attempt
    # Between placement and start there is no container yet, and after the end only a held one.
    if attempt is None or not (row.held_until is not None or row.state is JobState.RUNNING):
        gone = uncovered_words(detail.job) or GONE
        yield line(Span(INDENT + (gone if row.ended_at is not None else NO_CONTAINER_YET), MUTED))
    else:
        yield from _way_in(detail, attempt, panel)
    yield line()
    yield from _entered(detail, panel)


def _way_in(detail: JobDetail, attempt: Attempt, panel: PanelContext) -> Iterator[Line]:
    """Yield the key that opens a shell in a container, the containers, and the hold."""
    row = detail.row
    key = panel.keys.get("shell", ":shell")
    which = "its container" if len(attempt.replicas) == 1 else "one of its containers; you choose which"
    yield line(Span(f"{INDENT}{key}", ACCENT), Span(f"  opens a shell in {which}", STRONG))
    yield line(Span(INDENT + HANDED_OVER, MUTED))
    yield line()
    for replica in attempt.replicas:
        words = list(container_words(detail, replica.rank, panel.context))
        yield line(Span(INDENT + " · ".join(words[1:])))
    if row.held_until is not None:
        left = countdown(seconds_left(row.held_until, panel.context.now))
        yield from _held_container(detail, left, panel)
    yield line()
    yield line(Span(f"{INDENT}from a shell   ", MUTED), f"cockpit shell {command_id(row)}")


def _held_container(detail: JobDetail, left: str, panel: PanelContext) -> Iterator[Line]:
    """Yield what a held container still has, and for how long it is held."""
    placement = detail.job.attempt.placement if detail.job.attempt is not None else ()
    # By default cards go to the next job at once, while the files stay.
    cards = "held for it" if detail.job.spec.debug_hold.cards == "keep" else "free"
    its_cards = f" and its cards are {cards}" if any(each.slices for each in placement) else ""
    gone = f"{_files(detail)}; its processes are gone{its_cards}."
    yield line(Span(INDENT + gone, MUTED))
    keys = [
        (panel.keys.get(action), words) for action, words in (("extend_hold", "extend hold"), ("end_hold", "end hold"))
    ]
    offers = (span for key, words in keys if key for span in key_hint(key, words, "   "))
    yield (Span(f"{INDENT}held for ", MUTED), Span(left, "held"), Span(" more", MUTED), *offers)


def _files(detail: JobDetail) -> str:
    replicas = detail.job.attempt.replicas if detail.job.attempt is not None else ()
    # A plain process leaves its files where other processes can change them.
    if any(NO_CONTAINER in each.limits for each in replicas):
        return "It had no container: others may have changed its files since"
    return "Its files are as the job left them"


def _entered(detail: JobDetail, panel: PanelContext) -> Iterator[Line]:
    """Yield the shells that were opened in the job's containers."""
    context = panel.context
    opened = [(each, each.body) for each in detail.events if isinstance(each.body, events.ShellOpened)]
    if not opened:
        yield line(Span(INDENT + NO_SHELL, MUTED))
        return
    rows = [
        (clock(record.at, context.now, context.zone), safe(record.actor), str(body.rank), _ran(body.command))
        for record, body in opened
    ]
    yield line(Span(f"{INDENT}Shells that were opened", STRONG))
    yield from small_table(("WHEN", "WHO", "RANK", "TO RUN"), rows)
    yield line(Span(INDENT + UNWATCHED, MUTED))


def _ran(command: tuple[str, ...]) -> str:
    return safe(" ".join(command)) if command else "a shell"
