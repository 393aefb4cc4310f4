"""Every act of the cockpit, once: the key map, the bottom row, the help, the palette and the command line are made of
this table. What cannot be done says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.tui import account_deeds, deeds, node_deeds, priority_deeds, queue_deeds
from cockpit.tui.action import (
    ACCOUNTS,
    ANYWHERE,
    CARDS,
    JOB,
    JOBS,
    NODES,
    ON_ACCOUNTS,
    ON_JOBS,
    ON_QUEUED,
    ON_SORTED,
    ON_TABLES,
    OVER_A_JOB,
    PRIORITY,
    QOS,
    QUEUES,
    Action,
    Situation,
    can_fold,
    may_add_below,
    may_administer,
    may_change_place,
    needs_container,
    needs_filter,
    needs_job,
    needs_kept,
    needs_live,
    needs_over,
    needs_queued,
    needs_trial,
    no_terminal_to_attach,
    only_in_demo,
    only_outside_demo,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ACTIONS",
    "BY_ID",
    "CARDS",
    "JOB",
    "JOBS",
    "NODES",
    "PRIORITY",
    "Action",
    "Situation",
    "called",
    "command_name",
]

_JOBS, _JOB = frozenset({JOBS}), frozenset({JOB})
_ACCOUNTS, _QOS = frozenset({ACCOUNTS}), frozenset({QOS})
_TABBED = _JOB | ON_ACCOUNTS
_PRIORITY = frozenset({PRIORITY})
_NODES = frozenset({NODES})
WEIGH = "weigh priorities"
LOOK, ACT, KEPT, ORDER, GO, DEMO = "look", "act on jobs", "kept containers", "order", "go to", "the demo's time"
SHARE = "accounts"
SERVE = "nodes in service"

_LOOKING = (
    Action(
        "open",
        "open",
        ("enter",),
        "The job's page",
        deeds.open_job,
        LOOK,
        frozenset({JOBS, CARDS, PRIORITY}),
        needs_job,
        in_row=True,
    ),
    Action(
        "queue_jobs",
        "its jobs",
        ("enter",),
        "The jobs of this queue",
        queue_deeds.queue_jobs,
        LOOK,
        frozenset({QUEUES}),
        in_row=True,
    ),
    Action("node_jobs", "its jobs", ("enter",), "The jobs on this node", deeds.node_jobs, LOOK, frozenset({NODES})),
    Action("logs", "logs", ("l",), "What the job printed", deeds.show_logs, LOOK, OVER_A_JOB, needs_job, in_row=True),
    Action(
        "next_tab", "next tab", ("right_square_bracket", "tab"), "The tab to the right", deeds.next_tab, LOOK, _TABBED
    ),
    Action(
        "previous_tab",
        "previous tab",
        ("left_square_bracket", "shift+tab"),
        "The tab to the left",
        deeds.previous_tab,
        LOOK,
        _TABBED,
    ),
    Action("record", "record", ("y",), "All the engine knows of it", deeds.show_record, LOOK, ON_QUEUED, needs_job),
    Action("attempt", "earlier", ("p",), "The log of the try before", deeds.earlier_attempt, LOOK, ON_JOBS, needs_job),
    Action("wrap", "wrap", ("w",), "Fold long lines, or cut them", deeds.wrap, LOOK, _JOB),
    Action("search", "search", ("slash",), "Go to a text on this page", deeds.search, LOOK, _JOB, in_row=True),
    Action(
        "next_match", "next match", ("greater_than_sign",), "Where the text stands next", deeds.next_match, LOOK, _JOB
    ),
    Action(
        "previous_match", "match before", ("less_than_sign",), "Where it stood before", deeds.previous_match, LOOK, _JOB
    ),
    Action("times", "times", ("t",), "When each line of the log came", deeds.times, LOOK, _JOB),
    Action("stream", "other stream", ("o",), "stdout or stderr in the logs", deeds.other_stream, LOOK, _JOB),
    Action("filter", "filter", ("slash",), "Show only what matches", deeds.ask_filter, LOOK, ON_TABLES, in_row=True),
    Action("filters", "saved", ("F",), "Filters that you saved", deeds.saved_filters, LOOK, ON_TABLES),
    Action(
        "save_filter", "keep filter", ("W",), "Save it under a name", deeds.save_filter, LOOK, ON_TABLES, needs_filter
    ),
    Action("mine", "mine", ("m",), "Your own jobs, or everybody's", deeds.toggle_mine, LOOK, _JOBS, in_row=True),
    Action("fold", "fold", ("z",), "What is below, or one row", deeds.fold, LOOK, _JOBS | _ACCOUNTS, can_fold),
    Action(
        "colours",
        "colours",
        ("u",),
        "Colour the cards by user, or by job",
        deeds.turn_colours,
        LOOK,
        frozenset({CARDS}),
        in_row=True,
    ),
    Action("copy", "copy", ("c",), "Copy the job's id", deeds.copy, LOOK, ON_QUEUED, needs_job),
)
_ACTING = (
    Action(
        "new",
        "submit",
        ("n",),
        "Submit a job written in $EDITOR",
        deeds.new_job,
        ACT,
        ANYWHERE - ON_ACCOUNTS,
        acts=True,
        in_row=True,
    ),
    Action(
        "edit",
        "edit",
        ("e",),
        "Change a queued job in $EDITOR",
        deeds.edit_job,
        ACT,
        ON_JOBS,
        needs_queued,
        acts=True,
        in_row=True,
    ),
    Action(
        "what_if",
        "what if",
        ("w",),
        "Start sooner: ask for something else",
        deeds.what_if,
        ACT,
        _JOBS,
        needs_queued,
        acts=True,
    ),
    Action(
        "clone",
        "clone",
        ("N",),
        "Submit a copy, edited first",
        deeds.clone_job,
        ACT,
        ON_JOBS,
        needs_job,
        acts=True,
        in_row=True,
    ),
    Action(
        "cancel",
        "cancel",
        ("x",),
        "Stop jobs: ask, then kill",
        deeds.cancel,
        ACT,
        ON_QUEUED,
        needs_live,
        acts=True,
        danger=True,
        in_row=True,
    ),
    Action(
        "hold",
        "hold",
        ("H",),
        "Hold queued jobs back, or let go",
        deeds.hold_or_release,
        ACT,
        ON_QUEUED,
        needs_queued,
        acts=True,
        in_row=True,
    ),
    Action(
        "priority",
        "priority",
        ("P",),
        "Make queued jobs more or less urgent",
        deeds.set_priority,
        ACT,
        ON_QUEUED,
        needs_queued,
        acts=True,
    ),
    Action(
        "shell",
        "shell",
        ("s",),
        "Enter the container",
        deeds.shell,
        ACT,
        ON_JOBS,
        needs_container,
        acts=True,
        in_row=True,
    ),
    Action(
        "attach",
        "attach",
        ("a",),
        "Be the command's terminal",
        deeds.shell,
        ACT,
        ON_JOBS,
        no_terminal_to_attach,
        acts=True,
    ),
    Action(
        "delete",
        "delete",
        ("X",),
        "Take ended jobs off the list",
        deeds.delete,
        ACT,
        ON_JOBS,
        needs_over,
        acts=True,
        danger=True,
    ),
)
_SHARING = (
    Action(
        "unfold", "fold · jobs", ("enter",), "Fold an account; a user's jobs", account_deeds.unfold, SHARE, _ACCOUNTS
    ),
    Action("fold_all", "fold all", ("Z",), "Only the top accounts, or all", account_deeds.fold_all, SHARE, _ACCOUNTS),
    Action(
        "add_user",
        "add user",
        ("n",),
        "To the account under the cursor",
        account_deeds.add_user,
        SHARE,
        _ACCOUNTS,
        may_add_below,
        acts=True,
        in_row=True,
    ),
    Action(
        "add_account",
        "add account",
        ("N",),
        "Below the account under the cursor",
        account_deeds.add_account,
        SHARE,
        _ACCOUNTS,
        may_add_below,
        acts=True,
        in_row=True,
    ),
    Action(
        "add_qos",
        "add QOS",
        ("n",),
        "With its priority and limits",
        account_deeds.add_qos,
        SHARE,
        _QOS,
        may_administer,
        acts=True,
        in_row=True,
    ),
    Action(
        "modify",
        "modify",
        ("e",),
        "Shares, limits, QOS",
        account_deeds.modify,
        SHARE,
        ON_ACCOUNTS,
        may_change_place,
        acts=True,
        in_row=True,
    ),
    Action(
        "coordinators",
        "coordinators",
        ("C",),
        "Who administers the account",
        account_deeds.add_coordinator,
        SHARE,
        _ACCOUNTS,
        may_change_place,
        acts=True,
    ),
    Action(
        "remove",
        "remove",
        ("X",),
        "Asks first; not what has jobs",
        account_deeds.remove,
        SHARE,
        ON_ACCOUNTS,
        may_change_place,
        acts=True,
        danger=True,
        in_row=True,
    ),
)
_KEPT = (
    Action(
        "extend_hold",
        "extend hold",
        ("plus",),
        "Keep it two hours longer",
        deeds.extend_hold,
        KEPT,
        ON_JOBS,
        needs_kept,
        acts=True,
    ),
    Action(
        "end_hold",
        "end hold",
        ("minus",),
        "Remove it now",
        deeds.end_hold,
        KEPT,
        ON_JOBS,
        needs_kept,
        acts=True,
        danger=True,
    ),
)
_ORDERING = (
    Action("sort_next", "sort right", ("greater_than_sign",), "By the next column", deeds.sort_next, ORDER, ON_SORTED),
    Action(
        "sort_previous", "sort left", ("less_than_sign",), "By the previous column", deeds.sort_previous, ORDER, _JOBS
    ),
    Action("sort", "sort", ("S",), "By a column of your choice", deeds.choose_sort, ORDER, ON_SORTED),
    Action("sort_reverse", "reverse", ("equals_sign",), "The other way round", deeds.sort_reverse, ORDER, ON_SORTED),
)
_WEIGHING = (
    Action(
        "weights",
        "what if",
        ("w",),
        "Try other weights out",
        priority_deeds.ask_weights,
        WEIGH,
        _PRIORITY,
        in_row=True,
    ),
    Action(
        "figures",
        "figures",
        ("v",),
        "What factors add, raw values, weights",
        priority_deeds.turn_figures,
        WEIGH,
        _PRIORITY,
        in_row=True,
    ),
    Action(
        "next_factor",
        "factor right",
        ("right_square_bracket",),
        "Choose a factor",
        priority_deeds.next_factor,
        WEIGH,
        _PRIORITY,
    ),
    Action(
        "previous_factor",
        "factor left",
        ("left_square_bracket",),
        "Choose a factor",
        priority_deeds.previous_factor,
        WEIGH,
        _PRIORITY,
    ),
    Action("heavier", "more weight", ("plus",), "Of the chosen factor", priority_deeds.heavier, WEIGH, _PRIORITY),
    Action("lighter", "less weight", ("minus",), "Of the chosen factor", priority_deeds.lighter, WEIGH, _PRIORITY),
    Action(
        "apply_weights",
        "apply",
        ("A",),
        "Put the weights in force",
        priority_deeds.apply_weights,
        WEIGH,
        _PRIORITY,
        needs_trial,
        acts=True,
        danger=True,
        in_row=True,
    ),
)
_SERVICE = (
    Action(
        "reservations",
        "reservations",
        ("R",),
        "Nodes that are kept, for whom and when",
        node_deeds.reservations,
        SERVE,
        _NODES,
        in_row=True,
    ),
    Action(
        "reserve",
        "reserve",
        ("K",),
        "Keep nodes for somebody",
        node_deeds.reserve,
        SERVE,
        _NODES,
        acts=True,
        in_row=True,
    ),
    Action(
        "drain",
        "drain",
        ("D",),
        "Out of service, or back",
        node_deeds.drain,
        SERVE,
        _NODES,
        acts=True,
        in_row=True,
    ),
)
_GOING = (
    Action("jobs", "jobs", ("1",), "The list of jobs", deeds.show_jobs, GO),
    Action("nodes", "nodes", ("2",), "The nodes and what is used", deeds.show_nodes, GO),
    Action("cards", "cards", ("3",), "The cards and who holds them", deeds.show_cards, GO),
    Action("accounts", "accounts", ("4",), "Accounts, shares and QOS", account_deeds.show_accounts, GO),
    Action("priorities", "priorities", ("5",), "Who comes first, and why", priority_deeds.show_priorities, GO),
    Action("queues", "queues", ("6",), "Quotas and partitions", queue_deeds.show_queues, GO),
    Action("demo", "demo", (), "Look around a living cluster", deeds.open_demo, GO, why_not=only_outside_demo),
    Action("command", "command", ("colon",), "Any action by its name", deeds.ask_command, GO, in_row=True),
    Action("cluster", "cluster", (), "Another cluster", deeds.choose_cluster, GO),
    Action("refresh", "refresh", ("ctrl+r", "f5"), "Ask again, and draw all anew", deeds.refresh, GO),
    Action("pause", "pause", ("f6",), "Stand still, or go on", deeds.pause, GO),
    Action("theme", "theme", (), "The next colour theme", deeds.next_theme, GO),
    Action("back", "back", ("escape",), "Back; never quits", deeds.back, GO),
    Action("quit", "quit", ("q", "ctrl+c"), "Leave; jobs go on", deeds.leave, GO),
)
_PACING = (
    Action("faster", "faster", ("right_parenthesis",), "Pass faster", deeds.faster, DEMO, why_not=only_in_demo),
    Action("slower", "slower", ("left_parenthesis",), "Pass slower", deeds.slower, DEMO, why_not=only_in_demo),
)

ACTIONS: Final = (
    Action("help", "help", ("question_mark", "f1"), "What every key does here", deeds.show_help, LOOK, in_row=True),
    *_ACTING,
    *_SHARING,
    *_WEIGHING,
    *_SERVICE,
    *_LOOKING,
    *_KEPT,
    *_ORDERING,
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
