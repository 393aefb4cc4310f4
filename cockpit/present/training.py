"""The progress of an elastic job's training: steps, speed, steps lost, what it had above its minimum, likely ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cockpit.model.steps import SpeedSource
from cockpit.present import units
from cockpit.present.accounting import card_hours, hours
from cockpit.present.events.interruptions import lost_words, resumed_sentence
from cockpit.present.folding import id_text
from cockpit.present.moments import clock, iso
from cockpit.present.safe import safe
from cockpit.present.workers import workers_fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cockpit.model.jobdetail import JobDetail
    from cockpit.model.steps import SizeForecast, Training
    from cockpit.present.columns import Context

LAST_RESUMPTIONS: Final = 5
"""Number of interruptions on the page, the last ones; JSON has all."""
NOT_REPORTED: Final = "steps not known: its script calls no cockpit.elastic.step()"
_SOURCES: Final = {
    SpeedSource.MEASURED: "measured",
    SpeedSource.ESTIMATED: "estimated from the sizes that it has had",
    SpeedSource.PROPORTIONAL: "assumed proportional: it has had one size",
}


def training_lines(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield what is known of the training, the first line as a title; nothing for a job that is not elastic."""
    known = detail.training
    if known is None or detail.job.attempt is None:
        return
    yield f"Training: {progress_words(known)}"
    if lost := interruption_words(known):
        yield f"  {lost}"
    for each in known.resumptions[-LAST_RESUMPTIONS:]:
        yield f"    {clock(each.at, context.now, context.zone)}  {resumed_sentence(each)}"
    if extra := extra_words(detail):
        yield f"  {extra}"
    yield from _end_lines(detail, known, context)


