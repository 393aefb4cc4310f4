from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm import ranking
from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping.reasons import reason, with_figures
from cockpit.backends.slurm.opening import open_recorded
from cockpit.backends.slurm.rows import Rows
from cockpit.backends.slurm.why import limit_of_code, unavailable_nodes
from cockpit.backends.slurm.wire.calls import NOTHING_ABSENT
from cockpit.backends.snapshot.backend import open_snapshot
from cockpit.engine.views.rows import job_row
from cockpit.errors import RequestRefused, SpecErrors
from cockpit.formats.snapshotfile import read_snapshot, write_snapshot
from cockpit.model.accounts import ResourceLimits, assoc_key
from cockpit.model.asking import WantedLimit
from cockpit.model.directives import MoveToTop
from cockpit.model.forecast import NoBound
from cockpit.model.ids import JobId, Millis, rest_id, task_id
from cockpit.model.job import JobState
from cockpit.model.node import NodeState
from cockpit.model.priority import WeightChanges
from cockpit.model.reasons import (
    ArrayFull,
    BeginsLater,
    DependencyNever,
    Held,
    InReservation,
    NotEnoughFree,
    PartitionRefuses,
    PartitionRule,
    SchedulerReason,
    WaitsForJob,
    WouldDelay,
)
from cockpit.model.spec import Access
from cockpit.present.columns import Context
from cockpit.present.outlook import outlook_lines
from cockpit.present.reasons import reason_sentence
from cockpit.protocol.messages import JobArgs, SetTimeLimitArgs

if TYPE_CHECKING:
    from cockpit.model.jobrow import JobRow


async def by_name(backend: SlurmBackend, *, ended: bool = False) -> dict[str, JobRow]:
    return {row.name: row for row in await backend.jobs(ended=ended)}


@pytest.mark.req("SL-20")
async def test_forbidden_actions_are_known_before_they_are_tried(recorded: SlurmBackend) -> None:
    # What a recording lacks is refused first; here it counts as a cluster that takes changes.
    vars(recorded._commands)["absent"] = NOTHING_ABSENT
    with pytest.raises(RequestRefused, match="enable_user_top is not among its SchedulerParameters"):
        await recorded.direct(MoveToTop(("9",)))
    with pytest.raises(RequestRefused, match="frank's, not yours"):
        await recorded.hold(JobId(42))


@pytest.mark.req("SL-02", "SL-10", "SL-13")
async def test_every_kind_of_waiting_is_explained_by_the_known_data(recorded: SlurmBackend) -> None:
    rows = await by_name(recorded)
    reasons = {name: row.reason for name, row in rows.items()}
    assert reasons["userheld"] == Held("alice", None)
    assert reasons["adminheld"] == Held("an administrator", None)
    assert isinstance(reasons["later"], BeginsLater)
    assert isinstance(reasons["neverdep"], DependencyNever)
    assert reasons["stage2"] == WaitsForJob("afterok", JobId(47))
    assert isinstance(reasons["inresv"], InReservation)
    assert isinstance(reasons["multi-part"], SchedulerReason)
    assert reasons["directprio"] == SchedulerReason("Priority")
    assert isinstance(rows["arr"].reason, ArrayFull)


@pytest.mark.req("SL-10")
async def test_an_arrays_waiting_tasks_are_one_row_beside_those_that_run(recorded: SlurmBackend) -> None:
    parts = [row for row in await recorded.jobs() if row.array is not None]
    (rest,) = [row for row in parts if row.tasks]
    assert (rest.id, rest.state) == (rest_id(46), JobState.QUEUED)
    running = {row.array.index for row in parts if row.array is not None and not row.tasks}
    assert running.isdisjoint(rest.tasks)
    assert rest.tasks == tuple(range(min(rest.tasks), 10))
    deep = (await recorded.job(JobId(46), task=9)).row
    assert (deep.id, deep.tasks, deep.reason) == (task_id(46, 9), (), rest.reason)
    shown = (await recorded.job(rest.id)).row
    assert replace(shown, output=rest.output) == rest
    assert shown.output.endswith("/slurm-46_%a.out")
    assert deep.output.endswith("/slurm-46_9.out")
    assert (await recorded.explain(task_id(46, 9))).job == task_id(46, 9)
    assert (await recorded.explain(JobId(46))).job == rest_id(46), "its first tasks run"


