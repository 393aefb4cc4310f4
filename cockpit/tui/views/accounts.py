"""The Accounts view: the tree of accounts, the list of QOS and the card-hours, as three tabs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from cockpit.present.account_panel import first_account_lines, place_answer
from cockpit.present.spans import Line
from cockpit.present.tables.accounting import HOURS, spending_answer
from cockpit.present.tables.accounts import ACCOUNTS as ACCOUNT_TABLE
from cockpit.present.tables.qos import QOS as QOS_TABLE
from cockpit.present.tables.qos import by_priority
from cockpit.tui.views.view import FetchContext, View, ViewContext, connecting, plain_rows, tabs_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cockpit.model.accounts import Qos
    from cockpit.model.view import AccountRow
    from cockpit.present.accounting import Held

SPENDING_SECONDS = 5.0
"""Seconds after which the card-hours are fetched again, as they change slowly."""


async def _fetch(context: FetchContext) -> None:
    """Fetch the rows of all three tabs: the tree also shows card-hours, and the user switches between them fast."""
    shown = context.state.accounts = await context.backend.accounts()
    context.take(ACCOUNTS.id, shown.rows)
    context.take(QOS.id, by_priority(shown.qos))
    rows, now = context.state.spending_rows, asyncio.get_running_loop().time()
    if rows.spending is not None and now < rows.fetch_at:
        return
    edges = rows.edges()
    spending = await context.backend.spending(edges)
    rows.fetch_at = now + SPENDING_SECONDS
    if len(edges) != rows.days + 1:  # the user chose another number of days meanwhile: drop this answer
        return
    is_first = rows.spending is None
    changed = rows.count(spending)
    if is_first:  # for these days: no row of it counts as changed
        context.redraw_all(SPENDING.id)
    else:
        context.redraw(SPENDING.id, *changed)
    context.state.account_rows.spend(spending)


def _panel(row: AccountRow | Qos, context: ViewContext) -> Iterator[Line]:
    return place_answer(row, context.state.account_rows, context.keys, context.columns)


def _spending_panel(row: Held, context: ViewContext) -> Iterator[Line]:
    rows = context.state.spending_rows
    if rows.spending is not None:
        yield from spending_answer(row, rows.begins(), rows.by, context.keys, context.columns, cards=rows.cards)


def _advice(context: ViewContext) -> Iterable[Line]:
    accounts = context.state.accounts
    # Not fetched yet is not empty: no advice to add the first account.
    if accounts is None:
        return connecting(context.state)
    not_admin = "" if accounts.admin else "An administrator of this cluster adds the first one."
    return first_account_lines(context.keys, locked=context.state.options.read_only or not_admin)


ACCOUNTS = View(
    table=ACCOUNT_TABLE,
    title="Accounts",
    tab="tree",
    rows=lambda state: state.account_rows,
    fetch=_fetch,
    key="4",
    action="accounts",
    help="Show accounts, shares, QOS",
    of_one_cluster=True,
    opens="unfold",
    hint="user:me account:vision fair_share<0.5 running>0 limits~grptres",
    panel=_panel,
    note=lambda context: tabs_note(TABS, "tree", context),
    advice=_advice,
    is_empty=lambda rows: rows.only_root,
)
QOS = View(
    table=QOS_TABLE,
    title="Accounts",
    tab="QOS",
    rows=plain_rows(QOS_TABLE),
    fetch=_fetch,
    opens="modify",
    hint="name~high priority>=100 settings~maxwall",
    panel=_panel,
    note=lambda context: tabs_note(TABS, "QOS", context),
)
SPENDING = View(
    table=HOURS,
    title="Accounts",
    tab="hours",
    rows=lambda state: state.spending_rows,
    fetch=_fetch,
    key="h",
    action="card_hours",
    help="Show card-hours day by day",
    of_one_cluster=True,
    opens="held_jobs",
    hint="name~ai card_hours>100 share>=10 !name:others",
    panel=_spending_panel,
    note=lambda context: tabs_note(TABS, "hours", context),
    chart=lambda state, columns, lines: state.spending_rows.chart(columns, lines),
)
TABS: Final[tuple[View, ...]] = (ACCOUNTS, QOS, SPENDING)
