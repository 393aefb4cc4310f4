from __future__ import annotations

import json
import re

import pytest

from tests.bench.figures import BARS, Figures, Peer, number, read_bars
from tests.tools.test_requirements import LISTED

TWO_BARS = """
[[bar]]
id = "PF-31"
figure = "submissions one by one"
bar = 200
unit = "/s"
better = "higher"
peer = "others 500"

[[bar]]
id = "PF-10"
figure = "jobs, median"
bar = 100
then = 50
unit = "ms"

[[bar]]
id = "PF-10"
figure = "jobs, p95"
bar = 200
unit = "ms"
"""


@pytest.fixture
def figures() -> Figures:
    return Figures(read_bars(TWO_BARS))


def shown(figures: Figures) -> list[str]:
    return [re.sub(r" +", " ", line).strip() for line in figures.lines()]


def test_every_figure_of_the_requirements_has_a_bar_and_no_other():
    """Beside the figures: the accuracy of predictions and the speed of the log viewer, whose bars stand elsewhere."""
    barred = dict.fromkeys(bar.id for bar in read_bars(BARS.read_text()).values())
    assert [each for each in barred if each not in {"SC-12", "UI-14"}] == [
        each for each in LISTED if each.startswith("PF")
    ]


def test_a_figure_is_shown_beside_its_bar_and_peer(figures: Figures):
    figures("PF-31", "submissions one by one", 2143.4)
    assert shown(figures)[0] == "✓ PF-31 submissions one by one 2 143/s bar 200/s others 500"


def test_a_missed_bar_is_marked_and_a_missing_figure_shown(figures: Figures):
    figures("PF-10", "jobs, median", 123.4)
    assert shown(figures) == [
        "PF-31 submissions one by one – bar 200/s others 500",
        "✗ PF-10 jobs, median 123 ms bar 100 ms, then 50",
        "PF-10 jobs, p95 – bar 200 ms",
    ]


def test_a_peer_measured_in_the_same_run_replaces_the_known_one(figures: Figures):
    figures("PF-31", "submissions one by one", 1000, peer=Peer("sbatch", 400))
    assert shown(figures)[0].endswith("bar 200/s sbatch 400 just now: 2.5 times that")


def test_samples_give_median_and_p95(figures: Figures):
    figures.spread("PF-10", "jobs", [float(each) for each in range(101)])
    assert sorted(figures.values.values()) == [50.0, 95.0]


def test_a_figure_without_a_bar_is_refused(figures: Figures):
    with pytest.raises(KeyError, match="no 'jobs' under PF-31"):
        figures("PF-31", "jobs", 1)


def test_two_bars_for_one_figure_are_refused():
    with pytest.raises(ValueError, match="two bars"):
        read_bars(TWO_BARS + TWO_BARS)


def test_the_json_holds_every_bar(figures: Figures):
    figures("PF-10", "jobs, median", 80, peer=Peer("other", 40))
    written = json.loads(figures.as_json())
    values = {row["figure"]: (row["value"], row["reached"]) for row in written["figures"]}
    assert written["version"] == 1
    assert values == {"submissions one by one": (None, None), "jobs, median": (80, True), "jobs, p95": (None, None)}
    assert written["figures"][1]["measured_peer"] == {"name": "other", "value": 40}


@pytest.mark.parametrize(("value", "text"), [(2143.4, "2 143"), (0.2, "0.2"), (12.345, "12.3"), (0, "0")])
def test_numbers_are_short(value: float, text: str):
    assert number(value) == text