@pytest.mark.req("SL-10")
async def test_a_partition_counts_every_waiting_task_and_a_job_of_two_partitions_in_both(
    recorded: SlurmBackend,
) -> None:
    waiting = Counter[str]()
    for row in await recorded.jobs():
        for partition in row.partitions if row.queued else ():
            waiting[partition] += len(row.tasks) or 1
    assert {row.path: row.waiting for row in (await recorded.queues()).rows} == waiting


@pytest.mark.req("SL-10", "SL-21")
async def test_actions_on_waiting_tasks_name_the_tasks_and_not_the_array(recorded: SlurmBackend) -> None:
    root = SlurmBackend("r", recorded._commands, recorded._reading, recorded._clock, "root")
    (rest,) = [row for row in await root.jobs() if row.tasks]
    span = f"46_[{rest.tasks[0]}-9]"
    (held,) = await root._acts.commands("hold", JobArgs(rest.id))
    (limited,) = await root._acts.commands("set_time_limit", SetTimeLimitArgs(rest.id, WantedLimit(3600)))
    assert (held.argv, limited.argv[2]) == (("scontrol", "hold", span), f"JobId={span}")
    with pytest.raises(RequestRefused, match="There is no job 99"):
        await root._acts.commands("hold", JobArgs(rest_id(99)))


@pytest.mark.req("SL-10", "PF-21")
async def test_a_row_is_what_the_whole_job_would_give(recorded: SlurmBackend) -> None:
    """Rows are made without the jobs that they are about."""
    listed, now = await recorded._reading.jobs(), recorded._clock.now()
    reservations = {each.name: each for each in await recorded._reading.reservations()}
    made = Rows("alice").of(listed, reservations, now)
    for each in listed:
        expected = each.starts_at if (each.starts_at or 0) > now else None
        whole = job_row(each.job, reason(each, reservations), each.priority, expected)
        mine = Access.RW if each.job.submitter.name == "alice" else Access.RO
        whole = replace(whole, output=made[each.id].output)  # the row has the file, the job what Slurm calls it
        assert made[each.id] == replace(whole, may=mine, tasks=each.tasks, component=each.component)
    assert len(made) > 30


@pytest.mark.req("SL-11")
async def test_nodes_have_their_cards_and_the_jobs_on_them(recorded: SlurmBackend) -> None:
    rows = {row.node.name: row for row in await recorded.nodes()}
    assert [len(rows[name].node.cards) for name in ("n1", "n2", "n3", "n4")] == [4, 4, 8, 0]
    assert [use.name for use in rows["n3"].slices] == ["train-h100"] * 8
    assert [use.card for use in rows["n1"].slices] == [0, 1, 2, 3]
    overview = await recorded.overview()
    assert (overview.nodes, overview.cpus, overview.card_milli) == (4, 40, 16_000)
    assert overview.used_card_milli == sum(row.used_card_milli for row in rows.values())
    (reservation,) = await recorded.reservations()
    assert (reservation.name, reservation.nodes, reservation.users) == ("maint", ("n4",), ("alice",))


@pytest.mark.req("SL-12")
async def test_priorities_equal_those_of_sprio_and_omitted_jobs_have_a_reason(recorded: SlurmBackend) -> None:
    rows = [row for row in (await recorded.priorities()).rows if row.breakdown is not None]
    ranked = {row.name: row for row in rows}
    factors = {part.name: part.contribution for part in ranked["p4-frank"].breakdown.parts}
    assert (factors["partition"], factors["fairshare"]) == (3000, 16000)
    for part in ranked["p4-frank"].breakdown.parts:
        assert part.weight > 0, part
        assert part.raw * part.weight == pytest.approx(part.contribution), part
    assert ranked["p4-frank"].breakdown.nice == 12
    assert ranked["userheld"].position is None
    assert {row.partition for row in rows if row.name == "multi-part"} == {"batch", "gpu"}
    assert ranked["later"].breakdown.parts == ()
    assert ranked["directprio"].breakdown.direct
    assert isinstance(ranked["later"].uncounted, BeginsLater)
    tried = (await recorded.priorities(WeightChanges(age=1))).rows
    assert {part.name for row in tried if row.name == "p4-frank" and row.breakdown for part in row.breakdown.parts}
    tiers = {each.name: each.priority_tier for each in (await recorded._reading.rules()).partitions}
    turns = [(tiers[row.partition], row.breakdown.total) for row in rows if row.position]
    assert turns == sorted(turns, reverse=True)