def growth_lines(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield how many workers a running elastic job has and why not more, its progress, and what others would give."""
    yield f"{id_text(detail.row)} {safe(detail.row.name)}  workers {workers_fact(detail)}."
    yield from (f"  {each}" for each in training_lines(detail, context))


def progress_words(known: Training) -> str:
    """Return the steps and the last checkpoint: `step 120 of 1000, checkpoint at step 100`."""
    if known.step is None:
        return NOT_REPORTED
    if known.counted:
        return f"{units.counted(known.step, 'iteration')} counted in the log of its first worker; {NOT_REPORTED}"
    of = f" of {known.total}" if known.total is not None else ""
    saved = f", checkpoint at step {known.checkpoint}" if known.checkpoint is not None else ""
    return f"step {known.step}{of}{saved}"


def interruption_words(known: Training) -> str:
    """Return what all interruptions have cost: `20 steps lost in 2 interruptions, not known for 1 more`; empty: there
    was none."""
    told = [each for each in known.resumptions if each.lost is not None]
    if not told:
        return f"steps lost: not known for {units.counted(known.unknown, 'interruption')}" if known.unknown else ""
    more = f", not known for {known.unknown} more" if known.unknown else ""
    return f"{lost_words(known.lost)} in {units.counted(len(told), 'interruption')}{more}"


def extra_words(detail: JobDetail) -> str:
    """Return what the job had above its least number of workers: `3.25 card-hours above its minimum of 1 worker`;
    empty: nothing."""
    known = detail.training
    if known is None:
        return ""
    cards, cpus = card_hours(known.extra.card_milli_ms), hours(known.extra.cpu_ms)
    amount = f"{cards:.2f} card-hours" if known.extra.card_milli_ms else f"{cpus:.2f} CPU-hours"
    least = units.counted(detail.job.spec.least_nodes, "worker")
    return f"{amount} by best effort, above its minimum of {least}" if cards or cpus else ""


def _end_lines(detail: JobDetail, known: Training, context: Context) -> Iterator[str]:
    """Yield a line for each number of workers: the speed, and when the training would end."""
    if not known.ends:
        if known.limit_at is not None and known.step is not None:
            yield "  speed not known yet: it is measured over some steps"
        return
    yield "  From now on it would"
    present = detail.row.nodes - (detail.row.leaving[0] if detail.row.leaving is not None else 0)
    for each in known.ends:
        mark = " (now)" if each.workers == present else ""
        workers = f"with {units.counted(each.workers, 'worker')}{mark}"
        yield f"    {workers:<22}  {_end(each, known, context)}  {_speed(each)}, {_SOURCES[each.source]}"
    if known.total is None and known.limit_at is not None:
        limit = clock(known.limit_at, context.now, context.zone)
        yield f"    It does not say how many steps there are (total_steps); its time limit ends it at {limit}"


def _end(each: SizeForecast, known: Training, context: Context) -> str:
    if each.end_at is None:
        return "end: not known   "
    if known.limit_at is not None and each.end_at > known.limit_at:
        return f"not end before its time limit at {clock(known.limit_at, context.now, context.zone)}"
    in_time = units.spoken(max(0, each.end_at - context.now) // 1000 // 60 * 60 or 60)
    return f"end about {clock(each.end_at, context.now, context.zone)} (in {in_time})"


def _speed(each: SizeForecast) -> str:
    """Return steps per second with two digits, or the seconds of a step where it takes more than one."""
    if each.per_second >= 1 or not each.per_second:
        return f"{each.per_second:.2f} steps/s"
    return f"{1 / each.per_second:.1f} s a step"


def training_brief(detail: JobDetail, context: Context) -> Iterator[str]:
    """Yield the sentences for a small panel: progress and speed, the end now and with the most workers, steps lost."""
    known = detail.training
    if known is None:
        return
    present = detail.row.nodes - (detail.row.leaving[0] if detail.row.leaving is not None else 0)
    now = next((each for each in known.ends if each.workers == present), None)
    if known.step is not None:
        speed = f", {_speed(now)} with {units.counted(present, 'worker')}" if now is not None else ""
        yield f"{progress_words(known)}{speed}"
    parts = [
        f"with {units.counted(each.workers, 'worker')}: {_end(each, known, context)}" for each in _both(known, now)
    ]
    if parts:
        yield ", ".join(parts)
    if lost := interruption_words(known):
        yield lost


def _both(known: Training, now: SizeForecast | None) -> Iterator[SizeForecast]:
    """Yield the forecast with the present and that with the most workers, where the end is known."""
    for each in dict.fromkeys((now, known.ends[-1] if known.ends else None)):
        if each is not None and each.end_at is not None:
            yield each


def training_json(detail: JobDetail, context: Context) -> dict[str, Any] | None:
    """Return the training as an object; null for a job that is not elastic."""
    known = detail.training
    if known is None:
        return None
    return {
        "step": known.step,
        "total_steps": known.total,
        "checkpoint_step": known.checkpoint,
        "counted_in_log": known.counted,
        "steps_lost": known.lost if any(each.lost is not None for each in known.resumptions) else None,
        "interruptions_unknown": known.unknown,
        "interruptions": [
            {
                "at": iso(each.at),
                "cause": str(each.cause),
                "step_reached": each.reached,
                "step_resumed": each.resumed,
                "steps_lost": each.lost,
                "sentence": resumed_sentence(each),
            }
            for each in known.resumptions
        ],
        "speeds": [
            {"workers": each.workers, "steps": each.steps, "steps_per_second": each.per_second} for each in known.speeds
        ],
        "ends": [
            {
                "workers": each.workers,
                "steps_per_second": each.per_second,
                "source": str(each.source),
                "end_at": iso(each.end_at) if each.end_at is not None else None,
                "after_time_limit": _is_after_limit(each, known),
                "sentence": f"{_end(each, known, context)}".strip(),
            }
            for each in known.ends
        ],
        "time_limit_at": iso(known.limit_at) if known.limit_at is not None else None,
        "above_min_card_hours": card_hours(known.extra.card_milli_ms),
        "above_min_cpu_hours": hours(known.extra.cpu_ms),
    }


def _is_after_limit(each: SizeForecast, known: Training) -> bool | None:
    if each.end_at is None or known.limit_at is None:
        return None
    return each.end_at > known.limit_at
