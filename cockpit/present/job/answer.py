"""The answer panel of the job under the cursor: why it waits, its progress, or how it ended.

The most important lines come first, as a small screen shows only them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cockpit.model.forecast import Forecast, Outlook
from cockpit.model.ids import JobId, Millis, NodeName, job_words
from cockpit.model.job import JobState
from cockpit.model.jobdetail import JobDetail
from cockpit.model.jobrow import JobRow
from cockpit.model.node import Node
from cockpit.model.pod_reasons import PodsNotCreated, PodsStarting, Unschedulable
from cockpit.model.reasons import Explanation, Held, NeverFits, NoAlternative, NoEligibleNode, Reason, SchedulerReason
from cockpit.present import units
from cockpit.present.bars import bar
from cockpit.present.columns import Context
from cockpit.present.folding import id_text
from cockpit.present.job.hold_words import cost_words, uncovered_words
from cockpit.present.job.running import running_lines
from cockpit.present.job.sessions import command_words
from cockpit.present.job_values import elapsed_seconds, wait_seconds, why
from cockpit.present.log_lines import log_lines
from cockpit.present.moments import clock
from cockpit.present.outlook import (
    after_lines,
    behind_reason,
    failure_lines,
    moved_lines,
    own_plan_lines,
    until,
    what_if,
)
from cockpit.present.phrases import listed
from cockpit.present.priority import GAP, WIDE, in_a_line, in_lines, says_something
from cockpit.present.reasons import reason_wording
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, INDENT, MUTED, STRONG, Line, Span, hung, line, line_width, spread
from cockpit.present.start_words import likely_words, no_bound_lines, spread_words
from cockpit.present.states import copied_percent, seconds_left
from cockpit.present.workers import BEST_EFFORT, below_min

PROGRESS_COLUMNS = 30
MOST_TAIL, MOST_TAIL_BESIDE = 8, 24
NARROW_BAR = 10
AHEAD = 3
"""Largest number of jobs ahead that the panel names."""


class PanelContext(NamedTuple):
    """The context, size and look-ups on which the panel's text depends besides the job."""

    context: Context
    columns: int
    lines: int
    """Height of the panel in lines."""
    keys: Mapping[str, str]
    """The first key of each action by the action's id, as users read it."""
    others: Callable[[JobId], JobRow | None]
    """A function from a job's id to its row; None where the user may not see the job."""
    outlook: Outlook | None = None
    """The prediction of the job's start; None: not computed yet."""
    node: Callable[[NodeName], Node | None] = lambda _: None
    """A function from a node's name to the node; None where it is not known."""
    letters: bool = False
    """Whether letters stand for colours, as the terminal shows none."""
    beside: bool = False
    """Whether the panel stands beside the list: it is narrow, and has a line for each figure."""


def answer(row: JobRow, detail: JobDetail | None, panel: PanelContext) -> Iterator[Line]:
    """Yield the panel's lines, with control characters made visible: the verdict, then the request, times and command.

    `detail` is None until it is fetched, and may be of an older version of the job than the row.
    """
    yield from verdict(row, detail, panel)
    match JobState.QUEUED if row.queued else row.state:
        case JobState.QUEUED:
            yield _asks(row)
            yield _waits(row, panel.context)
            yield line(Span(f"{INDENT}runs ", MUTED), command_words(row.command, row.kind))
        case JobState.SUCCEEDED | JobState.STOPPED | JobState.ERROR | JobState.EXPIRED:
            yield line(Span(INDENT), *_times(row, panel.context))
            if row.output:
                yield line(Span(f"{INDENT}output ", MUTED), safe(row.output))
        case _:
            yield _asks(row)
            yield _started(row, panel.context)
            yield line(Span(f"{INDENT}runs ", MUTED), command_words(row.command, row.kind))


