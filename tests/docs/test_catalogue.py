"""docs/catalogue.md names the kinds, settings, places and commands that there are, and its example is read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cockpit.formats.catalogue.file import TABLES, read_catalogue
from cockpit.headless.arguments import parse
from cockpit.launch import workspace
from cockpit.model.catalogue import EntryKind

PAGE = (Path(__file__).parents[2] / "docs/catalogue.md").read_text()
COMMON = {"name", "project", "owner", "access", "about"}


@pytest.mark.req("JT-49")
@pytest.mark.parametrize("kind", EntryKind)
def test_every_kind_is_listed_with_its_settings(kind: EntryKind) -> None:
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{kind}` |"))
    own = {field.name for field in TABLES[kind].fields if not field.alias} - COMMON
    told = {name for name in own if f"`{name}`" in row.split("|")[3]}
    assert told == own or (kind is EntryKind.SPEC and len(told) >= 4)


def test_the_example_is_read() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert [entry.name for entry in read_catalogue(example)] == ["corpus", "bert", "big"]


def test_the_commands_are_commands() -> None:
    (block,) = re.findall(r"## Commands\n\n```\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        parse(shlex.split(line, comments=True)[1:])


@pytest.mark.req("JT-30")
def test_the_places_are_those_of_the_workspace() -> None:
    (block,) = re.findall(r"and no others:\n\n```\n(.*?)```", PAGE, re.DOTALL)
    tops = {line.split("/")[0].split()[0] for line in block.splitlines()}
    places = (value for name, value in vars(workspace).items() if name.isupper() and isinstance(value, str))
    assert tops == {place.split("/")[2] for place in places if place != workspace.WORKSPACE}
