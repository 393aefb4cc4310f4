"""Actions of the views of accounts, card-hours, priorities, nodes and the catalogue."""

from __future__ import annotations

from functools import partial
from typing import Final

from cockpit.headless.typed_line import NOUN as ACCOUNT_NOUN
from cockpit.tui.action import (
    ON_PLACES,
    Action,
    Group,
    may_add_below,
    may_administer,
    may_change_entry,
    may_change_place,
    needs_admin,
    needs_trial,
    on,
)
from cockpit.tui.controllers import accounts, catalogue, nodes, priority
from cockpit.tui.views.accounts import ACCOUNTS, QOS, SPENDING
from cockpit.tui.views.all import CATALOGUE, NODES
from cockpit.tui.views.priority import PRIORITY

# What the actions of one subject share; each action states only what is special to it.
_account = partial(Action, group=Group.ACCOUNTS, views=on(ACCOUNTS))
_edit_account = partial(_account, acts=True, needs="change_accounts")
_entry = partial(Action, group=Group.CATALOGUE, views=on(CATALOGUE), acts=True, needs="change_catalogue")
_hours = partial(Action, group=Group.ACCOUNTS, views=on(SPENDING), in_row=True)
_priority = partial(Action, group=Group.WEIGHTS, views=on(PRIORITY))
_node = partial(Action, group=Group.NODES, views=on(NODES))

ACCOUNT_TREE: Final = (
    _account("unfold", ("enter",), "Fold an account, or list a user's jobs", accounts.unfold, title="fold · jobs"),
    _account(
        "fold_all", ("Z",), "Show only the top accounts, or all", lambda app: app.main_screen.arrangement.fold_all()
    ),
    _edit_account(
        "add_user", ("n",), "Add a user to the selected account", accounts.add_user, why_not=may_add_below, in_row=True
    ),
    _edit_account(
        "add_account",
        ("N",),
        "Add an account below the selected one",
        accounts.add_account,
        why_not=may_add_below,
        in_row=True,
    ),
    _edit_account(
        "add_qos",
        ("n",),
        "Add a QOS with priority and limits",
        lambda app: app.main_screen.entry_line.ask_command(f"{ACCOUNT_NOUN} add-qos "),
        views=on(QOS),
        why_not=may_administer,
        in_row=True,
        title="add QOS",
    ),
    _edit_account(
        "modify",
        ("e",),
        "Change shares, limits, QOS",
        accounts.modify,
        views=ON_PLACES,
        why_not=may_change_place,
        in_row=True,
    ),
    _edit_account(
        "coordinators", ("C",), "Add coordinators to the account", accounts.add_coordinator, why_not=may_change_place
    ),
    _edit_account(
        "remove",
        ("X",),
        "Remove it, unless it has jobs (asks)",
        accounts.remove,
        views=ON_PLACES,
        why_not=may_change_place,
        danger=True,
        in_row=True,
    ),
)

CATALOGUE_ENTRIES: Final = (
    _entry("add_entry", ("n",), "Add a dataset, model, image …", catalogue.add_entry, in_row=True, title="add"),
    _entry(
        "set_entry",
        ("e", "enter"),
        "Change owner, access, location",
        catalogue.set_entry,
        why_not=may_change_entry,
        in_row=True,
        title="change",
    ),
    _entry(
        "remove_entry",
        ("X",),
        "Remove the name (asks); files stay",
        catalogue.remove_entry,
        why_not=may_change_entry,
        danger=True,
        in_row=True,
        title="remove",
    ),
)

CARD_HOURS: Final = (
    _hours("by", ("b",), "Group by account, user, project, QOS", accounts.next_grouping, title="by …"),
    _hours("days", ("d",), "Show 7 days, or 30", accounts.toggle_days),
    _hours("held_jobs", ("enter",), "List the jobs counted in this row", accounts.held_jobs, title="its jobs"),
)

# All of them try weights on the screen; only the last one changes the cluster.
PRIORITIES: Final = (
    _priority(
        "weights",
        ("w",),
        "Try other weights",
        lambda app: app.main_screen.entry_line.ask_weights(),
        in_row=True,
        title="what if",
    ),
    _priority("figures", ("v",), "Switch: contributions, raw, weights", priority.next_figures, in_row=True),
    _priority(
        "next_factor", ("right_square_bracket",), "Choose the next factor", lambda app: priority.choose_factor(app, 1)
    ),
    _priority(
        "previous_factor",
        ("left_square_bracket",),
        "Choose the previous factor",
        lambda app: priority.choose_factor(app, -1),
        title="prev factor",
    ),
    _priority(
        "heavier",
        ("plus",),
        "Raise the weight of the factor",
        lambda app: priority.step_weight(app, 1),
        title="more weight",
    ),
    _priority(
        "lighter",
        ("minus",),
        "Lower the weight of the factor",
        lambda app: priority.step_weight(app, -1),
        title="less weight",
    ),
    _priority(
        "apply_weights",
        ("A",),
        "Apply the tried weights (asks)",
        priority.apply_weights,
        why_not=needs_trial,
        acts=True,
        danger=True,
        in_row=True,
        needs="set_weights",
        title="apply",
    ),
)

# Reservations and copies have no views of their own: they are few, and a list to pick from has all that can be done.
SERVICE: Final = (
    _node("reservations", ("R",), "List reservations of nodes", nodes.reservations, in_row=True, needs="reservations"),
    _node("staged", ("C",), "List staged copies of data and images", nodes.staged, why_not=needs_admin, needs="staged"),
    _node(
        "reserve",
        ("K",),
        "Reserve nodes",
        nodes.reserve,
        why_not=needs_admin,
        acts=True,
        in_row=True,
        needs="make_reservation",
    ),
    _node(
        "drain",
        ("D",),
        "Drain a node, or resume it",
        nodes.drain,
        why_not=needs_admin,
        acts=True,
        in_row=True,
        needs="drain_node",
    ),
    _node(
        "reclaim",
        ("B",),
        "Reclaim a spot node within a time",
        nodes.reclaim,
        why_not=needs_admin,
        acts=True,
        needs="drain_node",
    ),
)
