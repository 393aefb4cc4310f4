from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.plugins.requirements import AREAS, ID
from tools.requirements import ROW, proved, summary, updated

CHECKOUT = Path(__file__).parents[2]
TABLE = (CHECKOUT / "docs" / "requirements.md").read_text()
LISTED = [match["id"] for match in ROW.finditer(TABLE)]


def marked_ids(file: Path) -> set[str]:
    """Ids that the tests of a file claim to prove."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    marks = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "req"]
    return {argument.value for mark in marks for argument in mark.args if isinstance(argument, ast.Constant)}


def test_every_row_is_well_formed_and_listed_once():
    rows = [line for line in TABLE.splitlines() if ID.match(line.removeprefix("| "))]
    assert len(rows) == len(LISTED)
    assert [each for each, count in Counter(LISTED).items() if count > 1] == []


def test_every_area_exists_and_no_other():
    assert {each.partition("-")[0] for each in LISTED} == set(AREAS)


def test_ids_are_in_order_within_their_area():
    for area in AREAS:
        ids = [each for each in LISTED if each.startswith(area)]
        assert ids == sorted(ids)


def test_every_id_that_a_test_claims_is_listed():
    claimed = set().union(*(marked_ids(file) for file in (CHECKOUT / "tests").rglob("*.py")))
    assert claimed - set(LISTED) == set()


OUTCOMES = {
    "JT-01": {"a": "passed", "b": "skipped"},
    "JT-02": {"a": "skipped"},
    "JT-03": {"a": "passed", "b": "failed"},
}


def test_an_id_is_proven_by_a_passed_test_and_no_failed_one():
    assert proved(OUTCOMES) == {"JT-01"}


@pytest.mark.parametrize(
    ("requirement", "before", "after", "overclaimed"),
    [
        ("JT-01", "planned", "partly", []),
        ("JT-01", "partly", "partly", []),
        ("JT-01", "done", "done", []),
        ("JT-02", "planned", "planned", []),
        ("JT-02", "partly", "partly", ["JT-02"]),
        ("JT-09", "done", "done", ["JT-09"]),
    ],
)
def test_a_state_follows_its_proof(requirement: str, before: str, after: str, overclaimed: list[str]):
    table = "# Title\n\n| {} | What it means. | {} |\n"
    assert updated(table.format(requirement, before), proved(OUTCOMES)) == (
        table.format(requirement, after),
        overclaimed,
    )


def test_the_summary_counts_states_by_area():
    rows = "| JT-01 | a | done |\n| JT-02 | b | partly |\n| SC-01 | c | planned |\n| JT-03 | d | partly |"
    assert summary(rows) == "JT    1 done    2 partly    0 planned\nSC    0 done    0 partly    1 planned"
