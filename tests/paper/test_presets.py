"""The published values, and that every algorithm runs on every domain."""

import inspect
import itertools

import numpy as np
import pytest
from small import mostly_long

import dqd
from dqd import emitters
from dqd.paper.presets import ALGORITHMS, DOMAINS, make_domain, preset, settings

# The table of hyper-parameters behind the published results: LP (sphere and Rastrigin), then arm.
PUBLISHED = {
    "map-elites": ({"sigma": 0.5}, {"sigma": 0.1}),
    "map-elites-line": ({"sigma1": 0.5, "sigma2": 0.2}, {"sigma1": 0.1, "sigma2": 0.2}),
    "cma-me": ({"sigma": 0.5}, {"sigma": 0.1}),  # the paper's text says 0.2 for the arm
    "og-map-elites": ({"sigma": 0.5, "step": 0.5}, {"sigma": 0.1, "step": 100}),
    "og-map-elites-line": (
        {"sigma1": 0.5, "sigma2": 0.2, "step": 0.5},
        {"sigma1": 0.1, "sigma2": 0.2, "step": 100},
    ),
    "omg-mega": ({"sigma": 10, "normalize": True}, {"sigma": 1, "normalize": True}),
    "omg-mega-unnormalized": ({"sigma": 0.5, "normalize": False}, {"sigma": 1e-4, "normalize": False}),
    "cma-mae": ({"sigma": 0.5, "annealing": 0.01}, {"sigma": 0.1, "annealing": 0.01}),
    "cma-maega": ({"sigma": 10, "annealing": 0.01}, {"sigma": 0.05, "annealing": 0.01}),
    "dds": ({"sigma": 1.5, "bandwidth": 0.05}, {"sigma": 0.5, "bandwidth": 0.05}),
    "dms": ({"sigma": 0.5, "annealing": 0.1}, {"sigma": 0.2, "annealing": 0.001}),
    "cma-mega": ({"sigma": 10, "learning_rate": 1}, {"sigma": 0.05, "learning_rate": 1}),
    "cma-mega-adam": ({"sigma": 10, "learning_rate": 0.002}, {"sigma": 0.05, "learning_rate": 0.002}),
}
PUBLISHED["og-map-elites-independent"] = PUBLISHED["og-map-elites"]
PUBLISHED["og-map-elites-line-independent"] = PUBLISHED["og-map-elites-line"]


@pytest.mark.parametrize("algorithm", PUBLISHED)
def test_values_are_those_behind_the_published_tables(algorithm: str) -> None:
    lp, arm = PUBLISHED[algorithm]
    assert settings("lp-sphere", algorithm).items() >= lp.items()
    assert settings("lp-rastrigin", algorithm) == settings("lp-sphere", algorithm)
    assert settings("arm", algorithm).items() >= arm.items()


@pytest.mark.parametrize("domain", DOMAINS)
def test_budgets_and_modes(domain: str) -> None:
    for algorithm in ALGORITHMS:
        values = settings(domain, algorithm)
        independent = algorithm.endswith("independent")
        evaluations = 48 if independent and domain == "arm" else 36
        of_15 = algorithm.startswith(("cma-mae", "dds", "dms"))
        assert values["batch_size"] == {"squad": 128}.get(algorithm, 15 * evaluations if of_15 else evaluations)
        assert values.get("rank_one") == ("dqd2021" if algorithm.startswith(("cma", "dds", "dms")) else None)
        starts_from_elites = not algorithm.startswith(("cma", "dds", "dms", "squad", "auto", "targeting", "random"))
        assert values.get("initial_population") == (100 if starts_from_elites else None)
        if independent:
            assert (values["independent"], values["stepped"]) == (True, 12)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_settings_name_every_argument_of_the_preset_function(algorithm: str) -> None:
    function = getattr(emitters, ALGORITHMS[algorithm].function)
    assert set(settings("arm", algorithm)) == set(inspect.signature(function).parameters) - {"arguments"}


PAIRS = list(itertools.product(DOMAINS, ALGORITHMS))
IN_TURN = list(zip(itertools.cycle(DOMAINS), ALGORITHMS, strict=False))[::3]


@pytest.mark.parametrize(("name", "algorithm"), mostly_long(PAIRS, *IN_TURN))
def test_every_algorithm_runs_on_every_domain(name: str, algorithm: str) -> None:
    domain, emitter = make_domain(name, 8), preset(name, algorithm)
    result = dqd.illuminate(domain, emitter, domain.grid(10), x0=np.zeros(8), iterations=3, progress=False)
    values = settings(name, algorithm)
    assert result.evaluations == values.get("initial_population", 0) + 3 * values["batch_size"]
    assert result.gradients == 3 * emitter.num_points
    assert result.coverage > 0


def test_overrides_replace_published_values() -> None:
    emitter = preset("arm", "cma-mega", sigma=0.3, batch_size=20, rank_one="textbook")
    assert emitter.batch_size + emitter.num_points == 20
    assert emitter.strategy.sigma == 0.3
    assert emitter.strategy.rank_one == "textbook"
    assert settings("arm", "cma-mega")["sigma"] == 0.05  # the published values themselves stay


@pytest.mark.parametrize(
    ("domain", "algorithm", "overrides", "words"),
    [
        (
            "lp-spher",
            "cma-mega",
            {},
            ["unknown domain 'lp-spher'", "did you mean 'lp-sphere'", "lp-sphere-k20, lsi-digits"],
        ),
        (
            "arm",
            "cma_mega",
            {},
            ["unknown algorithm 'cma_mega'", "'cma-mega'", "map-elites-line, auto, targeting, random"],
        ),
        ("arm", "nonsense", {}, ["unknown algorithm 'nonsense'. Known: cma-mega"]),
        ("arm", "cma-mega", {"sigm": 1.0}, ["unknown setting of cma-mega 'sigm'", "'sigma'", "learning_rate"]),
        ("arm", "map-elites", {"learning_rate": 1.0}, ["unknown setting of map-elites", "initial_population"]),
        ("arm", "omg-mega", {"normalize": "no"}, ["normalize: expected true or false, got 'no'"]),
        ("arm", "omg-mega", {"batch_size": 3.5}, ["batch_size: expected a whole number, got 3.5"]),
        ("arm", "og-map-elites-independent", {"stepped": "x"}, ["stepped: expected a whole number, got 'x'"]),
        ("arm", "cma-mega", {"sigma": -1.0}, ["sigma: expected a number above 0, got -1.0"]),
        ("arm", "cma-mega", {"rank_one": "2021"}, ["rank_one: expected 'textbook' or 'dqd2021'"]),
    ],
)
def test_mistakes_are_answered_with_the_nearest_name(
    domain: str, algorithm: str, overrides: dict, words: list[str]
) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        preset(domain, algorithm, **overrides)
    for word in words:
        assert word in str(caught.value)
