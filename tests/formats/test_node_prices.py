"""Lists of prices, in both forms."""

from __future__ import annotations

import pytest

from cockpit.formats.node_prices import NotPrices, read_prices


@pytest.mark.req("EL-01")
@pytest.mark.parametrize(
    "text", ['{"n07": 0.32, "*": 1}', "n07 0.32  # a spot node\n\n* 1\n", '\n {"n07": 0.3200001, "*": 1.0}']
)
def test_both_forms_are_read_in_thousandths(text: str) -> None:
    assert read_prices(text) == {"n07": 320, "*": 1000}


@pytest.mark.req("EL-01")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"n07": "much"}', "it is no JSON such as"),
        ("{", "it is no JSON such as"),
        ("n07 much", "line 1 is not a node and a price"),
        ("n07 0.3 0.4", "line 1 is not a node and a price"),
        ("n07 -1", "the price of n07 is not between 0 and 1000000"),
        ("n07 nan", "the price of n07 is not between 0 and 1000000"),
        ("n07 1e300", "the price of n07 is not between 0 and 1000000"),
    ],
)
def test_other_texts_are_refused_as_a_whole(text: str, why: str) -> None:
    with pytest.raises(NotPrices, match=why):
        read_prices(text)


@pytest.mark.req("EL-01")
def test_an_empty_list_names_no_price() -> None:
    assert read_prices("# none today\n") == {}
