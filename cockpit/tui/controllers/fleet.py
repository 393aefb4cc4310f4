"""Controllers of the fleet's table: unfold a job or a part, and show the object that a cluster has of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cockpit.tui.views.clusters import FLEET

if TYPE_CHECKING:
    from cockpit.present.fleet_tree import FleetLine
    from cockpit.tui.cockpit import Cockpit


def unfold(app: Cockpit) -> None:
    """Unfold the job or the part under the cursor, or fold it."""
    main = app.main_screen
    key: Any = main.tables.by_view[FLEET.id].cursor_id
    if key is not None and app.state.fleet_rows.toggle(key):
        main.redraw_rows(FLEET.id)
        # The pods of a part are fetched only while it is unfolded.
        app.poller.wake()


async def show_own_object(app: Cockpit) -> None:
    """Show the object that the cluster under the cursor has of the job."""
    from cockpit.tui.screens.own_object import OwnObjectPage

    line: FleetLine | None = app.main_screen.tables.row_under_cursor(FLEET.id)
    if line is None:
        return
    if not line.job:
        app.notify(f"{line.name} was submitted to {line.cluster} directly; open that cluster for it.")
    elif not line.own:
        app.notify(
            f"{line.name} has no object of its own on a cluster yet." if not line.is_unfolded else "Choose a part."
        )
    else:
        app.push_screen(OwnObjectPage(line.name, await app.backend.own_object(line.job, cluster=line.cluster)))
