"""Controllers for nodes, reservations and staged copies.

Some open the command line with the beginning of a command, which the user completes.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.node_words import NODES, RESERVATIONS, NodeRequests, asked_of_nodes
from cockpit.model.node import NodeState
from cockpit.present.safe import safe
from cockpit.present.tables.reservations import end_question, reservation_line
from cockpit.present.tables.staged import copy_line, removal_question
from cockpit.tui.screens.confirm import Confirm
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.tui.cockpit import Cockpit


async def reservations(app: Cockpit) -> None:
    """List the reservations: Enter shows the nodes of one, another key ends it (asks)."""
    by_name = {reservation.name: reservation for reservation in await app.backend.reservations()}
    if not by_name:
        app.notify("There are no reservations: every node serves all jobs.")
        return
    now, zone = app.state.context().now, app.state.context().zone
    choices = [Choice(name, name, reservation_line(each, now, zone)) for name, each in by_name.items()]
    picked = await app.push_screen_wait(
        Pick(
            "Reservations",
            choices,
            app.state.role_theme,
            verb="shows its nodes",
            deletes=not app.options.read_only,
            deletion="end",
        )
    )
    if picked is None:
        return
    if not picked.delete:
        app.dispatcher.perform("nodes")
        app.main_screen.filter(f"name:{','.join(map(str, by_name[picked.id].nodes))}")
    elif await app.push_screen_wait(Confirm(*end_question(by_name[picked.id]))):
        await app.backend.end_reservation(picked.id)
        app.notify(f"ended {picked.id}")


async def staged(app: Cockpit) -> None:
    """List the staged copies of data and images; the user may remove one (asks)."""
    by_key = {copy.key: copy for copy in await app.backend.staged()}
    if not by_key:
        app.notify("Nothing is staged.")
        return
    choices = [Choice(key, each.source, copy_line(each, app.state.context())) for key, each in by_key.items()]
    picked = await app.push_screen_wait(
        Pick(
            "Staged copies",
            choices,
            app.state.role_theme,
            verb="closes",
            deletes=not app.options.read_only,
            deletion="remove",
        )
    )
    if picked is None or not picked.delete:
        return
    copy = by_key[picked.id]
    if await app.push_screen_wait(Confirm(*removal_question(copy))):
        await app.backend.unstage(copy.key)
        app.notify(f"removed the copy of {safe(copy.source)}")


def reserve(app: Cockpit) -> None:
    """Open the command line to reserve the node under the cursor, to which the user may add others."""
    node = app.main_screen.node_under_cursor()
    nodes = f"--nodes {quote(node.node.name)} " if node is not None else ""
    app.main_screen.ask_command(f"{RESERVATIONS} create {nodes}--duration 4h ")


def drain(app: Cockpit) -> None:
    """Open the command line to drain the node under the cursor, or to resume a drained one."""
    node = app.main_screen.node_under_cursor()
    if node is None:
        app.notify("There is no node under the cursor.", severity="warning")
    elif node.node.state is NodeState.UP:
        app.main_screen.ask_command(f"{NODES} drain {quote(node.node.name)} --reason ")
    else:
        app.main_screen.ask_command(f"{NODES} resume {quote(node.node.name)}")


def words_of(noun: str) -> Callable[[Cockpit, str], None]:
    """Return the command that runs the words after `:nodes` or `:reservations`."""

    def run(app: Cockpit, text: str) -> None:
        if app.options.read_only:
            app.notify(app.options.read_only, severity="warning")
        else:
            app.dispatcher.run_in_background(_change(app, asked_of_nodes(noun, text, app.state.context().now)))

    return run


async def _change(app: Cockpit, request: NodeRequests) -> None:
    for operation in request.deeds:
        await operation(app.backend)
    app.notify(request.done)
