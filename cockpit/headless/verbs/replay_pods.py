"""`cockpit replay PODS --nodes NODES`: place arriving pods until more cards are requested than the cluster has."""

from __future__ import annotations

import resource
from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

import msgspec

from cockpit.errors import SpecErrors
from cockpit.headless.arguments import count
from cockpit.headless.records import tell_report
from cockpit.headless.services import Call
from cockpit.headless.streams import Progress
from cockpit.present.safe import safe
from cockpit.present.units import counted
from cockpit.sched.policy import FractionFit, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.engine.replay.pods import ArrivalSums
    from cockpit.model.node import Node
    from cockpit.model.spec import JobSpec

MOST_SCALE = 100
"""Most that pods may request together, as a multiple of the cards."""


class PodReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report about a replay of pods."""

    fit: FractionFit
    scale: float
    seed: int
    nodes: int
    cards: int
    pods: int
    """The number of arrived pods."""
    placed: int
    allocation: list[float]
    """Allocation in percent of all cards, when 0, 1, 2 … percent of them have been requested."""
    pods_per_second: float
    peak_rss_mib: int


def pod_arguments(parser: ArgumentParser) -> None:
    """Add the options that only pods have."""
    fits = [fit.value for fit in FractionFit]
    parser.add_argument("--fit", choices=fits, default="best", metavar="FIT", help=f"of pods: {', '.join(fits)}")
    parser.add_argument(
        "--scale", type=_scale, default=1.3, metavar="X", help="of pods: all together ask for X times the cards (1.3)"
    )
    parser.add_argument(
        "--seed", type=count, default=42, metavar="S", help="which pods, in what order; which jobs to predict (42)"
    )


def tell_pods(call: Call, pods_file: bytes, nodes_file: bytes) -> None:
    """Replay the pods of one file on the nodes of the other, and print what became of them."""
    from cockpit.formats.traces.gpu import arriving, card_milli, read_nodes, read_pods

    args = call.args
    pods = read_pods(safe(args.file), pods_file)
    nodes = read_nodes(safe(args.nodes), nodes_file)
    # Thousandths of cards, the unit in which pods request them.
    target = int(args.scale * _milli(nodes))
    if not target:
        raise SpecErrors([f"{safe(args.nodes)}: no node has a card; a replay of pods fills cards."])
    if not any(map(card_milli, pods)):
        raise SpecErrors([f"{safe(args.file)}: no pod asks for a card; a replay of pods fills cards."])
    # A random sample of the trace, whose pods together request at most this much.
    coming = arriving(pods, target, args.seed)
    before = call.streams.now()
    with Progress(call.streams, len(coming), "pods") as progress:
        allocation, last = filled(nodes, pods, coming, FractionFit(args.fit), progress.at)
    seconds = max(call.streams.now() - before, 1) / 1000
    report = PodReport(
        fit=FractionFit(args.fit),
        scale=args.scale,
        seed=args.seed,
        nodes=len(nodes),
        cards=sum(len(node.cards) for node in nodes),
        pods=len(coming),
        placed=last.placed if last else 0,
        allocation=allocation,
        pods_per_second=len(coming) / seconds,
        peak_rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )
    tell_report(call, report, _page(report))


def filled(
    nodes: Sequence[Node],
    pods: Sequence[JobSpec],
    coming: Sequence[JobSpec],
    fit: FractionFit,
    watch: Callable[[int], None] = lambda _: None,
) -> tuple[list[float], ArrivalSums | None]:
    """Return the allocation by percent arrived, and the state after the last pod. Fragmentation is measured against all
    `pods` of the trace, as in the published experiments; `watch` is called with the number of arrived pods."""
    from collections import Counter

    from cockpit.engine.replay.pods import Curve, PodReplay
    from cockpit.sched.fragmentation import workload

    policy = Policy(fraction_fit=fit, workload=workload(Counter(pod.specs[0] for pod in pods)))
    curve, last = Curve(_milli(nodes)), None
    for number, last in enumerate(PodReplay(nodes, policy).arrivals(coming), 1):
        curve.add(last)
        watch(number)
    return curve.points(), last


def _milli(nodes: Sequence[Node]) -> int:
    return 1000 * sum(len(node.cards) for node in nodes)


def _page(report: PodReport) -> list[str]:
    lines = [
        ("fit", f"{report.fit}, {report.scale:g} times the cards, seed {report.seed}"),
        ("cluster", f"{counted(report.nodes, 'node')}, {counted(report.cards, 'card')}"),
        ("pods", f"{report.pods}, {report.placed} with room"),
        ("speed", f"{report.pods_per_second:.0f} pods/s, {report.peak_rss_mib} MiB"),
    ]
    curve = [f"{percent:>7} %{share:>10.2f} %" for percent, share in enumerate(report.allocation)]
    return [*(f"{name:<10}{text}" for name, text in lines), "", "  arrived   allocated", *curve]


def _scale(text: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        scale = 0
    if not 0 < scale <= MOST_SCALE:
        msg = f"a number above 0, at most {MOST_SCALE}, such as 1.3"
        raise ArgumentTypeError(msg)
    return scale
