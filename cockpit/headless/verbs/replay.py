"""`cockpit replay`: run a recorded workload trace through the scheduler."""

from __future__ import annotations

import resource
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import RequestRefused, SpecErrors
from cockpit.headless.arguments import UsageError, Verb, count
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.records import tell_report
from cockpit.headless.services import Call
from cockpit.headless.streams import Progress
from cockpit.headless.verbs.replay_pods import pod_arguments, tell_pods
from cockpit.model.cluster import Backfill, BackfillKind
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.present.safe import safe
from cockpit.present.units import counted
from cockpit.sched.policy import ONE_CYCLE_A_MOMENT, Policy

if TYPE_CHECKING:
    from argparse import Namespace

    from cockpit.engine.replay.arrival_predictions import Accuracy
    from cockpit.engine.replay.jobs import Run
    from cockpit.formats.traces.swf import History
    from cockpit.model.ids import JobId


STDIN = "-"
PERFECT, MULTIFACTOR = "easy-perfect", "multifactor"
POLICIES = {
    "easy": Policy(),
    PERFECT: Policy(),
    "conservative": Policy(backfill=Backfill(kind=BackfillKind.CONSERVATIVE), ties=ONE_CYCLE_A_MOMENT),
    MULTIFACTOR: Policy(),
}
"""The policies by the words of `--policy`."""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a log in SWF, or pods as CSV; plain or .gz; - is stdin")
    cluster = parser.add_mutually_exclusive_group()
    cluster.add_argument(
        "--procs",
        type=_processors,
        metavar="N",
        help="of a log in SWF: processors of the machine, if not those of its header",
    )
    cluster.add_argument("--nodes", metavar="FILE", help="of pods: the nodes as CSV, plain or .gz")
    parser.add_argument("--policy", choices=list(POLICIES), default="easy", metavar="POLICY", help=", ".join(POLICIES))
    parser.add_argument("--check", action="store_true", help="compare each wait with the log's (field 3)")
    parser.add_argument("--write", metavar="FILE", help="write the schedule as SWF; .gz is packed")
    parser.add_argument(
        "--predict", type=count, default=0, metavar="N", help="say how well starts are predicted, for N jobs"
    )
    pod_arguments(parser)
    parser.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", metavar="FORM", help="table, json"
    )


async def run(call: Call) -> int:
    if call.args.nodes is not None:
        tell_pods(call, _read(call.args.file, call), _read(call.args.nodes, call))
    else:
        _replay_log(call)
    return ExitCode.OK


def _replay_log(call: Call) -> None:
    from cockpit.formats.traces.swf import history, read_swf

    args = call.args
    source, data = safe(args.file), _read(args.file, call)
    jobs = read_swf(source, data)
    processors = args.procs or _processors_of(source, data)
    past = history(jobs, processors, perfect=args.policy == PERFECT)
    for why, lines in past.skipped.items():
        call.streams.say(f"Not replayed: {counted(lines, 'line')} ({why}).")
    # The replay alone is timed, without reading the log.
    before = call.streams.now()
    with Progress(call.streams, len(past.jobs), "jobs") as progress:
        runs = replayed(past, processors, args.policy, progress.at)
    seconds = max(call.streams.now() - before, 1) / 1000
    if args.predict:
        chosen = drawn(past, runs, args.predict, args.seed)
        with Progress(call.streams, len(past.jobs), "jobs, now to predict") as progress:
            accuracy = predicted(past, processors, args.policy, chosen, progress.at)
        tell_accuracy(call, accuracy)
        return
    if args.write:
        _write(args.write, past, runs, processors, args.policy)
    tell_replay(call, past, processors, runs, seconds)


def _processors_of(source: str, data: bytes) -> int:
    from cockpit.formats.traces.swf import processors_said

    processors = processors_said(source, data)
    if processors is None:
        raise UsageError(f"{source}: its header has no MaxProcs; say with --procs N how many processors there were")
    return processors


def replayed(past: History, processors: int, policy: str, watch: Callable[[int], None]) -> list[Run]:
    """Return how each job of the log ran under the policy. `watch` is called now and then with the number of ended
    jobs."""
    from cockpit.engine.replay.jobs import Replay, Run
    from cockpit.formats.traces.swf import machine, multifactor

    rules = multifactor(past) if policy == MULTIFACTOR else ()
    # A machine of processors is one node: a log in SWF says nothing about nodes.
    replay = Replay([machine(processors)], past.arrivals, POLICIES[policy], rules)
    for ended in replay.moments():
        watch(ended)
    return [
        Run(
            job.submitted,
            (replay.started_at[arrival.submitted.job] - arrival.at) // 1000,
            arrival.runs_ms // 1000,
            job.asks,
        )
        for job, arrival in zip(past.jobs, past.arrivals, strict=True)
    ]


def drawn(past: History, runs: Sequence[Run], count: int, seed: int) -> list[JobId]:
    """Return a random sample of the jobs that waited; all where there are fewer. Raises `SpecErrors` if none waited."""
    waited = [arrival.submitted.job for arrival, run in zip(past.arrivals, runs, strict=True) if run.waited]
    if not waited:
        raise SpecErrors(["No job waits: there is nothing to predict; take fewer processors."])
    # By seed, so that a run can be repeated exactly.
    return Random(seed).sample(waited, min(count, len(waited)))  # noqa: S311 - nothing secret


