"""Controllers of the Priority view. All but `apply_weights` change only what the view shows, not the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.cluster import PriorityKind
from cockpit.present.priority import weights_line, weights_set, with_step
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.views.priority import PRIORITY

if TYPE_CHECKING:
    from cockpit.tui.cockpit import Cockpit


def next_figures(app: Cockpit) -> None:
    """Switch the columns between what each factor adds, its raw value and its weight."""
    app.state.priority_rows.next_figures()
    app.main_screen.redraw_rows(PRIORITY.id)


async def apply_weights(app: Cockpit) -> None:
    """Ask, then put the tried weights in force on the cluster."""
    rows = app.state.priority_rows
    # The tried weights of the moment of the question, however often the feed answers until it is confirmed.
    weights, tried = rows.weights, rows.tried
    if weights is None or tried is None:
        return
    basic = "\nJobs are now served in order of submission; they will be served by priority." * (
        rows.kind is PriorityKind.BASIC
    )
    question = f"{weights_line(weights)}.{basic}\nThe queue is reordered at once; cluster.toml gets the weights too."
    if await app.push_screen_wait(Confirm("Put these weights in force?", question)):
        done = await app.backend.set_weights(tried)
        app.poller.try_weights(None)
        app.notify(weights_set(done), severity="warning" if done.trouble else "information")
        app.last_act.remember("Weights in force are changed back by trying the former ones and applying them.")


def choose_factor(app: Cockpit, step: int) -> None:
    """Choose the factor `step` places to the right, whose weight `step_weight` changes."""
    app.state.priority_rows.choose(step)
    app.main_screen.redraw_rows(PRIORITY.id)


def step_weight(app: Cockpit, direction: int) -> None:
    """Try a weight of the chosen factor that is one step larger (`direction` 1) or smaller (-1)."""
    rows = app.state.priority_rows
    # The first key presses find no factor chosen, or one that another answer no longer has.
    if rows.chosen not in rows.factors:
        rows.choose(0)
    if rows.weights is not None and rows.chosen is not None:
        app.poller.try_weights(with_step(rows.weights, rows.chosen, direction))
