"""Controllers for nodes, reservations and staged copies.

Some open the command line with the beginning of a command, which the user completes.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.node_words import NODES, RESERVATIONS, NodeRequests, node_requests, reclaim_requests
from cockpit.model.ids import NodeName
from cockpit.model.node import NodeState
from cockpit.present.safe import safe
from cockpit.present.tables.reservations import end_question, reservation_line
from cockpit.present.tables.staged import copy_line, removal_question
from cockpit.tui.screens.dialog import Confirm
from cockpit.tui.screens.pick import Choice, pick
from cockpit.tui.undo import WayBack
from cockpit.tui.views.all import NODES as NODE_VIEW

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.model.cluster import Reservation
    from cockpit.model.view import NodeRow
    from cockpit.tui.cockpit import Cockpit


async def reservations(app: Cockpit) -> None:
    """List the reservations: Enter shows the nodes of one, another key ends it (asks)."""
    by_name = {reservation.name: reservation for reservation in await app.backend.reservations()}
    if not by_name:
        app.notify("There are no reservations: every node serves all jobs.")
        return
    now, zone = app.state.context().now, app.state.context().zone
    choices = [Choice(name, name, reservation_line(each, now, zone)) for name, each in by_name.items()]
    picked = await pick(
        app, "Reservations", choices, verb="shows its nodes", deletion="" if app.options.read_only else "end"
    )
    if picked is None:
        return
    if not picked.delete:
        # Through the action, so that the view is shown as by its key; the filter is then that of the Nodes view.
        app.dispatcher.perform("nodes")
        app.main_screen.entry_line.filter(f"name:{','.join(map(str, by_name[picked.id].nodes))}")
    elif await app.push_screen_wait(Confirm(*end_question(by_name[picked.id]))):
        await app.backend.end_reservation(picked.id)
        app.last_act.done(f"ended {safe(picked.id)}", _of_ended(app, by_name[picked.id]))


def _of_ended(app: Cockpit, reservation: Reservation) -> WayBack:
    """Return the way back from ending this reservation."""

    async def make() -> str:
        await app.backend.make_reservation(reservation)
        return f"reserved {safe(reservation.name)} again"

    return WayBack("makes it again", make)


async def staged(app: Cockpit) -> None:
    """List the staged copies of data and images; the user may remove one (asks)."""
    by_key = {copy.key: copy for copy in await app.backend.staged()}
    if not by_key:
        app.notify("Nothing is staged.")
        return
    # Enter has nothing to do with a copy, so that it just closes the list; the key for removal asks.
    choices = [Choice(key, each.source, copy_line(each, app.state.context())) for key, each in by_key.items()]
    picked = await pick(
        app, "Staged copies", choices, verb="closes", deletion="" if app.options.read_only else "remove"
    )
    if picked is None or not picked.delete:
        return
    copy = by_key[picked.id]
    if await app.push_screen_wait(Confirm(*removal_question(copy))):
        await app.backend.unstage(copy.key)
        done = f"removed the copy of {safe(copy.source)}"
        app.last_act.done(done, "A removed copy is staged again by the next job that needs it.")


def reserve(app: Cockpit) -> None:
    """Open the command line to reserve the node under the cursor, to which the user may add others."""
    node: NodeRow | None = app.main_screen.tables.row_under_cursor(NODE_VIEW.id)
    nodes = f"--nodes {quote(node.node.name)} " if node is not None else ""
    app.main_screen.entry_line.ask_command(f"{RESERVATIONS} create {nodes}--duration 4h ")


def drain(app: Cockpit) -> None:
    """Open the command line to drain the node under the cursor, or to resume a drained one."""
    node: NodeRow | None = app.main_screen.tables.row_under_cursor(NODE_VIEW.id)
    if node is None:
        app.notify("There is no node under the cursor.", severity="warning")
    elif node.node.state is NodeState.UP:
        app.main_screen.entry_line.ask_command(f"{NODES} drain {quote(node.node.name)} --reason ")
    else:
        app.main_screen.entry_line.ask_command(f"{NODES} resume {quote(node.node.name)}")


def reclaim(app: Cockpit) -> None:
    """Open the command line to reclaim the node under the cursor, as its provider does."""
    node: NodeRow | None = app.main_screen.tables.row_under_cursor(NODE_VIEW.id)
    if node is None:
        app.notify("There is no node under the cursor.", severity="warning")
    else:
        app.main_screen.entry_line.ask_command(f"reclaim {quote(node.node.name)} --grace 5m")


def reclaim_words(app: Cockpit, text: str) -> None:
    """Reclaim the nodes that the words after `:reclaim` name."""
    app.dispatcher.change(lambda: _change(app, reclaim_requests(text)))


def words_of(noun: str) -> Callable[[Cockpit, str], None]:
    """Return the command that runs the words after `:nodes` or `:reservations`."""

    def run(app: Cockpit, text: str) -> None:
        app.dispatcher.change(lambda: _change(app, node_requests(noun, text, app.state.context().now)))

    return run


async def _change(app: Cockpit, request: NodeRequests) -> None:
    way = await way_back(app, request)
    for operation in request.operations:
        await operation(app.backend)
    app.last_act.done(request.done, way)


async def way_back(app: Cockpit, request: NodeRequests) -> WayBack | str:
    """Return the way back from these requests, before they are made."""
    if request.drained:
        states = {row.node.name: row.node.state for row in await app.backend.nodes()}
        for name in request.drained:
            # To resume it would end what another administrator began.
            if states.get(NodeName(name)) is not NodeState.UP:
                return f"{safe(name)} was not in service before either; :nodes resume gives it back."
    back = request.back
    if isinstance(back, str):
        return back

    async def go() -> str:
        for operation in back.operations:
            await operation(app.backend)
        return back.done

    return WayBack(request.offer, go)
