from __future__ import annotations

import pytest

from cockpit.errors import CockpitError
from cockpit.launch.sweeps import has_trial, trial_count, trial_number, trial_spec, trial_values
from cockpit.model.spec import Search, Sweep
from tests.builders import a_spec

GRID = Sweep(parameters={"lr": ("0.1", "0.01"), "layers": ("2", "4", "8")})
RANDOM = Sweep(parameters={"lr": tuple(map(str, range(100))), "x": ("a", "b c")}, search=Search.RANDOM, max_trials=50)


@pytest.mark.req("LA-63")
def test_a_grid_tries_every_combination_in_order() -> None:
    found = [tuple(trial_values(GRID, index).values()) for index in range(trial_count(GRID))]
    assert found == [(lr, layers) for lr in ("0.1", "0.01") for layers in ("2", "4", "8")]


@pytest.mark.req("LA-63")
def test_a_random_choice_follows_its_seed_and_repeats_nothing() -> None:
    def chosen(seed: int) -> list[tuple[str, ...]]:
        sweep = Sweep(parameters=RANDOM.parameters, search=Search.RANDOM, max_trials=50, seed=seed)
        return [tuple(trial_values(sweep, index).values()) for index in range(trial_count(sweep))]

    assert chosen(1) == chosen(1) != chosen(2)
    assert len({*chosen(1)}) == 50
    everything = Sweep(parameters={"x": ("1", "2", "3")}, search=Search.RANDOM, max_trials=9)
    assert {trial_values(everything, index)["x"] for index in range(trial_count(everything))} == {"1", "2", "3"}


@pytest.mark.req("LA-63")
@pytest.mark.parametrize("index", [-1, 6, 600])
@pytest.mark.parametrize("search", Search)
def test_a_trial_that_the_sweep_does_not_have_is_refused_in_a_sentence(search: Search, index: int) -> None:
    sweep = Sweep(parameters=GRID.parameters, search=search)
    with pytest.raises(CockpitError, match=f"The sweep has no trial {index + 1}: it has 6."):
        trial_values(sweep, index)


@pytest.mark.req("LA-63")
def test_the_values_follow_the_command() -> None:
    assert trial_spec(a_spec(sweep=GRID), 3).command == "python train.py --lr=0.01 --layers=2"
    odd = Sweep(parameters={"x": ("b c;",)})
    assert trial_spec(a_spec(sweep=odd), 0).command == "python train.py '--x=b c;'"
    assert trial_number(0) == "1"


@pytest.mark.req("LA-63")
def test_a_random_choice_is_the_same_on_every_machine_and_in_every_version() -> None:
    def chosen(seed: int) -> list[str]:
        sweep = Sweep(parameters={"x": tuple(map(str, range(1000)))}, search=Search.RANDOM, max_trials=5, seed=seed)
        return [trial_values(sweep, index)["x"] for index in range(5)]

    assert chosen(0) == ["535", "465", "110", "53", "978"]
    assert chosen(7) == ["10", "588", "691", "615", "169"]


@pytest.mark.req("LA-63")
def test_a_sweep_has_as_many_trials_as_combinations_or_fewer_if_it_asks_for_fewer() -> None:
    assert [trial_count(Sweep(parameters=GRID.parameters, max_trials=most)) for most in (0, 4, 6, 7)] == [6, 4, 6, 6]
    assert [has_trial(GRID, index) for index in (-1, 0, 5, 6)] == [False, True, True, False]
