"""First job files: what is written works, and so does each line that is only offered."""

from __future__ import annotations

import re

import pytest

from cockpit.formats.job.fields import JOB
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.template import KINDS, template
from cockpit.model.ids import Millis
from cockpit.model.spec import JobSpec
from tests.builders import NOON

OFFERED = re.compile(r"^#(\w+):", re.MULTILINE)
NEEDS = {"resume": ["pool"], "staging": ["datasets"]}
"""Lines that go together."""
DEFAULTS = Defaults(home_folder="/home/ann", now=Millis(NOON))


def read(text: str) -> JobSpec:
    (spec,) = read_jobs("job.yaml", text, "/home/ann", defaults=DEFAULTS)
    return spec


@pytest.mark.req("JT-01", "UI-41")
@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_template_is_a_valid_job(kind: str) -> None:
    spec = read(template(kind, "/home/ann"))
    assert (spec.name, spec.output) == ("my-job", "/home/ann/out")
    assert bool(spec.array) == (kind == "array")
    assert spec.kind == (kind if kind in {"batch", "interactive"} else "regular")
    assert len(spec.tasks) == (2 if kind == "batch" else 0)
    assert spec.specs[0].card_milli == {"cards": 8000, "slice": 250}.get(kind, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_has_every_field(kind: str) -> None:
    text = template(kind, "/home/ann")
    written = re.findall(r"^#?(\w+):", text, re.MULTILINE)
    assert sorted(written) == sorted(field.name for field in JOB.fields if not field.alias)


NEEDS_OTHERS = {"tasks", "parameter_servers", "worker_pools", "divide_over_clusters"}
"""They are those of a batch, whose template has them as they stand, or of another mode, or none."""


@pytest.mark.parametrize("name", sorted({*OFFERED.findall(template("cards", "/home/ann"))} - NEEDS_OTHERS))
def test_each_offered_line_differs_from_the_default(name: str) -> None:
    text = template("regular" if name == "script" else "cards", "/home/ann")
    wanted = "|".join((name, *NEEDS.get(name, ())))
    assert read(re.sub(rf"^#({wanted}):", r"\1:", text, flags=re.MULTILINE)) != read(text)


def test_no_line_is_too_wide_for_a_terminal_beside_its_values() -> None:
    folder = "/home/ann/a/long/way/down"
    comments = [line for line in template("regular", folder).splitlines() if line.startswith("# ")]
    assert max(map(len, comments)) <= 102
