"""Sentences about a predicted start: when, after which jobs, and which other requests would start sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cockpit.model.forecast import AwaitedJob, Change, Condition, Forecast, HoldingJob, Outlook, WhatIf
from cockpit.model.ids import JobId, Millis, job_words
from cockpit.model.job import ENDED, JobState
from cockpit.model.reasons import NoAlternative, NoEligibleNode, NotEvaluated, never_starts
from cockpit.present import units
from cockpit.present.columns import Context
from cockpit.present.fleet_outlook import member_lines
from cockpit.present.moments import clock
from cockpit.present.phrases import as_sentence, listed
from cockpit.present.reasons import START_UNKNOWN, reason_sentence
from cockpit.present.safe import safe
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line
from cockpit.present.start_words import MINUTE_MS, bound_lines, likely_words, no_bound_lines, spread_words

HIDDEN: Final = "job -"
NOW: Final = "now"
NEVER: Final = "never starts as it is"
UNKNOWN: Final = "no estimate of when"
MOST_NAMED: Final = 3


def prediction(outlook: Outlook, context: Context) -> str:
    """Return the prediction as a sentence: `starts now`, `queued behind 3, starts about 14:20 (in 25 min), no later
    than 16:05`, or `likely 13:50–15:40` where the policy promises no latest start. Where another scheduler knows the
    job, it is that scheduler's start; for a job that is not submitted the sentence then ends with `by cockpit's own
    plan, not Slurm's`."""
    if outlook.scheduler and not outlook.job:
        return f"{_planned(outlook, context)}, by cockpit's own plan, not {safe(outlook.scheduler)}'s"
    return _planned(outlook, context)


def _planned(outlook: Outlook, context: Context) -> str:
    """Return the prediction by the scheduler that decides about the job."""
    other_scheduler = outlook.scheduler and outlook.job
    # Where another scheduler decides, cockpit's plan that it could start now is no start.
    if outlook.forecast.now and not other_scheduler:
        return "starts now"
    # Before any time: a predicted start of a job that never starts as it is would be wrong.
    if outlook.explanation is not None and never_starts(outlook.explanation.reason):
        return NEVER
    when = _other_schedulers_start(outlook, context) if other_scheduler else starts(outlook.forecast, context)
    # A held job has no place in the queue.
    if outlook.place is None:
        return when
    behind = outlook.place - 1
    return f"{f'queued behind {behind}' if behind else 'first in the queue'}, {when}"


def _other_schedulers_start(outlook: Outlook, context: Context) -> str:
    """Return the start by another scheduler's plan, which decides: `starts about 14:20 (in 25 min) by Slurm's plan`."""
    by, at = safe(outlook.scheduler), outlook.scheduler_start_at
    if at is None:
        return f"{by} names no start"
    return f"starts about {clock(at, context.now, context.zone)} (in {_duration_until(at, context)}) by {by}'s plan"


def starts(forecast: Forecast, context: Context) -> str:
    """Return the words for a forecast: the likely start, then the promised latest one or the range of likely ones."""
    if forecast.likely_at is None:
        return f"{UNKNOWN} it starts"
    about = f"starts about {likely_words(forecast, context)} ({until(forecast, context)})"
    spread = spread_words(forecast, context)
    return about if spread is None else f"{about}, {' '.join(spread)}"


def until(forecast: Forecast, context: Context) -> str:
    """Return the time until the likely start: `now`, `in 25 min`."""
    if forecast.now or forecast.likely_at is None:
        return NOW if forecast.now else UNKNOWN
    return f"in {_duration_until(forecast.likely_at, context)}"


def outlook_lines(outlook: Outlook, context: Context) -> Iterator[Line]:
    """Yield the complete answer: the start, the reason, the jobs that are waited for, the jobs ahead, and the
    what-ifs."""
    head = f"{outlook_id(outlook)} " if outlook.job else ""
    yield line(Span(head, MUTED), Span(safe(outlook.name), STRONG), f"  {prediction(outlook, context)}.")
    if outlook.explanation is not None:
        sentence = reason_sentence(outlook.explanation.reason, context.now, context.zone)
        yield line(f"{INDENT}{as_sentence(sentence)}")
    yield from failure_lines(outlook)
    yield from behind_reason(outlook, context)
    yield from own_plan_lines(outlook, context)
    yield from after_lines(outlook, context)
    yield from moved_lines(outlook, context)
    yield from _ahead(outlook)
    yield from what_if_lines(outlook, context)
    yield from member_lines(outlook.members, context)
    yield from no_bound_lines(outlook.forecast)


