"""Common mistakes, and the words that help out of each: which argument, what was expected, what was given."""

import math

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import dqd
from dqd.archives import Archive
from dqd.emitters.operators import Gaussian
from dqd.emitters.variation import Variation
from dqd.paper import presets
from dqd.tessellations import Grid, register
from dqd.types import pytree

GRID = dqd.Grid([-1, -1], [1, 1], [4, 4])
EMITTER = dqd.map_elites(0.1, batch_size=4, initial_population=0)


def score(x):
    return -jnp.sum(x**2), x[:2]


def run(function=score, emitter=EMITTER, grid=GRID, **options):
    return dqd.illuminate(
        function, emitter, grid, **{"x0": jnp.zeros(3), "iterations": 1, "progress": False, **options}
    )


class Unfinished:
    kind, num_cells, num_measures = "unfinished", 4, 2
    index_of = outside = raster = arrays = misplaced = print


class Unknown(Grid):
    kind = "unknown"


class Untraced(Grid):
    pass


class Half:
    num_points = batch_size = initial_population = 1
    ask = tell = restarts = print


class Plain(Variation):
    pass


def asking():
    return dqd.AskTell(dqd.cma_mega(0.1, batch_size=5), GRID, x0=np.zeros(3))


def told_dqd(objective, measures, jacobian):
    search = asking()
    search.ask_dqd()
    search.tell_dqd(objective, measures, jacobian)


def told(objective, measures):
    search = dqd.AskTell(EMITTER, GRID, x0=np.zeros(3))
    search.ask()
    search.tell(objective, measures)


MASKED = np.ma.masked_less(np.arange(4.0), 1)


def with_masks(solutions):
    return np.ma.masked_less(solutions[:, 0], 9), solutions[:, :2]


class Undecorated(dqd.Domain):
    def score(self, x):
        return score(x)


@pytree
class Named(dqd.Domain):
    name: str


@pytree
class Silent(dqd.Domain):
    pass


@pytree
class Listed(dqd.Domain):
    def score(self, x):
        return x[0], [x[0], x[1]]


