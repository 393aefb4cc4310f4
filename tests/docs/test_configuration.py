"""docs/configuration.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.config.loading import load_settings
from cockpit.config.settings import SETTINGS, default_text
from cockpit.formats.cluster.account_fields import ACCOUNT, LIMITS, QOS, USER
from cockpit.formats.cluster.fields import FILE, STAGING
from cockpit.formats.cluster.file import cluster_schema, read_cluster
from cockpit.formats.cluster.rule_fields import ACCOUNTING, BACKFILL, PARTITION, PREEMPTION, PRIORITY, PROJECT, WEIGHTS
from cockpit.formats.tomltext import parse_toml
from cockpit.model.ids import NodeName
from cockpit.model.node import Node
from cockpit.tui.keymap import with_keys
from cockpit.tui.theme import load_themes

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
MACHINE = Node(name=NodeName("box"), cpus=2, memory_mib=4096)


@pytest.mark.parametrize("setting", SETTINGS.fields, ids=lambda setting: setting.name)
def test_every_setting_is_listed_with_its_default_and_meaning(setting) -> None:
    (row,) = re.findall(rf"^\| `{setting.name}` \| (.*?) ?\| (.*) \|$", PAGE, re.MULTILINE)
    assert row[0].strip("`") == default_text(setting)
    assert row[1] == setting.about


def test_no_other_setting_is_listed() -> None:
    table = PAGE.split("| setting |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [setting.name for setting in SETTINGS.fields]


def test_every_field_of_cluster_toml_is_listed() -> None:
    table = PAGE.split("| key |")[1].split("\n\n")[0]
    listed = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:])))
    node = cluster_schema()["properties"]["nodes"]["items"]["properties"]
    card = node["cards"]["items"]["properties"]
    assert listed == {"overcommit", *node, *card}


def test_the_examples_are_read(tmp_path: Path) -> None:
    settings, clusters, keys, theme, machine, nodes, rules, apart = EXAMPLES
    (tmp_path / "config.toml").write_text(settings)
    assert load_settings(env={}, files=[tmp_path / "config.toml"]).hold_window_seconds == 8 * 3600
    (tmp_path / "config.toml").write_text(clusters)
    read = load_settings(env={"HOME": "/home/ann"}, files=[tmp_path / "config.toml"])
    assert (read.cluster, list(read.clusters)) == ("lab", ["lab", "here", "big", "prod"])
    assert (read.clusters["big"].token_file, read.clusters["big"].ask_every_seconds) == ("/home/ann/.big-token", 30)
    (tmp_path / "config.toml").write_text(keys)
    read = load_settings(env={}, files=[tmp_path / "config.toml"])
    assert {action.id: action.keys for action in with_keys(read.keys)}["cancel"] == ("D",)
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes/paper.toml").write_text(theme)
    assert read.theme in load_themes(tmp_path / "themes")
    (box,) = read_cluster(MACHINE, machine).nodes
    assert (len(box.cards), {card.slices for card in box.cards}) == (8, {4})
    assert [len(node.cards) for node in read_cluster(MACHINE, nodes).nodes] == [4, 4]
    assert parse_toml(nodes, "example")["overcommit"] is True
    setup = read_cluster(MACHINE, rules.replace("n01", "box").replace('["*"]', "[]"))
    assert [each.name for each in setup.cluster.partitions] == ["gpu", "all"]
    assert setup.accounts.of("vision", "alice") is not None
    (box,) = read_cluster(MACHINE, apart).nodes
    assert (box.dedicated, len(box.labels), len(box.taints)) == (True, 2, 1)


RULES = {
    "the file": FILE,
    "`[staging]`": STAGING,
    "`[accounting]`": ACCOUNTING,
    "`[priority]`": PRIORITY,
    "`weights`": WEIGHTS,
    "`[backfill]`": BACKFILL,
    "`[preemption]`": PREEMPTION,
    "`[[partitions]]`": PARTITION,
    "`[[qos]]`": QOS,
    "`[[accounts]]`": ACCOUNT,
    "`[[users]]`": USER,
    "`[[projects]]`": PROJECT,
    "`limits`": LIMITS,
}
ELSEWHERE = {"overcommit", "machine", "nodes", "accounting", "priority", "backfill", "preemption", "partitions"}
ELSEWHERE |= {"qos", "accounts", "users", "projects"}


@pytest.mark.parametrize("place", RULES)
def test_every_rule_is_listed_with_its_meaning(place: str) -> None:
    table = PAGE.split("| rule |")[1].split("\n\n")[0]
    listed = re.findall(rf"^\| `(\w+)` \| {re.escape(place)} \| (.*) \|$", table, re.MULTILINE)
    left_out = ELSEWHERE if place == "the file" else set()
    assert listed == [(rule.name, rule.about) for rule in RULES[place].fields if rule.name not in left_out]
