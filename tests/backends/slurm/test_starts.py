"""When queued jobs start: Slurm's own figure, in every place, and none of a job that does not start by itself."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping.cluster import ClusterLists, state
from cockpit.backends.slurm.mapping.jobparts import spreads_freely
from cockpit.backends.slurm.mapping.jobs import Listed
from cockpit.backends.slurm.rows import Rows, holdings
from cockpit.backends.snapshot.backend import open_snapshot
from cockpit.model.cluster import Cluster
from cockpit.model.forecast import Forecast, HoldingJob, Outlook
from cockpit.model.ids import JobId, Millis
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.present.columns import Context
from cockpit.present.outlook import holding, outlook_lines, prediction
from cockpit.present.spans import plain
from tests.backends.slurm.test_values import a_record

WAITS = {"State": "PENDING", "SubmitTime": "2026-11-21T08:00:00", "UserName": "ann"}
EIGHT, NINE = "2026-11-21T08:30:00", "2026-11-21T09:00:00"


def starts_of(*jobs: dict[str, str]) -> dict[int, Millis | None]:
    listed = [Listed(a_record(**{**WAITS, **each})) for each in jobs]
    rows = Rows("ann").of(listed, {}, Millis(0))
    return {int(job): row.starts_by for job, row in rows.items()}


@pytest.mark.parametrize("code", ["JobHeldUser", "JobHeldAdmin", "PartitionConfig", "DependencyNeverSatisfied"])
@pytest.mark.req("SC-12", "SL-14")
def test_a_job_that_does_not_start_by_itself_has_no_start(code: str) -> None:
    found = starts_of({"JobID": "7", "Reason": code, "StartTime": NINE}, {"JobID": "8", "StartTime": NINE})
    assert found[7] is None
    assert found[8] is not None


@pytest.mark.req("SC-12", "SL-10")
def test_components_of_a_heterogeneous_job_start_together() -> None:
    parts = [{"JobID": "7", "HetJobID": "7", "HetJobOffset": "0"}, {"JobID": "8", "HetJobID": "7", "HetJobOffset": "1"}]
    planned = starts_of(parts[0] | {"StartTime": EIGHT}, parts[1] | {"StartTime": NINE}, {"JobID": "9"})
    assert planned[7] == planned[8] is not None
    assert planned[7] == starts_of({"JobID": "1", "StartTime": NINE})[1]
    assert planned[9] is None
    held = starts_of(parts[0] | {"Reason": "JobHeldUser"}, parts[1] | {"StartTime": NINE})
    assert held == {7: None, 8: None}


@pytest.mark.req("SC-12")
def test_a_job_of_tasks_alone_may_run_on_any_number_of_nodes() -> None:
    free = a_record(JobID="7", NumNodes="3", **{"tres-alloc": "cpu=24,mem=100M,node=1,billing=24"})
    fixed = a_record(JobID="7", NumNodes="2", **{"tres-alloc": "cpu=24,mem=200M,node=2,billing=24"})
    assert (spreads_freely(free), spreads_freely(fixed)) == (True, False)


@pytest.mark.req("UI-32", "SL-14")
async def test_list_starts_and_explain_show_the_same_start_and_its_source(recorded: SlurmBackend) -> None:
    rows = {row.id: row for row in await recorded.jobs() if row.queued}
    starts = {each.job: each.at for each in await recorded.starts(list(rows))}
    assert starts
    for job, row in rows.items():
        outlook = await recorded.explain(job)
        assert outlook.scheduler == "Slurm"
        assert starts.get(job) == row.starts_by == outlook.scheduler_start_at
        assert not (outlook.scheduler_start_at is None and outlook.forecast.now and row.reason is not None)


@pytest.mark.req("UI-32", "SL-14")
def test_the_first_line_is_the_clusters_own_figure() -> None:
    own = Forecast(likely_at=Millis(600_000), latest_at=Millis(1_200_000))
    told = Outlook(
        job=JobId(7),
        name="x",
        position=1,
        explanation=None,
        forecast=own,
        scheduler_start_at=Millis(3_600_000),
        scheduler="Slurm",
    )
    context = Context(now=Millis(0))
    assert prediction(told, context).endswith("starts about 01:00 (in 1 h) by Slurm's plan")
    text = [plain(each) for each in outlook_lines(told, context)]
    assert "  by cockpit's own plan, if jobs run as long as usual: about 00:10 (in 10 min)" in text
    assert not any("no later than" in each for each in text)


@pytest.mark.req("SL-14", "UI-08")
async def test_a_prediction_is_marked_as_not_slurms(recorded: SlurmBackend) -> None:
    spec = JobSpec(name="vit", command="true", output="/tmp", specs=(NodeSpec(memory_mib=64),))
    (told,) = await recorded.predict([spec])
    here = Context(now=(await recorded.snapshot()).at)
    assert prediction(told, here).endswith(", by cockpit's own plan, not Slurm's")
    assert not any("if jobs run as long as usual" in plain(each) for each in outlook_lines(told, here))
    (kept,) = await (await open_snapshot(await recorded.snapshot(), "root")).predict([spec])
    assert prediction(kept, here).endswith(", by cockpit's own plan, not Slurm's")


@pytest.mark.req("UI-32", "SL-10")
def test_an_answer_about_a_component_names_it_as_slurm_does() -> None:
    """By the first component's number and its own (`47+1`), in the answer and among the jobs ahead of others."""
    held = HoldingJob(
        JobId(48), "x", "ann", running=False, nodes=1, cpus=2, memory_mib=1, card_milli=0, component=(47, 1)
    )
    assert holding(JobId(48), held) == "47+1 (ann, 2 CPUs)"
    told = Outlook(
        job=JobId(48), name="x", component=(47, 1), position=1, explanation=None, forecast=Forecast(), named=(held,)
    )
    assert plain(next(iter(outlook_lines(told, Context(now=Millis(0)))))).startswith("47+1 x  ")
    parts = [{"JobID": "7", "HetJobID": "7", "HetJobOffset": "0"}, {"JobID": "8", "HetJobID": "7", "HetJobOffset": "1"}]
    rows = Rows("ann").of([Listed(a_record(**{**WAITS, **each})) for each in parts], {}, Millis(0))
    assert [each.component for each in holdings(rows, rows, set())] == [(7, 0), (7, 1)]


