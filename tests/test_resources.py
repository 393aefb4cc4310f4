from __future__ import annotations

import tomllib

import pytest

from cockpit.model.job import JobState
from cockpit.resources import fixture, theme_files


def test_every_theme_gives_every_state_a_colour():
    themes = [tomllib.loads(file.read_text()) for file in theme_files()]
    assert "dark" in {theme["name"] for theme in themes}
    for theme in themes:
        assert set(theme["state"]) == {state.value for state in JobState}


def test_a_fixture_is_found_by_its_path():
    assert fixture("README.md").read_text().startswith("# Fixtures")


@pytest.mark.parametrize("path", ["clusters/nowhere.toml", "../pyproject.toml", "README.md/below"])
def test_a_resource_that_does_not_ship_is_not_found(path: str):
    with pytest.raises(FileNotFoundError, match="no fixture"):
        fixture(path)
