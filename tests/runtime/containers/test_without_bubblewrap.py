"""Views that are made without bubblewrap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
CHECKOUT = Path(__file__).parents[3]
DEVICES = ("full", "fuse", "null", "pts", "random", "tty", "urandom", "zero")
READ_ONLY = ("/usr", "/home/read", "/home/deep/file", "/sys", "/proc/sys", "/secret", "/var/masked")


@pytest.mark.req("TR-03")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system that never answers")
def test_an_unresponsive_folder_ends_the_setup_of_the_mounts(tmp_path: Path) -> None:
    words = [*APART, sys.executable, "-m", "tests.runtime.containers.unanswered", str(tmp_path)]
    made = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert made.stderr == ""
    assert json.loads(made.stdout) == [-1, "the file server of a mounted folder does not answer"]


@pytest.mark.req("TR-03", "TR-02")
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts with options that an ordinary user's namespace refuses")
def test_a_container_without_bubblewrap_has_the_mounts_of_one_with_it(tmp_path: Path) -> None:
    words = [*APART, sys.executable, "-m", "tests.runtime.containers.both_builders", str(tmp_path)]
    made = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert made.stderr == ""
    told = json.loads(made.stdout)
    seen = told["without"]
    assert (told["why"], told["left open"], told["left running"]) == ("", 0, "")
    assert told["refused"] == [-1, "mount bind on /no/such: No such file or directory"]
    assert [seen[each] for each in ("secret", "file", "working")] == [[], "text", "/"]
    assert seen["names"] == ["dev", "home", "proc", "secret", "sys", "usr", "var"]
    options = {place: set(facts[0]) for place, facts in seen["mounts"].items()}
    assert {place for place in options if "nosuid" not in options[place]} == set()
    assert {place for place in options if "nodev" not in options[place]} == {f"/dev/{name}" for name in DEVICES}
    assert {"ro" if "ro" in options[place] else "rw" for place in READ_ONLY} == {"ro"}
    assert {"ro" if "ro" in options[place] else "rw" for place in ("/", "/dev", "/home/written")} == {"rw"}
    assert "noexec" in options["/proc"]
    assert seen["mounts"]["/dev/shm"][3] == "rw,size=8192k"
    assert (seen["devices"]["shm"][0], seen["devices"]["ptmx"][1]) == ("drwxrwxrwt", "pts/ptmx")
    if "with" in told:
        told["with"]["devices"].pop("core")  # a link to the kernel's memory, which no job may read
        assert seen["devices"] == told["with"]["devices"]
        assert without_noexec(seen["mounts"]) == without_noexec(told["with"]["mounts"])


def without_noexec(mounts: dict[str, list[object]]) -> dict[str, list[object]]:
    """The mounts but for one option of /proc, which bubblewrap takes over from the machine's."""
    return {
        place: [[each for each in options if each != "noexec"], *facts] for place, (options, *facts) in mounts.items()
    }
