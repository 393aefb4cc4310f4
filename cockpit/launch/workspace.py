"""Lists the folders that a job sees below /workspace, and whether it may write to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.model.mounts import VERSIONED, DatasetSource

if TYPE_CHECKING:
    from cockpit.model.mounts import Dataset, Model
    from cockpit.model.spec import JobSpec

WORKSPACE = "/workspace"
ALGORITHM = f"{WORKSPACE}/algorithm"
ANNOTATIONS = f"{WORKSPACE}/anno_dataset"
DATASETS = f"{WORKSPACE}/dataset"
MODELS = f"{WORKSPACE}/model"
OUTPUTS = f"{WORKSPACE}/outputs"
_SYSTEM = frozenset(
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "sys", "usr", "workspace"]
)
_ABOVE = frozenset({"/", "/run", "/var", "/var/lib", "/var/log", "/var/cache"})
VOLUMES = f"{WORKSPACE}/volume"


class MountedFolder(NamedTuple):
    """A folder of the machine that is mounted in the container."""

    what: str
    """Path of the spec's field: `output`, `volumes[0]`."""
    source: str
    target: str
    writable: bool
    create: bool = False
    """Whether the folder is created if it is missing."""


def mounted_folders(spec: JobSpec) -> tuple[MountedFolder, ...]:
    """Return all folders that a job mounts; the folders of its datasets and models must be known by now."""
    algorithm = spec.algorithm
    return (
        *((MountedFolder("algorithm", algorithm.folder, ALGORITHM, not algorithm.read_only),) if algorithm else ()),
        *(
            MountedFolder(f"datasets[{index}]", each.folder, dataset_place(each), not each.read_only)
            for index, each in enumerate(spec.datasets)
        ),
        *(
            MountedFolder(f"models[{index}]", each.folder, model_place(each), writable=False)
            for index, each in enumerate(spec.models)
        ),
        # Not for a batch script: sbatch makes no folder either.
        MountedFolder("output", spec.output, OUTPUTS, writable=True, create=spec.script is None),
        *_script_folders(spec),
        *(
            MountedFolder(f"volumes[{index}]", each.folder, f"{VOLUMES}/{each.name}", writable=True)
            for index, each in enumerate(spec.volumes)
        ),
    )


def can_be_shown(folder: str) -> bool:
    """Return whether a folder of the machine can be mounted at its own path in a container.

    System folders cannot, since each container has its own, nor can a folder above one. The shim has a copy of this
    rule, because it imports nothing from here.
    """
    return folder not in _ABOVE and folder.split("/")[1] not in _SYSTEM


def _script_folders(spec: JobSpec) -> tuple[MountedFolder, ...]:
    """Return the folders of a batch script, at their own paths; an outer folder comes before an inner one."""
    if spec.script is None:
        return ()
    # A folder is shown only once; then it counts as the working folder.
    folders = {spec.script.submitted_from: "script.submit_dir", spec.script.work_dir: "script.work_dir"}
    return tuple(MountedFolder(folders[path], path, path, writable=True) for path in sorted(folders, key=len))


def dataset_place(dataset: Dataset) -> str:
    """Return the folder of a dataset; an annotation has no folder for its version, as the job sees only one."""
    if dataset.source is DatasetSource.ANNOTATION:
        return f"{ANNOTATIONS}/{dataset.name}/annotation"
    return _place(f"{DATASETS}/{dataset.source}/{dataset.name}", dataset)


def model_place(model: Model) -> str:
    return _place(f"{MODELS}/{model.source}/{model.name}", model)


def _place(folder: str, given: Dataset | Model) -> str:
    return f"{folder}/{given.version}" if given.source in VERSIONED else folder
