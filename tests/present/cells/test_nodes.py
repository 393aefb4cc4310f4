from __future__ import annotations

import msgspec
import pytest

from cockpit.model.ids import JobId
from cockpit.model.node import NodeState
from cockpit.model.spec import NodeSpec
from cockpit.model.view import NodeRow, SliceUse
from cockpit.present.columns import GAP, Context, laid_out
from cockpit.present.node_page import node_answer
from cockpit.present.spans import Line, fitted, line_width
from cockpit.present.tables.nodes import NODES
from tests.doubles.samples import NOW, five_jobs, node_row


def text(line: Line) -> str:
    return "".join(span.text for span in line)


def cell(name: str, row: NodeRow, chosen: NodeSpec | None = None) -> str:
    column = next(column for column in NODES.screen if column.id == name)
    return text(column.drawn(row, Context(now=NOW, chosen=chosen), 0))


@pytest.mark.req("UI-04", "JT-43")
def test_every_fraction_has_a_bar_and_the_title_has_the_unit() -> None:
    assert cell("cpus", node_row()) == "  36/64 ━━━╸··"
    assert cell("memory", node_row()) == "    24/512 ╸·····"
    assert cell("cards", node_row()) == " 1.5/8 ━·····"
    assert cell("cards", node_row(cards=())).strip() == "–"
    assert next(column.heading for column in NODES.screen if column.id == "memory") == "MEMORY GiB"


def test_uneven_memory_keeps_one_decimal() -> None:
    assert cell("memory", node_row(memory_mib=24_064)).split()[0] == "24/23.5"


@pytest.mark.req("JT-44")
def test_status_is_of_use_or_against_the_chosen_spec() -> None:
    small, large = NodeSpec(cpus=4, memory_mib=1024), NodeSpec(cpus=60, memory_mib=1024)
    assert cell("status", node_row()) == "◐ in use"
    assert cell("status", node_row(), small) == "○ idle"
    assert cell("status", node_row(), large) == "◉ tight"
    assert cell("status", node_row(state=NodeState.DRAINED), small) == "■ drained"
    kept, login = (msgspec.structs.replace(node_row(), **each) for each in ({"reserved": ("course",)}, {"login": True}))
    assert (cell("status", kept, small), cell("status", login)) == ("◆ resv", "– logins")
    assert "for reservation course" in "".join(map(text, node_answer(kept, {}.get, 80)))


@pytest.mark.req("JT-45")
def test_slices_are_listed_one_by_one_and_whole_cards_of_a_job_together() -> None:
    assert cell("usage", node_row()) == "3(1):note  1:llama-sft"
    whole = [SliceUse(card, None, 1000, JobId(1), "bert", "ann") for card in (0, 1, 2, 5)]
    row = msgspec.structs.replace(node_row(), slices=tuple(whole))
    assert cell("usage", row) == "1–3:bert  6:bert"


@pytest.mark.parametrize("total", [78, 118, 198])
def test_columns_fill_the_width_and_cells_line_up(total: int) -> None:
    laid = laid_out(NODES.screen, total)
    assert sum(width for _, width in laid) + GAP * (len(laid) - 1) == total
    for column, width in laid:
        for row in (node_row(), node_row("节点", cards=())):
            assert line_width(fitted(column.drawn(row, Context(now=NOW), width), width)) == width


def test_figures_are_not_cut() -> None:
    for column, width in laid_out(NODES.screen, 118):
        if column.id in {"cpus", "memory", "cards", "status"}:
            assert line_width(column.drawn(node_row(), Context(now=NOW), width)) <= width


@pytest.mark.req("UI-04")
def test_the_panel_shows_the_free_resources_and_the_jobs_on_the_rest() -> None:
    known = {row.id: row for row in five_jobs()}
    lines = [text(line).rstrip() for line in node_answer(node_row(), known.get, 100)]
    assert lines[0].startswith("n07  has 28 CPUs, 488G of memory and 6 whole cards free.")
    assert lines[0].endswith("Enter its cards and jobs")
    assert lines[1] == "  jobs    4700, 4711\u00a0llama-sft\u00a0(ann)"
    drained = node_row(state=NodeState.DRAINED, state_reason="broken fan")
    assert text(next(iter(node_answer(drained, known.get, 100)))).startswith("n07  is drained: broken fan.")


@pytest.mark.req("JT-44")
@pytest.mark.parametrize(
    ("used", "status"),
    [
        ({}, "○ free"),
        ({"used_cpus": 1}, "◐ in use"),
        ({"jobs": (JobId(7),)}, "◐ in use"),
        ({"slices": (SliceUse(0, None, 1000, JobId(7), "a", "ann"),)}, "◐ in use"),
        ({"used_cpus": 64}, "◉ full"),
    ],
)
def test_a_node_is_free_only_if_nothing_is_in_use(used: dict[str, object], status: str) -> None:
    nothing = {"jobs": (), "slices": (), "used_cpus": 0, "used_memory_mib": 0, "used_card_milli": 0}
    assert cell("status", msgspec.structs.replace(node_row(), **{**nothing, **used})) == status


@pytest.mark.req("KU-06")
def test_whole_cards_of_a_job_that_are_not_known_are_counted() -> None:
    unknown = [SliceUse(card, None, 1000, JobId(1), "bert", "ann", assumed=True) for card in (0, 1, 2)]
    slices = (SliceUse(3, None, 1000, JobId(1), "bert", "ann"), *unknown)
    assert cell("usage", msgspec.structs.replace(node_row(), slices=slices)) == "4:bert  3×?:bert"