MISTAKES = [
    # The grid
    (lambda: dqd.Grid([1, 0], [0, 1], [2, 2]), ValueError, ["lower", "below upper", "measure 0", "1.0", "0.0"]),
    (lambda: dqd.Grid([0], [1, 1], [2, 2]), ValueError, ["one entry per measure", "'lower': 1", "'upper': 2"]),
    (lambda: dqd.Grid([(0, 1), (0, 1)], [1, 1], [2, 2]), ValueError, ["lower", "one number per measure", "(2, 2)"]),
    (lambda: dqd.Grid([0], [1], [2.5]), ValueError, ["shape", "whole numbers", "2.5"]),
    (lambda: dqd.Grid([0], [1], [0]), ValueError, ["shape", "at least 1"]),
    (lambda: dqd.Grid([0], [np.inf], [2]), ValueError, ["upper", "finite"]),
    (lambda: dqd.Grid([0, 0], [1, 1], [10**5, 10**5]), ValueError, ["10,000,000,000 cells"]),
    # Presets
    (lambda: dqd.cma_mega(-1.0), ValueError, ["sigma", "above 0", "-1.0"]),
    (lambda: dqd.cma_mega(float("nan")), TypeError, ["sigma", "finite number", "nan"]),
    (lambda: dqd.map_elites("0.5"), TypeError, ["sigma", "'0.5'"]),
    (lambda: dqd.map_elites_line(0.1, 0), ValueError, ["sigma2", "above 0"]),
    (lambda: dqd.cma_mega(1.0, learning_rate=0), ValueError, ["learning_rate", "above 0"]),
    (lambda: dqd.omg_mega(1.0, batch_size=7), ValueError, ["batch_size", "even", "7"]),
    (lambda: dqd.cma_mega(1.0, batch_size=2), ValueError, ["batch_size", "at least 3", "2"]),
    (lambda: dqd.cma_me(1.0, batch_size=3.5), ValueError, ["batch_size", "whole number", "3.5"]),
    (lambda: dqd.cma_mega(1.0, 0.1, optax.adam(0.1)), TypeError, ["optimizer", "factory", "optax.adam"]),
    (lambda: dqd.cma_mega(1.0, 0.1, optax.adam, beta=1.0), TypeError, ["optimizer", "adam", "beta"]),
    (lambda: dqd.cma_mega(1.0, rank_one="text"), ValueError, ["rank_one", "'textbook'", "'dqd2021'", "'text'"]),
    (lambda: dqd.og_map_elites(0.1, 0.1, independent=True, stepped=20), ValueError, ["stepped", "two evaluations"]),
    (lambda: dqd.og_map_elites(0.1, 0.1, stepped=3), ValueError, ["stepped", "independent=True", "18"]),
    (lambda: dqd.replicate(EMITTER, 0), ValueError, ["replicate", "at least 1"]),
    (lambda: dqd.replicate(EMITTER, 2.5), ValueError, ["replicate", "whole number", "2.5"]),
    (lambda: dqd.replicate(3, EMITTER), TypeError, ["replicate", "expected an emitter", "int"]),
    (lambda: dqd.combine(), ValueError, ["combine", "at least one"]),
    (lambda: dqd.combine([EMITTER, EMITTER]), TypeError, ["combine", "expected an emitter", "list"]),
    (lambda: dqd.combine(EMITTER, dqd.cma_me), TypeError, ["combine", "call it: cma_me(...)"]),
    (lambda: dqd.og_map_elites(0.1, 0.1, independent=True, stepped=2.5), ValueError, ["stepped", "1..17", "2.5"]),
    # The score function
    (lambda: run(lambda x: -jnp.sum(x**2)), TypeError, ["score", "return objective, measures"]),
    (lambda: run(lambda x: (x, x[:2])), ValueError, ["objective", "one number", "(3,)"]),
    (lambda: run(lambda x: (x[0], x)), ValueError, ["measures", "(2,)", "(3,)"]),
    (lambda: run(lambda x: (jnp.argmax(x), x[:2])), TypeError, ["objective", "differentiated", "int32"]),
    (
        lambda: run(lambda x: (np.sum(np.asarray(x)), np.asarray(x)[:2])),
        TypeError,
        ["score", "jax.numpy", "dqd.evaluator"],
    ),
    (lambda: run(lambda x: (math.sin(x[0]), x[:2])), TypeError, ["score", "jax.numpy", "dqd.evaluator"]),
    (lambda: run(lambda x: (x[0] if x[0] > 0 else -x[0], x[:2])), TypeError, ["score", "jnp.where", "`if`"]),
    (lambda: run(lambda x: (x.detach().sum(), x[:2])), AttributeError, ["score", "detach", "dqd.evaluator"]),
    (lambda: run(lambda x: (jnp.sum(x[x > 0]), x[:2])), IndexError, ["score", "boolean", "jnp.where"]),
    (lambda: run(lambda x: (x[0], x[:2]), x0=3.0), IndexError, ["score", "shape (1,)"]),
    (lambda: run(lambda x: (x.sum(axis=1), x[:, :2])), ValueError, ["score", "single solution", "dqd.evaluator(f)"]),
    (lambda: run(Undecorated()), TypeError, ["Undecorated", "@dqd.types.pytree"]),
    (lambda: run(Named("x")), TypeError, ["Named.name", "str", "dqd.types.static()"]),
    (lambda: run(Silent()), TypeError, ["Silent", "score(self, x)"]),
    (lambda: run(Listed()), TypeError, ["score", "two arrays", "(k,)"]),
    (lambda: run(dqd.Arm), TypeError, ["class Arm", "Arm(...)"]),
    (lambda: run("score"), TypeError, ["score", "function", "str"]),
    # illuminate
    (lambda: run(emitter=dqd.cma_mega), TypeError, ["emitter", "cma_mega(...)"]),
    (lambda: run(grid=[10, 10]), TypeError, ["tessellation", "dqd.Grid", "list"]),
    (lambda: run(grid=dqd.Grid), TypeError, ["tessellation", "the class Grid"]),
    (lambda: run(grid=Unfinished()), TypeError, ["Unfinished, which lacks centers, check_precision, from_arrays"]),
    (lambda: run(grid=Unknown([-1, -1], [1, 1], [4, 4])), TypeError, ["Unknown", "@dqd.tessellations.register"]),
    (lambda: run(grid=Untraced([-1, -1], [1, 1], [4, 4])), TypeError, ["Untraced", "@dqd.types.pytree"]),
    (lambda: register(Grid), ValueError, ["kind", "one word", "'grid'"]),
    (lambda: run(emitter=Variation), TypeError, ["emitter", "Variation(...)"]),
    (lambda: run(emitter=Half()), TypeError, ["emitter", "Half, which lacks init, noise, points"]),
    (lambda: run(emitter=Plain(Gaussian(0.1), 4)), TypeError, ["Plain", "@dqd.types.pytree"]),
    (lambda: run(seed=0, seeds=[1]), ValueError, ["seed and seeds"]),
    (lambda: run(seeds=[1, 1]), ValueError, ["seeds", "distinct"]),
    (lambda: run(seeds=[]), ValueError, ["seeds", "at least one"]),
    (lambda: run(seed=2**40), ValueError, ["seed", "2**31 - 1"]),
    (lambda: dqd.map_elites(0.1, initial_population=-3), ValueError, ["initial_population", "at least 0", "-3"]),
    (lambda: run(iterations=-1), ValueError, ["iterations", "from 0 to 2**31 - 1", "-1"]),
    (lambda: run(iterations=2**31), ValueError, ["iterations", "from 0 to 2**31 - 1", "2147483648"]),
    (lambda: run(chunk=0), ValueError, ["chunk", "from 1 to"]),
    (lambda: run(until=5), TypeError, ["until", "dqd.seconds(60)", "int"]),
    (lambda: run(until=dqd.stagnation), TypeError, ["until", "call it: dqd.stagnation(...)"]),
    (
        lambda: run(until=lambda now: now["quality"] > 1, chunk=1),
        KeyError,
        ["until", "'quality'", "qd_score, coverage"],
    ),
    (lambda: run(time_limit=-1), ValueError, ["time_limit", "above 0", "-1"]),
    (lambda: run(x0=jnp.array([0.0, jnp.nan, 0.0])), ValueError, ["x0", "finite"]),
    (lambda: run(x0=[]), ValueError, ["x0"]),
    (lambda: run(x0="zeros"), TypeError, ["x0", "real numbers"]),
    (lambda: run(bounds=(1, -1)), ValueError, ["bounds", "below"]),
    (lambda: run(bounds=3), ValueError, ["bounds", "(lower, upper)"]),
    (lambda: run(bounds=(np.zeros(2), 1)), ValueError, ["bounds", "lower", "shape of x0"]),
    (lambda: run(bounds=(None, 1)), ValueError, ["bounds", "lower", "infinity"]),
    (
        lambda: dqd.AskTell(EMITTER, GRID, x0={"a": 0.0, "b": 0.0}, bounds=({"a": 0, "c": 0}, 1)),
        ValueError,
        ["'b'", "'c'"],
    ),
    (lambda: run(initial_sigma=-1.0), ValueError, ["initial_sigma", "at least 0", "-1.0"]),
    (lambda: run(initial_sigma=math.nan), ValueError, ["initial_sigma", "finite", "nan"]),
    (lambda: run(threshold=dqd.Threshold(minimum=math.nan)), ValueError, ["minimum", "nan"]),
    (lambda: run(threshold=dqd.Threshold(minimum=math.inf)), ValueError, ["minimum", "inf"]),
    (lambda: run(qd_score_offset=math.nan), ValueError, ["qd_score_offset", "finite"]),
    (lambda: run(seeds=3), TypeError, ["seeds", "range(20)", "int"]),
    (lambda: run(threshold=dqd.Threshold(0.5)), ValueError, ["minimum", "finite"]),
    (lambda: run(threshold=dqd.Threshold(2.0)), ValueError, ["learning_rate", "[0, 1]", "2.0"]),
    # Ask and tell
    (lambda: asking().ask(), RuntimeError, ["ask", "gradients", "ask_dqd()"]),
    (lambda: asking().tell([0], [[0, 0]]), RuntimeError, ["tell", "ask() first"]),
    (lambda: asking().tell_dqd([0], [[0, 0]], np.zeros((1, 3, 3))), RuntimeError, ["tell_dqd", "ask_dqd() first"]),
    (lambda: told_dqd([0], [[0, 0]], None), TypeError, ["jacobian", "missing", "(1, 3, 3)"]),
    (lambda: told_dqd([0], [[0, 0]], np.zeros((1, 2, 3))), ValueError, ["jacobian", "row is missing", "comes first"]),
    (lambda: told_dqd([0], [[0], [0]], np.zeros((1, 3, 3))), ValueError, ["measures", "(1, 2)", "transposed"]),
    (lambda: told(np.zeros(3), np.zeros((3, 2))), ValueError, ["objective", "(4,)", "(3,)", "same order"]),
    (lambda: told(0.0, np.zeros((4, 2))), ValueError, ["objective", "(4,)", "one for each solution of the batch"]),
    (lambda: told(np.zeros((4, 1)), np.zeros((4, 2))), ValueError, ["objective", "(4, 1)", "reshape"]),
    (lambda: told(np.zeros(4), [[0, 0], [0]]), ValueError, ["tell", "measures", "(4, 2)", "inhomogeneous"]),
    (lambda: told(np.zeros(4) + 1j, np.zeros((4, 2))), TypeError, ["objective", "real numbers", "complex128"]),
    (lambda: told(MASKED, np.zeros((4, 2))), TypeError, ["tell", "objective", "masked", "NaN"]),
    (lambda: told(np.zeros(4), [MASKED[:2]] * 4), TypeError, ["tell", "measures", "masked", "NaN"]),
    (lambda: run(dqd.evaluator(with_masks)), TypeError, ["evaluator", "objective", "masked"]),
    # What was found, and names
    (
        lambda: run(grid=dqd.Grid([0, 0], [3e38, 1], [5, 5])),
        ValueError,
        ["measure 0", "cannot be told apart", "float32"],
    ),
    (lambda: run(iterations=0).archive.retrieve([0.0]), ValueError, ["measures", "(batch, 2)", "(1,)"]),
    (lambda: run(iterations=0).archive.retrieve([0.0, np.nan]), ValueError, ["measures", "finite"]),
    (lambda: run().solution([[0.0, 0.0], [1.0, 1.0]]), ValueError, ["measures", "2 rows", "retrieve takes many"]),
    (lambda: run(iterations=0).solution([0.0, 0.0]), KeyError, ["no elite", "0.0"]),
    (lambda: Archive.empty(GRID, 3).sample(None, 1), ValueError, ["sample", "empty"]),
    (lambda: dqd.cma_megaa, AttributeError, ["cma_megaa", "did you mean 'cma_mega'"]),
    (lambda: presets.preset("arm", "cma-mge"), ValueError, ["cma-mge", "did you mean", "'cma-me'"]),
    (lambda: presets.preset("arm", "cma-mega", sigm=1.0), ValueError, ["sigm", "'sigma'", "learning_rate"]),
    (lambda: dqd.LinearProjection("spere"), ValueError, ["'sphere', 'rastrigin' or 'plateau'", "'spere'"]),
]


@pytest.mark.parametrize(("mistake", "error", "words"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_explained(mistake, error, words):
    with pytest.raises(error) as raised:
        mistake()
    for word in words:
        assert word in str(raised.value), str(raised.value)


def test_an_existing_folder_is_not_overwritten(tmp_path):
    (tmp_path / "note").write_text("mine")
    with pytest.raises(FileExistsError, match="choose another name"):
        run(out=tmp_path)
    assert (tmp_path / "note").read_text() == "mine"


def test_points_told_although_none_were_asked_for():
    search = dqd.AskTell(EMITTER, GRID, x0=np.zeros(3))
    with pytest.raises(ValueError, match="no points were asked for"):
        search.tell_dqd([1.0], [[0.0, 0.0]], np.zeros((1, 3, 3)))


def test_measures_outside_the_grid_are_counted_and_named():
    with pytest.warns(UserWarning, match="100% of the measures lay outside the grid"):
        run(lambda x: (-jnp.sum(x**2), x[:2] + 10), iterations=2)
