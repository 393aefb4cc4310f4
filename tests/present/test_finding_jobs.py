"""Jobs are found by what people remember of them, in any combination, as `--filter` and `/` read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cockpit.engine.arrays import expanded
from cockpit.engine.views.rows import job_row
from cockpit.model.events import JobSubmitted
from cockpit.model.ids import JobId
from cockpit.model.mounts import AlgorithmSource
from cockpit.model.spec import Algorithm, JobKind, NodeSpec
from cockpit.present.columns import Context
from cockpit.present.filters import compile_filter
from cockpit.present.tables.jobs import JOBS
from tests.builders import ANN, NOON, a_batch, a_node, a_spec
from tests.engine.driver import EngineDriver

if TYPE_CHECKING:
    from cockpit.model.jobrow import JobRow

ALGORITHMS = {
    "own": Algorithm(name="bert"),
    "favorite": Algorithm(name="bert", source=AlgorithmSource.FAVORITE),
    "folder": Algorithm(path="/home/ann/code"),
}
A100 = NodeSpec(cpus=4, memory_mib=16 * 1024, card_milli=2000, card_models=("A100",), name="two-a100")


SPECS = (
    replace(a_spec("train"), algorithm=ALGORITHMS["own"], output="/runs/train"),
    replace(a_spec("eval"), algorithm=ALGORITHMS["favorite"], output="/runs/eval", specs=(A100,)),
    a_batch("a", "b"),
    replace(a_spec("desk"), algorithm=ALGORITHMS["folder"], kind=JobKind.INTERACTIVE, command=""),
)


def rows() -> list[JobRow]:
    """On a node with one CPU: the first runs, all others wait."""
    engine = EngineDriver(a_node("n1", cpus=1))
    for spec in SPECS:
        for own, array in expanded(engine.machine, spec, JobId(engine.machine.state.last_job_id + 1)):
            engine.tell(JobSubmitted(JobId(engine.machine.state.last_job_id + 1), own, ANN, "ann", array=array))
    engine.schedule()
    engine.started(JobId(1))
    return [job_row(job, None) for job in engine.machine.state.jobs.values()]


@pytest.mark.req("JT-38")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("name~tr", "train"),
        ("name:eval", "eval"),
        ("state:running", "train"),
        ("state:queued", "eval tune tune desk"),
        ("kind:batch", "tune tune"),
        ("kind:interactive", "desk"),
        ("creator:ann", "train eval tune tune desk"),
        ("creator:bob", ""),
        ("algorithm:bert", "train"),
        ("algorithm:favorite/bert", "eval"),
        ("algorithm~favorite/", "eval"),
        ("algorithm:/home/ann/code", "desk"),
        ("spec~two-a100", "eval"),
        ('spec~"2 A100"', "eval"),
        ('spec~"1 CPU, 1G"', "train tune tune desk"),
        ("output~/data/out", "tune tune desk"),
        ("output:/data/out/tune-1", "tune"),
        ("kind:batch,interactive !name:desk state:queued", "tune tune"),
        ("algorithm~bert spec~A100 creator:ann state:queued output~eval", "eval"),
        ("algorithm~bert kind:batch", ""),
    ],
)
def test_each_criterion_alone_and_all_together_find_jobs(text: str, found: str) -> None:
    passing = compile_filter(text, JOBS).passing(rows(), Context(now=NOON))
    assert " ".join(row.name for row in passing) == found
