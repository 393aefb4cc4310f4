"""A staged dataset for real: through the command, across the death of an engine, and on a disk that fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually
from tests.e2e.namespaces import answer_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.cockpit_user import CockpitUser

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]
LARGE = 2 << 30


def dataset(user: CockpitUser, size: int) -> dict[str, object]:
    folder = user.work / "cats"
    folder.mkdir(exist_ok=True)
    (folder / "note").write_text("a cat\n")
    with (folder / "pictures").open("wb") as file:
        file.truncate(size)
    return {"staging": True, "datasets": [{"path": str(folder), "read_only": True}]}


def place(user: CockpitUser) -> Path:
    folder = user.work / "fast"
    folder.mkdir(exist_ok=True)
    user.configure("cluster.toml", f'[staging]\nfolder = "{folder}"\nfull = 99\n')
    return folder


@pytest.mark.req("JT-19", "JT-50")
def test_a_dataset_is_staged_seen_listed_and_removed(user: CockpitUser) -> None:
    fast = place(user)
    job = user.submit("cat /workspace/dataset/private/cats/note", output="out", **dataset(user, 1 << 20))
    assert user.wait(job) == 0
    assert user.ok("logs", job) == "a cat\n"
    eventually(lambda: user.row("staged")["state"] == "kept")
    row = user.row("staged")
    assert (row["what"], row["source"], row["size_mib"]) == ("dataset", str(user.work / "cats"), 1)
    assert user.ok("staged", "remove", row["key"]).strip() == f"removed {row['key']}"
    assert user.rows("staged") == []
    assert [*fast.glob("*/*")] == []
    told = [each["sentence"] for each in user.rows("events")]
    assert f"the copy of dataset {user.work}/cats was removed" in told


@pytest.mark.req("JT-50", "JT-31")
def test_staging_of_two_gigabytes_is_cancelled_half_way_also_by_a_restarted_engine(user: CockpitUser) -> None:
    fast = place(user)
    job = user.submit("true", output="out", **dataset(user, LARGE))
    user.until(job, "staging")
    user.kill_engine()
    row = user.row("jobs", "--filter", f"id:{job}")
    if row["state"] == "staging":
        user.ok("cancel", job, "--yes")
        eventually(lambda: user.row("jobs", "--all", "--filter", f"id:{job}")["state"] == "stopped")
        assert [*fast.glob("*/*")] == []


@pytest.mark.req("JT-50")
def test_a_small_disk_is_never_filled_beyond_its_mark_and_drains_its_node_if_other_files_fill_it(
    tmp_path: Path,
) -> None:
    told = answer_of("small_disk", tmp_path)
    assert f"{tmp_path}/work/large (40M) would fill {tmp_path}/fast beyond 80 %, and 33 % are used" in told["large"]
    assert told["left"] == []
    assert (told["ends"][0], told["ends"][1] != 0, told["whole"]) == (0, True, 1)
    assert f"the disk for staged copies: {tmp_path}/fast is filled to 8" in told["nodes"]
