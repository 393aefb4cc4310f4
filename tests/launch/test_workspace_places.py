"""The folders under which a container has a job's datasets and models."""

from __future__ import annotations

import pytest

from cockpit.launch.workspace import (
    ANNOTATIONS,
    DATASETS,
    MODELS,
    MountedFolder,
    can_be_shown,
    dataset_place,
    model_place,
    mounted_folders,
)
from cockpit.model.batchscript import BatchScript
from cockpit.model.mounts import Algorithm, Dataset, DatasetSource, Model, ModelSource, Volume
from tests.builders import a_spec


@pytest.mark.req("LA-20")
@pytest.mark.parametrize("source", DatasetSource)
def test_only_the_folder_of_an_annotation_has_no_version(source: DatasetSource) -> None:
    place = dataset_place(Dataset(name="coco", source=source, version="v1"))
    if source is DatasetSource.ANNOTATION:
        assert place == f"{ANNOTATIONS}/coco/annotation"
    else:
        assert place.startswith(f"{DATASETS}/{source}/coco")


@pytest.mark.req("LA-20")
def test_a_model_is_in_the_folder_of_its_source() -> None:
    assert model_place(Model(name="bert", source=ModelSource.PRETRAINED)).startswith(f"{MODELS}/pretrained/bert")


@pytest.mark.req("JT-30")
@pytest.mark.parametrize(
    ("source", "place"),
    [
        (DatasetSource.PRIVATE, "/workspace/dataset/private/coco"),
        (DatasetSource.FAVORITE, "/workspace/dataset/favorite/coco/v1"),
        (ModelSource.PRIVATE, "/workspace/model/private/coco"),
        (ModelSource.PRETRAINED, "/workspace/model/pretrained/coco"),
        (ModelSource.FAVORITE, "/workspace/model/favorite/coco/v1"),
    ],
)
def test_only_a_favourite_has_a_folder_for_its_version(source: DatasetSource | ModelSource, place: str) -> None:
    if isinstance(source, DatasetSource):
        assert dataset_place(Dataset(name="coco", source=source, version="v1")) == place
    else:
        assert model_place(Model(name="coco", source=source, version="v1")) == place


@pytest.mark.req("JT-30", "JT-05")
def test_every_folder_of_a_job_is_mounted_and_only_what_is_not_read_only_is_writable() -> None:
    spec = a_spec(
        "x",
        algorithm=Algorithm(path="/a"),
        datasets=(Dataset(name="d", path="/d"), Dataset(name="e", path="/e", read_only=True)),
        models=(Model(name="m", path="/m"),),
        volumes=(Volume(name="v", path="/v"),),
    )
    assert mounted_folders(spec) == (
        MountedFolder("algorithm", "/a", "/workspace/algorithm", writable=True),
        MountedFolder("datasets[0]", "/d", "/workspace/dataset/private/d", writable=True),
        MountedFolder("datasets[1]", "/e", "/workspace/dataset/private/e", writable=False),
        MountedFolder("models[0]", "/m", "/workspace/model/private/m", writable=False),
        MountedFolder("output", "/data/out", "/workspace/outputs", writable=True, create=True),
        MountedFolder("volumes[0]", "/v", "/workspace/volume/v", writable=True),
    )
    first, _ = mounted_folders(a_spec("x", algorithm=Algorithm(path="/a", read_only=True)))
    assert not first.writable


@pytest.mark.req("LA-71")
def test_the_folders_of_a_script_have_their_own_paths_the_outer_one_first_and_its_output_is_not_created() -> None:
    script = BatchScript(text="#!/bin/sh", work_dir="/home/ann/run", submit_dir="/home/ann")
    output, outer, inner = mounted_folders(a_spec("x", script=script))
    assert not output.create
    assert outer == MountedFolder("script.submit_dir", "/home/ann", "/home/ann", writable=True)
    assert inner == MountedFolder("script.work_dir", "/home/ann/run", "/home/ann/run", writable=True)


@pytest.mark.req("LA-71")
@pytest.mark.parametrize(
    ("folder", "shown"),
    [("/home/ann", True), ("/", False), ("/run", False), ("/run/user", True), ("/var/lib", False), ("/usr/x", False)],
)
def test_a_system_folder_or_one_above_it_cannot_be_mounted_at_its_own_path(folder: str, shown: bool) -> None:
    assert can_be_shown(folder) is shown
