"""Job files that change a job which another program submitted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.job.specfile import read_changes, spec_as_yaml
from cockpit.model.spec import JobSpec, NodeSpec
from tests.builders import a_spec

ODD = replace(
    a_spec("na/me"), command="(script from standard input)", specs=(NodeSpec(memory_mib=0),), time_limit_seconds=300
)


def read(source: str, text: str, folder: str) -> list[JobSpec]:
    return read_jobs(source, text, folder, defaults=Defaults())


@pytest.mark.req("SL-20")
def test_unchanged_fields_are_not_checked() -> None:
    text = spec_as_yaml(ODD)
    with pytest.raises(SpecErrors, match="command: has an unquoted"):
        read("job.yaml", text, "/")
    (changed,) = read_changes(ODD, read)("job.yaml", text.replace("5m", "7m"), "/")
    assert changed == replace(ODD, time_limit_seconds=420)


@pytest.mark.parametrize("line", ["command: (other script)", "name: x/y", "time_limit: soon"])
@pytest.mark.req("SL-20")
def test_changed_fields_are_checked(line: str) -> None:
    field = line.partition(":")[0]
    lines = [line if each.startswith(f"{field}:") else each for each in spec_as_yaml(ODD).splitlines()]
    with pytest.raises(SpecErrors, match=rf"^job.yaml: {field}: "):
        read_changes(ODD, read)("job.yaml", "\n".join(lines), "/")


def test_a_valid_job_is_read_as_usual() -> None:
    assert read_changes(a_spec("fine"), read) is read
