"""A node as a page: its cards one by one, and its jobs."""

from __future__ import annotations

from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId, task_id
from cockpit.model.view import CardLoad, SliceUse
from cockpit.present.columns import Context
from cockpit.present.node_page import node_lines
from cockpit.present.spans import plain
from tests.doubles.samples import NOW, job_row, node_row

CONTEXT = Context(now=NOW, zone=UTC)


@pytest.mark.req("UI-04")
def test_every_card_and_slice_has_its_line_and_the_rest_is_free() -> None:
    whole = SliceUse(card=0, slot=None, milli=1000, job=JobId(4711), name="train", user="ann")
    part = SliceUse(card=1, slot=1, milli=250, job=JobId(0), name="-", user="-", held=True)
    row = replace(node_row(), slices=(whole, part), jobs=(JobId(4711),), loads=(CardLoad(0, 93),))
    jobs = {4711: job_row(4711, name="train\x1b[31m")}
    lines = [plain(each) for each in node_lines(row, jobs.get, CONTEXT)]
    table = [each.split() for each in lines if each.startswith(("  1", "  2"))]
    assert table[:3] == [
        ["1", "A100", "1", "93", "%", "4711", "ann", "train"],
        ["2(2)", "A100", "0.25", "n/a", "-", "-", "-", "(held)"],
        ["2", "A100", "0.75", "free"],
    ]
    (job,) = (each for each in lines if each.startswith("  4711"))
    assert job.split() == ["4711", "●", "running", "ann", "4", "16G", "1", "2:00:00/8:00:00", "train\\x1b[31m"]
    assert [each.split()[0] for each in lines if "━" in each] == ["CPUs", "memory", "cards"]


@pytest.mark.req("UI-04")
def test_jobs_have_the_ids_of_the_job_list_and_cards_that_are_not_known_no_number() -> None:
    task = SliceUse(card=0, slot=None, milli=1000, job=task_id(12, 3), name="train", user="ann", assumed=True)
    lines = [plain(each) for each in node_lines(replace(node_row(), slices=(task,)), lambda _: None, CONTEXT)]
    (row,) = (each.split() for each in lines if "train" in each)
    assert row == ["?", "A100", "1", "n/a", "12_3", "ann", "train"]


@pytest.mark.req("UI-04")
def test_hidden_jobs_are_not_listed() -> None:
    row = replace(node_row(), jobs=(JobId(4711),))
    lines = [plain(each) for each in node_lines(row, lambda _: None, CONTEXT)]
    assert lines[-1] == "  No job that you may see runs here."


@pytest.mark.req("EL-10")
def test_a_node_that_some_jobs_may_not_use_says_so_and_how_to_readmit_it() -> None:
    lines = [plain(each) for each in node_lines(replace(node_row(), excluded_for=2), lambda _: None, CONTEXT)]
    name = node_row().node.name
    assert f"  excluded for 2 jobs: the check failed here  `:nodes resume {name}` readmits it" in lines


@pytest.mark.req("EL-01")
def test_a_nodes_page_has_its_present_price() -> None:
    row = node_row()
    row = replace(row, node=replace(row.node, price_milli=320))
    assert "  price   0.32  now" in [plain(each) for each in node_lines(row, lambda _: None, CONTEXT)]
