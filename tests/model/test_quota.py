"""What a quota tree may not say, with the amounts as its manifest writes them."""

from __future__ import annotations

import pytest

from cockpit.model.quota import QuotaNode, QuotaTree, tree_errors


@pytest.mark.req("SC-07")
@pytest.mark.parametrize(
    ("resource", "least", "most", "said"),
    [
        ("cpu", 2500, 2000, "max 2 is below min 2.5"),
        ("cpu", 10_000, 1010, "max 1.01 is below min 10"),
        ("mem", 2_048_000, 1_024_000, "max 1024Mi is below min 2048Mi"),
    ],
)
def test_amounts_are_written_in_the_units_of_a_manifest(resource: str, least: int, most: int, said: str) -> None:
    child = QuotaNode(name="child", min={resource: least}, max={resource: most})
    root = QuotaNode(name="root", min={resource: 20_000_000}, max={resource: 20_000_000}, children=(child,))
    assert any(error.endswith(said) for error in tree_errors(QuotaTree("tree", root)))
