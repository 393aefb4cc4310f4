"""Card-hours over days: days as people live them, sums by name, and a chart that says the same without colours."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from cockpit.model.accounting import Spending, UsageSum
from cockpit.model.ids import Millis
from cockpit.present.accounting import GroupBy, Held, days_until, held_by
from cockpit.present.spans import line_width, plain
from cockpit.present.spending_chart import chart
from cockpit.present.tables.accounting import spending_answer, spending_title
from tests.doubles.samples import HOUR

DAY = 24 * HOUR


def millis(text: str, zone: ZoneInfo | None = None) -> Millis:
    return Millis(int(datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp() * 1000))


@pytest.mark.req("UI-09")
def test_days_begin_at_midnight_also_where_clocks_are_set() -> None:
    now = millis("2026-03-30T09:30")
    assert days_until(now, 2, UTC) == [millis("2026-03-29T00:00"), millis("2026-03-30T00:00"), now]
    berlin = ZoneInfo("Europe/Berlin")
    edges = days_until(millis("2026-03-30T09:30", berlin), 3, berlin)
    assert [(after - before) // HOUR for before, after in pairwise(edges)] == [24, 23, 9]


@pytest.mark.req("UI-09")
def test_sums_by_name_include_hidden_users() -> None:
    edges = (Millis(0), Millis(DAY), Millis(2 * DAY))
    hidden = UsageSum("", "nlp", "", "normal", 1000 * HOUR, HOUR)
    found = Spending(edges, ((UsageSum("ann", "nlp", "p", "", 3000 * HOUR, 8 * HOUR), hidden), (hidden,)))
    assert held_by(found, GroupBy.USER) == [
        Held("ann", (3000 * HOUR, 0), (8 * HOUR, 0), 60.0),
        Held("others", (1000 * HOUR, 1000 * HOUR), (HOUR, HOUR), 40.0),
    ]
    assert [(each.name, each.share) for each in held_by(found, GroupBy.ACCOUNT)] == [("nlp", 100.0)]
    assert [each.name for each in held_by(found, GroupBy.QOS)] == ["-", "normal"]
    cardless = Spending(edges[:2], ((UsageSum("ann", "nlp", "p", "", 0, 8), UsageSum("bob", "nlp", "p", "", 0, 2)),))
    assert [(each.name, each.share) for each in held_by(cardless, GroupBy.USER)] == [("ann", 80.0), ("bob", 20.0)]


ROWS = [Held("ann", (6000 * HOUR, 2000 * HOUR, 0), (0, 0, 0), 80.0), Held("bob", (2000 * HOUR, 0, 0), (0, 0, 0), 20.0)]
EDGES = [Millis(millis("2026-03-07T00:00") + day * DAY) for day in range(4)]


@pytest.mark.req("UI-09", "UI-26")
def test_columns_are_stacked_and_letters_replace_colours() -> None:
    lines = list(chart(ROWS, EDGES, 40, 5, UTC, letters=True))
    assert [plain(each) for each in lines] == [
        "   8.0 ┤bbbbbbbb",
        "       │aaaaaaaa",
        "   4.0 ┤aaaaaaaa",
        "       │aaaaaaaa  aaaaaaaa",
        "        Sat 7     Sun 8     Mon 9",
    ]
    coloured = list(chart(ROWS, EDGES, 40, 5, UTC, letters=False))
    assert [span.role for span in coloured[0]][1] == "hue1"
    assert all(line_width(each) <= 40 for each in coloured)


@pytest.mark.req("UI-09")
@pytest.mark.parametrize("columns", [78, 118])
def test_thirty_days_fit_on_every_screen(columns: int) -> None:
    rows = [Held(f"u{n}", tuple(1000 * HOUR * (n + day) for day in range(30)), (0,) * 30, 1.0) for n in range(20)]
    edges = [Millis(day * DAY) for day in range(31)]
    lines = list(chart(rows, edges, columns, 8, UTC, letters=False))
    assert len(lines) == 8
    assert all(line_width(each) <= columns for each in lines)


def test_without_usage_there_is_no_scale() -> None:
    assert list(chart([], EDGES, 40, 5, UTC, letters=False)) == []
    nothing = [Held("ann", (0, 0, 0), (0, 0, 0), 0.0)]
    assert "┤" not in "".join(plain(each) for each in chart(nothing, EDGES, 40, 5, UTC, letters=False))


@pytest.mark.req("UI-09")
def test_without_cards_cpu_hours_are_shown() -> None:
    rows = [Held("ann", (0, 0, 0), (HOUR, 2 * HOUR, 0), 0.0)]
    assert spending_title(GroupBy.USER, 3, rows) == "3.0 CPU-hours in the last 3 days, by user"
    begins = [datetime.fromtimestamp(edge / 1000, UTC) for edge in EDGES[:-1]]
    lines = [plain(each) for each in spending_answer(rows[0], begins, GroupBy.USER, {}, 100, cards=False)]
    assert lines[0].startswith("ann  held 3.0 CPU-hours, 0.0% of all.")
    assert lines[1].removeprefix("  a day").strip() == "1.0 on average; most on 8 Mar, 2.0; today so far 0.0"


@pytest.mark.req("UI-09")
def test_a_few_minutes_of_usage_differ_from_zero() -> None:
    rows = [Held("ann", (0, 0, 0), (0, 0, 90_000), 100.0)]
    scale = [plain(each)[:8] for each in chart(rows, EDGES, 40, 5, UTC, letters=False)]
    assert scale == ["  0.03 ┤", "       │", " 0.015 ┤", "       │", "        "]
    assert spending_title(GroupBy.USER, 3, rows) == "0.03 CPU-hours in the last 3 days, by user"
    tiny = [Held("ann", (0, 0, 0), (0, 0, 1), 100.0)]
    assert spending_title(GroupBy.USER, 3, tiny).startswith("<0.001 ")
    assert {len(plain(each)[:8]) for each in chart(tiny, EDGES, 40, 5, UTC, letters=False)} == {8}
