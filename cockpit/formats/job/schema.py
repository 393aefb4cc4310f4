"""The JSON Schema of job files, published by `cockpit schema job`. Editors complete and check with it."""

from __future__ import annotations

from cockpit.formats.job.fields import JOB
from cockpit.formats.kinds import Schema
from cockpit.model.spec import JobKind

SPEC_VERSION = 1
"""The version of the job file's format."""


def job_schema() -> Schema:
    """JSON Schema 2020-12 of one job. It accepts whatever `read_jobs` accepts; what a schema cannot say (the command's
    grammar, fields that exclude each other, characters that cannot be seen), `read_jobs` refuses beyond it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:cockpit-cluster:job:{SPEC_VERSION}",
        "title": "A cockpit job",
        **JOB.schema(),
        "if": {"properties": {"kind": {"enum": [str(JobKind.BATCH), str(JobKind.INTERACTIVE)]}}, "required": ["kind"]},
        "else": {"required": ["command"]},
    }
