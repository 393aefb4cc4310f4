"""What of a job file a Slurm cluster cannot do is refused before anything is submitted."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping.refusals import refusals
from cockpit.model.resilience import Restart, Resume
from cockpit.model.spec import Hooks
from tests.builders import a_spec


@pytest.mark.req("JT-18", "JT-24")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("restart", Restart(max_restarts=1)),
        ("resume", Resume(max_resumes=1, grace_seconds=60)),
        ("hooks", Hooks(before_start="true")),
        ("hooks", Hooks(after_end="true")),
    ],
)
def test_engine_features_around_a_command_are_refused_for_slurm(field: str, value: object) -> None:
    (refused,) = refusals(a_spec(**{field: value}))
    assert refused.startswith(f"{field}: ")


def test_a_plain_job_is_not_refused() -> None:
    assert list(refusals(a_spec())) == []
