"""The table of all actions, from which the key map, the bottom row, the help page, the palette and the command line are
made.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from cockpit.tui.action import Action, Group, of_one_cluster, only_in_demo, only_outside_demo
from cockpit.tui.actions.jobs import HELD_CONTAINERS, JOB_CHANGES, UNDO
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
        view.action,
        (view.key,),
        view.help,
        lambda app: app.show_view(view.id),
        group=Group.GO_TO,
        title=command_name(view.action),
    )
    # Accounts, priorities and the catalogue of several clusters cannot be shown in one table.
    return show._replace(why_not=of_one_cluster) if view.of_one_cluster else show


_go = partial(Action, group=Group.GO_TO)
_demo_time = partial(Action, group=Group.DEMO, why_not=only_in_demo)

_GO_TO = (
    *(_showing(view) for view in VIEWS.values() if view.action),
    _go("demo", (), "Open a simulated cluster", anywhere.open_demo, why_not=only_outside_demo),
    _go(
        "command",
        ("colon",),
        "Run any action by its name",
        lambda app: app.main_screen.entry_line.ask_command(),
        in_row=True,
    ),
    _go("cluster", (), "Switch to another cluster", anywhere.choose_cluster),
    _go("refresh", ("ctrl+r", "f5"), "Refresh the data, redraw the screen", anywhere.refresh),
    _go("login", ("f7",), "Log in again over SSH", anywhere.log_in),
    _go("pause", ("f6",), "Pause updates, or resume them", anywhere.pause),
    _go("theme", (), "Switch to the next colour theme", anywhere.next_theme),
    _go("back", ("escape",), "Go back; never quits", anywhere.back),
    _go("quit", ("q", "ctrl+c"), "Quit; jobs continue", lambda app: app.exit(0)),
)
_DEMO_TIME = (
    _demo_time("faster", ("right_parenthesis",), "Speed up the demo's time", anywhere.faster),
    _demo_time("slower", ("left_parenthesis",), "Slow down the demo's time", anywhere.slower),
)

# The bottom row and the help page keep this order, and the bottom row shows as many as fit: what users look for most
# comes first.
ACTIONS: Final = (
    Action(
        "help",
        ("question_mark", "f1"),
        "Show what every key does here",
        anywhere.show_help,
        group=Group.VIEW,
        in_row=True,
    ),
    *JOB_CHANGES,
    UNDO,
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

# For keys in config.toml and for names on the command line, which are ids with hyphens.
BY_ID: Final[Mapping[str, Action]] = {action.id: action for action in ACTIONS}
_FORMER_IDS: Final[Mapping[str, str]] = {"look_inside": "open_shell"}
"""Ids of earlier releases, which users have in their key configuration, and today's."""


def current_id(name: str) -> str:
    """Return today's id of an action that has this id, now or in an earlier release; other names unchanged."""
    return _FORMER_IDS.get(name, name)


def action_named(text: str) -> Action | None:
    """Return the action of this name, written with hyphens, underscores or blanks; None where there is none."""
    return BY_ID.get(current_id("_".join(text.lower().replace("-", " ").replace("_", " ").split())))
