"""The `elastic` field of a job file."""

from __future__ import annotations

import re

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.specfile import spec_as_yaml
from cockpit.launch.checks import warnings
from cockpit.model.resilience import AfterWait, Elastic
from cockpit.model.spec import JobSpec, NodeSpec

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
def test_restart_policies_have_their_kubernetes_names() -> None:
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
def test_an_elastic_job_is_written_as_it_is_read() -> None:
    pays = "spot: true, max_price: 0.35"
    size = f"workers: 8, max_workers: 9, {pays}, reclaim_signal: SIGTERM, grace_period: 5m"
    spec = read(f"time_limit: 1h\nelastic: {{{size}}}")
    assert read_jobs("job.yaml", spec_as_yaml(spec), "/", defaults=Defaults()) == [spec]


@pytest.mark.req("JT-26")
@pytest.mark.parametrize("price", ["0.001", "0.35", "1", "1.001", "12"])
def test_a_price_is_written_in_decimal_form(price: str) -> None:
    text = spec_as_yaml(read(f"elastic: {{workers: 2, spot: true, max_price: {price}}}\ntime_limit: 1h"))
    assert re.findall(r"max_price: (.*)", text) == [price]


@pytest.mark.req("JT-26", "EL-08")
def test_a_best_effort_job_requests_nothing_and_is_written_as_it_is_read() -> None:
    text = (
        "elastic: {workers: 2, best_effort: true, spot: true}\nspecs: [{cpus: 4, memory: 8G, cards: 1}]\ntime_limit: 1h"
    )
    spec = read(text)
    assert spec.specs == (NodeSpec(cpus=0, memory_mib=0, card_milli=1000),)
    assert read_jobs("job.yaml", spec_as_yaml(spec), "/", defaults=Defaults()) == [spec]
    (warning,) = warnings(spec)
    assert warning.startswith("elastic.supervised: without it (job-supervisor.kube-ai.io/managed-by-job-supervisor)")
    assert warnings(read("elastic: {workers: 2, best_effort: true, supervised: true}")) == ()
    assert warnings(read("elastic: {workers: 2}")) == ()


@pytest.mark.req("JT-26", "EL-04")
def test_the_waiting_time_and_the_launchers_node_are_read() -> None:
    spec = read(
        "mode: horovod\nelastic: {workers: 2, max_wait_time: 20m, after_wait: fail, launcher_selector: type=spot}"
    )
    assert spec.elastic is not None
    assert (spec.elastic.max_wait_seconds, spec.elastic.after_wait) == (1200, AfterWait.FAIL)
    assert (spec.elastic.launcher_selector, spec.has_launcher) == ({"type": "spot"}, True)
    assert not read("elastic: {workers: 2}").has_launcher


@pytest.mark.req("JT-26")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("elastic: {}", "elastic.workers: is missing; give the number of workers"),
        ("elastic: {workers: 2, min_workers: 3}", "elastic.min_workers: 3 is more than the 2 workers"),
        ("elastic: {workers: 4, max_workers: 3}", "elastic.max_workers: 3 is less than the 4 workers"),
        ("elastic: {workers: 0}", "elastic.workers: 0 is not between 1 and 10000"),
        ("nodes: 3\nelastic: {workers: 4}", "nodes: 3 is not elastic.workers (4)"),
        ("elastic: {workers: 2}\ndivide_over_clusters: true", "elastic: cannot be used with divide_over_clusters"),
        ("elastic: {workers: two}", "elastic.workers: is the text"),
        ("elastic: {workers: 2, max_wait_time: 0}", "elastic.max_wait_time: 0 s is not between 1 s"),
        ("elastic: {workers: 2, max_price: 0.5}", "elastic.max_price: is for spot nodes"),
        ("elastic: {workers: 2, spot: true, max_price: cheap}", "elastic.max_price: is the text"),
        ("elastic: {workers: 2, supervised: true}", "elastic.supervised: is for best-effort workers"),
        (
            "elastic: {workers: 2, best_effort: true}\nexclusive: true",
            "exclusive: cannot be used with elastic.best_eff",
        ),
        ("elastic: {workers: 2, launcher_selector: a=b}", "elastic.launcher_selector: is for jobs with a launcher"),
        ("elastic: {worker: 2}", "elastic.worker: is no field here; did you mean workers?"),
    ],
)
def test_an_error_is_reported_with_its_field(text: str, error: str) -> None:
    with pytest.raises(SpecErrors, match=re.escape(error)):
        read(text)