def moved_lines(outlook: Outlook, context: Context, forecast: Forecast | None = None) -> Iterator[Line]:
    """Yield the line that says why the latest start has moved, with the resources of the jobs that moved it.
    `forecast`: a newer one than the outlook's."""
    return bound_lines(
        forecast or outlook.forecast,
        context,
        lambda job: f"job {holding(job, outlook.holding(job))}" if job else HIDDEN,
    )


def failure_lines(outlook: Outlook) -> Iterator[Line]:
    """Yield the error for which the start is not known, unless the reason contains it already."""
    reason = outlook.explanation.reason if outlook.explanation is not None else None
    failure = reason.failure if isinstance(reason, NotEvaluated) else ""
    if outlook.failure and not failure:
        yield line(Span(f"{INDENT}{START_UNKNOWN}: ", "warning"), safe(outlook.failure))


def own_plan_lines(outlook: Outlook, context: Context) -> Iterator[Line]:
    """Yield `by cockpit's own plan, if jobs run as long as usual: about 14:20 (in 25 min)`, beside the other
    scheduler's start, with the range of likely starts. No line where cockpit is the scheduler or plans no start, nor
    for a job that only cockpit knows."""
    at = outlook.forecast.likely_at
    if not outlook.scheduler or not outlook.job or at is None:
        return
    about = f"about {clock(at, context.now, context.zone)} ({until(outlook.forecast, context)})"
    # A bound of this plan would be none: the other scheduler's rules decide.
    spread = spread_words(outlook.forecast, context) if outlook.forecast.latest_at is None else None
    words = about if spread is None else f"{about}, {' '.join(spread)}"
    yield line(Span(f"{INDENT}by cockpit's own plan, if jobs run as long as usual: ", MUTED), words)


def after_lines(outlook: Outlook, context: Context) -> Iterator[Line]:
    """Yield the line of jobs whose end the job waits for: `after 4711 (ann, 8 cards) ends about 14:12`; no line without
    such jobs."""
    # The last ones to end decide when the job starts.
    words = [_awaited(each, outlook, context) for each in outlook.forecast.after[-MOST_NAMED:]]
    if words:
        yield line(Span(f"{INDENT}after ", MUTED), listed_words(words))


def behind_reason(outlook: Outlook, context: Context) -> Iterator[Line]:
    """Yield the jobs and nodes behind the reason: `in use by 4711 (ann, 8 cards) and 3 more`, `job 47 stage1 is
    running, ends by 14:20`."""
    if outlook.holders_in_all:
        yield line(Span(f"{INDENT}in use by ", MUTED), _first_named(outlook.holders, outlook.holders_in_all, outlook))
    # The sentence above may name the same nodes with their states.
    named_already = _named_out_of_service(outlook)
    for node, why in [each for each in outlook.unavailable if each[0] not in named_already][:MOST_NAMED]:
        yield line(Span(f"{INDENT}{safe(node)} is ", MUTED), safe(why))
    if (awaited := outlook.condition) is not None:
        ends = f", ends by {clock(awaited.ends_by, context.now, context.zone)}" if awaited.ends_by is not None else ""
        which = f"{INDENT}job {outlook_id(awaited)} {safe(awaited.name)} "
        yield line(Span(which, MUTED), f"{_now(awaited.state)}{ends}")


def _named_out_of_service(outlook: Outlook) -> set[str]:
    """Return the nodes that the sentence of the reason names with their state already."""
    reason = outlook.explanation.reason if outlook.explanation is not None else None
    parts = reason.specs if isinstance(reason, NoAlternative) else (reason,)
    return {node for one in parts if isinstance(one, NoEligibleNode) for node in one.out_of_service}


def _now(state: JobState) -> str:
    """Return the words for a job's state: `is running`, `has ended: error`."""
    return f"has ended: {state}" if state in ENDED else f"is {state}"


def what_if_lines(outlook: Outlook, context: Context) -> Iterator[Line]:
    """Yield one line for each changed request, with the start that it would have. Where another scheduler decides, the
    line says that it is cockpit's plan."""
    by = ", by cockpit's own plan" if outlook.scheduler and outlook.job else ""
    for each in outlook.what_ifs:
        yield line(Span(f"{INDENT}{what_if(each)}: ", MUTED), Span(until(each.forecast, context), STRONG), by)


def what_if(each: WhatIf) -> str:
    """Return the changed request in words: `with 4 cards instead of 8`."""
    words = _CHANGES[each.change](each.before, each.after)
    # Which of equal pods the scheduler takes is its own choice, and with it sometimes how many.
    return f"{words}, which evicts about {units.counted(each.evicts, 'pod')}" if each.evicts else words


