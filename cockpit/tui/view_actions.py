"""Every act on accounts, priorities and nodes in service."""

from __future__ import annotations

from typing import Final

from cockpit.tui import account_deeds, catalogue_deeds, node_deeds, priority_deeds
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

_JOBS, _JOB = frozenset({JOBS}), frozenset({JOB})
_ACCOUNTS, _QOS = frozenset({ACCOUNTS}), frozenset({QOS})
_TABBED = _JOB | ON_ACCOUNTS
_PRIORITY = frozenset({PRIORITY})
_SPENDING = frozenset({SPENDING})
_NODES = frozenset({NODES})
_CATALOGUE = frozenset({CATALOGUE})

SHARING: Final = (
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
        ON_PLACES,
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
        ON_PLACES,
        may_change_place,
        acts=True,
        danger=True,
        in_row=True,
    ),
)

NAMING: Final = (
    Action(
        "add_entry",
        "add",
        ("n",),
        "A name for a dataset, a model …",
        catalogue_deeds.add_entry,
        NAMES,
        _CATALOGUE,
        acts=True,
        in_row=True,
    ),
    Action(
        "set_entry",
        "change",
        ("e", "enter"),
        "Whose it is, who may use it, where it is",
        catalogue_deeds.set_entry,
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
        "Asks first; the files stay",
        catalogue_deeds.remove_entry,
        NAMES,
        _CATALOGUE,
        may_change_entry,
        acts=True,
        danger=True,
        in_row=True,
    ),
)

SPENT: Final = (
    Action(
        "by", "by …", ("b",), "By account, user, project, QOS", account_deeds.turn_by, SHARE, _SPENDING, in_row=True
    ),
    Action("days", "days", ("d",), "7 days, or 30", account_deeds.turn_days, SHARE, _SPENDING, in_row=True),
    Action(
        "held_jobs",
        "its jobs",
        ("enter",),
        "The jobs of this name",
        account_deeds.held_jobs,
        SHARE,
        _SPENDING,
        in_row=True,
    ),
)

WEIGHING: Final = (
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

SERVICE: Final = (
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
        "staged",
        "staged",
        ("C",),
        "Copies made of data and images",
        node_deeds.staged,
        SERVE,
        _NODES,
        needs_admin,
    ),
    Action(
        "reserve",
        "reserve",
        ("K",),
        "Keep nodes for somebody",
        node_deeds.reserve,
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
        "Out of service, or back",
        node_deeds.drain,
        SERVE,
        _NODES,
        needs_admin,
        acts=True,
        in_row=True,
    ),
)
