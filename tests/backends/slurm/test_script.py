"""What of a job spec Slurm has no word for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.mapping.refusals import refusals
from cockpit.model.labels import Toleration
from cockpit.model.mounts import Algorithm, Dataset, Model
from cockpit.model.spec import Array, JobKind, Mode, NodeSpec, Sweep, Task, WorkerPool
from tests.builders import a_spec

PRIMARY = WorkerPool(replicas=1)
SHARING = WorkerPool(replicas=1, spec=NodeSpec(card_milli=500))
IMAGED = WorkerPool(replicas=1, image="oci:/x")


@pytest.mark.req("JT-09", "JT-25", "SL-20")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"specs": (NodeSpec(), NodeSpec(cpus=2))}, "specs"),
        ({"pool": "train"}, "pool"),
        ({"node_selector": {"disk": "ssd"}}, "node_selector"),
        ({"tolerations": (Toleration("spot"),)}, "node_selector"),
        ({"kind": JobKind.BATCH, "tasks": (Task(command="a"),)}, "kind"),
        ({"kind": JobKind.INTERACTIVE}, "kind"),
        ({"mode": Mode.TENSORFLOW, "parameter_servers": 1, "array": Array((0, 1))}, "array"),
        ({"mode": Mode.TENSORFLOW, "parameter_servers": 1, "sweep": Sweep(parameters={"lr": ("1",)})}, "sweep"),
        ({"mode": Mode.WORKER_POOLS, "worker_pools": (PRIMARY, SHARING)}, "worker_pools[1].spec.cards"),
        ({"mode": Mode.WORKER_POOLS, "worker_pools": (PRIMARY, IMAGED)}, "worker_pools[1].image"),
        ({"datasets": (Dataset(name="c", path="/c"),)}, "datasets"),
        ({"models": (Model(name="m", path="/m"),)}, "models"),
        ({"image": "dir:/root"}, "image"),
        ({"command": "python3 /workspace/dataset/c/read.py"}, "command"),
        ({"command": "bash -c 'cd /workspace/algorithm'", "algorithm": Algorithm(path="/my code")}, "command"),
        ({"algorithm": Algorithm(name="bert")}, "algorithm.name"),
    ],
)
def test_unsupported_requests_are_refused_with_their_field(fields: dict, field: str) -> None:
    (said,) = refusals(replace(a_spec("mine"), **fields))
    assert said.startswith(f"{field}: ")


def test_a_plain_job_is_not_refused() -> None:
    assert list(refusals(a_spec("mine", card_milli=2000, card_models=("A100",)))) == []
