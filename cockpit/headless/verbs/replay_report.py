"""What `cockpit replay` says of a log's replay, and of starts that were foretold in it."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from cockpit.headless.records import tell_report
from cockpit.present.units import counted

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from cockpit.engine.replay.figures import Run
    from cockpit.engine.replay.foretold import Accuracy
    from cockpit.formats.traces.swf_history import History
    from cockpit.headless.services import Call


class Difference(msgspec.Struct, frozen=True):
    """The first job, in order of submission, that waits otherwise than the log says; seconds."""

    job: int
    waits: int
    log: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay says of itself."""

    policy: str
    processors: int
    jobs: int
    skipped: int
    identical_waits: int | None
    """None: nobody asked."""
    first_difference: Difference | None
    mean_bounded_slowdown: float
    mean_wait: float
    utilisation: float
    jobs_per_second: float
    """Of the replay alone, without reading the log."""
    peak_rss_mib: int


def tell_replay(call: Call, past: History, processors: int, runs: Sequence[Run], seconds: float) -> None:
    """What came of it, in `seconds`."""
    report = _report(past, processors, runs, seconds, call.args)
    tell_report(call, report, _page(report))


def _report(past: History, processors: int, runs: Sequence[Run], seconds: float, args: Namespace) -> Report:
    from cockpit.engine.replay.figures import figures

    differences = [
        Difference(job.number, run.waited, job.waited)
        for job, run in zip(past.jobs, runs, strict=True)
        if args.check and job.waited != run.waited
    ]
    found = figures(runs, processors)
    return Report(
        policy=args.policy,
        processors=processors,
        jobs=len(runs),
        skipped=past.skipped.total(),
        identical_waits=len(runs) - len(differences) if args.check else None,
        first_difference=differences[0] if differences else None,
        mean_bounded_slowdown=found.mean_bounded_slowdown,
        mean_wait=found.mean_wait,
        utilisation=found.utilisation,
        jobs_per_second=len(runs) / seconds,
        peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def tell_accuracy(call: Call, found: Accuracy) -> None:
    """How well starts were foretold."""
    lines = (
        ("jobs", f"{found.jobs} that waited"),
        ("likely start", f"off by {found.median_error:.0f} s in the median, {found.mean_error:.0f} s in the mean"),
        ("within a minute", f"{found.within_a_minute:.1%}, within ten {found.within_ten_minutes:.1%}"),
        (
            "likely range",
            f"holds for {found.range_coverage:.1%}, as wide as {found.range_width:.2f} waits in the median",
        ),
        ("end of the range", f"holds for {found.coverage:.1%} ({found.coverage_by_limits:.1%} by time limits alone)"),
        ("end ÷ wait", f"{found.tightness:.2f} in the median ({found.tightness_by_limits:.2f} by time limits alone)"),
        ("no later than", _promised(found)),
    )
    tell_report(call, found, _named(lines))


def _promised(found: Accuracy) -> str:
    if found.bound_coverage is None:
        return "promised to none of them"
    return f"promised to {counted(found.bounds, 'job')}, holds for {found.bound_coverage:.1%}"


def _page(report: Report) -> list[str]:
    lines = [
        ("policy", f"{report.policy} on {counted(report.processors, 'processor')}"),
        ("jobs", f"{report.jobs}" + (f", {report.skipped} not replayed" if report.skipped else "")),
        ("mean bounded slowdown", f"{report.mean_bounded_slowdown:.4f}"),
        ("mean wait", f"{report.mean_wait:.1f} s"),
        ("utilisation", f"{report.utilisation:.3f}"),
        ("speed", f"{report.jobs_per_second:.0f} jobs/s, {report.peak_rss_mib} MiB"),
    ]
    if report.identical_waits is not None:
        lines.insert(2, ("waits as in the log", f"{report.identical_waits} of {report.jobs}"))
    if first := report.first_difference:
        lines.insert(3, ("first difference", f"job {first.job} waits {first.waits} s, in the log {first.log} s"))
    return _named(lines)


def _named(lines: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name:<23}{text}" for name, text in lines]
