"""Writes a spec as a job file, and reads the file back when it changes a job that another program submitted.

It imports PyYAML, which takes time: import this module late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import yaml
from msgspec.structs import replace

from cockpit.formats.job.fields import JOB
from cockpit.formats.job.file import ReadJobs, job_values
from cockpit.formats.yamltext import plain_is_text
from cockpit.launch.checks import meeting_errors, submission_errors
from cockpit.model.spec import JobSpec, NodeSpec
from cockpit.model.text import is_visible


def spec_as_table(spec: JobSpec) -> dict[str, object]:
    """Return a spec's plain values by field name, for YAML or JSON: those that differ from defaults, and all limits."""
    if spec.resume is not None:
        spec = replace(spec, elastic=None)  # its own follows from it
    # `as_accepted` has set its requests to 0, which no file may write.
    if spec.is_best_effort:
        unsaid = NodeSpec()
        bare = tuple(replace(each, cpus=unsaid.cpus, memory_mib=unsaid.memory_mib) for each in spec.specs)
        spec = replace(spec, specs=bare)
    table = JOB.write(spec)
    if spec.worker_pools:  # the first one says it
        table.pop("specs", None)
    return table


def spec_as_yaml(spec: JobSpec) -> str:
    """Return a YAML document that `read_jobs` reads as an equal spec, in any folder and with any defaults."""
    return values_as_yaml(spec_as_table(spec))


def values_as_yaml(values: Mapping[str, object]) -> str:
    """Return the plain values of a job file as YAML."""
    return str(yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


class _Dumper(yaml.SafeDumper):
    """Quotes text that a reader might take for another type, and escapes invisible characters."""

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        # PyYAML escapes invisible characters only where it escapes everything beyond ASCII.
        self.allow_unicode = is_visible(text)
        super().write_double_quoted(text, split)
        self.allow_unicode = True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=_style(value))


def _style(value: str) -> str | None:
    """Write texts of several lines, such as scripts, as readable blocks."""
    if "\n" in value and all(is_visible(line) for line in value.split("\n")):
        return "|"
    # PyYAML quotes by YAML 1.1 alone.
    return None if is_visible(value) and plain_is_text(value) else '"'


_Dumper.add_representer(str, _text)


_STAND_INS: Final[dict[str, object]] = {"name": "job", "command": "true", "output": "/"}
"""Valid values of the fields that every job file must have."""


# sbatch takes names, scripts and sizes that no job file may give: a script of standard input has no command, and a
# cluster that does not count memory reports none. A field that the file does not change is therefore not checked.
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
        # Replaced by valid values for the reading, and put back afterwards.
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
