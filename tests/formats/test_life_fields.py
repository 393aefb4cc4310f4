"""The `restart`, `resume` and `hooks` fields of a job file."""

from __future__ import annotations

import re

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.jobfile import Defaults, read_jobs
from cockpit.model.spec import JobSpec

HEAD = "name: train\ncommand: python t.py\noutput: /out\n"


def read(text: str) -> JobSpec:
    return read_jobs("job.yaml", HEAD + text, "/work", defaults=Defaults())[0]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("restart: {}", "restart.max_restarts: is missing; give how often"),
        ("restart: {max_restarts: -1}", "restart.max_restarts: -1 is not between 0 and 1000"),
        ("resume: {max_resumes: 3}", "resume.grace_period: is missing; give the time"),
        ("resume: {max_resumes: 3, grace_period: 2d}\npool: a", "resume.grace_period: 172800 s is not between"),
        ("resume: {max_resumes: 3, grace_period: 5m}", "resume: needs a dedicated pool of nodes; add pool"),
        (
            "resume: {max_resumes: 3, grace_period: 5m}\nrestart: {max_restarts: 1}\npool: a",
            "restart: cannot stand beside resume",
        ),
        ("restart: {max_restarts: 1}\nelastic: {workers: 2}", "restart: cannot stand beside elastic"),
        ("resume: {max_resumes: 1, grace_period: 5m}\nelastic: {workers: 2}", "resume: cannot stand beside elastic"),
        ("hooks: {before: x}", "hooks.before: is no field here; did you mean before_start?"),
        ('hooks: {after_end: "a\\0b"}', 'hooks.after_end: "a\\x00b" contains a NUL character'),
    ],
)
def test_what_is_wrong_is_said_with_its_field(text: str, error: str) -> None:
    with pytest.raises(SpecErrors, match=re.escape(error)):
        read(text)
