"""What the actions on nodes and reservations do: most write the words of a command and let the person go on."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from cockpit.headless.node_words import NODES, RESERVATIONS, Asked, asked_of_nodes
from cockpit.model.node import NodeState
from cockpit.present.reservation_words import end_question, reservation_line
from cockpit.present.safe import safe
from cockpit.present.tables.staged import copy_line, removal_question
from cockpit.tui.screens.confirm import Confirm
from cockpit.tui.screens.pick import Choice, Pick

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.tui.cockpit_base import CockpitBase


async def reservations(app: CockpitBase) -> None:
    """All of them: one is chosen to see its nodes, or ended when that is meant."""
    found = {each.name: each for each in await app.backend.reservations()}
    if not found:
        app.notify("There are no reservations: every node serves all jobs.")
        return
    now, zone = app.context().now, app.context().zone
    choices = [Choice(name, name, reservation_line(each, now, zone)) for name, each in found.items()]
    picked = await app.push_screen_wait(
        Pick("Reservations", choices, app.role_theme, verb="shows its nodes", deletes=not app.read_only, deletion="end")
    )
    if picked is None:
        return
    if not picked.delete:
        app.perform("nodes")
        app.main_view.filter(f"name:{','.join(map(str, found[picked.id].nodes))}")
    elif await app.push_screen_wait(Confirm(*end_question(found[picked.id]))):
        await app.backend.end_reservation(picked.id)
        app.notify(f"ended {picked.id}")


async def staged(app: CockpitBase) -> None:
    """Copies on the machine: one that nobody uses is removed."""
    found = {each.key: each for each in await app.backend.staged()}
    if not found:
        app.notify("Nothing is staged.")
        return
    choices = [Choice(key, each.source, copy_line(each, app.context())) for key, each in found.items()]
    picked = await app.push_screen_wait(
        Pick("Staged copies", choices, app.role_theme, verb="closes", deletes=not app.read_only, deletion="remove")
    )
    if picked is None or not picked.delete:
        return
    copy = found[picked.id]
    if await app.push_screen_wait(Confirm(*removal_question(copy))):
        await app.backend.unstage(copy.key)
        app.notify(f"removed the copy of {safe(copy.source)}")


def reserve(app: CockpitBase) -> None:
    """The node under the cursor, and others that are added to it."""
    node = app.main_view.node_under_cursor()
    nodes = f"--nodes {quote(node.node.name)} " if node is not None else ""
    app.main_view.ask_command(f"{RESERVATIONS} create {nodes}--duration 4h ")


def drain(app: CockpitBase) -> None:
    """The node under the cursor: out of service, or back."""
    node = app.main_view.node_under_cursor()
    if node is None:
        app.notify("There is no node under the cursor.", severity="warning")
    elif node.node.state is NodeState.UP:
        app.main_view.ask_command(f"{NODES} drain {quote(node.node.name)} --reason ")
    else:
        app.main_view.ask_command(f"{NODES} resume {quote(node.node.name)}")


def words_of(noun: str) -> Callable[[CockpitBase, str], None]:
    """What stands after `:nodes` or `:reservations`."""

    def run(app: CockpitBase, text: str) -> None:
        if app.read_only:
            app.notify(app.read_only, severity="warning")
        else:
            app.run_in_background(_done(app, asked_of_nodes(noun, text, app.context().now)))

    return run


async def _done(app: CockpitBase, asked: Asked) -> None:
    for deed in asked.deeds:
        await deed(app.backend)
    app.notify(asked.done)
