"""Controllers of the Priority view. All but `apply_weights` change only what the view shows, not the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.cluster import PriorityKind
from cockpit.present.priority import weights_line, weights_set
from cockpit.present.trial import with_step
from cockpit.tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_priorities(app: CockpitBase) -> None:
    """Show the queue in order of priority."""
    from cockpit.tui.controllers.anywhere import show_view

    show_view(app, "priority")


def turn_figures(app: CockpitBase) -> None:
    """Switch the columns between what each factor adds, its raw value and its weight."""
    app.priority_rows.turn_figures()
    app.main_view.redraw_priorities()


def ask_weights(app: CockpitBase) -> None:
    """Open the command line with the present weights; the view shows the order under the typed weights."""
    app.main_view.ask_weights()


def next_factor(app: CockpitBase) -> None:
    """Choose the factor to the right, whose weight `heavier` and `lighter` change."""
    _choose(app, 1)


def previous_factor(app: CockpitBase) -> None:
    """Choose the factor to the left."""
    _choose(app, -1)


def heavier(app: CockpitBase) -> None:
    """Try a weight of the chosen factor that is one step larger."""
    _step(app, 1)


def lighter(app: CockpitBase) -> None:
    """Try a weight of the chosen factor that is one step smaller."""
    _step(app, -1)


async def apply_weights(app: CockpitBase) -> None:
    """Ask, then put the tried weights in force on the cluster."""
    rows = app.priority_rows
    weights, tried = rows.weights, rows.tried
    if weights is None or tried is None:
        return
    basic = "\nJobs are now served in order of submission; they will be served by priority." * (
        rows.kind is PriorityKind.BASIC
    )
    said = f"{weights_line(weights)}.{basic}\nThe queue is reordered at once; cluster.toml gets the weights too."
    if await app.push_screen_wait(Confirm("Put these weights in force?", said)):
        done = await app.backend.set_weights(tried)
        app.try_weights(None)
        app.notify(weights_set(done), severity="warning" if done.trouble else "information")


def _choose(app: CockpitBase, step: int) -> None:
    app.priority_rows.choose(step)
    app.main_view.redraw_priorities()


def _step(app: CockpitBase, direction: int) -> None:
    rows = app.priority_rows
    if rows.chosen not in rows.factors:
        rows.choose(0)
    if rows.weights is not None and rows.chosen is not None:
        app.try_weights(with_step(rows.weights, rows.chosen, direction))
