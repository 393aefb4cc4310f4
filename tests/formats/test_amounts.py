"""Amounts of resources, weights and limits as Slurm's users write them."""

from __future__ import annotations

import pytest

from cockpit.errors import SpecErrors
from cockpit.formats.trestext import (
    NumberMeaning,
    amounts_text,
    parse_tres,
    plain_number,
    text_of_example,
    tres_name,
    tres_number,
    tres_text,
)
from cockpit.formats.typed_values import limit_text, read_limit, read_priority, read_weights, weights_text
from cockpit.model.asking import SiteFactor, WantedLimit
from cockpit.model.cluster import Weights
from cockpit.model.priority import WeightChanges

AMOUNT, WEIGHT, PRICE = NumberMeaning


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("name", "value", "meaning", "number"),
    [
        ("cpu", 3, AMOUNT, 3.0),
        ("cpu", " 1e2 ", WEIGHT, 100.0),
        ("cpu", "-1", AMOUNT, -1.0),
        ("cpu", 10**15, AMOUNT, 1e15),
        ("mem", "2G", AMOUNT, 2048.0),
        ("mem", "0.25G", PRICE, 0.25 / 1024),
        ("mem", "1K", PRICE, 1024.0),
        ("mem", "4m", PRICE, 4.0),
        ("mem", "1T", PRICE, 1 / 1024**2),
        ("mem", "1P", PRICE, 1 / 1024**3),
        ("cpu", True, AMOUNT, "is no number"),
        ("cpu", [], AMOUNT, "is no number"),
        ("cpu", "2G", AMOUNT, '"2G" is no number'),
        ("mem", "2G", WEIGHT, '"2G" is no number'),
        ("mem", "much", AMOUNT, '"much" is no number'),
        ("mem", "2X", PRICE, '"2X" is no number'),
        ("cpu", -2, AMOUNT, "-2 is not between 0 and 1e+15"),
        ("cpu", 2 * 10**15, AMOUNT, "2000000000000000 is not between 0 and 1e+15"),
        ("cpu", float("nan"), AMOUNT, "nan is not between 0 and 1e+15"),
        ("cpu", float("inf"), AMOUNT, "inf is not between 0 and 1e+15"),
    ],
)
def test_the_number_of_a_resource_has_a_unit_only_if_it_is_memory(
    name: str, value: object, meaning: NumberMeaning, number: float | str
) -> None:
    assert tres_number(name, value, meaning) == number


@pytest.mark.req("SC-03")
@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("", {}),
        (" CPU=16 ,, mem=64G,gres/gpu:a100=4", {"cpu": 16, "mem": 65_536, "gres/gpu:a100": 4}),
        ("cpu", '"cpu" is no amount; write cpu=16,mem=64G,gres/gpu=4'),
        ("cpu=1,CPU=2", "cpu is there twice; keep one"),
        ("cpu=x", 'cpu: "x" is no number'),
    ],
)
def test_amounts_are_named_once_in_any_case(text: str, amounts: object) -> None:
    assert parse_tres(text) == amounts


@pytest.mark.req("SC-03")
def test_a_resource_that_is_not_counted_is_refused_and_weights_have_an_example_of_their_own() -> None:
    assert str(parse_tres("disk=3")).startswith('"disk" is no resource that is counted here')
    assert parse_tres("cpu", WEIGHT) == '"cpu" is no amount; write cpu=100,mem=150'
    assert text_of_example(PRICE) == "cpu=100,mem=150"
    assert tres_name(" Gres/GPU ") == "gres/gpu"


@pytest.mark.req("SC-03")
def test_amounts_are_written_without_points_and_memory_with_its_unit() -> None:
    assert [plain_number(each) for each in (2.0, 2.5)] == [2, 2.5]
    amounts = {"cpu": 2.0, "mem": 65_536.0, "gres/gpu": 0.5}
    assert tres_text(amounts) == "cpu=2,mem=65536,gres/gpu=0.5"
    assert parse_tres(tres_text(amounts)) == amounts
    assert amounts_text(amounts) == "cpu=2,mem=64G,gres/gpu=0.5"
    memory = {1000.0: "mem=1000M", 0.0: "mem=0M", -1.0: "mem=-1", 1.5: "mem=1.5", 1024.0: "mem=1G"}
    assert {number: amounts_text({"mem": number}) for number in memory} == memory


@pytest.mark.req("JT-35")
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("6h", WantedLimit(21_600, beside=False)),
        ("+2h", WantedLimit(7200, beside=True)),
        ("-30m", WantedLimit(-1800, beside=True)),
        ("90", WantedLimit(90, beside=False)),
    ],
)
def test_a_time_limit_is_a_time_or_a_change_of_the_present_one(text: str, limit: WantedLimit) -> None:
    assert read_limit(text) == limit
    assert read_limit(limit_text(limit)) == limit


@pytest.mark.req("JT-35")
@pytest.mark.parametrize("text", ["", "+", "soon", "--5m", "+-5m"])
def test_a_text_that_is_no_time_is_no_limit(text: str) -> None:
    assert read_limit(text) is None


@pytest.mark.req("JT-34")
def test_a_priority_has_at_most_twelve_digits() -> None:
    assert read_priority("9" * 12) == 999_999_999_999
    assert read_priority("+" + "9" * 12) == SiteFactor(999_999_999_999)
    assert read_priority("-" + "9" * 13) is None


@pytest.mark.req("SC-01")
def test_weights_are_named_as_in_slurm_and_those_left_out_stay() -> None:
    assert read_weights("Age=1000, jobsize = 0,tres/cpu=5,") == WeightChanges(age=1000, job_size=0, tres={"cpu": 5})
    assert read_weights("qos=4294967295,assoc=1") == WeightChanges(qos=4_294_967_295, assoc=1)
    weights = Weights(age=1, fairshare=2, job_size=3, partition=4, qos=5, tres={"cpu": 6})
    assert weights_text(weights) == "age=1,fairshare=2,jobsize=3,partition=4,qos=5,tres/cpu=6"
    assert weights_text(Weights(assoc=7)) == "age=0,fairshare=0,jobsize=0,partition=0,qos=0,assoc=7"


@pytest.mark.req("SC-01")
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no weight is given; write them as age=1000,fairshare=2000"),
        ("colour=3", "colour is no factor; there are age, fairshare, jobsize, partition, qos, assoc, tres/cpu"),
        ("tres/=3", "tres/ is no factor"),
        ("=3", "nothing is no factor"),
        ("age=4294967296", "age wants a whole number from 0 to 4294967295, such as age=1000"),
        ("age=", "age wants a whole number"),
        ("age=1.5", "age wants a whole number"),
        ("age=٣", "age wants a whole number"),
        ("tres/cpu=x", "tres/cpu wants a whole number"),
    ],
)
def test_a_wrong_weight_is_reported_with_its_factor(text: str, error: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        read_weights(text)
    (found,) = caught.value.errors
    assert found.startswith(error)


@pytest.mark.req("SC-01")
def test_all_wrong_weights_are_reported_together() -> None:
    with pytest.raises(SpecErrors) as caught:
        read_weights("age=x,colour=3,qos=1")
    assert len(caught.value.errors) == 2
