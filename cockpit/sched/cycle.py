"""The scheduling cycle. The only code that starts a job."""

from __future__ import annotations

from cockpit.model.cluster import PreemptType
from cockpit.sched.eviction.eviction_planner import EvictionPlanner
from cockpit.sched.eviction.preemption import Preemption
from cockpit.sched.eviction.preemption_rules import PreemptionRule
from cockpit.sched.fragmentation import GradientDescent, target_workload
from cockpit.sched.incremental import following, only_came
from cockpit.sched.index import Index, refreshed
from cockpit.sched.pass_queue import ListQueue, PassQueue, pass_queue
from cockpit.sched.plan import Plan
from cockpit.sched.policy import BEST_FIT, Policy
from cockpit.sched.priority.priorities import PriorityTable, prioritised
from cockpit.sched.rules.rulebook import Rulebook
from cockpit.sched.scheduling_pass import SchedulingPass
from cockpit.sched.snapshot import Snapshot


def cycle(snapshot: Snapshot, index: Index | None, policy: Policy, priorities: PriorityTable | None = None) -> Plan:
    """Decide what starts now and why the rest does not. Pure: same snapshot and policy, same plan.

    `index` and `priorities` are those of the last plan, or None; they save work and change nothing else. Each step
    reads what the one before it made; a new rule is a step of its own or belongs to one.
    """
    # 1. refresh: the index follows what happened since the last cycle
    index = refreshed(index, snapshot)
    # 2. order: by priority, each job once for each partition that it may run in
    return pass_over(snapshot, index, policy, prioritised(snapshot, priorities))


def pass_over(
    snapshot: Snapshot, index: Index, policy: Policy, priorities: PriorityTable, queue: PassQueue | None = None
) -> Plan:
    """The cycle from its third step on: `index` and `priorities` are already those of the snapshot, and so is the queue
    where it is given."""
    rules = index.equivalence.rules
    if queue is None:
        queue = pass_queue(priorities, snapshot, index.equivalence)
    descent = _descent(index, policy, queue) if policy.fraction_fit is not BEST_FIT else None
    gives_way = rules.takes_room or snapshot.promised or snapshot.suspended
    round_ = SchedulingPass(
        snapshot, index, policy, queue, descent, eviction_planner(snapshot, rules, priorities) if gives_way else None
    )
    if snapshot.suspended:  # who stands still goes on before anybody gets its CPUs
        round_.plan_timeslices(rules.cluster)
    if snapshot.promised:  # those for whom others were made to go come first
        round_.place_nominated(index.equivalence.entries_of(snapshot.jobs, snapshot.promised))
    if round_.reclaim is not None:  # then those who stay within what is kept for their queue
        round_.serve_guaranteed(queue)
    # 3. gates, 4. place or reserve and 5. preempt or reclaim, for one after the other: else who comes after would take
    #    what is free beside those who give way, and more of them would have to
    round_.schedule_queue(queue)
    if descent:
        index.layout.at_hand = {descent.targets: descent}
    # 6. grow: elastic jobs take what nobody else can use
    if snapshot.elastic:
        round_.grow()
    # 7. plan: what starts, who gives way, and against what is left then, why the rest does not start
    return planned(snapshot, round_, priorities)


def next_plan(last: Plan | None, snapshot: Snapshot, policy: Policy, index: Index | None = None) -> Plan:
    """As `cycle`, with all that the last plan saves: where only submissions came since, the pass goes on with them.
    `index`: what `following` says of the snapshot, where that has been asked for already."""
    if index is None:
        index = following(last, snapshot)
    index.version = snapshot.version
    if last is None:
        return cycle(snapshot, index, policy)
    priorities = prioritised(snapshot, last.priorities)
    queue = pass_queue(priorities, snapshot, index.equivalence)
    came = only_came(last, snapshot, index, policy, queue)
    if came is None:
        return pass_over(snapshot, index, policy, priorities, queue)
    round_ = last.round.resumed(snapshot, index)
    round_.schedule_queue(ListQueue(came))
    if snapshot.elastic:
        round_.grow()
    return planned(snapshot, round_, priorities)


def planned(snapshot: Snapshot, round_: SchedulingPass, priorities: PriorityTable) -> Plan:
    """What a pass comes to."""
    return Plan(
        version=snapshot.version,
        now=snapshot.now,
        starts=tuple(round_.starts),
        switches=round_.switches,
        evictions=tuple(round_.eviction_planner.evictions) if round_.eviction_planner is not None else (),
        growths=tuple(round_.growths),
        round=round_,
        priorities=priorities,
    )


def _descent(index: Index, policy: Policy, queue: PassQueue) -> GradientDescent:
    """With what an earlier cycle worked out for the same workload, unless another cycle has it just now."""
    targets = policy.workload or target_workload((entry.equivalence_class.shape for entry in queue), index.running())
    return index.layout.at_hand.pop(targets, None) or GradientDescent(targets)


def eviction_planner(snapshot: Snapshot, rules: Rulebook, priorities: PriorityTable) -> EvictionPlanner | None:
    """The rules by which a job may take another's room, for one pass; None where there are none."""
    preemption_rule: list[PreemptionRule] = []
    if rules.cluster.preemption.kind != PreemptType.NONE:
        preemption_rule.append(Preemption(rules, snapshot, lambda job, name: priorities.breakdown(job, name).total))
    needed = preemption_rule or snapshot.promised or snapshot.suspended or rules.quotas.guarantees
    return EvictionPlanner(snapshot, preemption_rule) if needed else None
