"""How accounts stand, against what sshare of real clusters printed."""

from __future__ import annotations

import pytest

from cockpit.model.accounts import Accounts, Association
from cockpit.model.cluster import Priority, PriorityFlag
from cockpit.sched.priority.standings import fair_share_figures
from tests.sched.recorded import NAMES, Recorded


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest) -> Recorded:
    return Recorded(request.param)


def printed(recorded: Recorded, column: int) -> dict[str, float]:
    """A column of sshare's, of every line below root."""
    pairs = zip(recorded.rows[1:], recorded.raw_rows[1:], strict=True)
    return {row.association.key: float(raw[column]) for row, raw in pairs if raw[column]}


@pytest.mark.req("SC-24", "SC-02")
def test_norm_shares_are_the_printed_ones(recorded: Recorded) -> None:
    found = fair_share_figures(recorded.accounts, recorded.usage, recorded.cluster.priority)
    assert {key: f"{each.norm_shares:.6f}" for key, each in found.items()} == {
        key: f"{shares:.6f}" for key, shares in printed(recorded, 3).items()
    }


@pytest.mark.req("SC-24", "SC-02")
def test_usage_is_near_the_printed_one(recorded: Recorded) -> None:
    """RawUsage is of a later moment than the parts are."""
    found = fair_share_figures(recorded.accounts, recorded.usage, recorded.cluster.priority)
    assert {key: each.norm_usage for key, each in found.items()} == pytest.approx(
        printed(recorded, 5), rel=0.25, abs=0.01
    )
    assert {key: each.effective_usage for key, each in found.items()} == pytest.approx(
        printed(recorded, 6), rel=0.25, abs=0.01
    )


def test_levels_and_factors_equal_those_that_sshare_prints(recorded: Recorded) -> None:
    found = fair_share_figures(recorded.accounts, recorded.usage, recorded.cluster.priority)
    classic = PriorityFlag.NO_FAIR_TREE in recorded.cluster.priority.flags
    levels = set() if classic else set(printed(recorded, 8))
    assert {key for key, each in found.items() if each.level_fs is not None} == levels
    assert {key for key, each in found.items() if each.fair_share is not None} == set(printed(recorded, 7))


@pytest.mark.req("SC-02")
def test_where_depth_is_oblivious_fair_share_is_classic() -> None:
    """slurm.conf(5): DEPTH_OBLIVIOUS enables NO_FAIR_TREE."""
    recorded = Recorded(next(iter(NAMES)))
    alone, both = (
        fair_share_figures(recorded.accounts, recorded.usage, Priority(flags=flags))
        for flags in (
            (PriorityFlag.DEPTH_OBLIVIOUS,),
            (PriorityFlag.DEPTH_OBLIVIOUS, PriorityFlag.NO_FAIR_TREE),
        )
    )
    assert alone == both
    assert all(each.level_fs is None for each in alone.values())


def test_without_usage_every_association_is_unused() -> None:
    tree = Accounts().associations | {
        each.key: each
        for each in (Association(account="a", parent="root", shares=3), Association(account="a", user="ann"))
    }
    found = fair_share_figures(Accounts(associations=tree), {}, Priority())
    assert found["a/"].norm_shares == 0.75
    assert found["a/ann"][1:4] == (0.0, 0.0, float("inf"))


@pytest.mark.req("SC-01")
@pytest.mark.parametrize(
    ("own", "accounts", "above", "expected"),
    [(None, None, None, 0), (None, None, 7, 7), (None, 5, 7, 5), (0, 5, 7, 0), (9, None, None, 9)],
)
def test_a_priority_that_is_not_set_is_that_of_the_account_above(
    own: int | None, accounts: int | None, above: int | None, expected: int
) -> None:
    user = Association(account="vision", user="ann", priority=own)
    rows = (
        Association(account="ai", parent="root", priority=above),
        Association(account="vision", parent="ai", priority=accounts),
        user,
    )
    tree = Accounts(associations=Accounts().associations | {each.key: each for each in rows})
    assert tree.priority_of(user) == expected
