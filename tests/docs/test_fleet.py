"""docs/fleet.md shows the policy that a job of it gets. Its commands are run by tests/real/kubernetes/test_fleet.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cockpit.formats.foreign.propagation import submission_policy
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.formats.quotatree import read_quota_tree
from cockpit.model.quota import places

PAGE = (Path(__file__).parents[2] / "docs/fleet.md").read_text()
BLOCKS = dict(re.findall(r"^```yaml\n# (.*?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.req("KU-11", "FL-04")
def test_the_policy_of_the_page_is_the_one_that_submit_makes() -> None:
    (spec,) = read_jobs("job.yaml", BLOCKS["job.yaml"], "/work", defaults=Defaults())
    made = submission_policy(
        spec, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": spec.name}}
    )
    assert made == yaml.safe_load(BLOCKS["kubectl get propagationpolicy pytorch-test -o yaml"])


@pytest.mark.req("FL-01")
def test_the_quota_tree_of_the_page_is_read() -> None:
    tree = read_quota_tree("quota.yaml", BLOCKS["quota.yaml"])
    assert [place.path for place in places(tree.root)] == ["root", "root/child-2"]
