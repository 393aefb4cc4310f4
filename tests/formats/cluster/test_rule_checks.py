"""Rules of a cluster that contradict each other."""

from __future__ import annotations

import pytest

from cockpit.formats.cluster.rule_checks import preemption_errors, project_errors
from cockpit.formats.trestext import NumberMeaning, parse_tres
from cockpit.model.cluster import Preemption, Project


@pytest.mark.req("SC-08")
@pytest.mark.parametrize(
    ("modes", "errors"),
    [
        (("CANCEL", "REQUEUE"), ["mode: CANCEL and REQUEUE exclude each other; keep one"]),
        (("REQUEUE",), []),
        (("SUSPEND", "GANG"), []),
        (("OFF", "GANG"), ["mode: OFF excludes all other modes; remove it, or the others"]),
    ],
)
def test_of_the_modes_of_preemption_only_one_may_end_jobs(modes: tuple[str, ...], errors: list[str]) -> None:
    found = list(preemption_errors(Preemption(kind="preempt/qos", mode=modes)))
    assert [error for error in found if "needs CANCEL" not in error] == errors


@pytest.mark.req("JT-60")
def test_a_second_project_of_the_same_name_is_reported() -> None:
    errors = list(project_errors([Project(name="nlp"), Project(name="vision"), Project(name="nlp")]))
    assert errors == ["projects[2].name: nlp is the name of an earlier project"]


@pytest.mark.req("SC-02")
@pytest.mark.parametrize(("unit", "mib"), [("K", 1 / 1024), ("M", 1), ("G", 1024), ("T", 1024**2), ("P", 1024**3)])
def test_a_price_for_a_unit_of_memory_is_that_part_of_it_for_a_mebibyte(unit: str, mib: float) -> None:
    assert parse_tres(f"mem=2{unit}", NumberMeaning.PRICE) == {"mem": 2 / mib}
