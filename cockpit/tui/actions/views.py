"""Actions of the views of accounts, card-hours, priorities, nodes and the catalogue."""

from __future__ import annotations

from typing import Final

from cockpit.tui.action import (
    ACCOUNTS,
    CATALOGUE,
    JOB,
    JOBS,
    NAMES,
    NODES,
    ON_ACCOUNTS,
    ON_PLACES,
    PRIORITY,
    QOS,
    SERVE,
    SHARE,
    SPENDING,
    WEIGH,
    Action,
    may_add_below,
    may_administer,
    may_change_entry,
    may_change_place,
    needs_admin,
    needs_trial,
)
from cockpit.tui.controllers import accounts, catalogue, nodes, priority

_JOBS, _JOB = frozenset({JOBS}), frozenset({JOB})
_ACCOUNTS, _QOS = frozenset({ACCOUNTS}), frozenset({QOS})
_TABBED = _JOB | ON_ACCOUNTS
_PRIORITY = frozenset({PRIORITY})
_SPENDING = frozenset({SPENDING})
_NODES = frozenset({NODES})
_CATALOGUE = frozenset({CATALOGUE})

ACCOUNT_TREE: Final = (
    Action(
        "unfold", "fold · jobs", ("enter",), "Fold an account, or list a user's jobs", accounts.unfold, SHARE, _ACCOUNTS
    ),
    Action("fold_all", "fold all", ("Z",), "Show only the top accounts, or all", accounts.fold_all, SHARE, _ACCOUNTS),
    Action(
        "add_user",
        "add user",
        ("n",),
        "Add a user to the selected account",
        accounts.add_user,
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
        "Add an account below the selected one",
        accounts.add_account,
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
        "Add a QOS with priority and limits",
        accounts.add_qos,
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
        "Change shares, limits, QOS",
        accounts.modify,
        SHARE,
        ON_PLACES,
        may_change_place,
        acts=True,
        in_row=True,
    ),
    Action(
        "coordinators",
        "coordinators",
        ("C",),
        "Add coordinators to the account",
        accounts.add_coordinator,
        SHARE,
        _ACCOUNTS,
        may_change_place,
        acts=True,
    ),
    Action(
        "remove",
        "remove",
        ("X",),
        "Remove it, unless it has jobs (asks)",
        accounts.remove,
        SHARE,
        ON_PLACES,
        may_change_place,
        acts=True,
        danger=True,
        in_row=True,
    ),
)

CATALOGUE_ENTRIES: Final = (
    Action(
        "add_entry",
        "add",
        ("n",),
        "Add a dataset, model, image …",
        catalogue.add_entry,
        NAMES,
        _CATALOGUE,
        acts=True,
        in_row=True,
    ),
    Action(
        "set_entry",
        "change",
        ("e", "enter"),
        "Change owner, access, location",
        catalogue.set_entry,
        NAMES,
        _CATALOGUE,
        may_change_entry,
        acts=True,
        in_row=True,
    ),
    Action(
        "remove_entry",
        "remove",
        ("X",),
        "Remove the name (asks); files stay",
        catalogue.remove_entry,
        NAMES,
        _CATALOGUE,
        may_change_entry,
        acts=True,
        danger=True,
        in_row=True,
    ),
)

CARD_HOURS: Final = (
    Action(
        "by", "by …", ("b",), "Group by account, user, project, QOS", accounts.turn_by, SHARE, _SPENDING, in_row=True
    ),
    Action("days", "days", ("d",), "Show 7 days, or 30", accounts.turn_days, SHARE, _SPENDING, in_row=True),
    Action(
        "held_jobs",
        "its jobs",
        ("enter",),
        "List the jobs counted in this row",
        accounts.held_jobs,
        SHARE,
        _SPENDING,
        in_row=True,
    ),
)

PRIORITIES: Final = (
    Action(
        "weights",
        "what if",
        ("w",),
        "Try other weights",
        priority.ask_weights,
        WEIGH,
        _PRIORITY,
        in_row=True,
    ),
    Action(
        "figures",
        "figures",
        ("v",),
        "Switch: contributions, raw, weights",
        priority.turn_figures,
        WEIGH,
        _PRIORITY,
        in_row=True,
    ),
    Action(
        "next_factor",
        "next factor",
        ("right_square_bracket",),
        "Choose the next factor",
        priority.next_factor,
        WEIGH,
        _PRIORITY,
    ),
    Action(
        "previous_factor",
        "prev factor",
        ("left_square_bracket",),
        "Choose the previous factor",
        priority.previous_factor,
        WEIGH,
        _PRIORITY,
    ),
    Action("heavier", "more weight", ("plus",), "Raise the weight of the factor", priority.heavier, WEIGH, _PRIORITY),
    Action("lighter", "less weight", ("minus",), "Lower the weight of the factor", priority.lighter, WEIGH, _PRIORITY),
    Action(
        "apply_weights",
        "apply",
        ("A",),
        "Apply the tried weights (asks)",
        priority.apply_weights,
        WEIGH,
        _PRIORITY,
        needs_trial,
        acts=True,
        danger=True,
        in_row=True,
    ),
)

SERVICE: Final = (
    Action(
        "reservations",
        "reservations",
        ("R",),
        "List reservations of nodes",
        nodes.reservations,
        SERVE,
        _NODES,
        in_row=True,
    ),
    Action(
        "staged",
        "staged",
        ("C",),
        "List staged copies of data and images",
        nodes.staged,
        SERVE,
        _NODES,
        needs_admin,
    ),
    Action(
        "reserve",
        "reserve",
        ("K",),
        "Reserve nodes",
        nodes.reserve,
        SERVE,
        _NODES,
        needs_admin,
        acts=True,
        in_row=True,
    ),
    Action(
        "drain",
        "drain",
        ("D",),
        "Drain a node, or resume it",
        nodes.drain,
        SERVE,
        _NODES,
        needs_admin,
        acts=True,
        in_row=True,
    ),
)
