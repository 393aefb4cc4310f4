"""The size of the part that is left out of a log is the same wherever it is shown."""

from __future__ import annotations

import pytest

from cockpit.present import units
from cockpit.runtime.logs import mib_of

MIB = 1 << 20

pytestmark = pytest.mark.req("JT-40")


@pytest.mark.parametrize("size", [MIB, 56 * MIB + 190_000, 57 * MIB - 1, 12 * 1024 * MIB + 1])
def test_the_job_and_its_log_report_the_same_size(size: int) -> None:
    assert units.memory(mib_of(size)) == units.size(size)


@pytest.mark.parametrize(("size", "mib"), [(0, 0), (1, 1), (MIB - 1, 1)])
def test_a_small_omitted_part_is_not_reported_as_zero(size: int, mib: int) -> None:
    assert mib_of(size) == mib
