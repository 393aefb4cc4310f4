"""The files that commands write."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cockpit.config.places import paths
from cockpit.config.site import Site
from cockpit.errors import CockpitError, SpecErrors


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(paths(1234, {"HOME": str(tmp_path)}))


def test_cluster_toml_is_written_and_the_previous_one_is_kept(site: Site) -> None:
    assert site.cluster_text() is None
    assert site.write_cluster("overcommit = true\n") is None
    assert stat.S_IMODE(site.cluster_file.parent.stat().st_mode) == 0o700
    kept = site.write_cluster("overcommit = false\n")
    assert (kept.name, kept.read_text()) == ("cluster.toml.before", "overcommit = true\n")
    assert site.cluster_text() == "overcommit = false\n"
    assert sorted(each.name for each in site.cluster_file.parent.iterdir()) == ["cluster.toml", "cluster.toml.before"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, 'cluster = "lab"\n'),
        ('theme = "dark"\n', 'cluster = "lab"\ntheme = "dark"\n'),
        ('theme = "dark"\n cluster = "old"\nascii = true\n', 'theme = "dark"\ncluster = "lab"\nascii = true\n'),
        ('[clusters]\ncluster = "ssh://a"\n', 'cluster = "lab"\n[clusters]\ncluster = "ssh://a"\n'),
        ('cluster="old"\n[keys]\ncancel = "D"\n', 'cluster = "lab"\n[keys]\ncancel = "D"\n'),
    ],
)
def test_the_chosen_cluster_changes_one_line_of_config_toml(site: Site, before: str | None, after: str) -> None:
    file = site.cluster_file.with_name("config.toml")
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_text(before)
    assert site.use_cluster("lab") == file
    assert file.read_text().rstrip() == after.rstrip()


def test_a_file_that_cannot_be_read_or_written_is_named(site: Site) -> None:
    site.cluster_file.parent.mkdir(parents=True)
    site.cluster_file.write_bytes(b"\xff")
    with pytest.raises(CockpitError, match=r"cluster\.toml"):
        site.cluster_text()
    site.cluster_file.unlink()
    site.cluster_file.mkdir()
    with pytest.raises(CockpitError, match=r"cluster\.toml"):
        site.write_cluster("overcommit = true\n")


def test_a_config_file_that_is_no_toml_is_not_changed(site: Site) -> None:
    file = site.cluster_file.with_name("config.toml")
    file.parent.mkdir(parents=True)
    file.write_text("theme = \n")
    with pytest.raises(SpecErrors, match=r"config\.toml: is no TOML"):
        site.use_cluster("lab")
    assert file.read_text() == "theme = \n"


def test_this_machine_is_a_node_with_cpus_and_memory(site: Site) -> None:
    machine = site.machine()
    assert machine.cpus >= 1
    assert machine.memory_mib > 0