def verdict(row: JobRow, detail: JobDetail | None, panel: PanelContext) -> Iterator[Line]:
    """Yield the main sentence about the job, the facts behind it, and the keys of actions that help."""
    match JobState.QUEUED if row.queued else row.state:
        case JobState.QUEUED:
            return _waiting(row, detail, panel)
        case JobState.SUCCEEDED | JobState.STOPPED | JobState.ERROR | JobState.EXPIRED:
            return _ended(row, detail, panel)
        case _:
            return _occupying(row, detail, panel)


def _head(row: JobRow, sentence: str, role: str, right: Line, panel: PanelContext) -> Line:
    left = line(Span(f"{id_text(row)} ", MUTED), Span(safe(row.name), ACCENT), Span(f"  {sentence}.", role))
    return left if panel.beside else spread(left, right, panel.columns)


def _waiting(row: JobRow, detail: JobDetail | None, panel: PanelContext) -> Iterator[Line]:
    """Yield the panel of a queued job, the most important lines first, as small panels show only these.

    1. The reason and the predicted start; on narrow screens the start has a line of its own, with the what-ifs.
    2. The particulars of the reason, and keys for a job that does not start by itself.
    3. Its place in the queue, its priority, and who is ahead.
    4. What the prediction rests on: holders, ends that are awaited, moves of the latest start.
    5. What would start it sooner, and why no latest start is promised.
    """
    # Step 1
    context, explanation = panel.context, detail.explanation if detail is not None else None
    reason = _best_reason(row, panel)
    # Suspended below its minimum, a job waits for workers: that is its verdict, and what they lack is the detail.
    first, *more = reason_wording(reason, context.now, context.zone).clauses if reason is not None else ("is queued",)
    if suspended := below_min(row, context.now, context.zone):
        first, more = suspended, [first, *more]
    starts = _starts(row, panel)
    head = _head(row, first, STRONG, starts, panel)
    yield head
    # `spread` has left the start out where both do not fit: then it leads the next line.
    narrow = bool(starts) and starts[-1] != head[-1] and not panel.beside
    if panel.beside and starts:
        yield line(Span(INDENT), *starts)
    elif narrow:
        yield _fitting([Span(INDENT), *starts, Span(GAP)], _what_ifs(row, panel), panel)
    # Step 2
    if more:
        yield line(f"{INDENT}{'; '.join(more)}.")
    yield from _way_out(row, panel)
    # Step 3
    if detail is not None and explanation is not None and explanation.place is not None:
        yield from _place(detail, explanation, panel)
    # Step 4
    if (outlook := _outlook(row, panel)) is not None:
        yield from failure_lines(outlook)
        yield from behind_reason(outlook, context)
        yield from own_plan_lines(outlook, context)
        yield from after_lines(outlook, context)
        forecast = _forecast(row, panel) or outlook.forecast
        yield from moved_lines(outlook, context, forecast)
        # Step 5
        if panel.beside:
            yield from (line(Span(INDENT), *each) for each in _what_ifs(row, panel))
        elif outlook.what_ifs and not narrow:
            yield _fitting([Span(INDENT)], _what_ifs(row, panel), panel)
        yield from no_bound_lines(forecast)


def _best_reason(row: JobRow, panel: PanelContext) -> Reason | None:
    """Return the reason why the job waits.

    The row of another scheduler's job (Slurm, Kubernetes) has only that scheduler's reason; a prediction adds the
    figures behind it.
    """
    outlook = _outlook(row, panel)
    if (
        isinstance(row.reason, SchedulerReason | Unschedulable | PodsNotCreated | PodsStarting)
        and outlook is not None
        and outlook.explanation is not None
    ):
        return outlook.explanation.reason
    return row.reason


def _outlook(row: JobRow, panel: PanelContext) -> Outlook | None:
    return panel.outlook if panel.outlook is not None and panel.outlook.job == row.id else None


def _forecast(row: JobRow, panel: PanelContext) -> Forecast | None:
    """Return the forecast that the list shows in the same frame, so that both agree; without a list the outlook's."""
    known = panel.context.forecasts.get(row.id)
    outlook = _outlook(row, panel)
    return known if known is not None or outlook is None else outlook.forecast


