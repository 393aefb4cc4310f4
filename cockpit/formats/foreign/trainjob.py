"""A TrainJob of the Kubeflow trainer. Source: trainer.kubeflow.org/v1alpha1, TrainJobSpec.

What its runtime says beside it is not in the manifest; of that the name alone is known, which names the framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.pods import read_container, read_name, take_labels
from cockpit.formats.foreign.podwriting import container_of, metadata_of
from cockpit.formats.foreign.pytorchjob import GIVEN, take_torchrun
from cockpit.formats.foreign.torchrun import without_nodes
from cockpit.model.spec import Mode

if TYPE_CHECKING:
    from cockpit.model.spec import JobSpec

_MODES: Final = (
    ("deepspeed", "deepspeed"),
    ("mpi", "horovod"),
    ("mlx", "horovod"),
    ("tensorflow", "tensorflow"),
    ("torch", "pytorch"),
)
"""Of a runtime by a part of its name."""
_RUNTIMES: Final = {
    Mode.DEEPSPEED: "deepspeed-distributed",
    Mode.HOROVOD: "mpi-distributed",
    Mode.TENSORFLOW: "tensorflow-distributed",
    Mode.PYTORCH: "torch-distributed",
}
_KIND: Final = {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}


def read_train_job(value: Mapping[str, Any]) -> Draft:
    spec, draft = dict(value.get("spec") or {}), Draft()
    read_name(dict(value.get("metadata") or {}), draft)
    _runtime(dict(spec.pop("runtimeRef", None) or {}), draft)
    trainer = dict(spec.pop("trainer", None) or {})
    if (nodes := trainer.pop("numNodes", None)) is not None:
        draft.values["nodes"] = int(nodes)
    processes = trainer.pop("numProcPerNode", None)
    trainer["resources"] = trainer.pop("resourcesPerNode", None)
    read_container(trainer, "spec.trainer", draft, GIVEN)
    take_torchrun(draft, processes, "spec.trainer.numProcPerNode")
    take_labels(spec.pop("labels", None) or {}, "spec.labels", draft)
    if (seconds := spec.pop("activeDeadlineSeconds", None)) is not None:
        draft.values["time_limit"] = int(seconds)
    if spec.pop("suspend", False):
        draft.values["hold"] = True
    for part in spec.pop("initializer", None) or {}:
        draft.lacks(f"spec.initializer.{part}", "nothing is downloaded; name it under datasets or models")
    for name in spec:
        draft.lacks(f"spec.{name}")
    return draft


def _runtime(reference: dict[str, Any], draft: Draft) -> None:
    name = str(reference.pop("name", "") or "")
    mode = next((mode for part, mode in _MODES if part in name.lower()), "")
    draft.values["mode"] = mode or "pytorch"
    if not name:
        draft.lacks("spec.runtimeRef.name", "is missing; taken for a runtime of PyTorch")
    elif not mode:
        draft.lacks(f"spec.runtimeRef.name={name}", "is not known here; taken for one of PyTorch")
    for field, value in reference.items():
        if value != _KIND.get(field):
            draft.lacks(f"spec.runtimeRef.{field}={value}")


def write_train_job(spec: JobSpec) -> dict[str, Any]:
    """The manifest."""
    container = container_of(spec, GIVEN, command=without_nodes(spec.command))
    trainer: dict[str, Any] = {"numNodes": spec.nodes}
    if (resources := container.pop("resources", None)) is not None:
        trainer["resourcesPerNode"] = resources
    runtime = _RUNTIMES.get(spec.mode, "torch-distributed") if spec.mode is not None else "torch-distributed"
    body: dict[str, Any] = {
        "runtimeRef": {"name": runtime},
        "trainer": {**container, **trainer},
        "activeDeadlineSeconds": spec.time_limit_seconds,
    }
    if spec.hold:
        body["suspend"] = True
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata_of(spec),
        "spec": body,
    }
