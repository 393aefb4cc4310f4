from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping import rules
from cockpit.backends.slurm.mapping.records import settings
from cockpit.formats.slurm.conf import slurm_conf
from cockpit.model.cluster import Cluster, Priority, PriorityFlag


@pytest.mark.req("SL-30", "SC-15")
@pytest.mark.parametrize("flag", PriorityFlag)
def test_every_flag_is_read_as_it_is_exported(flag: PriorityFlag) -> None:
    written = slurm_conf(Cluster(priority=Priority(flags=(flag,))), ()).text
    (line,) = [line for line in written.splitlines() if line.startswith("PriorityFlags=")]
    shown = line.replace("=", "   = ")
    assert rules.cluster(settings(shown), ()).priority.flags == (flag,)


@pytest.mark.req("SL-30")
def test_the_exported_word_is_slurms_own() -> None:
    found = rules.cluster(settings("PriorityFlags           = SMALL_RELATIVE_TO_TIME,INCR_ONLY,MAX_TRES,NEW_ONE"), ())
    assert set(found.priority.flags) == {
        PriorityFlag.INCREMENT_ONLY,
        PriorityFlag.MAX_TRES,
        PriorityFlag.SMALL_RELATIVE_TO_TIME,
    }


@pytest.mark.req("SL-30")
@pytest.mark.parametrize(("printed", "seconds"), [("00:00:00", 0), ("7-00:00:00", 604_800), ("", 604_800)])
def test_an_age_factor_that_is_full_at_once_is_not_treated_as_none(printed: str, seconds: int) -> None:
    assert rules.cluster(settings(f"PriorityMaxAge = {printed}"), ()).priority.max_age_seconds == seconds