def predicted(
    past: History, processors: int, policy: str, chosen: Sequence[JobId], watch: Callable[[int], None]
) -> Accuracy:
    """Return how accurate the predicted starts of the chosen jobs are."""
    from cockpit.engine.replay.arrival_predictions import accuracy, predict_arrivals
    from cockpit.formats.traces.swf import machine, multifactor

    rules = multifactor(past) if policy == MULTIFACTOR else ()
    return accuracy(predict_arrivals([machine(processors)], past.arrivals, POLICIES[policy], chosen, rules, watch))


def _read(file: str, call: Call) -> bytes:
    if file == STDIN:
        return call.streams.stdin.read()
    try:
        return Path(file).read_bytes()
    except FileNotFoundError as missing:
        message = f"There is no file {file}; give the path of a log or a trace."
        raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message)) from missing
    except OSError as failed:
        raise SpecErrors([f"{safe(file)}: cannot be read: {failed.strerror}"]) from failed


def _write(file: str, past: History, runs: Sequence[Run], processors: int, policy: str) -> None:
    from cockpit.formats.traces.swf import swf_lines

    header = ("Computer: cockpit replay", f"MaxProcs: {processors}", f"Note: policy {policy}")
    text = "".join(swf_lines(past.jobs, ((run.waited, run.ran) for run in runs), header)).encode()
    if file.endswith(".gz"):
        import gzip

        # Without the time in the header, so that equal schedules are equal files.
        text = gzip.compress(text, mtime=0)
    try:
        Path(file).write_bytes(text)
    except OSError as failed:
        raise SpecErrors([f"{safe(file)}: cannot be written: {failed.strerror}"]) from failed


def _processors(text: str) -> int:
    if not (processors := count(text)):
        msg = "a machine has at least one processor"
        raise ArgumentTypeError(msg)
    return processors


REPLAY = Verb(
    arguments,
    run,
    (
        "cockpit replay KTH-SP2.swf.gz --procs 100 --policy easy",
        "cockpit replay log.swf --procs 128 --policy conservative --check -o json",
        "cockpit replay log.swf --procs 128 --write schedule.swf.gz",
        "cockpit replay openb_pods.csv --nodes openb_nodes.csv --fit fgd --scale 1.3 --seed 42",
    ),
)


class Difference(msgspec.Struct, frozen=True):
    """The first job, in order of submission, that waits otherwise than the log says; seconds."""

    job: int
    waits: int
    log: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report about a replay."""

    policy: str
    processors: int
    jobs: int
    skipped: int
    identical_waits: int | None
    """The jobs with the recorded waiting time; None: not requested."""
    first_difference: Difference | None
    mean_bounded_slowdown: float
    mean_wait: float
    utilisation: float
    jobs_per_second: float
    """The speed of the replay alone, without reading the log."""
    peak_rss_mib: int


def tell_replay(call: Call, past: History, processors: int, runs: Sequence[Run], seconds: float) -> None:
    """Print the result of a replay that took `seconds`."""
    report = _report(past, processors, runs, seconds, call.args)
    tell_report(call, report, _page(report))


def _report(past: History, processors: int, runs: Sequence[Run], seconds: float, args: Namespace) -> Report:
    from cockpit.engine.replay.jobs import figures

    differences = [
        Difference(job.number, run.waited, job.waited)
        for job, run in zip(past.jobs, runs, strict=True)
        if args.check and job.waited != run.waited
    ]
    figures_of_run = figures(runs, processors)
    return Report(
        policy=args.policy,
        processors=processors,
        jobs=len(runs),
        skipped=past.skipped.total(),
        identical_waits=len(runs) - len(differences) if args.check else None,
        first_difference=differences[0] if differences else None,
        mean_bounded_slowdown=figures_of_run.mean_bounded_slowdown,
        mean_wait=figures_of_run.mean_wait,
        utilisation=figures_of_run.utilisation,
        jobs_per_second=len(runs) / seconds,
        # Linux counts it in KiB (getrusage(2)).
        peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def tell_accuracy(call: Call, accuracy: Accuracy) -> None:
    """Print how accurate the predicted starts are."""
    lines = (
        ("jobs", f"{accuracy.jobs} that waited"),
        (
            "likely start",
            f"off by {accuracy.median_error:.0f} s in the median, {accuracy.mean_error:.0f} s in the mean",
        ),
        ("within a minute", f"{accuracy.within_a_minute:.1%}, within ten {accuracy.within_ten_minutes:.1%}"),
        (
            "likely range",
            f"holds for {accuracy.range_coverage:.1%}, as wide as {accuracy.range_width:.2f} waits in the median",
        ),
        (
            "end of the range",
            f"holds for {accuracy.coverage:.1%} ({accuracy.coverage_by_limits:.1%} by time limits alone)",
        ),
        (
            "end ÷ wait",
            f"{accuracy.tightness:.2f} in the median ({accuracy.tightness_by_limits:.2f} by time limits alone)",
        ),
        ("no later than", _bound_words(accuracy)),
    )
    tell_report(call, accuracy, _labelled_lines(lines))


def _bound_words(accuracy: Accuracy) -> str:
    if accuracy.bound_coverage is None:
        return "promised to none of them"
    return f"promised to {counted(accuracy.bounds, 'job')}, holds for {accuracy.bound_coverage:.1%}"


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
    return _labelled_lines(lines)


def _labelled_lines(lines: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{name:<23}{text}" for name, text in lines]
