"""Accounts, shares and usage as sshare and sacctmgr print them."""

from __future__ import annotations

import pytest

from cockpit.backends.slurm.mapping import accounts
from cockpit.backends.slurm.mapping.records import with_header

TREE = """\
Account|User|RawShares|NormShares|RawUsage|NormUsage|EffectvUsage|FairShare|LevelFS
root||||5000||1.0||
 nlp||2|0.5|5000|0.25|0.75||1.5
  nlp|ann|parent||||||
  nlp|bob|1|1.0|5000|0.25|0.75|0.9|inf
 vision|||||||0.0|
"""


@pytest.mark.req("SL-10")
def test_shares_keep_the_tree_and_their_figures() -> None:
    rows = {row.key: row for row in accounts.share_lines(with_header(TREE))}
    assert [(row.key, row.depth, row.parent) for row in rows.values()] == [
        ("root/", 0, ""),
        ("nlp/", 1, "root"),
        ("nlp/ann", 2, "nlp"),
        ("nlp/bob", 2, "nlp"),
        ("vision/", 1, "root"),
    ]
    bob = rows["nlp/bob"]
    assert (bob.raw_usage, bob.norm_shares, bob.norm_usage, bob.effective_usage) == (5000, 1.0, 0.25, 0.75)
    assert (bob.fair_share, bob.shares, rows["nlp/"].level_fs) == (0.9, 1, 1.5)


@pytest.mark.req("SL-10")
def test_empty_figures_of_sshare_count_as_zero() -> None:
    ann = next(row for row in accounts.share_lines(with_header(TREE)) if row.key == "nlp/ann")
    assert (ann.raw_usage, ann.norm_shares, ann.norm_usage, ann.effective_usage) == (0.0, 0.0, 0.0, 0.0)
    assert (ann.fair_share, ann.level_fs, ann.shares) == (None, None, None)
    assert accounts.usage([ann])["nlp/ann"].raw == 0.0


@pytest.mark.req("SL-10")
def test_without_sacctmgr_only_the_tree_of_sshare_is_shown() -> None:
    found = accounts.of_shares(with_header(TREE)).associations
    assert (found["nlp/"].parent, found["nlp/ann"].parent, found["nlp/ann"].user) == ("root", "", "ann")
    assert (found["nlp/"].shares, found["vision/"].shares) == (2, 1)


@pytest.mark.req("SL-10")
@pytest.mark.parametrize(("printed", "mode"), [("cluster", ""), ("requeue", "requeue"), ("", "")])
def test_a_qos_has_its_own_preempt_mode_unless_it_is_that_of_the_cluster(printed: str, mode: str) -> None:
    found = accounts.accounts((), [{"Name": "high", "PreemptMode": printed}], (), "c")
    assert found.qos["high"].preempt_mode == mode