_CHANGES: Final[dict[Change, Callable[[str, str], str]]] = {
    Change.CARDS: lambda before, after: f"with {units.counted(int(after), 'card')} instead of {safe(before)}",
    Change.NODES: lambda before, after: f"on {units.counted(int(after), 'node')} instead of {safe(before)}",
    Change.PARTITION: lambda _, after: f"on partition {safe(after)}",
    Change.SPEC: lambda before, _: f"with cards of any model instead of {listed(before.split(','), 'or')}",
    Change.POOL: lambda before, after: f"in pool {safe(after)} instead of {safe(before)}",
    Change.LIMIT: lambda before, after: (
        f"with a limit of {units.spoken(int(after))} instead of {units.spoken(int(before))}"
    ),
    Change.CPUS: lambda before, after: (
        f"with {units.counted(int(after), 'CPU')} on each node instead of {safe(before)}"
    ),
    Change.MEMORY: lambda before, after: (
        f"with {units.memory(int(after))} of memory on each node instead of {units.memory(int(before))}"
    ),
    Change.SHARE: lambda before, after: (
        f"with {units.cards(int(after))} of a card instead of {units.cards(int(before))}"
    ),
    Change.BEGIN: lambda _before, _after: "without a time to begin at",
    Change.EXCLUSIVE: lambda _before, _after: "beside other jobs",
    Change.PRIORITY: lambda before, after: f"as {safe(after)} instead of {safe(before)}",
    Change.TOLERATION: lambda _, after: f"tolerating the taint {safe(after)}",
    Change.LABEL: lambda before, after: (
        f"on nodes with {safe(after)} instead of {safe(before.partition('=')[2])}"
        if after
        else f"without the node selector {safe(before)}"
    ),
    Change.NODE_AFFINITY: lambda _before, _after: "without its node affinity",
    Change.POD_RULES: lambda _before, _after: "without its rules about other pods",
    Change.HOST_PORT: lambda before, _: f"without the host port {safe(before)}",
    Change.QUEUE: lambda before, after: f"in queue {safe(after)} instead of {safe(before)}",
    Change.PRIORITY_CLASS: lambda before, after: f"with the priority class {safe(after)} instead of {safe(before)}",
}


def holding(job: JobId, known: HoldingJob | None) -> str:
    """Return the job with its user and resources: `4722 (carol, 32 cards)`; for a job that the user may not see only
    that there is one."""
    if known is None:
        return f"{job_words(job)} (-)" if job else HIDDEN
    amount = units.counted(known.cpus, "CPU")
    if known.card_milli:
        amount = units.counted_cards(known.card_milli)
    return f"{outlook_id(known)} ({safe(known.user)}, {amount})"


def outlook_id(job: Outlook | HoldingJob | Condition) -> str:
    """Return the id as the job list has it: `4711`, `4700_3` for a task, `4700+1` for a component."""
    component = None if isinstance(job, Condition) else job.component
    return safe(job.shown_id) if job.shown_id and component is None else job_words(job.job, component)


def listed_words(words: list[str]) -> str:
    """Return the texts, which must be harmless, as one list: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _awaited(each: AwaitedJob, outlook: Outlook, context: Context) -> str:
    ends = clock(each.end_at, context.now, context.zone)
    return f"{holding(each.job, outlook.holding(each.job))} ends about {ends}"


def _ahead(outlook: Outlook) -> Iterator[Line]:
    if outlook.explanation is None or (outlook.place or 1) < 2:
        return
    yield line(Span(f"{INDENT}ahead ", MUTED), _first_named(outlook.explanation.ahead, outlook.position - 1, outlook))


def _first_named(jobs: Sequence[JobId], count: int, outlook: Outlook) -> str:
    """Return the first of `count` jobs in words and the number of the others: `4711 (ann, 8 cards) and 3 more`."""
    named = [holding(job, outlook.holding(job)) for job in jobs[:MOST_NAMED]]
    # The list has only jobs that the user may see: it may be empty although there are some.
    rest = count - len(named)
    more = [f"{rest} more" if named else units.counted(rest, "job")] if rest > 0 else []
    return listed_words([*named, *more])


def _duration_until(moment: Millis, context: Context) -> str:
    # At least a minute, and whole minutes: predictions are not more precise than that.
    return units.spoken(max(MINUTE_MS, moment - context.now) // MINUTE_MS * 60)
