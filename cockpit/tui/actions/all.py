"""Every act of the cockpit, once: the key map, the bottom row, the help, the palette and the command line are made of
this table. What cannot be done says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.tui.action import (
    DEMO,
    GO,
    LOOK,
    Action,
    of_one_cluster,
    only_in_demo,
    only_outside_demo,
)
from cockpit.tui.actions.jobs import ACTING, KEEPING
from cockpit.tui.actions.looks import LOOKING, ORDERING
from cockpit.tui.actions.views import NAMING, SERVICE, SHARING, SPENT, WEIGHING
from cockpit.tui.deeds import accounts, anywhere, catalogue, clusters, priority, queues

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_ONE = (
    Action("accounts", "accounts", ("4",), "Accounts, shares, card-hours, QOS", accounts.show_accounts, GO),
    Action("card_hours", "card-hours", ("h",), "What was held, day by day", accounts.show_spending, GO),
    Action("priorities", "priorities", ("5",), "Who comes first, and why", priority.show_priorities, GO),
    Action("queues", "queues", ("6",), "Quotas and partitions", queues.show_queues, GO),
    Action("catalogue", "catalogue", ("7",), "Datasets, models, images …", catalogue.show_catalogue, GO),
)
"""What several clusters have no common view of."""
_GOING = (
    Action("jobs", "jobs", ("1",), "The list of jobs", anywhere.show_jobs, GO),
    Action("nodes", "nodes", ("2",), "The nodes and what is used", anywhere.show_nodes, GO),
    Action("cards", "cards", ("3",), "The cards and who holds them", anywhere.show_cards, GO),
    Action(
        "accounts",
        "accounts",
        ("4",),
        "Accounts, shares, card-hours, QOS",
        accounts.show_accounts,
        GO,
        why_not=of_one_cluster,
    ),
    Action(
        "card_hours",
        "card-hours",
        ("h",),
        "What was held, day by day",
        accounts.show_spending,
        GO,
        why_not=of_one_cluster,
    ),
    Action(
        "priorities",
        "priorities",
        ("5",),
        "Who comes first, and why",
        priority.show_priorities,
        GO,
        why_not=of_one_cluster,
    ),
    Action("queues", "queues", ("6",), "Quotas and partitions", queues.show_queues, GO),
    Action(
        "catalogue",
        "catalogue",
        ("7",),
        "Datasets, models, images …",
        catalogue.show_catalogue,
        GO,
        why_not=of_one_cluster,
    ),
    Action("clusters", "clusters", ("8",), "All clusters that you use", clusters.show_clusters, GO),
    Action("demo", "demo", (), "Look around a living cluster", anywhere.open_demo, GO, why_not=only_outside_demo),
    Action("command", "command", ("colon",), "Any action by its name", anywhere.ask_command, GO, in_row=True),
    Action("cluster", "cluster", (), "Another cluster", anywhere.choose_cluster, GO),
    Action("refresh", "refresh", ("ctrl+r", "f5"), "Ask again, and draw all anew", anywhere.refresh, GO),
    Action("login", "login", ("f7",), "Type a lost login again", anywhere.log_in, GO),
    Action("pause", "pause", ("f6",), "Stand still, or go on", anywhere.pause, GO),
    Action("theme", "theme", (), "The next colour theme", anywhere.next_theme, GO),
    Action("back", "back", ("escape",), "Back; never quits", anywhere.back, GO),
    Action("quit", "quit", ("q", "ctrl+c"), "Leave; jobs go on", anywhere.leave, GO),
)
_PACING = (
    Action("faster", "faster", ("right_parenthesis",), "Pass faster", anywhere.faster, DEMO, why_not=only_in_demo),
    Action("slower", "slower", ("left_parenthesis",), "Pass slower", anywhere.slower, DEMO, why_not=only_in_demo),
)

ACTIONS: Final = (
    Action("help", "help", ("question_mark", "f1"), "What every key does here", anywhere.show_help, LOOK, in_row=True),
    *ACTING,
    *SHARING,
    *SPENT,
    *NAMING,
    *WEIGHING,
    *SERVICE,
    *LOOKING,
    *KEEPING,
    *ORDERING,
    *_GOING,
    *_PACING,
)

BY_ID: Final[Mapping[str, Action]] = {action.id: action for action in ACTIONS}


def command_name(action_id: str) -> str:
    """How it is called on the command line: `extend-hold`."""
    return action_id.replace("_", "-")


def called(text: str) -> Action | None:
    """The action of that name, written with hyphens, underscores or blanks."""
    return BY_ID.get("_".join(text.lower().replace("-", " ").replace("_", " ").split()))
