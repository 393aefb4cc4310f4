"""What the actions on queues do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.tui.action import QUEUES

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_queues(app: CockpitBase) -> None:
    """Also from a job's page."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(QUEUES)


def queue_jobs(app: CockpitBase) -> None:
    """The jobs of the queue under the cursor, of the tree with all below it."""
    app.main_view.show_jobs_of_queue()
