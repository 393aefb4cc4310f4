"""Jobs that fail and begin again for real: the same id, a log for each attempt, the container of the last one kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

COUNTS = """
cd /workspace/outputs
n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n
echo "this is attempt $COCKPIT_ATTEMPT"
"""


@pytest.mark.req("JT-18", "JT-40")
def test_it_is_restarted_until_it_succeeds_or_no_restart_is_left(user: CockpitUser) -> None:
    script = f"{COUNTS}[ $COCKPIT_ATTEMPT -ge $GOOD ] || exit 3"
    heals = user.submit(script, name="heals", restart={"max_restarts": 3}, env={"GOOD": "3"}, terminal=True)
    assert user.wait(heals) == 0
    assert [user.ok("logs", f"{heals}#{attempt}") for attempt in (1, 2, 3)] == [
        f"this is attempt {attempt}\n" for attempt in (1, 2, 3)
    ]
    dies = user.submit(script, name="dies", restart={"max_restarts": 1}, env={"GOOD": "9"}, terminal=True)
    assert user.wait(dies) == 3
    row = user.row("jobs", "--all", "--filter", f"id:{dies}")
    assert (row["state"], row["attempt"], row["retries"], row["why"]) == ("error", 2, 1, "exit 3; retry 1 of 1")
    assert user.ok("shell", dies, "--", "cat", "/workspace/outputs/n") == "2\n"
    page = user.ok("job", dies)
    assert f"{dies}#2 dies" in page
    assert "attempt #1" in page
    assert "failed (exit 3) and begins again, retry 1" in page
