"""The `restart`, `resume` and `hooks` fields of a job file."""

from __future__ import annotations

import re

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.specfile import spec_as_yaml
from cockpit.model.resilience import Elastic, Restart, Resume
from cockpit.model.spec import Hooks, JobSpec

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
            "restart: cannot be used with resume",
        ),
        ("restart: {max_restarts: 1}\nelastic: {workers: 2}", "restart: cannot be used with elastic"),
        (
            "pool: a\nresume: {max_resumes: 1, grace_period: 5m}\nelastic: {workers: 2}",
            "resume: cannot be used with elastic",
        ),
        (
            "pool: a\nnodes: 2\nresume: {max_resumes: 1, grace_period: 5m, elastic: {min_nodes: 3}}",
            "resume.elastic.min_nodes: 3 is more than the job's 2 nodes",
        ),
        ("pool: a\nkind: interactive\nresume: {max_resumes: 1, grace_period: 5m}", "resume: is for regular jobs alone"),
        ("hooks: {before: x}", "hooks.before: is no field here; did you mean before_start?"),
        ('hooks: {after_end: "a\\0b"}', 'hooks.after_end: "a\\x00b" contains a NUL character'),
    ],
)
def test_an_error_is_reported_with_its_field(text: str, error: str) -> None:
    with pytest.raises(SpecErrors, match=re.escape(error)):
        read(text)


@pytest.mark.req("JT-17", "JT-18", "JT-24")
def test_restart_resume_and_hook_settings_are_written_as_they_are_read() -> None:
    again = read(
        "pool: a\nresume: {max_resumes: 3, grace_period: 5m}\nhooks: {before_start: echo, after_end: 'a\n\n  b'}"
    )
    assert (again.resume, again.hooks) == (
        Resume(max_resumes=3, grace_seconds=300),
        Hooks(before_start="echo", after_end="a\nb"),
    )
    restarted = read("restart: {max_restarts: 4}")
    assert restarted.restart == Restart(max_restarts=4)
    for spec in (again, restarted):
        (written,) = read_jobs("job.yaml", spec_as_yaml(spec), "/", defaults=Defaults())
        assert (written.resume, written.restart, written.hooks) == (spec.resume, spec.restart, spec.hooks)


@pytest.mark.req("JT-17", "EL-12")
def test_a_job_that_resumes_with_fewer_nodes_has_its_own_sizes() -> None:
    resume = "{max_resumes: 1, grace_period: 0, elastic: {min_nodes: 2, allow_scaling: true}}"
    spec = read(f"pool: a\nnodes: 4\nmode: pytorch\ntime_limit: 1h\nresume: {resume}")
    assert spec.elastic == Elastic(workers=4, min_workers=2, max_workers=4, allow_scaling=True)
    assert (spec.least_nodes, spec.most_nodes) == (2, 4)
    written = spec_as_yaml(spec)
    assert "elastic" not in [line.partition(":")[0] for line in written.splitlines()]
    assert read_jobs("job.yaml", written, "/", defaults=Defaults()) == [spec]
