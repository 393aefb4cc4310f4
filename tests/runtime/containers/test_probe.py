from __future__ import annotations

import os

import pytest

from cockpit.runtime.containers.probe import probe_runtime

pytestmark = pytest.mark.real


def test_this_machine_makes_containers_and_no_file_of_the_probe_remains(tmp_path):
    found = probe_runtime(tmp_path, may_be_plain=False)
    assert found.usable
    assert found.kind == ("root overlay" if os.geteuid() == 0 else "user overlay")
    assert list((tmp_path / "containers").iterdir()) == []


def test_a_machine_that_cannot_make_containers_reports_the_reason(tmp_path):
    found = probe_runtime(tmp_path, may_be_plain=False, python="/bin/false")
    assert not found.usable
    assert str(found) == "none: the container's shim died before the command began: exit code 1, without a message"
