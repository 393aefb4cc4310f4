"""Every view's panel, map and chart, of made-up rows, as they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from cockpit.model.accounts import Qos
from cockpit.model.catalogue import EntryRow
from cockpit.model.cluster import Weights
from cockpit.model.ids import Millis
from cockpit.model.priority import FactorName
from cockpit.model.view import AccountRow, ClusterRow, NodeRow, PriorityRow, QueueRow
from cockpit.present import account_panel, empty_views, node_page, priority_columns
from cockpit.present import card_map as cards
from cockpit.present import priority_panel as priority
from cockpit.present.accounting import GroupBy, Held
from cockpit.present.card_map import by_job, by_user
from cockpit.present.card_map import cells as card_cells
from cockpit.present.card_map import laid_out as card_layout
from cockpit.present.columns import laid_out
from cockpit.present.fleet_tree import FleetLine
from cockpit.present.spans import Line
from cockpit.present.spending_chart import chart, sign_of
from cockpit.present.tables import accounting as spending_cells
from cockpit.present.tables import catalogue, clusters, fleet, qos, queues
from cockpit.present.tables.cards import CardRow, card_rows
from tests.doubles.made_up import ABSENT, made_up
from tests.doubles.samples import HOUR, NOW
from tests.present.recorded import assert_as_recorded, with_roles
from tests.present.test_every_table import CONTEXT
from tests.present.test_every_view import WIDTHS, made

KEYS: dict[str, str] = {}
FACTORS = tuple(FactorName)
DAYS = 5


def recorded(name: str, lines: Iterable[Line]) -> None:
    assert_as_recorded(name, map(with_roles, lines))


PANELS: dict[str, tuple[Any, Callable[[Any], Iterator[Line]]]] = {
    "nodes": (NodeRow, lambda row: node_page.node_answer(row, lambda _: None, 110)),
    "fleet": (FleetLine, lambda row: fleet.fleet_answer(row, CONTEXT, KEYS, 110)),
    "clusters": (ClusterRow, lambda row: clusters.cluster_answer(row, CONTEXT, KEYS, 110)),
    "queues": (QueueRow, lambda row: queues.queue_answer(row, [row], CONTEXT, KEYS, 110)),
    "accounts": (AccountRow, lambda row: account_panel.account_answer(row, made(AccountRow)[:2], KEYS, 110)),
    "qos": (Qos, lambda row: qos.qos_answer(row, made(AccountRow), KEYS, 110)),
    "catalogue": (EntryRow, lambda row: catalogue.entry_answer(row, KEYS, 110)),
    "priority": (PriorityRow, lambda row: priority.priority_answer(row, made(PriorityRow), 110, 20, tried=False)),
    "priority-tried": (PriorityRow, lambda row: priority.priority_answer(row, made(PriorityRow), 110, 20, tried=True)),
}


@pytest.mark.req("UI-02")
@pytest.mark.parametrize("view", PANELS)
def test_every_panel_is_as_it_was(view: str) -> None:
    kind, lines_of = PANELS[view]
    recorded(f"panel-{view}", (line for row in made(kind) for line in lines_of(row)))


def given() -> list[list[CardRow]]:
    """The parts of each node that has cards."""
    parts = (card_rows(row, {}) for row in made(NodeRow, 30))
    return [each for each in parts if each]


@pytest.mark.req("JT-45")
def test_the_panel_of_a_card_is_as_it_was() -> None:
    rows = [row for row in made(NodeRow, 30) if row.node.cards]
    recorded(
        "panel-cards",
        (
            line
            for row in rows
            for part in card_rows(row, {})
            for line in cards.card_answer(part, row, None, CONTEXT, 110, brief=False)
        ),
    )


@pytest.mark.req("JT-45")
@pytest.mark.parametrize("total", WIDTHS)
def test_the_map_of_cards_is_as_it_was(total: int) -> None:
    layout = card_layout(total, 4, 12)
    lines = ["|".join(f"{title:{width}}" for title, width in zip(layout.titles(), layout.widths(), strict=True))]
    for parts in given():
        for hue in (by_job, by_user):
            for lit in ({parts[0].key}, None):
                cells = card_cells(parts, layout, hue, lit=lit, picked=parts[-1].key)
                lines.append("|".join(map(with_roles, cells)))
    assert_as_recorded(f"card-map-{total}", lines)


@pytest.mark.req("JT-45")
def test_the_sums_of_cards_are_as_they_were() -> None:
    lines = [cards.totals(parts, words=words) for parts in given() for words in (True, False)]
    recorded("card-totals", [cards.legend("by job", "c"), *lines])


@pytest.mark.req("UI-01")
@pytest.mark.parametrize("tried", [False, True])
@pytest.mark.parametrize("total", WIDTHS)
def test_the_columns_of_priorities_are_as_they_were(total: int, tried: bool) -> None:
    shape = priority_columns.Shape(FACTORS[:4], FACTORS[5], 6, 4, 7, 6, tried, queues=True)
    laid = priority_columns.laid_out_priorities(total, shape)
    assert sum(width for _, width in laid) + 2 * (len(laid) - 1) == total
    lines = ["|".join(f"{column.heading[:width]:{width}}" for column, width in laid)]
    for figures in priority_columns.Figures:
        scale = priority_columns.CellContext(20_000.0, total < 100, figures)
        lines += [
            "|".join(with_roles(column.drawn(row, scale, width)) for column, width in laid) for row in made(PriorityRow)
        ]
    assert_as_recorded(f"view-priority-{total}{'-tried' if tried else ''}", dict.fromkeys(lines))


def test_the_words_about_weights_are_as_they_were() -> None:
    all_weights = made(Weights, 4)
    lines = [
        priority.legend(weights, before, FACTORS, FACTORS[0], columns, letters=before is None)
        for weights in all_weights
        for before in (None, all_weights[-1])
        for columns in (80, 160)
    ]
    recorded("priority-legend", lines)


def spent() -> list[Held]:
    rows = [made_up(Held, number) for number in range(ABSENT, 9)]
    return [
        row._replace(
            card_milli_ms=tuple(HOUR * 1000 * (place + day) for day in range(DAYS)),
            cpu_ms=tuple(HOUR * place * day for day in range(DAYS)),
        )
        for place, row in enumerate(rows)
    ]


@pytest.mark.parametrize("total", WIDTHS[1:])
def test_what_was_spent_is_as_it_was(total: int) -> None:
    laid = laid_out(spending_cells.HOURS.screen, total)
    assert sum(width for _, width in laid) + 2 * (len(laid) - 1) == total
    lines = ["|".join(f"{column.heading[:width]:{width}}" for column, width in laid)]
    for place, row in enumerate(spent()):
        shown = spending_cells.AmountFormat(sign_of(place), cards=total != 120, letters=total == 100)
        lines.append("|".join(with_roles(column.drawn(row, shown, width)) for column, width in laid))
    lines.append(spending_cells.spending_title(GroupBy.USER, DAYS, spent()))
    begins = [datetime.fromtimestamp(NOW / 1000 - 86_400 * day, UTC) for day in reversed(range(DAYS))]
    for row in spent():
        answer = spending_cells.spending_answer(row, begins, GroupBy.USER, KEYS, total, cards=total != 120)
        lines += map(with_roles, answer)
    assert_as_recorded(f"view-spending-{total}", lines)


@pytest.mark.parametrize("lines", [4, 12])
@pytest.mark.parametrize("columns", [40, 110])
def test_the_chart_of_what_was_spent_is_as_it_was(columns: int, lines: int) -> None:
    edges = [Millis(NOW - 24 * HOUR * day) for day in reversed(range(DAYS + 1))]
    recorded(
        f"chart-{columns}x{lines}",
        (line for letters in (False, True) for line in chart(spent(), edges, columns, lines, UTC, letters=letters)),
    )


def test_the_text_of_an_empty_view_is_unchanged() -> None:
    keys = {"back": "Esc", "filter": "/", "new": "n", "help": "?"}
    lines = [
        line
        for hidden in (0, 1, 7)
        for view in (
            empty_views.empty_lines("2 nodes with 16 cards.", hidden, keys, demo=False),
            empty_views.empty_lines("2 nodes with 16 cards.", hidden, keys, demo=True),
            empty_views.no_cards_lines(hidden, keys),
            catalogue.no_entries_lines(keys, filtered=bool(hidden)),
        )
        for line in view
    ]
    recorded("empty-views", lines)