@pytest.mark.req("SL-12")
async def test_the_tier_of_a_partition_precedes_every_priority(recorded: SlurmBackend) -> None:
    rules, printed = await recorded._reading.rules(), await recorded._reading.priorities()
    tiers = {"gpu": 1, "batch": 7, "debug": 3}
    partitions = tuple(replace(each, priority_tier=tiers.get(each.name, 1)) for each in rules.partitions)
    rows = await recorded._all_rows()
    found = ranking.priorities(rows.values(), printed, replace(rules, partitions=partitions)).rows
    waiting = [row for row in found if row.position]
    assert {row.partition for row in waiting} >= {"gpu", "batch"}
    turns = [(-tiers.get(row.partition, 1), -row.breakdown.total) for row in waiting if row.breakdown is not None]
    assert turns == sorted(turns)
    assert [row.position for row in found[len(waiting) :]] == [None] * (len(found) - len(waiting))


@pytest.mark.req("SL-12")
async def test_shares_equal_those_of_sshare(recorded: SlurmBackend) -> None:
    rows = {(row.association.account, row.association.user): row for row in (await recorded.accounts()).rows}
    assert rows["nlp-a", "carol"].depth == 3
    assert rows["nlp-a", ""].association.parent == "nlp"
    assert rows["nlp", "erin"].association.shares is None
    assert rows["tieb", "frank"].fair_share in {0.8, 1.0}


@pytest.mark.req("SL-13", "SL-14")
async def test_slurms_estimate_is_shown_beside_the_cores_with_the_figures_of_the_reason() -> None:
    backend, now = await open_recorded("22.05")
    head = await backend.explain(JobId(42))
    assert head.explanation is not None
    assert isinstance(head.explanation.reason, NotEnoughFree)
    (listed,) = await backend.starts([JobId(42)])
    assert (head.scheduler, head.scheduler_start_at) == ("Slurm", listed.at)
    assert (head.forecast.latest_at, head.forecast.no_bound) == (None, NoBound.PRIORITIES_CHANGE)
    assert [(each.job, each.at) for each in await backend.starts([JobId(42), JobId(9999)])] == [
        (42, head.scheduler_start_at)
    ]
    limited = (await backend.explain(JobId(54))).explanation
    assert limited is not None
    assert reason_sentence(limited.reason, now(), None).startswith(
        "limit MaxTRESPerUser=gres/gpu of qos high is 8; 2 in use"
    )


@pytest.mark.req("SL-13")
async def test_the_jobs_behind_a_reason_are_shown() -> None:
    backend, now = await open_recorded("22.05")
    context = Context(now=now(), zone=UTC, user="")

    async def lines(job: JobId) -> list[str]:
        return ["".join(span.text for span in each) for each in outlook_lines(await backend.explain(job), context)]

    assert "  in use by 24 (frank, 2 cards)" in await lines(JobId(54))
    assert "  in use by 46_2 (carol, 2 CPUs) and 46_3 (carol, 2 CPUs)" in await lines(rest_id(46))
    assert "  job 47 stage1 is queued" in await lines(JobId(48))
    assert "  job 1 fails has ended: error" in await lines(JobId(49))


@pytest.mark.req("SL-11", "SL-13")
async def test_nodes_out_of_service_that_a_reason_means_are_named_with_why() -> None:
    backend, _ = await open_recorded("22.05")
    everything = await backend._reading.everything(closely=True)
    down = everything.nodes[0]._replace(
        node=replace(everything.nodes[0].node, state=NodeState.DRAINED, state_reason="bad disk [root@now]")
    )
    everything = everything._replace(nodes=(down, *everything.nodes[1:]))
    job, name = (await backend.job(JobId(42))).job, down.node.name
    said = [(name, "drained: bad disk [root@now]")]
    for code in (f"ReqNodeNotAvail, UnavailableNodes:{name}", "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved"):
        assert list(unavailable_nodes(SchedulerReason(code), job, everything)) == said
    assert list(unavailable_nodes(SchedulerReason("Priority"), job, everything)) == []


@pytest.mark.req("SL-13")
async def test_a_limits_code_is_found_among_the_limits_of_sacctmgr() -> None:
    backend, _ = await open_recorded("22.05")
    everything = await backend._reading.everything(closely=True)
    job = (await backend.job(JobId(54))).job
    tight = ResourceLimits(max_jobs=4, grp_tres={"cpu": 8.0}, max_tres_per_job={"node": 1.0})
    frank = replace(everything.accounts.associations[assoc_key(job.account, "frank")], limits=tight)
    accounts = replace(everything.accounts, associations={**everything.accounts.associations, frank.key: frank})
    seen = await backend._mirror.snapshot(everything._replace(accounts=accounts))

    def found(code: str) -> tuple[str, str, str, float] | None:
        told = limit_of_code(seen, job, code)
        return told and (told.holder, told.limit, told.resource, told.allowed)

    user = f"user frank of account {frank.account}"
    assert found("QOSMaxGRESPerUser") == ("qos high", "MaxTRESPerUser", "gres/gpu", 8)
    assert found("AssocGrpCpuLimit") == (user, "GrpTRES", "cpu", 8)
    assert found("AssocMaxJobsLimit") == (user, "MaxJobs", "", 4)
    assert found("AssocMaxNodePerJobLimit") == (user, "MaxTRESPerJob", "node", 1)
    assert found("QOSGrpCpuLimit") is found("Priority") is found("AssocGrpMemLimit") is None


