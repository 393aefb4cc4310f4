"""The table of all actions, from which the key map, the bottom row, the help page, the palette and the command line are
made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.tui.action import DEMO, GO, LOOK, Action, of_one_cluster, only_in_demo, only_outside_demo
from cockpit.tui.actions.jobs import HELD_CONTAINERS, JOB_CHANGES
from cockpit.tui.actions.looks import SORTING, VIEWING
from cockpit.tui.actions.views import ACCOUNT_TREE, CARD_HOURS, CATALOGUE_ENTRIES, PRIORITIES, SERVICE
from cockpit.tui.controllers import anywhere
from cockpit.tui.views.all import VIEWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cockpit.tui.views.view import View


def command_name(action_id: str) -> str:
    """Return the action's name on the command line: `extend-hold`."""
    return action_id.replace("_", "-")


def _showing(view: View) -> Action:
    """Return the action that shows this view."""
    show = Action(
        view.action, command_name(view.action), (view.key,), view.help, lambda app: app.show_view(view.id), GO
    )
    return show._replace(why_not=of_one_cluster) if view.of_one_cluster else show


_GO_TO = (
    *(_showing(view) for view in VIEWS.values() if view.action),
    Action("demo", "demo", (), "Open a simulated cluster", anywhere.open_demo, GO, why_not=only_outside_demo),
    Action(
        "command",
        "command",
        ("colon",),
        "Run any action by its name",
        lambda app: app.main_screen.entry_line.ask_command(),
        GO,
        in_row=True,
    ),
    Action("cluster", "cluster", (), "Switch to another cluster", anywhere.choose_cluster, GO),
    Action("refresh", "refresh", ("ctrl+r", "f5"), "Refresh the data, redraw the screen", anywhere.refresh, GO),
    Action("login", "login", ("f7",), "Log in again over SSH", anywhere.log_in, GO),
    Action("pause", "pause", ("f6",), "Pause updates, or resume them", anywhere.pause, GO),
    Action("theme", "theme", (), "Switch to the next colour theme", anywhere.next_theme, GO),
    Action("back", "back", ("escape",), "Go back; never quits", anywhere.back, GO),
    Action("quit", "quit", ("q", "ctrl+c"), "Quit; jobs continue", lambda app: app.exit(0), GO),
)
_DEMO_TIME = (
    Action(
        "faster",
        "faster",
        ("right_parenthesis",),
        "Speed up the demo's time",
        anywhere.faster,
        DEMO,
        why_not=only_in_demo,
    ),
    Action(
        "slower",
        "slower",
        ("left_parenthesis",),
        "Slow down the demo's time",
        anywhere.slower,
        DEMO,
        why_not=only_in_demo,
    ),
)

ACTIONS: Final = (
    Action(
        "help", "help", ("question_mark", "f1"), "Show what every key does here", anywhere.show_help, LOOK, in_row=True
    ),
    *JOB_CHANGES,
    *ACCOUNT_TREE,
    *CARD_HOURS,
    *CATALOGUE_ENTRIES,
    *PRIORITIES,
    *SERVICE,
    *VIEWING,
    *HELD_CONTAINERS,
    *SORTING,
    *_GO_TO,
    *_DEMO_TIME,
)

BY_ID: Final[Mapping[str, Action]] = {action.id: action for action in ACTIONS}
_FORMER_IDS: Final[Mapping[str, str]] = {"look_inside": "open_shell"}
"""Ids of earlier releases, which users have in their key configuration, and today's."""


def current_id(name: str) -> str:
    """Return today's id of an action that has this id, now or in an earlier release; other names unchanged."""
    return _FORMER_IDS.get(name, name)


def action_named(text: str) -> Action | None:
    """Return the action of this name, written with hyphens, underscores or blanks; None where there is none."""
    return BY_ID.get(current_id("_".join(text.lower().replace("-", " ").replace("_", " ").split())))
