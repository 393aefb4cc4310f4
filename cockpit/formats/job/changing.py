"""Job files that change a job which another program submitted.

sbatch takes names, scripts and sizes that no job file may give: a script of standard input has no command, a cluster
that does not count memory reports none. Such a field needs no rule while the file leaves it as it is.
"""

from __future__ import annotations

import json
from typing import Final

from msgspec.structs import replace

from cockpit.formats.job.file import ReadJobs, job_values
from cockpit.formats.job.specfile import spec_as_table
from cockpit.launch.checks import meeting_errors, submission_errors
from cockpit.model.spec import JobSpec

_STAND_INS: Final[dict[str, object]] = {"name": "job", "command": "true", "output": "/"}
"""Valid values of the fields that every job file must have."""


def read_changes(spec: JobSpec, read: ReadJobs) -> ReadJobs:
    """Return a reader of job files that change this spec.

    Fields of the spec that break a rule already are checked only if the file changes them.
    """
    invalid = {_field(error) for error in (*submission_errors(spec), *meeting_errors(spec))}
    if not invalid:
        return read
    before = spec_as_table(spec)

    def read_changed(source: str, text: str, folder: str) -> list[JobSpec]:
        values = job_values(source, text)
        same = [name for name in invalid if values.get(name) == before.get(name)]
        rest = {name: value for name, value in values.items() if name not in same}
        known = {name: _STAND_INS[name] for name in same if name in _STAND_INS}
        return [
            replace(changed, **{name: getattr(spec, name) for name in same})
            for changed in read(source, json.dumps({**rest, **known}), folder)
        ]

    return read_changed


def _field(error: str) -> str:
    """Return the field with which an error's path begins: `specs` of `specs[0].memory: …`."""
    path = error.partition(":")[0]
    return path.partition("[")[0].partition(".")[0]
