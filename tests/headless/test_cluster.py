from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from cockpit.config.places import EnginePaths
from cockpit.config.site import Site, with_cluster
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.cluster import Cluster, Partition
from cockpit.resources import fixture
from tests.headless.conftest import Desk

EXAMPLE = fixture("slurmspec/training-cluster.json").read_bytes()


@pytest.mark.req("SC-15")
def test_init_from_a_slurm_spec(desk: Desk) -> None:
    done = desk("cluster", "init", "--from", "-", stdin=EXAMPLE)
    assert done.code == ExitCode.OK
    assert done.lines[:2] == ["wrote /c/cluster.toml", "partitions: a4"]
    assert done.lines[2:] == [
        "priority: priority/multifactor; preemption: preempt/partition_prio, SUSPEND,GANG",
        "enforced of accounts: associations, limits, qos",
        "pool a4: *",
        "pool login: no node yet",
        "/home in containers: /home (projects/PROJECT_ID/locations/REGION-ZONE/instances/FILESTORE_INSTANCE_ID)",
        "prolog and epilog scripts: 3, run around each job by the engine's own user",
        "these settings are fixed (mutable = false); nodes, pools, storages and accounts are yours to change",
        "next: cockpit engine restart",
        "then: cockpit accounts add NAME, cockpit accounts add-user USER --account NAME; then users may submit",
    ]
    bare = desk("cluster", "init", "--from", "-", "--force", stdin=b'{"orchestratorSpec": {"slurmSpec": {}}}').lines
    assert not [line for line in bare if line.startswith(("/home", "prolog", "pool"))], bare
    assert desk.site.text is not None
    assert tomllib.loads(desk.site.text)["mutable"] is False


def test_init_overwrites_no_file_without_the_option(desk: Desk) -> None:
    desk.site.text = before = 'login_node_pool = "x"\n'
    done = desk("cluster", "init")
    assert (done.code, desk.site.text) == (ExitCode.CONFLICT, before)
    assert "/c/cluster.toml has rules already" in done.err
    desk.site.text = "[priority]\n"
    assert "the one before is /c/cluster.toml.before" in desk("cluster", "init", "--force").lines[0]
    assert "[[partitions]]" in desk.site.text


def test_init_completes_existing_files(desk: Desk) -> None:
    desk.site.text = '# ours\n[node_pools]\na4 = ["box"]\nlogin = []\n'
    assert desk("cluster", "init", "--from", "-", stdin=EXAMPLE).code == ExitCode.OK
    assert '# ours\n[node_pools]\na4 = ["box"]' in desk.site.text


def test_init_prints_all_errors_and_warnings(desk: Desk) -> None:
    done = desk("cluster", "init", "--from", "-", stdin=EXAMPLE.replace(b"SUSPEND,GANG", b"SUSPEND"))
    assert (done.code, desk.site.text) == (ExitCode.INVALID, None)
    assert "orchestratorSpec.slurmSpec.scheduling.preempt_mode: SUSPEND needs GANG" in done.err
    done = desk("cluster", "init", "--from", "-", stdin=EXAMPLE.replace(b'"accounting": {', b'"accounting": {"x": 1,'))
    assert done.code == ExitCode.OK
    assert "warning: orchestratorSpec.slurmSpec.accounting.x: is not known here" in done.err


def test_init_from_no_file(desk: Desk) -> None:
    done = desk("cluster", "init", "--from", "/nowhere/spec.json")
    assert (done.code, "/nowhere/spec.json: cannot be read" in done.err) == (ExitCode.NOT_FOUND, True)


@pytest.mark.req("SC-15")
def test_init_names_the_accounts_that_users_need_before_they_may_submit(desk: Desk) -> None:
    advice = "then: cockpit accounts add NAME, cockpit accounts add-user USER --account NAME; then users may submit"
    assert advice in desk("cluster", "init", "--from", "-", stdin=EXAMPLE).lines
    desk.site.text = '[[accounts]]\nname = "nlp"\n[[users]]\nname = "ann"\naccount = "nlp"\n'
    assert advice not in desk("cluster", "init", "--from", "-", stdin=EXAMPLE).lines
    desk.site.text = None
    assert advice not in desk("cluster", "init").lines, "nothing is enforced"


@pytest.mark.req("SC-15")
def test_the_rules_in_force_are_shown_as_a_file_and_for_programs(desk: Desk) -> None:
    desk.backend.cluster = Cluster(partitions=(Partition(name="gpu"),), urgent_jobs=2)
    shown = tomllib.loads(desk("cluster", "show").out.decode())
    assert (shown["urgent_jobs"], shown["partitions"]) == (2, [{"name": "gpu"}])
    document = json.loads(desk("cluster", "-o", "json").out)
    assert document["cluster"]["partitions"][0]["name"] == "gpu"


@pytest.mark.req("SC-15")
def test_export_to_the_output_and_to_a_file_with_scripts(desk: Desk, tmp_path: Path) -> None:
    desk.backend.cluster = Cluster(prolog_scripts=("#!/bin/bash\necho one",))
    done = desk("cluster", "export", "--slurm-conf")
    assert b"\nPartitionName=all " in done.out
    assert "to fill in: Prolog, Epilog" in done.err
    done = desk("cluster", "export", "--slurm-conf", str(tmp_path / "etc/slurm.conf"))
    assert done.lines == [f"wrote {tmp_path}/etc/slurm.conf"]
    text = (tmp_path / "etc/slurm.conf").read_text()
    assert f"Prolog={tmp_path}/etc/prolog.d/*.sh" in text
    script = tmp_path / "etc/prolog.d/00.sh"
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("#!/bin/bash\necho one", 0o755)
    assert "Prolog, Epilog" not in done.err


def test_use_prints_the_file_that_stores_the_choice(desk: Desk) -> None:
    assert "/c/config.toml" in desk("cluster", "use", "system").lines[0]
    assert desk.used == ["system"]
    refused = desk("cluster", "use", "")
    assert (refused.code, desk.used) == (ExitCode.USAGE, ["system"])
    assert "NAME is empty" in refused.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'cluster = "system"\n'),
        ("# mine\ncluster = 'x'  # old\n", '# mine\ncluster = "system"\n'),
        ('[keys]\ncluster = "c"\n', 'cluster = "system"\n[keys]\ncluster = "c"\n'),
        ('theme = "dark"\n', 'cluster = "system"\ntheme = "dark"\n'),
    ],
)
def test_the_chosen_cluster_changes_no_other_setting(before: str, after: str) -> None:
    assert with_cluster(before, "system") == after


def test_files_are_written_atomically_and_the_previous_one_is_kept(tmp_path: Path) -> None:
    site = Site(EnginePaths(tmp_path / "s", tmp_path / "state", tmp_path / "config"))
    assert site.cluster_text() is None
    assert site.write_cluster("a = 1\n") is None
    kept = site.write_cluster("a = 2\n")
    assert kept is not None
    assert (kept.read_text(), site.cluster_text()) == ("a = 1\n", "a = 2\n")
    assert sorted(path.name for path in site.cluster_file.parent.iterdir()) == ["cluster.toml", "cluster.toml.before"]