def _starts(row: JobRow, panel: PanelContext) -> Line:
    """Return the start in words, as far as they fit: `starts about 14:20, no later than 16:05`."""
    outlook, context = _outlook(row, panel), panel.context
    if outlook is not None and outlook.scheduler:  # the figure of the list and of explain, and no bound
        if outlook.scheduler_start_at is None:
            return ()
        start_clock = clock(outlook.scheduler_start_at, context.now, context.zone)
        return line(
            Span("starts about ", MUTED), Span(start_clock, STRONG), Span(f" by {safe(outlook.scheduler)}", MUTED)
        )
    forecast = _forecast(row, panel)
    if forecast is None or forecast.likely_at is None:
        return ()
    likely = line(Span("starts about ", MUTED), Span(likely_words(forecast, context), STRONG))
    spread = spread_words(forecast, context)
    if spread is None or (panel.columns < WIDE and not panel.beside):
        return likely
    return (*likely, *line(Span(f", {spread[0]} ", MUTED), Span(spread[1], STRONG)))


def _what_ifs(row: JobRow, panel: PanelContext) -> Iterator[Line]:
    """Yield requests that would start sooner: `w with 4 cards instead of 8: now`; none if the action has no key. The
    first one says that it is cockpit's plan, if another scheduler decides."""
    outlook, key = _outlook(row, panel), panel.keys.get("what_if")
    if outlook is None or key is None:
        return
    for number, each in enumerate(outlook.what_ifs):
        lead = (Span(f"{key} ", ACCENT),) if not number else (Span("  "),) if panel.beside else ()
        by = "by cockpit's plan, " if outlook.scheduler and not number else ""
        yield (
            *lead,
            Span(f"{by}{what_if(each)}: ", MUTED),
            Span(until(each.forecast, panel.context), STRONG),
            Span(GAP),
        )


def _fitting(shown: list[Span], pieces: Iterator[Line], panel: PanelContext) -> Line:
    """Return `shown` with as many of the pieces as fit the width."""
    for piece in pieces:
        # Without the gap behind the last piece, which needs no room at the edge.
        if line_width((*shown, *piece[:-1])) > panel.columns:
            break
        shown += piece
    return tuple(shown)


def _waits(row: JobRow, context: Context) -> Line:
    # Whole minutes: seconds that tick draw the eye and say nothing.
    waited = wait_seconds(row, context) // 60 * 60
    since = clock(row.submitted_at, context.now, context.zone)
    for_how_long = f", for {units.spoken(waited)}" if waited else ""
    return line(Span(f"{INDENT}waits since ", MUTED), since, Span(for_how_long, MUTED))


def _way_out(row: JobRow, panel: PanelContext) -> Iterator[Line]:
    """Yield the keys that help a job that does not start by itself."""
    if isinstance(row.reason, Held):
        yield _keys(panel, ("hold", "release it"), ("edit", "edit it"), ("cancel", "cancel it"))
    elif row.reason is not None and _never(row.reason):
        yield _keys(panel, ("edit", "ask for something else"), ("nodes", "see the nodes"), ("cancel", "cancel it"))


def _never(reason: Reason) -> bool:
    """Return whether no end of another job could remove the reason."""
    reasons = reason.specs if isinstance(reason, NoAlternative) else (reason,)
    return all(isinstance(one, NeverFits | NoEligibleNode) for one in reasons)


def _place(detail: JobDetail, explanation: Explanation, panel: PanelContext) -> Iterator[Line]:
    """Yield the job's place in the queue, its priority, and the jobs ahead."""
    place = line(Span(f"{INDENT}place ", MUTED), str(explanation.place))
    # The first is the best of the queues in which it waits.
    best = next(filter(says_something, detail.priority), None)
    if best is None:
        yield (*place, Span(" in the queue", MUTED), *ahead_of_it(explanation, panel, GAP))
        return
    if panel.beside:
        yield (*place, Span(" in the queue", MUTED))
        yield from in_lines(best, partition=len(detail.priority) > 1, bars=NARROW_BAR)
    else:
        yield in_a_line(best, panel.columns, place)
    if explanation.ahead:
        yield tuple(ahead_of_it(explanation, panel, INDENT))