@pytest.mark.req("SL-15")
async def test_ended_jobs_show_their_usage(recorded: SlurmBackend) -> None:
    done = {each.row.name: each for each in await recorded.accounting()}
    assert (done["fails"].row.exit_code, done["fails"].row.state) == (3, JobState.ERROR)
    assert any(each.cpu_ms is not None for each in done.values())
    trained = max(done.values(), key=lambda each: each.row.card_milli)
    assert trained.card_milli_ms == trained.row.card_milli * trained.elapsed_ms > 0
    assert "fails" in await by_name(recorded, ended=True)
    assert "fails" not in await by_name(recorded)


@pytest.mark.req("SL-15")
async def test_ended_jobs_are_those_of_the_window_and_the_newest_is_first(recorded: SlurmBackend) -> None:
    ends = [each.row.ended_at for each in await recorded.accounting()]
    assert ends == sorted(ends, key=lambda at: -(at or 0))
    middle = ends[len(ends) // 2]
    assert middle is not None
    later = [each.row.ended_at for each in await recorded.accounting(since=middle)]
    assert later == [at for at in ends if at is not None and at >= middle]
    earlier = [each.row.ended_at for each in await recorded.accounting(until=middle)]
    assert earlier == [at for at in ends if at is None or at < middle]


@pytest.mark.req("SL-10")
async def test_watchers_see_ended_jobs_in_the_same_table(recorded: SlurmBackend) -> None:
    first = await anext(aiter(recorded.watch_jobs()))
    rows = {row.name: row for row in first.changed}
    assert {rows["fails"].state, rows["userheld"].state} == {JobState.ERROR, JobState.QUEUED}
    assert len({row.id for row in first.changed}) == len(first.changed)
    again = await recorded._watch.recent_rows()
    assert all(row is again[row.id] for row in first.changed if row.id in again and row.ended_at is not None)


async def test_a_recording_refuses_actions_and_must_exist(recorded: SlurmBackend) -> None:
    with pytest.raises(RequestRefused, match="recording of a cluster: nothing can be changed"):
        await recorded.hold(JobId(42))
    with pytest.raises(SpecErrors, match=r"there is no recording of 9\.99; there are 22\.05, 24\.11"):
        await open_recorded("9.99")


@pytest.mark.req("SC-24", "SL-30")
async def test_a_snapshot_has_the_clusters_figures_and_computes_the_cores(recorded: SlurmBackend) -> None:
    written = write_snapshot(await recorded.snapshot())
    snapshot = await open_snapshot(read_snapshot(written, "file"), "root")
    compared = 0
    for row in (await snapshot.priorities()).rows:
        if row.reported is None or row.breakdown is None or row.name in {"excl", "directprio"}:
            continue
        own = {(part.name, part.tres): round(part.contribution) for part in row.breakdown.parts}
        assert {(part.name, part.tres): part.contribution for part in row.reported.parts} == {
            key: own.get(key) for key in {(part.name, part.tres) for part in row.reported.parts}
        }, row.name
        compared += 1
    assert compared > 30
    assert (await snapshot.explain(JobId(42))).scheduler == "Slurm"
    with pytest.raises(RequestRefused, match="This is a snapshot"):
        await snapshot.cancel(JobId(42))


@pytest.mark.req("SL-13")
def test_the_cores_figures_are_shown_where_they_agree_with_slurm() -> None:
    too_long = PartitionRefuses("urgent", PartitionRule.MAX_TIME, "3600", "18000")
    waits = WouldDelay(JobId(9), Millis(1))
    tiers = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
    assert with_figures(SchedulerReason("PartitionTimeLimit"), too_long) == too_long
    assert with_figures(SchedulerReason(tiers), waits) == waits
    assert with_figures(SchedulerReason("Licenses"), waits) == SchedulerReason("Licenses")
