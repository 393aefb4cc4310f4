"""How soon the socket answers while the engine computes a big pass: 100 000 queued jobs on 10 000 nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import quantiles
from time import perf_counter
from typing import TYPE_CHECKING

from cockpit.model import events
from cockpit.model.accounts import Association
from cockpit.model.cluster import Cluster, Priority, PriorityKind, Weights
from cockpit.model.ids import JobId
from cockpit.runtime.host import Act, Settings
from tests.bench.figures import Figures
from tests.builders import ANN, a_node, a_spec
from tests.runtime.served import ServedEngine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

QUEUED, NODES, PASSES = 100_000, 10_000, 6
SYSTEM = Act(actor="engine", origin="engine")

ASKING = """
import json, sys
from pathlib import Path
from time import perf_counter
from tests.runtime.served import RawClient

with RawClient(Path(sys.argv[1])) as client:
    print("asking", flush=True)
    took = []
    while client.hello.pid and not Path(sys.argv[2]).exists():
        before = perf_counter()
        client.ask("overview")
        took.append((before, 1000 * (perf_counter() - before)))
print(json.dumps(took))
"""


async def fill(engine: ServedEngine) -> None:
    """A full cluster and a long queue, told as facts: what submissions cost is measured elsewhere."""
    priority = Priority(kind=PriorityKind.MULTIFACTOR, weights=Weights(age=1000, fairshare=1000, job_size=1000))
    users = (Association(account="lab", parent="root"), Association(account="lab", user="ann", default=True))
    nodes = tuple(a_node(f"n{number}", cards=8) for number in range(NODES))
    bodies: list[events.EventBody] = [
        events.NodesChanged(nodes),
        events.ClusterConfigured(Cluster(priority=priority)),
        events.AccountsChanged(users),
    ]
    shapes = [a_spec("wide", nodes=nodes_wanted, card_milli=8000, cpus=8) for nodes_wanted in range(10_001, 10_041)]
    for number in range(QUEUED):
        spec = shapes[number % len(shapes)]
        bodies.append(events.JobSubmitted(JobId(number + 1), spec, ANN, "ann", "lab", "normal"))
    await engine.engine.host.act(lambda _machine, _now: bodies, SYSTEM)


async def passes(engine: ServedEngine) -> list[tuple[float, float]]:
    """Let it decide anew several times; when each began and had ended, by the performance counter."""
    host, took = engine.engine.host, []
    for _ in range(PASSES):
        last, before = host.plan, perf_counter()
        await host.act(lambda _machine, _now: [events.UsageDecayed()], SYSTEM)
        async with host.changed:
            await host.changed.wait_for(lambda last=last: host.plan is not last)
        took.append((before, perf_counter()))
    return took


def test_answers_during_a_big_pass(tmp_path: Path, figure: Figures, capsys: pytest.CaptureFixture[str]) -> None:
    with ServedEngine(tmp_path, settings=Settings()) as engine:
        engine.run(fill(engine), 300)
        over = tmp_path / "over"
        asker = subprocess.Popen(
            [sys.executable, "-c", ASKING, str(engine.path), str(over)], stdout=subprocess.PIPE, text=True
        )
        assert asker.stdout is not None
        asker.stdout.readline()
        took = engine.run(passes(engine), 300)
        over.touch()
        answers = json.loads(asker.communicate(timeout=60)[0])
    during = [ms for at, ms in answers if any(begun <= at <= ended for begun, ended in took)]
    with capsys.disabled():
        spans = [round(1000 * (ended - begun)) for begun, ended in took]
        print(f"\npasses {spans} ms; {len(during)} answers during them, the longest {max(during):.1f} ms")  # noqa: T201 - beside the figure
    figure("PF-01", "an answer of the socket during such cycles, p95", quantiles(during, n=20)[-1])