def ahead_of_it(explanation: Explanation, panel: PanelContext, lead: str) -> Iterator[Span]:
    """Yield the jobs ahead: `ahead of it: 4722 (carol, 32 cards) and 3 more`; nothing for the first job."""
    if not explanation.ahead:
        return
    named = [_other(job, panel) for job in explanation.ahead[:AHEAD]]
    # `ahead` names at most ten jobs, the position counts all.
    rest = explanation.position - 1 - len(named)
    yield Span(f"{lead}ahead of it: ", MUTED)
    yield Span(", ".join(named) + (f" and {rest} more" if rest > 0 else ""))


def _other(job: JobId, panel: PanelContext) -> str:
    """Return a job in words: `4722 (carol, 32 cards)`; `-` for a job that the user may not see."""
    row = panel.others(job)
    if row is None:
        return f"{job_words(job)} (-)"
    held = units.counted(row.cpus, "CPU")
    if row.card_milli:
        held = units.counted_cards(row.card_milli)
    return f"{id_text(row)} ({safe(row.user)}, {held})"


def _asks(row: JobRow) -> Line:
    models = listed(row.card_models, "or")
    cards = f", {units.counted_cards(row.card_milli, models)}" if row.card_milli else ""
    nodes = units.counted(row.nodes, "node") if row.workers is None else units.counted(row.nodes, "worker")
    # A request without CPUs is best effort: it lives on what others leave.
    each = f"{units.counted(row.cpus, 'CPU')}, {units.memory(row.memory_mib)}" if row.cpus else BEST_EFFORT
    limit = f" for {units.spoken(row.time_limit_seconds)} at most" if row.has_time_limit else " without a time limit"
    return line(Span(f"{INDENT}asks for ", MUTED), f"{nodes}, {each}{cards}", Span(limit, MUTED))


def _occupying(row: JobRow, detail: JobDetail | None, panel: PanelContext) -> Iterator[Line]:
    """Yield the panel of a job that holds resources: its state and end, its progress, warnings, and last log lines."""
    context = panel.context
    where = f" on {listed(dict.fromkeys(row.placed_on))}" if row.placed_on else ""
    words = {
        JobState.PRECHECKING: f"has its nodes checked{where}",
        JobState.STARTING: f"is being started{where}",
        JobState.RESUMING: f"is started again{where}, to resume from its checkpoint",
        JobState.RUNNING: f"runs{where}",
    }
    # A reason says more than the state: what it copies, why it is being ended, which replica failed.
    sentence = why(row, context) or words.get(row.state, str(row.state))
    started = row.started_at
    # A suspended job's limit does not run, so that its end is not known.
    ends = started is not None and row.state is not JobState.SUSPENDED and row.has_time_limit
    end = clock(_ends_by(row), context.now, context.zone) if ends else ""
    right = line(Span("ends by ", MUTED), Span(end, STRONG)) if end else ()
    yield _head(row, sentence, STRONG, right, panel)
    if panel.beside and right:
        yield line(Span(INDENT), *right)
    yield _progress(row, context)
    known = list(running_lines(row, detail, context))
    yield from known
    yield from _tail(detail, panel, len(known))


def _ends_by(row: JobRow) -> Millis:
    return Millis((row.started_at or row.state_since) + row.suspended_ms + 1000 * row.time_limit_seconds)


def _started(row: JobRow, context: Context) -> Line:
    since = clock(row.started_at or row.state_since, context.now, context.zone)
    waited = wait_seconds(row, context) // 60 * 60
    after = f" after a wait of {units.spoken(waited)}" if waited else " at once"
    word = "started" if row.started_at else "placed"
    return line(Span(f"{INDENT}{word} ", MUTED), since, Span(after if row.started_at else "", MUTED))


