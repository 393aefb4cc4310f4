"""Small values for tests, each with one thing to say."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cockpit.model.ids import Millis, NodeName, UserName
from cockpit.model.job import Submitter
from cockpit.model.node import Card, CardVendor, Node
from cockpit.model.spec import Algorithm, JobKind, JobSpec, Mode, NodeSpec, Task

NOON = Millis(1_800_000_000_000)
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

ANN = Submitter(UserName("ann"), 1001, 1001, (1001,), "/home/ann")
BOB = Submitter(UserName("bob"), 1002, 1002, (1002,), "/home/bob")


def a_spec(name: str = "job", **fields: Any) -> JobSpec:
    """A job of one CPU; `cpus`, `memory_mib`, `card_milli` and `card_models` go into its only node spec. With several
    nodes it is a PyTorch job where nothing else is said."""
    node_fields = {key: fields.pop(key) for key in ("cpus", "memory_mib", "card_milli", "card_models") if key in fields}
    fields.setdefault("specs", (NodeSpec(**node_fields),))
    spoken_for = fields.get("divide_over_clusters") or (fields.get("elastic") and not fields.get("resume"))
    if fields.get("nodes", 1) > 1 and not spoken_for:
        fields.setdefault("mode", Mode.PYTORCH)
    return JobSpec(name=name, command="python train.py", output="/data/out", **fields)


def a_batch(*commands: str, name: str = "tune", **fields: Any) -> JobSpec:
    """A batch with a task for each command; each task's algorithm is /algo/<number>."""
    tasks = tuple(Task(command=each, algorithm=Algorithm(path=f"/algo/{n}")) for n, each in enumerate(commands))
    return replace(a_spec(name, **fields), kind=JobKind.BATCH, command="", tasks=tasks)


def a_card(index: int = 0, model: str = "A100", slices: int = 0) -> Card:
    return Card(index=index, model=model, vendor=CardVendor.NVIDIA, slices=slices, declared=True)


def a_node(name: str = "n1", cpus: int = 8, memory_mib: int = 64_000, cards: int = 0, **fields: Any) -> Node:
    return Node(
        name=NodeName(name),
        cpus=cpus,
        memory_mib=memory_mib,
        cards=fields.pop("card_list", None) or tuple(a_card(index) for index in range(cards)),
        **fields,
    )
