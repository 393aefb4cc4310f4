"""A person changes a running job: what can be changed is a field, and everything else says why not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cockpit.model.capabilities import ENGINE, Ability, Capabilities
from cockpit.model.ids import JobId
from cockpit.model.resilience import Elastic
from cockpit.present.form.running import read_changes_of, running_fields
from tests.backends.kubernetes.test_editing import PODS, PYTORCH, a_pod_of, a_pytorch_job
from tests.doubles.kubernetes_api import FakeApi
from tests.tui.lab import a_lab, job, the_lab
from tests.tui.test_kubernetes import at_kubernetes

HEAD = "what can be changed while it is running"


@pytest.fixture
async def server() -> AsyncIterator[FakeApi]:
    async with FakeApi() as server:
        yield server


@pytest.mark.req("UI-31", "UI-08")
async def test_the_time_limit_of_a_running_job_is_changed_and_restored() -> None:
    async with the_lab(size=(80, 24)) as lab:
        cockpit = lab.cockpit.press("g").stands_on("train").press("e")
        await cockpit.sees(HEAD, "time limit    8h", "Only elastic jobs change", "which this job has left")
        await cockpit.press("Ctrl-s").sees("Nothing is changed yet.")
        await cockpit.type("soon").sees("is no time limit; write a time such as 6h").press("Ctrl-s").sees(HEAD)
        await cockpit.press(*["backspace"] * 4).type("+2h").misses("is no time limit").press("Ctrl-s")
        await cockpit.misses(HEAD).sees("time limit +2h for job 1 train")
        assert (await lab.backend.job(JobId(1))).job.spec.time_limit_seconds == 10 * 3600
        await cockpit.press("u").sees("as it was")
        assert (await lab.backend.job(JobId(1))).job.spec.time_limit_seconds == 8 * 3600


@pytest.mark.req("UI-31", "UI-20")
async def test_the_engine_says_why_workers_of_a_running_job_are_fixed() -> None:
    elastic = job("grow", elastic=Elastic(workers=1, max_workers=2))
    async with a_lab(elastic) as lab:
        await lab.cockpit.sees("grow").press("e").sees(HEAD, "min workers   1", "max workers   2")
        await lab.cockpit.sees("The scheduler chooses the number of workers").press("Esc").misses(HEAD)


@pytest.mark.req("UI-31", "UI-20")
async def test_nothing_of_an_ended_job_is_changed() -> None:
    async with the_lab() as lab:
        await lab.cockpit.goes_to(3, "done").press("e").sees("Job 3 has ended (succeeded)")


@pytest.mark.req("UI-31", "KU-07")
async def test_workers_of_a_running_elastic_job_are_changed_on_kubernetes(server: FakeApi, tmp_path: Path) -> None:
    policy = {"minReplicas": 1, "maxReplicas": 4, "rdzvBackend": "c10d"}
    pod = a_pod_of(server.create(PYTORCH, a_pytorch_job(suspend=False, elasticPolicy=policy)))
    running = {"running": {"startedAt": "2026-03-01T09:00:00Z"}}
    pod["spec"] = {**pod["spec"], "nodeName": "n1"}
    server.create(PODS, {**pod, "status": {"phase": "Running", "containerStatuses": [{"state": running}]}})
    async with at_kubernetes(server, tmp_path) as cockpit:
        await cockpit.sees("train").press("e").sees("min workers   1", "workers       2", "max workers   4")
        await cockpit.press("Down", "Down").type("6").sees("is not between 1 and 4").press("Down").type("8")
        await cockpit.misses("is not between").press("Ctrl-s").sees("6 workers (1 to 8) for job")
        made = server.object(f"{PYTORCH}/train")["spec"]
        assert (made["elasticPolicy"]["maxReplicas"], made["pytorchReplicaSpecs"]["Worker"]["replicas"]) == (8, 6)
        await cockpit.press("u").sees("is as it was")
    made = server.object(f"{PYTORCH}/train")["spec"]
    assert (made["elasticPolicy"]["maxReplicas"], made["pytorchReplicaSpecs"]["Worker"]["replicas"]) == (4, 2)


@pytest.mark.req("UI-31")
async def test_each_field_follows_what_the_cluster_can_do() -> None:
    async with a_lab(job("grow", elastic=Elastic(workers=1, max_workers=2))) as lab:
        detail = await lab.backend.job(JobId(1))
    able = Capabilities({"set_time_limit": "not here"})
    fields = {each.path: each for each in running_fields(detail, able)}
    assert fields["time_limit"].why_not == "not here"
    assert not fields["workers"].why_not
    assert {each.path: each for each in running_fields(detail, ENGINE)}["workers"].why_not == ENGINE.why_not(
        Ability.RESIZE
    )
    texts = {path: each.text for path, each in fields.items()}
    assert read_changes_of(detail, fields, texts) == (None, None, {})
    wrong = read_changes_of(detail, fields, {**texts, "min_workers": "3", "workers": "x"})
    assert list(wrong.errors) == ["workers"]
    assert "is more than the 2" in read_changes_of(detail, fields, {**texts, "min_workers": "3"}).errors["min_workers"]
    spec = read_changes_of(detail, fields, {**texts, "workers": "2"}).spec
    assert spec is not None
    assert spec.elastic is not None
    assert (spec.nodes, spec.elastic.workers) == (2, 2)
