"""The gates before placement: rules that stop a job although there may be enough free resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from cockpit.model.accounts import AssocKey, Usage
from cockpit.model.ids import Millis
from cockpit.model.job import OCCUPYING, Job
from cockpit.model.node import Placement
from cockpit.model.reasons import ArrayFull, Limit, LimitReached, NoQueue, QuotaFull, QuotaMaxJobs, Reason, never_starts
from cockpit.sched.conditions import first_unmet_condition
from cockpit.sched.equivalence import EquivalenceCache, EquivalenceClass
from cockpit.sched.feasible import none_of
from cockpit.sched.index import Index
from cockpit.sched.nodes.reservation_windows import ReservationWindows
from cockpit.sched.placement import JobPlacement
from cockpit.sched.rules.counters import Counters, JobAmounts, Stop, counts, of_array, tally
from cockpit.sched.rules.limits import JOBS, WALL, Budget, Counter, Running
from cockpit.sched.rules.quotas import NO_LEAF, QUOTA
from cockpit.sched.rules.tres import BILLING, ONE, Amounts, held, thousandths
from cockpit.sched.shape import Shape
from cockpit.sched.snapshot import Snapshot

_NO_USAGE = Usage()
CounterAmounts = Mapping[Counter, int]
"""Amounts by limit counter, in thousandths."""
NO_AMOUNTS: CounterAmounts = MappingProxyType({})


class Gates(msgspec.Struct):
    """Tests the rules for jobs and classes during one pass; `counters` grow with each job that the pass starts."""

    _snapshot: Snapshot
    _equivalence: EquivalenceCache
    counters: Counters
    """The amounts in use, as of the pass's index."""
    _windows: ReservationWindows
    _own: bool = False
    """Whether the counters are a copy that belongs to this pass alone."""
    _that_runs: dict[Counter, float] | None = None
    """Amounts that running jobs may still use of budgets, by counter, once they have been computed."""

    @property
    def now(self) -> Millis:
        return self._snapshot.now

    def with_cache(self, equivalence: EquivalenceCache) -> Gates:
        """Return gates for the same pass that use this cache, which is of the same rules."""
        return replace(self, _equivalence=equivalence)

    def refusal(self, job: Job, partition: str) -> Reason | None:
        """Return the first rule that stops the job in that partition; None: only free resources can be missing."""
        return self.job_refusal(job) or self.class_refusal(self.equivalence_class(job, partition))

    def equivalence_class(self, job: Job, partition: str) -> EquivalenceClass:
        """Return the job's class in that partition."""
        return self._equivalence.equivalence_class(job, partition)

    def as_of(self, other: Gates) -> bool:
        """Return whether both gates would give every job the same answers: the same rules, amounts in use, past usage
        and time."""
        ours, theirs = self._snapshot, other._snapshot
        return (
            self._equivalence.rules.version == other._equivalence.rules.version
            and self.counters.used == other.counters.used
            and (ours.usage, ours.qos_usage, ours.now) == (theirs.usage, theirs.qos_usage, theirs.now)
        )

    def job_refusal(self, job: Job) -> Reason | None:
        """Return what stops this job alone: a hold, a dependency, a begin time, the reservation that it names, a
        missing queue."""
        reason = first_unmet_condition(job, self.now) or self._no_queue(job)
        return reason if reason is not None or not job.spec.reservation else self._windows.refusal(job)

    def permanent_job_refusal(self, job: Job) -> Reason | None:
        """Return what stops this job alone and will never pass, even if something that passes stops it first."""
        if job.never is not None:
            return first_unmet_condition(job, self.now)
        reason = self._no_queue(job) or (self._windows.refusal(job) if job.spec.reservation else None)
        return reason if reason is not None and never_starts(reason) else None

    def _no_queue(self, job: Job) -> NoQueue | None:
        waits = job.spec.suspension.scheduling and self._equivalence.rules.quotas.leaf(job.project) == NO_LEAF
        return NoQueue(job.project) if waits else None

    def class_refusal(self, equivalence_class: EquivalenceClass, free: CounterAmounts = NO_AMOUNTS) -> Reason | None:
        """Return what stops every job of the class: the rules by themselves, the bound of its array, a limit. `free`:
        amounts that do not count because they are about to come free."""
        if equivalence_class.refused is not None:
            return equivalence_class.refused
        if (
            equivalence_class.array
            and self.counters.of(of_array(equivalence_class.array)) >= ONE * equivalence_class.at_once
        ):
            return ArrayFull(equivalence_class.array, equivalence_class.at_once)
        if not (equivalence_class.scope.running or equivalence_class.scope.budgets):
            return None
        # one alternative that breaks no limit is enough; `open_shape` leaves out the others
        # the reason lists what stops each of them, in the job's order
        limits = []
        for amounts in self._equivalence.rules.requested[equivalence_class.shape]:
            limit = self.exceeded(equivalence_class, amounts, free)
            if limit is None:
                return None
            limits.append(limit)
        return none_of(limits)

    def open_shape(self, equivalence_class: EquivalenceClass, free: CounterAmounts = NO_AMOUNTS) -> Shape:
        """Return the shape of a class that passed, without the alternatives that a limit stops."""
        shape = equivalence_class.shape
        if len(shape.specs) == 1 or not (equivalence_class.scope.running or equivalence_class.scope.budgets):
            return shape
        each = zip(shape.specs, self._equivalence.rules.requested[equivalence_class.shape], strict=True)
        specs = tuple(spec for spec, amounts in each if self.exceeded(equivalence_class, amounts, free) is None)
        return replace(shape, specs=specs)

    def alternatives(self, equivalence_class: EquivalenceClass) -> Iterator[tuple[Shape, Amounts]]:
        """Yield each alternative as a shape by itself, with the amounts that a job of the class would hold by it."""
        for spec, amounts in zip(
            equivalence_class.shape.specs, self._equivalence.rules.requested[equivalence_class.shape], strict=True
        ):
            yield replace(equivalence_class.shape, specs=(spec,)), amounts

    def beside_quota(self, equivalence_class: EquivalenceClass) -> EquivalenceClass:
        """Return the class without the limits of the quota tree."""
        scope = equivalence_class.scope
        running = tuple(each for each in scope.running if each.limit != QUOTA)
        return replace(equivalence_class, scope=replace(scope, running=running)) if scope.queue else equivalence_class

    def exceeded(
        self, equivalence_class: EquivalenceClass, amounts: Amounts, free: CounterAmounts = NO_AMOUNTS
    ) -> Limit | None:
        """Return the first limit that a job of the class would break by holding these amounts; None: it breaks none."""
        scope = equivalence_class.scope
        bound = self._beyond(scope.running, amounts, free)
        if bound is not None:
            return self._reached(bound, amounts)
        return next(
            (reason for each in scope.budgets if (reason := self._spent(each, equivalence_class, amounts))), None
        )

    def never(self, equivalence_class: EquivalenceClass, amounts: Amounts) -> Limit | None:
        """Return the first limit that a job of the class would break by these amounts even if nothing else ran; None:
        none."""
        scope = equivalence_class.scope
        bound = next((each for each in scope.running if amounts.get(each.resource, 0) > each.allowed), None)
        if bound is not None:
            return self._reached(bound, amounts)
        spent = (self._spent(each, equivalence_class, amounts) for each in scope.budgets)
        return next((reason for reason in spent if reason is not None and reason.never), None)

    def open_at(self, equivalence_class: EquivalenceClass, index: Index) -> Millis | None:
        """Return the moment from which no limit on running jobs stops the class any more, if all running jobs use their
        whole time limit; None: not known."""
        if equivalence_class.array:
            bounds = [(of_array(equivalence_class.array), ONE * (equivalence_class.at_once - 1))]
            if (array_at := self._below(bounds, index)) is None:
                return None
        else:
            array_at = self.now
        moments = []
        for amounts in self._equivalence.rules.requested[equivalence_class.shape]:
            # an alternative that breaks a limit by itself never opens
            if self.never(equivalence_class, amounts) is None:
                running = equivalence_class.scope.running
                bounds = [(each.counter, each.allowed - amounts.get(each.resource, 0)) for each in running]
                moments.append(self._below(bounds, index))
        # alternatives are choices, so the soonest of them counts; the array's bound applies to all, so the later of
        # both
        known = [at for at in moments if at is not None]
        return max(array_at, min(known)) if known else None

    def _below(self, bounds: Iterable[tuple[Counter, int]], index: Index) -> Millis | None:
        """Return the moment at which each counter has fallen to its bound, as running jobs end one after the other;
        None: never, as far as known."""
        over = {counter: more for counter, most in bounds if (more := self.counters.of(counter) - most) > 0}
        moment = self.now
        # departures come soonest first: take off each job's amounts until no counter is over its bound
        leaving = iter(index.departures)
        while over:
            left = next(leaving, None)
            if left is None:
                return None
            end, job, _ = left
            moment = max(moment, end)
            tally = self.counters.tallies.get(job)
            for counter, amount in tally.parts if tally is not None else ():
                if counter in over:
                    over[counter] -= amount
                    if over[counter] <= 0:
                        del over[counter]
        return moment

    def stop(self, equivalence_class: EquivalenceClass) -> Stop | None:
        """Return the limit that stops the class until enough comes free, if a single limit on running jobs stops it;
        else None. It is cached, so that later passes close the class without testing it."""
        requested = self._equivalence.rules.requested[equivalence_class.shape]
        bound = self._beyond(equivalence_class.scope.running, requested[0]) if len(requested) == 1 else None
        if bound is None or bound.limit == QUOTA:  # not cached: borrowed resources may be reclaimed at any time
            return None
        return Stop(bound.counter, bound.allowed - requested[0][bound.resource] + 1)

    def stopped(self) -> Iterator[int]:
        """Numbers of the classes that cached limits stop now."""
        return self._equivalence.limit_cache.at(self.counters.used)

    def amounts(self, job_placement: JobPlacement, shape: Shape) -> Amounts:
        """Return the amounts that a job would hold by this placement, with its job count and billing."""
        # only these may hold more than they ask for; for all others the requested amounts are cached
        if not (shape.exclusive or shape.spread is not None or shape.specs[job_placement.spec_index].card_milli):
            return self._equivalence.rules.requested[shape][job_placement.spec_index]
        amounts = held(job_placement.placement, self._snapshot.nodes)
        return self._equivalence.rules.billed(amounts, shape.partition) | {JOBS: ONE}

    @property
    def rules_version(self) -> int:
        """Version of the rules."""
        return self._equivalence.rules.version

    def held_by(self, placement: Placement, partition: str) -> Amounts:
        """Return the amounts that part of a job holds by a placement, with its billing."""
        return self._equivalence.rules.billed(held(placement, self._snapshot.nodes), partition)

    @property
    def binding(self) -> bool:
        """Whether there may be limits on running jobs for any user."""
        return self._equivalence.rules.binding

    def with_present_use(self, equivalence_class: EquivalenceClass, limit: Limit) -> Limit:
        """Return the limit, found earlier in the pass, with what is in use now."""
        if isinstance(limit, QuotaMaxJobs):
            return limit
        holder, name = (limit.queue, QUOTA) if isinstance(limit, QuotaFull) else (limit.holder, limit.limit)
        for each in equivalence_class.scope.running:
            resource = "" if each.resource == JOBS else each.resource
            if (each.holder, each.limit, resource) == (holder, name, limit.resource):
                return replace(limit, used=self.counters.of(each.counter) / ONE)
        return limit

    def may_count(self, job: Job) -> bool:
        """Return whether any limit might count the job."""
        return self._equivalence.rules.binding or job.array is not None

    def started(self, job: Job, partition: str, amounts: Amounts) -> Sequence[int]:
        """Count a job that the pass starts. Returns the numbers of the classes that cached limits stop from now on."""
        if self._equivalence.rules.safe:
            self._commit(self._committed, job, partition, amounts, job.spec.time_limit_seconds)
        if not counts(self._equivalence.rules, job, partition):
            return ()
        # only the counters that this job moved can have reached a limit, between their use before and after it
        added = self.adds(job, partition, amounts)
        of, stops = self.counters.of, self._equivalence.limit_cache
        return [
            number
            for counter, amount in added.parts
            for number in stops.between(counter, of(counter) - amount, of(counter))
        ]

    def adds(self, job: Job, partition: str, amounts: Amounts) -> JobAmounts:
        """Set the amounts by which the job counts to the limits."""
        # the counters are the index's until the first start of this pass, which copies them
        if not self._own:
            self.counters, self._own = self.counters.fork(), True
        added = tally(self._equivalence.rules, job, partition, amounts)
        self.counters.set(job.id, added)
        return added

    # the hot loop of the gates: no intermediate objects
    def _beyond(self, bounds: Iterable[Running], amounts: Amounts, free: CounterAmounts = NO_AMOUNTS) -> Running | None:
        used = self.counters.used
        for bound in bounds:
            wanted = amounts.get(bound.resource)
            if wanted and used.get(bound.counter, 0) - free.get(bound.counter, 0) + wanted > bound.allowed:
                return bound
        return None

    def _reached(self, bound: Running, amounts: Amounts) -> Limit:
        used, wanted = self.counters.of(bound.counter), amounts[bound.resource]
        if bound.limit == QUOTA:
            if bound.resource == JOBS:
                return QuotaMaxJobs(bound.holder, bound.allowed // ONE)
            return QuotaFull(bound.holder, bound.resource, bound.allowed / ONE, used / ONE, wanted / ONE)
        resource = "" if bound.resource == JOBS else bound.resource
        return LimitReached(bound.holder, bound.limit, resource, bound.allowed / ONE, used / ONE, wanted / ONE)

    def _spent(self, budget: Budget, equivalence_class: EquivalenceClass, amounts: Amounts) -> LimitReached | None:
        """Return the refusal if the budget stops the job. Without Slurm's `safe` a budget stops jobs only once it is
        used up; with it, the rest of what runs and the whole job must fit into it."""
        used, wanted = self._past_usage(budget.counter), 0.0
        if self._equivalence.rules.safe:
            seconds = equivalence_class.seconds * equivalence_class.scope.factor
            wanted = seconds if budget.resource == WALL else amounts.get(budget.resource, 0) / ONE * seconds / 60
            # running jobs may use up the budget first: what they may still use counts as used
            used += self._committed[budget.counter]
        if used < budget.allowed and used + wanted <= budget.allowed:
            return None
        resource = "" if budget.resource == WALL else budget.resource
        return LimitReached(budget.holder, budget.limit, resource, budget.allowed, used, wanted)

    def _past_usage(self, counter: Counter) -> float:
        """Past usage in seconds of wall clock, or in minutes of a TRES, decayed."""
        kind, name, resource = counter
        snapshot = self._snapshot
        usage = snapshot.qos_usage.get(name) if kind == "qos" else snapshot.usage.get(AssocKey(name))
        usage = usage or _NO_USAGE
        if resource == WALL:
            return usage.wall_seconds
        return usage.tres_seconds.get(resource, usage.raw if resource == BILLING else 0.0) / 60

    @property
    def _committed(self) -> dict[Counter, float]:
        """Amounts that running jobs may still use of each budget: from the last update of usage, or their start, to
        their time limit. In minutes of a TRES, or seconds of wall clock."""
        if self._that_runs is None:
            self._that_runs = self._counted()
        return self._that_runs

    def _counted(self) -> dict[Counter, float]:
        """Add up what running jobs may still use of each budget."""
        snapshot, committed = self._snapshot, defaultdict[Counter, float](float)
        for job_id, placement in snapshot.occupied.items():
            job = snapshot.jobs.get(job_id)  # None: a job of a fleet's member that the fleet did not submit
            if job is not None and job.state in OCCUPYING and job.attempt is not None and job_id in snapshot.ends:
                # usage has everything up to its last update, so only what comes after that is still to be used
                since = max(snapshot.usage_at, job.attempt.counts_from)
                amounts = held(placement, snapshot.nodes) | {BILLING: thousandths(job.attempt.billing)}
                seconds = max(0, snapshot.ends[job_id] - since) / 1000
                self._commit(committed, job, job.attempt.partition, amounts, seconds)
        return committed

    def _commit(
        self, committed: dict[Counter, float], job: Job, partition: str, amounts: Amounts, seconds: float
    ) -> None:
        scope = self._equivalence.rules.scope(job, partition)
        for counter in scope.charged:
            committed[counter] += amounts.get(counter[-1], 0) / ONE * seconds * scope.factor / 60
