"""The quota tree of docs/scheduling.md is one that cockpit takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.formats.quotatree import read_quota_tree
from cockpit.model.quota import places

PAGE = (Path(__file__).parents[2] / "docs/scheduling.md").read_text()


@pytest.mark.req("FL-01")
def test_the_example_is_read() -> None:
    (manifest,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    tree = read_quota_tree("quota.yaml", manifest)
    assert [place.path for place in places(tree.root)] == ["root", "root/nlp", "root/vision"]
    assert tree.root.max["mem"] == 1000 * 4 * 2**20
