"""What the actions of the Priority view do. Weights are tried out at once; only `apply_weights` changes the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.cluster import PriorityKind
from cockpit.present.priority import weights_line, weights_set
from cockpit.present.trial import with_step
from cockpit.tui.screens.confirm import Confirm

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_priorities(app: CockpitBase) -> None:
    """The queue in its order."""
    from cockpit.tui.controllers.anywhere import show_view

    show_view(app, "priority")


def turn_figures(app: CockpitBase) -> None:
    """What each factor adds, its raw value, its weight."""
    app.priority_rows.turn_figures()
    app.main_view.redraw_priorities()


def ask_weights(app: CockpitBase) -> None:
    """An entry with the weights of now; the order follows what is typed."""
    app.main_view.ask_weights()


def next_factor(app: CockpitBase) -> None:
    """The factor to the right is the one that steps change."""
    _choose(app, 1)


def previous_factor(app: CockpitBase) -> None:
    """The factor to the left."""
    _choose(app, -1)


def heavier(app: CockpitBase) -> None:
    """The chosen factor's weight a step up, tried out."""
    _step(app, 1)


def lighter(app: CockpitBase) -> None:
    """A step down."""
    _step(app, -1)


async def apply_weights(app: CockpitBase) -> None:
    """Ask, then put the weights that are tried out in force."""
    rows = app.priority_rows
    weights, tried = rows.weights, rows.tried
    if weights is None or tried is None:
        return
    basic = "\nJobs have been served in order of submission; from then on by priority." * (
        rows.kind is PriorityKind.BASIC
    )
    said = f"{weights_line(weights)}.{basic}\nThe order of all queued jobs follows at once; cluster.toml says it too."
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
