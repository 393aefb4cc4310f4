"""The `elastic` field of a job file."""

from __future__ import annotations

import re

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.jobfile import Defaults, read_jobs
from cockpit.formats.specfile import spec_as_yaml
from cockpit.model.spec import Elastic, JobSpec

HEAD = "name: train\ncommand: python t.py\noutput: /out\n"


def read(text: str) -> JobSpec:
    return read_jobs("job.yaml", HEAD + text, "/work", defaults=Defaults())[0]


@pytest.mark.req("JT-26", "EL-01")
def test_bounds_have_defaults_and_the_workers_are_the_nodes() -> None:
    spec = read("elastic: {workers: 8, max_workers: 128}")
    assert spec.elastic == Elastic(workers=8, min_workers=1, max_workers=128)
    assert (spec.nodes, spec.least_nodes, spec.most_nodes) == (8, 1, 128)
    alone = read("elastic: {workers: 3, allow_scaling: false}")
    assert alone.elastic == Elastic(workers=3, min_workers=1, max_workers=3, allow_scaling=False)


@pytest.mark.req("JT-26", "EL-07")
def test_what_becomes_of_failures_is_said_in_the_words_that_are_known_elsewhere() -> None:
    spec = read(
        "elastic: {workers: 2, job_restart_policy: OnFailure, worker_restart_policy: ExitCode, backoff_limit: 5}"
    )
    assert (spec.most_retries, spec.most_worker_retries) == (5, 5)
    usual = read("elastic: {workers: 2}")
    assert (usual.most_retries, usual.most_worker_retries) == (0, 0)
    assert read("elastic: {workers: 2, worker_restart_policy: Always}").most_worker_retries == 3
    with pytest.raises(SpecErrors, match='worker_restart_policy: is the text "Often"; write Never or OnFailure'):
        read("elastic: {workers: 2, worker_restart_policy: Often}")


@pytest.mark.req("JT-26")
def test_it_is_written_as_it_reads() -> None:
    spec = read("time_limit: 1h\nelastic: {workers: 8, max_workers: 9, reclaim_signal: SIGTERM, grace_period: 5m}")
    assert read_jobs("job.yaml", spec_as_yaml(spec), "/", defaults=Defaults()) == [spec]


@pytest.mark.req("JT-26")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("elastic: {}", "elastic.workers: is missing; give how many workers"),
        ("elastic: {workers: 2, min_workers: 3}", "elastic.min_workers: 3 is more than the 2 workers"),
        ("elastic: {workers: 4, max_workers: 3}", "elastic.max_workers: 3 is less than the 4 workers"),
        ("elastic: {workers: 0}", "elastic.workers: 0 is not between 1 and 10000"),
        ("nodes: 3\nelastic: {workers: 4}", "nodes: 3 is not elastic.workers (4)"),
        ("elastic: {workers: 2}\ndivide_over_clusters: true", "elastic: cannot stand beside divide_over_clusters"),
        ("elastic: {workers: two}", "elastic.workers: is the text"),
        ("elastic: {worker: 2}", "elastic.worker: is no field here; did you mean workers?"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(text: str, error: str) -> None:
    with pytest.raises(SpecErrors, match=re.escape(error)):
        read(text)
