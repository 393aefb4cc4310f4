"""The folders under which a container has a job's datasets and models."""

from __future__ import annotations

import pytest

from cockpit.launch.workspace import ANNOTATIONS, DATASETS, MODELS, dataset_place, model_place
from cockpit.model.mounts import Dataset, DatasetSource, Model, ModelSource


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
