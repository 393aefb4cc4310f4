from __future__ import annotations

import pytest

from cockpit.model.cluster import Weights
from cockpit.model.ids import JobId
from cockpit.model.priority import Breakdown, FactorName, Part
from cockpit.present.priority import in_a_line, in_lines, priority_lines, weights_line
from cockpit.present.spans import line_width, plain
from tests.doubles.samples import WEIGHTS, breakdown, detail, waiting_detail

SMALL = breakdown(1, parts=(Part(FactorName.AGE, 1.0, 300, 300.0),), total=100, nice=200)


@pytest.mark.req("UI-02")
def test_a_line_shows_the_total_and_its_parts_largest_first_with_bars() -> None:
    assert plain(in_a_line(breakdown(1), 120)) == (
        "  priority 17 450   fair share ━━━━━━━━━━━━━╸ 11 800   age ━━━╸ 3 120   partition ━╸ 1 500   others ━ 1 030"
    )


@pytest.mark.req("UI-02")
@pytest.mark.parametrize("columns", range(40, 160, 7))
def test_a_line_fits_and_the_parts_that_do_not_fit_are_one_sum(columns: int) -> None:
    line = in_a_line(breakdown(1), columns)
    assert line_width(line) <= columns
    figures = [int(span.text.replace(" ", "").replace("−", "-")) for span in line[2:] if span.role == "text"]
    assert sum(figures) in {17_450, 0}


def test_eighty_columns_show_the_words_without_bars() -> None:
    narrow = plain(in_a_line(breakdown(1), 80))
    assert narrow == "  priority 17 450   fair share 11 800   age 3 120   others 2 530"


@pytest.mark.req("SC-01")
def test_lines_say_of_what_raw_factor_and_weight_each_part_is() -> None:
    assert list(map(plain, in_lines(breakdown(1), partition=True))) == [
        "  priority 17 450 in gpu",
        "    fair share  ━━━━━━━━━━━━━━━━━━━━ 11 800   0.59 × 20 000",
        "    age         ━━━━━╸··············  3 120   0.312 × 10 000",
        "    partition   ━━╸·················  1 500   0.5 × 3 000",
        "    QOS         ━╸··················  1 000   0.2 × 5 000",
        "    size        ╸···················    130   0.065 × 2 000",
        "    nice        ····················   −100",
    ]


def test_a_priority_with_few_parts_has_no_further_text() -> None:
    assert plain(in_a_line(SMALL, 100)) == "  priority 100   age ━━━━━━━━━━━━━━━━━━━━ 300   nice −200"
    bare = Breakdown(JobId(1), "gpu", 1, (Part(FactorName.AGE, 0.0, 300, 0.0),), nice=5)
    assert [plain(each).split() for each in in_lines(bare, partition=False)][1][0] == "nice"


def test_a_priority_set_by_an_administrator_is_marked_and_held_jobs_have_none() -> None:
    direct = breakdown(1, total=9000, parts=(), nice=0, direct=True)
    assert plain(in_a_line(direct, 80)) == "  priority 9 000, set by an administrator"
    kept = breakdown(1, total=20_000, kept=True)
    assert plain(in_a_line(kept, 200)).startswith("  priority 20 000, as high as it was")
    assert list(priority_lines(detail())) == []
    held = waiting_detail().__class__(detail().row, detail().job, None, (), "", (breakdown(1, total=0),))
    assert list(priority_lines(held)) == []


def test_a_weighted_resource_has_its_escaped_name() -> None:
    part = Part(FactorName.TRES, 0.25, 400, 100.0, "gres/gpu:\x1b[2J")
    text = plain(in_a_line(breakdown(1, parts=(part,), nice=0, total=100), 80))
    assert "\x1b" not in text
    assert "gres/gpu:\\x1b" in text


def test_weights_that_count_are_listed() -> None:
    assert weights_line(WEIGHTS) == "weights: age 10 000, fair share 20 000, size 2 000, partition 3 000, QOS 5 000"
    assert weights_line(Weights(tres={"cpu": 50.0, "mem": 0})) == "weights: cpu 50"
    assert weights_line(Weights()) == "weights: none, so only nice counts"
