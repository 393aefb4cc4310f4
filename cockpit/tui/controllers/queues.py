"""Controllers of the Queues view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.tui.action import QUEUES

if TYPE_CHECKING:
    from cockpit.tui.cockpit_base import CockpitBase


def show_queues(app: CockpitBase) -> None:
    """Close all pages, then show the Queues view."""
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.main_view.show_view(QUEUES)


def queue_jobs(app: CockpitBase) -> None:
    """List the jobs of the queue under the cursor, with those of all queues below it."""
    app.main_view.show_jobs_of_queue()
