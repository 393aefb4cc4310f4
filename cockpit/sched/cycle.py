"""The scheduling cycle, as a numbered list of steps. No other code starts a job."""

from __future__ import annotations

from cockpit.model.cluster import PreemptType
from cockpit.sched.eviction.eviction_planner import EvictionPlanner
from cockpit.sched.eviction.preemption import Preemption
from cockpit.sched.eviction.victim_release import PreemptionRule
from cockpit.sched.fragmentation import GradientDescent, target_workload
from cockpit.sched.incremental import arrivals_since, next_index
from cockpit.sched.index import Index, refresh_index
from cockpit.sched.pass_queue import ListQueue, PassQueue, pass_queue
from cockpit.sched.plan import Plan
from cockpit.sched.policy import BEST_FIT, Policy
from cockpit.sched.priority.priorities import PriorityTable, prioritised
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.scheduling_pass import SchedulingPass
from cockpit.sched.snapshot import Snapshot


def cycle(snapshot: Snapshot, index: Index | None, policy: Policy, priorities: PriorityTable | None = None) -> Plan:
    """Decide which jobs start now and why the others do not. Pure: the same snapshot and policy give the same plan.

    `index` and `priorities` are those of the last plan, or None; they save work and change nothing else. Each step
    reads what the step before it made; a new rule is a step of its own or belongs to one.

    1. Refresh the index by what happened since the last cycle.
    2. Order the queue by priority.
    3. Gates: pass over jobs that a rule stops.
    4. Place the job, or reserve resources for it.
    5. Preempt or reclaim for a job that does not fit.
    6. Grow running elastic jobs.
    7. Make the plan.
    """
    # 1. refresh the index
    index = refresh_index(index, snapshot)
    # 2. a job of several partitions is in the queue once for each of them
    return run_pass(snapshot, index, policy, prioritised(snapshot, priorities))


def run_pass(
    snapshot: Snapshot, index: Index, policy: Policy, priorities: PriorityTable, queue: PassQueue | None = None
) -> Plan:
    """Do the cycle from its third step on: `index`, `priorities` and `queue` (None: made here) are those of the
    snapshot."""
    rules = index.equivalence.rules
    if queue is None:
        queue = pass_queue(priorities, snapshot, index.equivalence)
    # measures the free resources against the whole workload, so it is made once for the pass, not for each job
    descent = _descent(index, policy, queue) if policy.fraction_fit is not BEST_FIT else None
    # nominated and suspended jobs may be left from before a change of the rules, and need the planner too
    may_evict = rules.may_evict or snapshot.nominated or snapshot.suspended
    scheduling_pass = SchedulingPass(
        snapshot, index, policy, queue, descent, eviction_planner(snapshot, rules, priorities) if may_evict else None
    )
    # suspended jobs resume before any other job can take their CPUs
    if snapshot.suspended:
        scheduling_pass.plan_timeslices(rules.cluster)
    # then the jobs for which others were evicted: else other jobs could take what the evictions have freed
    if snapshot.nominated:
        scheduling_pass.place_nominated(index.equivalence.entries_of(snapshot.jobs, snapshot.nominated))
    # then jobs within the guarantee of their queue: no job of higher priority may borrow these resources
    if scheduling_pass.reclaim is not None:
        scheduling_pass.serve_guaranteed(queue)
    # 3., 4. and 5. for one job after the other: if step 5 came after all placements, later jobs would take the free
    #    resources beside the victims, and more victims would be needed
    scheduling_pass.schedule_queue(queue)
    # given back for the next pass; only the last workload is kept, since each cache takes much memory
    if descent:
        index.layout.fit_cache = {descent.targets: descent}
    # 6. last, so that growth takes only what no waiting job can use
    if snapshot.elastic:
        scheduling_pass.grow()
    # 7. reasons are derived later, when read, from the resources that are left after the pass
    return planned(snapshot, scheduling_pass, priorities)


def next_plan(last: Plan | None, snapshot: Snapshot, policy: Policy, index: Index | None = None) -> Plan:
    """Do the cycle with all that the last plan saves: if only submissions came since, the last pass continues with
    them. `index`: what `next_index` returns for the snapshot, if the caller has it already."""
    if index is None:
        index = next_index(last, snapshot)
    index.version = snapshot.version
    if last is None:
        return cycle(snapshot, index, policy)
    priorities = prioritised(snapshot, last.priorities)
    queue = pass_queue(priorities, snapshot, index.equivalence)
    # the frequent case by far: a submission, after which only the new jobs have to be judged
    arrivals = arrivals_since(last, snapshot, index, policy, queue)
    if arrivals is None:
        return run_pass(snapshot, index, policy, priorities, queue)
    scheduling_pass = last.scheduling_pass.resumed(snapshot, index)
    scheduling_pass.schedule_queue(ListQueue(arrivals))
    if snapshot.elastic:
        scheduling_pass.grow()
    return planned(snapshot, scheduling_pass, priorities)


def planned(snapshot: Snapshot, scheduling_pass: SchedulingPass, priorities: PriorityTable) -> Plan:
    """Make the plan of a finished pass."""
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(scheduling_pass.starts),
        switches=scheduling_pass.switches,
        evictions=tuple(scheduling_pass.eviction_planner.evictions)
        if scheduling_pass.eviction_planner is not None
        else (),
        growths=tuple(scheduling_pass.growths),
        scheduling_pass=scheduling_pass,
        priorities=priorities,
    )


def _descent(index: Index, policy: Policy, queue: PassQueue) -> GradientDescent:
    """Return the gradient descent policy for this workload, with what an earlier cycle computed for the same workload,
    unless another cycle is using that just now."""
    targets = policy.workload or target_workload((entry.equivalence_class.shape for entry in queue), index.running())
    return index.layout.fit_cache.pop(targets, None) or GradientDescent(targets)


def eviction_planner(snapshot: Snapshot, rules: Rulebook, priorities: PriorityTable) -> EvictionPlanner | None:
    """Make the planner of one pass's evictions; None where no rule lets a job take another's resources."""
    preemption_rules: list[PreemptionRule] = []
    if rules.cluster.preemption.kind != PreemptType.NONE:
        preemption_rules.append(Preemption(rules, snapshot, lambda job, name: priorities.breakdown(job, name).total))
    needed = preemption_rules or snapshot.nominated or snapshot.suspended or rules.quotas.guarantees
    return EvictionPlanner(snapshot, preemption_rules) if needed else None
