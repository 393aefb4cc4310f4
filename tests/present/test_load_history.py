from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.present.bars import GAP
from cockpit.present.frame import TopBar, top_bar
from cockpit.present.load_history import PART_MS, PARTS, LoadCharts, LoadHistory
from cockpit.present.spans import line_width, plain
from tests.doubles.samples import NOW, overview

pytestmark = pytest.mark.req("UI-13")


def seen(*figures: tuple[int, int] | None) -> tuple[LoadHistory, Millis]:
    """The history of a cluster of 8 cards: cards in use and queued jobs, a part each; None: no answer came."""
    history, now = LoadHistory(), NOW
    for each in figures:
        if each is not None:
            used, queued = each
            state = {JobState.QUEUED: queued}
            history.note(replace(overview(), card_milli=8000, used_card_milli=1000 * used, jobs_by_state=state), now)
        now = Millis(now + PART_MS)
    return history, Millis(now - PART_MS)


def test_the_charts_show_the_cards_and_the_queue_part_by_part() -> None:
    history, now = seen((0, 0), (4, 10), None, (8, 20))
    charts = history.charts(now)
    assert charts is not None
    assert [len(chart) for chart in charts] == [4, 4]
    assert (charts.used[0], charts.used[3]) == (charts.queued[0], charts.queued[3])
    assert charts.used == charts.queued, "half and all of each"
    assert charts.used[2] == GAP, "no answer came in that part"


def test_a_single_moment_is_no_history_and_old_parts_are_forgotten() -> None:
    history, now = seen((4, 1))
    assert history.charts(now) is None
    history, now = seen(*[(4, 1)] * (PARTS + 5))
    charts = history.charts(now)
    assert charts is not None
    assert len(charts.used) == PARTS
    assert history.charts(Millis(now + PARTS * PART_MS)) is None


def test_a_cluster_without_cards_has_the_chart_of_its_cpus() -> None:
    history = LoadHistory()
    for part, used in enumerate((0, 16)):
        figures = replace(overview(), card_milli=0, used_card_milli=0, cpus=16, used_cpus=used)
        history.note(figures, Millis(NOW + part * PART_MS))
    charts = history.charts(Millis(NOW + PART_MS))
    assert charts is not None
    assert charts.used[0] != charts.used[1]


@pytest.mark.parametrize(("columns", "is_shown"), [(120, False), (159, False), (160, True), (200, True)])
def test_the_top_bar_has_the_charts_on_wide_screens(columns: int, is_shown: bool) -> None:
    contents = TopBar("lab", "rw", "ann", fresh=True, history=LoadCharts("▁▄█", "▂▃▅"))
    shown = top_bar(contents, overview(), columns)
    assert ("▁▄█" in plain(shown), "queued ▂▃▅" in plain(shown)) == (is_shown, is_shown)
    assert line_width(shown) <= columns