def het_records(**second: str) -> list[dict[str, str]]:
    amounts = {"tres-alloc": "cpu=2,mem=1G,node=1,billing=2", "NumNodes": "1", "NumCPUs": "2", "TimeLimit": "10:00"}
    parts = [{"JobID": str(7 + number), "HetJobID": "7", "HetJobOffset": str(number)} for number in (0, 1)]
    first, other = ({**WAITS, "PriorityLong": "50", **amounts, **each} for each in parts)
    return [a_record(**first), a_record(**{**other, "TimeLimit": "20:00", "PriorityLong": "40", **second})]


@pytest.mark.req("SL-14", "SL-10")
def test_the_scheduler_plans_the_components_of_a_heterogeneous_job_together() -> None:
    """As one job, by the priority of the component whose turn comes last; priorities are counted one by one."""
    everything = ClusterLists(Millis(0), Cluster(), (), tuple(map(Listed, het_records())))
    (planned,) = state(everything, as_ranked=True).jobs.values()
    assert (planned.id, planned.direct_priority, planned.spec.time_limit_seconds) == (7, 40, 1200)
    assert [each.specs[0].cpus for each in (planned.spec, *planned.spec.components)] == [2, 2]
    assert state(everything, as_ranked=False).jobs.keys() == {7, 8}
    held = ClusterLists(Millis(0), Cluster(), (), tuple(map(Listed, het_records(Reason="JobHeldUser"))))
    (kept,) = state(held, as_ranked=True).jobs.values()
    assert kept.held_by == "ann"
    runs = ClusterLists(Millis(0), Cluster(), (), tuple(map(Listed, het_records(State="RUNNING", NodeList="n1"))))
    assert state(runs, as_ranked=True).jobs.keys() == {7, 8}
