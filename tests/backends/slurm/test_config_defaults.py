"""What Slurm's configuration says and what holds where it says nothing, by the manual of slurm.conf."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping import jobs, rules, states, values
from cockpit.backends.slurm.mapping.records import records_of_key, settings
from cockpit.model.attempt import ExitStatus
from cockpit.model.cluster import BackfillKind, Partition, PartitionState, Preemption, PriorityKind, UsageReset, Weights
from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask

WHOLE = """
ClusterName             = lab
SLURM_VERSION           = 22.05.8
PriorityType            = priority/multifactor
PriorityCalcPeriod      = 00:02:00
PriorityDecayHalfLife   = 7-00:00:00
PriorityUsageResetPeriod = MONTHLY
PriorityFavorSmall      = Yes
PriorityWeightAge       = 1
PriorityWeightAssoc     = 2
PriorityWeightFairShare = 3
PriorityWeightJobSize   = 4
PriorityWeightPartition = 5
PriorityWeightQOS       = 6
PriorityWeightTRES      = CPU=7
FairShareDampeningFactor = 8
SchedulerType           = sched/backfill
SchedulerParameters     = bf_window=60,bf_resolution=30,bf_max_job_test=9
PreemptType             = preempt/qos
PreemptMode             = REQUEUE,GANG
PreemptExemptTime       = 00:01:00
SchedulerTimeSlice      = 15 sec
"""


@pytest.mark.req("SL-30")
def test_every_setting_of_the_scheduler_is_read() -> None:
    found = rules.cluster(settings(WHOLE), ())
    assert (rules.cluster_name(settings(WHOLE)), rules.version(settings(WHOLE))) == ("lab", "22.05.8")
    assert found.priority.kind is PriorityKind.MULTIFACTOR
    assert found.priority.weights == Weights(
        age=1, assoc=2, fairshare=3, job_size=4, partition=5, qos=6, tres={"cpu": 7}
    )
    assert (found.priority.calc_period_seconds, found.priority.decay_half_life_seconds) == (120, 604_800)
    assert (found.priority.usage_reset, found.priority.favor_small) == (UsageReset.MONTHLY, True)
    assert found.priority.dampening_factor == 8
    backfill = found.backfill
    assert (backfill.kind, backfill.window_seconds) == (BackfillKind.CONSERVATIVE, 3600)
    assert (backfill.resolution_seconds, backfill.depth) == (30, 9)
    assert found.preemption == Preemption(
        kind="preempt/qos", mode=("REQUEUE", "GANG"), exempt_seconds=60, slice_seconds=15
    )


@pytest.mark.req("SL-30")
def test_slurms_own_defaults_hold_where_nothing_is_configured() -> None:
    found = rules.cluster({}, ())
    assert (rules.cluster_name({}), rules.version({})) == ("slurm", "")
    assert (found.priority.kind, found.priority.weights) == (PriorityKind.BASIC, Weights())
    assert (found.priority.calc_period_seconds, found.priority.decay_half_life_seconds) == (300, 0)
    assert (found.priority.usage_reset, found.priority.dampening_factor) == (UsageReset.NONE, 1)
    backfill = found.backfill
    assert (backfill.window_seconds, backfill.resolution_seconds, backfill.depth) == (86_400, 60, 500)
    assert found.preemption == Preemption(kind="preempt/none", mode=("OFF",), exempt_seconds=0, slice_seconds=30)
    assert rules.cluster({"SchedulerType": "sched/builtin"}, ()).backfill.kind is BackfillKind.OFF
    assert not found.mutable


@pytest.mark.req("SL-30")
def test_every_setting_of_a_partition_is_read_and_unset_ones_set_no_bound() -> None:
    line = (
        "PartitionName=gpu AllowAccounts=nlp,cv DenyAccounts=old AllowQos=high DenyQos=low Default=YES QoS=part "
        "DefaultTime=01:00:00 MaxTime=1-00:00:00 MinNodes=2 MaxNodes=8 GraceTime=30 Nodes=n[1-2] PriorityJobFactor=5 "
        "PriorityTier=6 PreemptMode=REQUEUE State=DRAIN TRESBillingWeights=CPU=1.5\n"
        "PartitionName=cpu AllowAccounts=ALL AllowQos=ALL MaxTime=UNLIMITED MaxNodes=UNLIMITED QoS=N/A State=UP\n"
    )
    gpu, cpu = rules.partitions_of(records_of_key(line, rules.PARTITION_KEY))
    assert (gpu.name, gpu.nodes, gpu.default, gpu.state) == ("gpu", ("n1", "n2"), True, PartitionState.DRAIN)
    assert (gpu.max_time_seconds, gpu.default_time_seconds, gpu.min_nodes, gpu.max_nodes) == (86_400, 3600, 2, 8)
    assert (gpu.allow_accounts, gpu.deny_accounts) == (("nlp", "cv"), ("old",))
    assert (gpu.allow_qos, gpu.deny_qos, gpu.qos) == (("high",), ("low",), "part")
    assert (gpu.priority_job_factor, gpu.priority_tier, gpu.grace_seconds) == (5, 6, 30)
    assert (gpu.preempt_mode, gpu.billing_weights) == ("REQUEUE", {"cpu": 1.5})
    assert (cpu.max_time_seconds, cpu.max_nodes, cpu.min_nodes, cpu.grace_seconds) == (None, None, 0, 0)
    assert (cpu.priority_job_factor, cpu.priority_tier, cpu.default, cpu.qos) == (0, 0, False, "")
    assert (cpu.allow_accounts, cpu.state, cpu.billing_weights) == ((), PartitionState.UP, {})
    assert isinstance(cpu, Partition)


@pytest.mark.req("SL-01")
@pytest.mark.parametrize(
    ("state", "printed", "status"),
    [
        ("COMPLETED", "0:0", ExitStatus(code=0)),
        ("FAILED", "3:0", ExitStatus(code=3)),
        ("CANCELLED", "0:15", ExitStatus(signal=15)),
        ("OUT_OF_MEMORY", "0:125", ExitStatus(code=None, signal=125, oom=True)),
        ("COMPLETED", "", ExitStatus(code=0)),
        ("COMPLETED", "0", ExitStatus(code=0)),
        ("FAILED", "768", ExitStatus(code=3)),
        ("FAILED", "9", ExitStatus(signal=9)),
    ],
)
def test_the_end_of_a_job_is_its_code_or_its_signal(state: str, printed: str, status: ExitStatus) -> None:
    assert states.exit_of(state, printed) == status


@pytest.mark.req("SL-01")
def test_an_exit_status_without_figures_is_success() -> None:
    assert values.exit_status("0:0") == values.exit_status("") == ExitStatus(code=0)


@pytest.mark.req("SL-11")
@pytest.mark.parametrize(
    ("printed", "task", "indices"),
    [
        ("4-6%2", ArrayTask(JobId(8), 4, 2, 3, 4, 6), (4, 5, 6)),
        ("4-6", ArrayTask(JobId(8), 4, 0, 3, 4, 6), (4, 5, 6)),
        ("7", ArrayTask(JobId(8), 7, 0, 1, 7, 7), ()),
        ("N/A", None, ()),
        ("", None, ()),
    ],
)
def test_a_record_of_an_array_names_its_tasks_and_how_many_may_run_at_once(
    printed: str, task: ArrayTask | None, indices: tuple[int, ...]
) -> None:
    assert jobs._array("8", printed) == (task, indices)
