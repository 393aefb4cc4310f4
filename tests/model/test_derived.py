"""Values that follow from a job's fields: its image, its replicas, and what a best-effort job requests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.cluster import Reservation
from cockpit.model.image import ImageKind, image_of
from cockpit.model.resilience import Elastic
from cockpit.model.rules.text import tres_name_error
from cockpit.model.spec import Mode
from tests.builders import a_spec


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ("dir:/img/a", ImageKind.DIR, "/img/a"),
        ("tar:/b.tar", ImageKind.TAR, "/b.tar"),
        ("torch:1", ImageKind.NAMED, "torch:1"),
    ],
)
def test_an_image_is_of_the_kind_before_its_colon(text: str, kind: ImageKind, where: str) -> None:
    found = image_of(text)
    assert (found.kind, found.where) == (kind, where)


@pytest.mark.req("EL-01")
def test_an_elastic_job_has_at_most_its_largest_number_of_workers() -> None:
    assert [a_spec("x", nodes=each).most_nodes for each in (1, 3)] == [1, 3]
    assert [a_spec("x", nodes=each).least_nodes for each in (1, 3)] == [1, 3]
    grown = a_spec("x", nodes=2, mode=Mode.PYTORCH, elastic=Elastic(workers=2, max_workers=5))
    assert (grown.least_nodes, grown.most_nodes) == (1, 5)


@pytest.mark.req("LA-70")
def test_only_a_best_effort_job_is_queued_without_cpus_and_memory() -> None:
    usual = a_spec("x", cpus=4, memory_mib=2048)
    assert usual.as_accepted is usual
    best_effort = replace(usual, elastic=Elastic(workers=1, max_workers=2, best_effort=True))
    assert [(each.cpus, each.memory_mib) for each in best_effort.as_accepted.specs] == [(0, 0)]


@pytest.mark.req("LA-70")
def test_names_of_resources_are_words_of_at_most_eighty_characters() -> None:
    assert tres_name_error("cpu") is None
    assert tres_name_error("gres/gpu:a100") is None
    assert tres_name_error("gres/" + "x" * 80) is not None


def test_a_reservation_is_for_users_unless_it_is_for_maintenance() -> None:
    assert not Reservation(name="r", nodes=(), start_at=0, end_at=1).maintenance
