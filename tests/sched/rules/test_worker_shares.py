"""The part of an elastic job's use that belongs to some of its workers."""

from __future__ import annotations

import pytest

from cockpit.model.ids import NodeName
from cockpit.model.node import Allocation
from cockpit.sched.rules.counters import JobAmounts, of_workers
from cockpit.sched.rules.limits import JOBS
from cockpit.sched.rules.tres import BILLING
from tests.builders import a_node


@pytest.mark.req("SC-13")
def test_some_workers_of_an_elastic_job_have_their_resources_and_an_equal_part_of_the_billing_but_no_job() -> None:
    nodes = {NodeName("n1"): a_node("n1", cpus=8)}
    workers = tuple(Allocation(rank, NodeName("n1"), 2, 1024) for rank in range(4))
    tally = JobAmounts(
        (
            (("account", "nlp", BILLING), 8000),
            (("account", "nlp", JOBS), 1000),
            (("account", "nlp", "cpu"), 8000),
            (("account", "nlp", "gres/gpu"), 1000),
        )
    )
    assert dict(of_workers(tally, workers[:1], workers, nodes)) == {
        ("account", "nlp", BILLING): 2000,
        ("account", "nlp", "cpu"): 2000,
        ("account", "nlp", "gres/gpu"): 0,
    }
    assert dict(of_workers(tally, workers, workers, nodes))[("account", "nlp", BILLING)] == 8000
