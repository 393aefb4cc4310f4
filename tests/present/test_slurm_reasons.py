from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.model.reasons import SchedulerReason
from cockpit.present.slurm_reasons import slurm_wording

RECORDED = Path("fixtures/clusters/slurm")


def codes() -> list[str]:
    """Every code that is in the sources of Slurm 22.05 and 26.05."""
    lists = (RECORDED / f"REASONS-{version}.tsv" for version in ("22.05", "26.05"))
    return sorted({line.split("\t")[0] for each in lists for line in each.read_text().splitlines() if line})


@pytest.mark.req("SL-13")
def test_every_code_of_slurms_sources_has_a_sentence_of_its_own() -> None:
    assert len(codes()) > 210
    unknown = [
        code for code in codes() if slurm_wording(SchedulerReason(code)).clauses[0].startswith("the cluster says")
    ]
    assert unknown == []


@pytest.mark.req("SL-13")
@pytest.mark.parametrize(
    ("code", "clauses"),
    [
        ("Priority", ("jobs of higher priority come first",)),
        ("QOSMaxGRESPerUser", ("as many cards (GRES) are in use as its QOS allows one user",)),
        ("AssocGrpCpuLimit", ("as many CPUs are in use as its account's or user's association allows",)),
        ("AssocMaxJobsLimit", ("as many jobs run at once as its account's or user's association allows",)),
        ("QOSMaxWallDurationPerJobLimit", ("asks for a longer time than its QOS allows",)),
        ("QOSMinCpuNotSatisfied", ("asks for fewer CPUs than its QOS demands",)),
        ("MaxGRESPerAccount", ("as many cards (GRES) are in use as its QOS allows one account",)),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", ("nodes that it needs are not available", "unavailable: n[1-3]")),
        ("ReqNodeNotAvail,_May_be_reserved_for_other_job", ("nodes that it needs are not available",)),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
            ("nodes that it needs are down, drained or reserved for partitions of higher priority",),
        ),
        ("DependencyNeverSatisfied", ("a job that it depends on ended otherwise: it never starts",)),
        ("SomethingOfTomorrow", ("the cluster says: SomethingOfTomorrow",)),
        ("", ("waits, and the cluster does not say why",)),
    ],
)
def test_codes_become_sentences_and_unknown_ones_are_kept(code: str, clauses: tuple[str, ...]) -> None:
    assert slurm_wording(SchedulerReason(code)).clauses[: len(clauses)] == clauses
