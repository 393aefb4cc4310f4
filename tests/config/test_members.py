"""[clusters] in config.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.clusters import choosing, opening
from cockpit.config.loading import load_settings
from cockpit.config.members import MEMBER, Member, Members
from cockpit.errors import CockpitError, SpecErrors


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("COCKPIT_CLUSTER", raising=False)
    (tmp_path / "cockpit-cluster").mkdir()
    return tmp_path / "cockpit-cluster" / "config.toml"


@pytest.mark.req("SL-01", "SL-03")
def test_a_cluster_has_a_name_and_poll_intervals_of_its_own(config: Path) -> None:
    config.write_text(
        'ask_every = "20s"\n[clusters]\nlab = "ssh://ann@login"\n[clusters.big]\n'
        'address = "slurmrestd+https://ann@host"\ntoken_file = "token"\nask_every = "1m"\n'
    )
    assert choosing.address_of(choosing.chosen("lab")) == "ssh://ann@login"
    assert choosing.is_read_in_this_process("big")
    members = choosing.members()
    assert members["big"] == Member(
        address="slurmrestd+https://ann@host", token_file=str(config.parent / "token"), ask_every_seconds=60
    )
    intervals = opening._poll_intervals(members["lab"])
    assert (intervals.jobs, intervals.nodes, intervals.settings, intervals.patience) == (20.0, 40.0, 600.0, 30.0)
    assert opening._poll_intervals(members["big"]).jobs == 60.0
    with pytest.raises(CockpitError, match=r"There is no cluster 'labb'. This cockpit knows 'lab', 'big', 'local'"):
        choosing.chosen("labb")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('clusters = "lab"', r"clusters: is .*; write a table \[clusters\]"),
        ('[clusters]\nall = "ssh://x"', r"clusters\.all: means something already"),
        ('[clusters]\n"a b" = "ssh://x"', r"clusters\.a b: is no name"),
        ("[clusters.lab]\nask_every = 5", r"clusters\.lab\.address"),
        ('[clusters.lab]\naddress = "slurm"\npatience = 0', r"clusters\.lab\.patience"),
    ],
)
def test_an_invalid_cluster_is_reported(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SpecErrors, match=wrong):
        load_settings(env={}, files=[tmp_path / "config.toml"])


@pytest.mark.parametrize("name", ["ask_every", "patience"])
def test_the_intervals_of_a_cluster_are_at_least_a_second(tmp_path: Path, name: str) -> None:
    def read(seconds: int) -> Member:
        (tmp_path / "config.toml").write_text(f'[clusters.lab]\naddress = "slurm"\n{name} = {seconds}\n')
        return load_settings(env={}, files=[tmp_path / "config.toml"]).clusters["lab"]

    most = 3600 if name == "ask_every" else 600
    assert [getattr(read(each), f"{name}_seconds") for each in (1, most)] == [1, most]
    for beyond in (0, most + 1):
        with pytest.raises(SpecErrors, match=name):
            read(beyond)


def test_the_schema_of_clusters_is_an_address_or_a_table_and_addresses_are_written() -> None:
    assert Members().schema()["additionalProperties"] == {"anyOf": [{"type": "string"}, MEMBER.schema()]}
    assert Members().write({"lab": Member(address="slurm")}) == {"lab": "slurm"}


@pytest.mark.req("KU-01")
def test_the_namespaces_of_a_kubernetes_cluster_are_named_by_address_or_configuration(config: Path) -> None:
    config.write_text('[clusters.prod]\naddress = "kube:prod"\nnamespaces = ["team-a", "team-b"]\n')
    assert choosing.members()["prod"].namespaces == ("team-a", "team-b")
    assert opening._context_of("kube:prod") == ("prod", ())
    # Contexts of providers have colons and slashes.
    assert opening._context_of("kube:arn:aws:eks:x/prod?namespaces=team-a,team-b,team-a") == (
        "arn:aws:eks:x/prod",
        ("team-a", "team-b"),
    )
    with pytest.raises(CockpitError, match=r'"Team A" is no namespace; its name has small letters'):
        opening._context_of("kube:prod?namespaces=Team A")
    with pytest.raises(CockpitError, match=r"names no namespace; write kube:prod\?namespaces=A,B"):
        opening._context_of("kube:prod?namespaces=")
    config.write_text('[clusters.prod]\naddress = "kube:prod"\nnamespaces = ["a/b"]\n')
    with pytest.raises(SpecErrors, match=r'namespaces\[0\]: "a/b" is no namespace'):
        load_settings(env={}, files=[config])
