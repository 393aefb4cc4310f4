from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.checks import submission_errors, warnings
from cockpit.model.resilience import Elastic
from cockpit.model.spec import JobSpec, NodeSpec
from tests.builders import a_spec


@pytest.mark.req("JT-01", "JT-16", "LA-01")
def test_a_forged_request_is_checked_against_every_rule() -> None:
    errors = submission_errors(JobSpec(name="a\x1b", command="a && b", output="out", nodes=-1))
    assert [error.split(":")[0] for error in errors] == ["name", "output", "nodes", "command"]


@pytest.mark.parametrize("command", ["", "x" * 100_000, "a" + ";" * 100_000])
def test_an_empty_or_oversized_command_has_one_error(command: str) -> None:
    errors = submission_errors(JobSpec(name="a", command=command, output="/out"))
    assert [error.split(":")[0] for error in errors] == ["command"]


def test_unsupervised_best_effort_workers_cause_a_warning() -> None:
    unwatched = a_spec(
        "x", elastic=Elastic(workers=2, max_workers=2, best_effort=True), specs=(NodeSpec(cpus=0, memory_mib=0),)
    )
    (warning,) = warnings(unwatched)
    assert warning.startswith("elastic.supervised: without it")
    assert (
        warnings(replace(unwatched, elastic=Elastic(workers=2, max_workers=2, best_effort=True, supervised=True))) == ()
    )
    assert warnings(a_spec("x", elastic=Elastic(workers=2, max_workers=2))) == ()


def test_a_valid_spec_has_no_errors() -> None:
    assert submission_errors(JobSpec(name="[bold]", command="x ';'", output="/out")) == []


@pytest.mark.req("LA-70")
@pytest.mark.parametrize(
    ("image", "command", "warned"),
    [
        ("host", "entrypoint", True),
        ("dir:/srv/root", "entrypoint --lr 1", True),
        ("localhost/torch:2", "entrypoint", False),
        ("host", "python entrypoint", False),
    ],
)
def test_an_images_own_command_needs_an_image_that_has_one(image: str, command: str, warned: bool) -> None:
    found = warnings(JobSpec(name="a", command=command, output="/out", image=image))
    assert [each.partition(":")[0] for each in found] == (["command"] if warned else [])
