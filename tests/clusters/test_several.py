"""All clusters of config.toml from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit import cli
from cockpit.clusters import choosing, several

ROOT = Path(__file__).parents[2]
CONFIG = (
    '[clusters]\nold = "recorded:22.05"\nnew = "recorded:24.11"\nlab = "slurmrestd+unix:///nonexistent/rest.sock"\n'
)


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG_HOME", "RUNTIME_DIR", "STATE_HOME"):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name))
    monkeypatch.delenv("COCKPIT_CLUSTER", raising=False)
    monkeypatch.setattr(several, "system_runs", lambda: False)
    monkeypatch.setattr(several, "slurm_if_configured", str)
    (tmp_path / "CONFIG_HOME" / "cockpit-cluster").mkdir()
    (tmp_path / "CONFIG_HOME" / "cockpit-cluster" / "config.toml").write_text(CONFIG)


@pytest.mark.req("UI-10")
def test_every_cluster_is_listed_even_if_it_does_not_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["clusters", "-o", "json"]) == 0
    rows = {row["name"]: row for row in json.loads(capfd.readouterr().out)["rows"]}
    assert [(name, row["state"], row["running"], row["cards"]) for name, row in rows.items()] == [
        ("old", "still", 9, {"used": 16, "total": 16}),
        ("new", "still", 8, {"used": 16, "total": 16}),
        ("lab", "no answer", None, None),
    ]
    assert "cannot be reached: No such file or directory" in rows["lab"]["reason"]
    assert cli.main(["clusters", "--filter", "state:still", "--columns", "name", "--no-header"]) == 0
    assert capfd.readouterr().out.split() == ["old", "new"]


@pytest.mark.req("UI-10", "TR-04")
def test_one_list_of_all_their_jobs_by_their_own_ids(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["jobs", "-c", "all", "--filter", "name~train", "-o", "json"]
    assert cli.main(words) == 0
    printed = capfd.readouterr()
    rows = json.loads(printed.out)["rows"]
    assert [(row["id"], row["clusters"], row["placed_on"]) for row in rows] == [
        (6, ["old"], ["old:n3"]),
        (6, ["new"], ["new:n3"]),
    ]
    assert "lab does not answer, so what it has is not here: slurmrestd at /nonexistent/rest.sock" in printed.err
    for verb in ("nodes", "holds", "starts", "accounting"):
        assert cli.main([verb, "-c", "all"]) == 0
        assert "lab does not answer, so what it has is not here" in capfd.readouterr().err
    assert cli.main(["clusters"]) == 0
    assert "is not here" not in capfd.readouterr().err
    assert cli.main(["jobs", "-c", "all", "--fold", "--filter", "cluster:new name:arr"]) == 0
    assert "46_[0-9%2]" in capfd.readouterr().out


@pytest.mark.req("UI-10")
def test_a_job_is_named_with_its_cluster(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["job", "new:47", "-o", "json"]) == 0
    assert '"name":"stage1"' in capfd.readouterr().out.replace(" ", "")


def test_without_configured_clusters_this_machines_own_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several, "members", dict)
    assert list(several._addresses()) == [(choosing.OWN, choosing.CLUSTERS[choosing.OWN])]
    assert list(several._addresses(may_be_empty=True)) == []


@pytest.mark.req("UI-10", "UI-50")
@pytest.mark.parametrize(
    ("cluster", "listed"),
    [
        ("demo campus", ["demo", "demo campus"]),
        ("demo fleet", ["demo", "member of fleet"]),
        ("recorded:22.05", ["recorded:22.05", "snapshot"]),
    ],
)
def test_the_view_of_clusters_starts_no_engine_and_writes_no_file(
    tmp_path: Path, cluster: str, listed: list[str]
) -> None:
    script = tmp_path / "clusters.play"
    waits = "".join(f'wait "{words}"\n' for words in listed)
    script.write_text(f"cluster {cluster}\nsize 140x30\npress 8\n{waits}")
    folders = {name: tmp_path / name for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SLURM_CONF": ""}
    env |= {name: str(folder) for name, folder in folders.items()}
    words = (sys.executable, "-m", "cockpit.cli", "play", str(script), "--out", str(tmp_path / "out"))
    done = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert [str(path) for folder in folders.values() for path in folder.rglob("*") if path.is_socket()] == []
    assert list(folders["XDG_STATE_HOME"].rglob("journal*")) == []