def _progress(row: JobRow, context: Context) -> Line:
    """Return the progress of the job's file copies while they are made, else of its run time."""
    if row.staged is not None and row.staged.total:
        filled = bar(row.staged.done / row.staged.total, PROGRESS_COLUMNS, str(row.state))
        return (Span(f"{INDENT}{copied_percent(row.staged)} "), *filled)
    elapsed, limit = elapsed_seconds(row, context) or 0, row.time_limit_seconds
    if not row.has_time_limit:
        gone = units.spoken(elapsed // 60 * 60) if elapsed >= 60 else "just started"
        return line(Span(f"{INDENT}{gone}"), Span(", without a time limit", MUTED))
    # Less than a minute is said as one.
    left = units.spoken(max(limit - elapsed, 0) // 60 * 60 or 60)
    gone = units.spoken(elapsed // 60 * 60) if elapsed >= 60 else "just started"
    filled = bar(elapsed / limit, PROGRESS_COLUMNS, str(row.state))
    return (Span(f"{INDENT}{gone} "), *filled, Span(f" of {units.spoken(limit)}, {left} left", MUTED))


def _ended(row: JobRow, detail: JobDetail | None, panel: PanelContext) -> Iterator[Line]:
    """Yield the panel of an ended job: how it ended, the hold of its containers, and last log lines."""
    context = panel.context
    sentence = why(row, context) or ""
    # `exit 3` is no sentence; all other words are.
    verb = "ended with " if sentence.startswith("exit ") else ""
    held = _held_until(row, context)
    yield _head(row, verb + (sentence or str(row.state)), str(row.state), held, panel)
    if panel.beside and held:
        yield line(Span(INDENT), *held)
    if detail is not None and (uncovered := uncovered_words(detail.job)):
        yield from hung(line(Span(f"{INDENT}{uncovered}", MUTED)), panel.columns)
    if row.held_until is not None:
        if detail is not None and (cost := cost_words(detail.job, context.now)):
            yield line(Span(f"{INDENT}{cost}", MUTED))
        yield _keys(
            panel,
            ("shell", "open shell"),
            ("logs", "its logs"),
            ("extend_hold", "extend hold"),
            ("end_hold", "end hold"),
        )
    yield from _tail(detail, panel)


def _held_until(row: JobRow, context: Context) -> Line:
    if row.held_until is None:
        return ()
    until = clock(row.held_until, context.now, context.zone)
    left = units.countdown(seconds_left(row.held_until, context.now))
    return line(Span("held until ", MUTED), Span(until, "held"), Span(f", {left} left", MUTED))


def _times(row: JobRow, context: Context) -> Iterator[Span]:
    if row.ended_at is not None:
        yield Span("ended ", MUTED)
        yield Span(clock(row.ended_at, context.now, context.zone))
    if row.started_at is not None:
        yield Span(f" after {units.spoken(elapsed_seconds(row, context) or 0)}", MUTED)
    if row.placed_on:
        yield Span(f" on {listed(dict.fromkeys(row.placed_on))}", MUTED)


def _keys(panel: PanelContext, *offers: tuple[str, str]) -> Line:
    """Return those of the actions that have a key: `s open shell   + extend hold`."""
    shown = [Span(INDENT)]
    for action, words in offers:
        if action in panel.keys:
            shown += [Span(panel.keys[action], ACCENT), Span(f" {words}   ")]
    return tuple(shown)


def _tail(detail: JobDetail | None, panel: PanelContext, more: int = 0) -> Iterator[Line]:
    """Yield the last log lines that fit the panel; `more` is the number of lines beyond the usual ones."""
    if detail is None or not detail.log_tail.strip():
        return
    # Four lines of the panel are about other things: the verdict, keys or progress, times and output.
    most = min(MOST_TAIL_BESIDE if panel.beside else MOST_TAIL, max(1, panel.lines - 4 - more))
    for text in log_lines(detail.log_tail.rstrip("\n"))[-most:]:
        yield line(Span(f"{INDENT}│ ", MUTED), Span(text))
