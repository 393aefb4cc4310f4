"""The record of a replica's usage over time stays small, and is the same however often it was read."""

from __future__ import annotations

import pytest

from cockpit.model.usage import Sample
from cockpit.runtime.cards.metering import CardReading
from cockpit.runtime.containers.measuring import Reading
from cockpit.runtime.containers.usage_record import MOST_SAMPLES, PERIOD_MS, UsageRecord, join_samples

BUSY = 2_500
"""Thousandths of a CPU."""


def lived(looks: int, every_ms: int = PERIOD_MS) -> UsageRecord:
    """Busy all the time; the card in the first half alone."""
    record = UsageRecord(0)
    for look in range(1, looks + 1):
        at = look * every_ms
        card = CardReading(80 if look <= looks // 2 else 0, 1000 + look)
        record.look(at, Reading(at * BUSY // 1000, look, look + 1), [card])
    return record


@pytest.mark.req("JT-48")
@pytest.mark.parametrize(("looks", "every_ms"), [(7, 5_003), (10_000, 5_003), (600, 1_000)])
def test_a_usage_record_stays_small_and_covers_the_whole_run(looks: int, every_ms: int) -> None:
    record = lived(looks, every_ms)
    assert len(record.samples) <= MOST_SAMPLES
    assert sum(each.lasted_ms for each in record.samples) == looks * every_ms
    assert {each.busy_milli for each in record.samples} <= {BUSY - 1, BUSY}
    use = record.use(3)
    assert (use.rank, use.cpu_ms, use.memory_mib, use.peak_memory_mib) == (
        3,
        looks * every_ms * BUSY // 1000,
        looks,
        looks + 1,
    )
    assert use.mean_card_percent == pytest.approx(80 * (looks // 2) / looks, abs=1)
    assert (use.card_percent, use.peak_card_percent, use.peak_card_memory_mib) == (0, 80, 1000 + looks)


@pytest.mark.req("JT-48")
def test_usage_while_no_engine_ran_is_in_the_next_sample() -> None:
    record = lived(2)
    away = 100 * PERIOD_MS
    record.look(2 * PERIOD_MS + away, Reading((2 * PERIOD_MS + away) * BUSY // 1000, 9, 99), [])
    assert record.samples[-1] == Sample(away, BUSY, 9, None)
    record.end(Reading(10**9, None, 120))
    total = record.use(0).total
    assert (total.cpu_ms, total.peak_memory_mib, total.peak_card_percent) == (10**9, 120, 80)


@pytest.mark.req("JT-48")
def test_a_total_never_decreases_and_unmeasured_figures_stay_unknown() -> None:
    record = UsageRecord(0)
    record.look(1_000, Reading(500, 4), [])
    record.look(2_000, Reading(400, 2), [])
    record.end(Reading())
    use = record.use(0)
    assert (use.cpu_ms, use.peak_memory_mib, use.memory_mib) == (500, 4, None)
    assert (use.card_percent, use.mean_card_percent, use.peak_card_memory_mib) == (None, None, None)


def test_two_intervals_are_weighted_by_their_length() -> None:
    assert join_samples(Sample(1_000, 100, 5, None), Sample(3_000, 500, 2, 40)) == Sample(4_000, 400, 5, 40)


@pytest.mark.req("JT-48")
def test_samples_are_joined_until_one_covers_the_period() -> None:
    record = UsageRecord(0)
    for at in (2_000, 4_000, 6_000, 8_000):
        record.look(at, Reading(at // 2, 1), [])
    assert record.samples == [Sample(4_000, 500, 1, None), Sample(4_000, 500, 1, None)]
    record.look(8_000, Reading(5_000, 1), [])
    assert len(record.samples) == 2, "a second look at the same moment adds no time"


@pytest.mark.req("JT-48")
def test_too_many_samples_are_joined_in_pairs_and_the_odd_one_stays() -> None:
    record = UsageRecord(0)
    for number in range(1, MOST_SAMPLES + 2):
        record.look(number * PERIOD_MS, Reading(number * PERIOD_MS, number), [])
    half = MOST_SAMPLES // 2
    assert [each.lasted_ms for each in record.samples] == [2 * PERIOD_MS] * half + [PERIOD_MS]
    assert [each.memory_mib for each in record.samples[-2:]] == [MOST_SAMPLES, MOST_SAMPLES + 1]
    assert record.stretch_ms == 2 * PERIOD_MS


@pytest.mark.req("JT-48")
def test_the_cards_of_a_replica_are_averaged_and_their_memory_is_added() -> None:
    record = UsageRecord(0)
    record.look(PERIOD_MS, Reading(), [CardReading(90, 100), CardReading(30, 200), CardReading(None, None)])
    use = record.use(0)
    assert (use.card_percent, use.card_memory_mib, use.peak_card_memory_mib) == (60, 300, 300)
    record.look(2 * PERIOD_MS, Reading(), [CardReading(10, 50)])
    use = record.use(0)
    assert (use.card_percent, use.card_memory_mib) == (10, 50)
    assert (use.mean_card_percent, use.peak_card_percent, use.peak_card_memory_mib) == (35, 60, 300)
    assert use.cpu_ms is None
    record.end(Reading())
    assert (record.use(0).card_percent, record.use(0).card_memory_mib) == (None, None)


@pytest.mark.req("JT-48")
def test_a_first_sample_without_a_total_does_not_count_all_time_as_the_second() -> None:
    record = UsageRecord(0)
    record.look(PERIOD_MS, Reading(None, 5), [])
    record.look(2 * PERIOD_MS, Reading(9_000, 5), [])
    record.look(3 * PERIOD_MS, Reading(9_000 + PERIOD_MS, 5), [])
    assert [each.busy_milli for each in record.samples] == [None, None, 1_000]
