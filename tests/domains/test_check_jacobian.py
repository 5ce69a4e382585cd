import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import evaluate, evaluate_with_jacobian

import dqd
from dqd.domains import Arm, LinearProjection, check_jacobian
from dqd.types import Evaluation

PRECISIONS = pytest.mark.parametrize("x64", [False, True])
N = 70  # more coordinates than are looked at one by one


class Compiled:
    """A domain as a foreign evaluator, whose jacobian may be spoilt."""

    def __init__(self, domain, spoil=lambda jacobian: jacobian):
        self.transform, self.spoil = domain.transform, spoil
        self.evaluate, self.full = (functools.partial(each, domain) for each in (evaluate, evaluate_with_jacobian))

    def evaluate_with_jacobian(self, solutions):
        found = self.full(solutions)
        return Evaluation(found.objective, found.measures, self.spoil(np.array(found.jacobian)))


DOMAINS = {
    "sphere": lambda n: LinearProjection("sphere", n),
    "rastrigin": lambda n: LinearProjection("rastrigin", n),
    "arm": Arm,
}


def normal(n, scale=1.0, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(0, scale, n))


@PRECISIONS
@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("n", [3, 1000])
def test_the_jacobians_of_all_domains_pass_wherever_they_are_checked(name, n, x64):
    with jax.enable_x64(x64):
        evaluator = Compiled(DOMAINS[name](n))
        points = [jnp.zeros(n), jnp.full(n, 2.048), *(normal(n, scale) for scale in (0.1, 6.0))]
        for x in points:
            report = check_jacobian(evaluator, x)
            assert report, report.message
            assert report.ok is True
            assert report.errors.shape == (3,)


def rows(*order):
    return lambda jacobian: jacobian[:, np.array(order)]


def changed(jacobian, place, value):
    jacobian[:, *place] = value
    return jacobian


def times(row, factor):
    return lambda jacobian: changed(jacobian, [row], factor * jacobian[:, row])


def entry(row, column, value):
    return lambda jacobian: changed(jacobian, [row, column], value)


PLANTED = {
    "sign of the objective": (times(0, -1), ["row 0 (the objective) has the wrong sign"]),
    "sign of a measure": (times(2, -1), ["row 2 (measure 1) has the wrong sign"]),
    "measures swapped": (
        rows(0, 2, 1),
        [
            "row 1 (measure 0) is the gradient of measure 1",
            "row 2 (measure 1) is the gradient of measure 0",
            "expected the rows in this order: the objective, measure 0, measure 1",
        ],
    ),
    "objective last": (
        rows(1, 2, 0),
        [
            "row 0 (the objective) is the gradient of measure 0",
            "row 1 (measure 0) is the gradient of measure 1",
            "row 2 (measure 1) is the gradient of the objective",
        ],
    ),
    "another row, negated": (
        lambda jacobian: changed(jacobian, [1], -jacobian[:, 2]),
        ["row 1 (measure 0) is the gradient of measure 1, times -1"],
    ),
    "factor": (times(1, 2.5), ["row 1 (measure 0) is scaled by 2.5"]),
    "zero": (times(1, 0), ["row 1 (measure 0) is zero, but the function is not flat"]),
    "not finite": (entry(2, 5, np.nan), ["row 2 (measure 1) is not finite"]),
    "infinite": (entry(0, 0, np.inf), ["row 0 (the objective) is not finite"]),
    "one entry": (entry(1, 1, 30.0), ["row 1 (measure 0) is wrong along coordinate 1: it says 30, differences"]),
    "shape": (
        lambda jacobian: np.swapaxes(jacobian, 1, 2),
        [
            f"jacobian: expected (1, 3, {N}) = (batch, 1 + measures, n), objective first, got (1, {N}, 3)",
            "swap its last two axes",
        ],
    ),
    "a row too few": (
        rows(0, 1),
        [f"expected (1, 3, {N}) = (batch, 1 + measures, n), objective first, got (1, 2, {N})"],
    ),
    "no batch": (lambda jacobian: jacobian[0], [f"got (3, {N})"]),
    "missing": (lambda jacobian: None, ["evaluate_with_jacobian returned none"]),
}


@PRECISIONS
@pytest.mark.parametrize("name", DOMAINS)
def test_every_planted_error_is_found_and_named(name, x64):
    with jax.enable_x64(x64):
        evaluator, x = Compiled(DOMAINS[name](N)), normal(N)
        for error, (spoil, words) in PLANTED.items():
            evaluator.spoil = spoil
            report = check_jacobian(evaluator, x, step=1e-2)
            assert not report, error
            for part in words:
                assert part in str(report), (error, str(report))


@PRECISIONS
@pytest.mark.parametrize("name", DOMAINS)
def test_only_the_wrong_rows_are_named(name, x64):
    with jax.enable_x64(x64):
        report = check_jacobian(Compiled(DOMAINS[name](N), times(1, -1)), normal(N))
        assert "row 1" in report.message
        assert "row 0" not in report.message
        assert "row 2" not in report.message
        assert report.errors[1] == pytest.approx(2, rel=0.05)
        assert max(report.errors[0], report.errors[2]) < 0.02


@PRECISIONS
@pytest.mark.parametrize("name", DOMAINS)
def test_the_gradient_of_the_stored_objective_is_told_apart_from_the_raw_one(name, x64):
    with jax.enable_x64(x64):
        domain = DOMAINS[name](N)
        scale = domain.transform[0]
        report = check_jacobian(Compiled(domain, times(0, scale)), normal(N), step=1e-2)
        assert "row 0 (the objective) belongs to the stored objective" in str(report)
        assert f"divide by {scale:.4g}" in str(report)


@PRECISIONS
def test_an_error_in_a_coordinate_that_was_not_sampled_is_seen_along_random_directions(x64):
    with jax.enable_x64(x64):
        evaluator = Compiled(Arm(1000))
        for column in (0, 200, 400, 600, 800):
            evaluator.spoil = lambda jacobian, column=column: changed(
                jacobian, [0, column], -20 * jacobian[:, 0, column]
            )
            assert "row 0 (the objective) is wrong along" in str(check_jacobian(evaluator, normal(1000), step=1e-2))


def test_a_plain_score_function_is_checked():
    assert check_jacobian(lambda x: (jnp.sin(x).sum(), jnp.stack([x[0] * x[1], x[2]])), [0.1, 0.2, 0.3])


def test_a_score_that_cannot_be_compiled_is_checked_as_it_is():
    weights = jnp.arange(3.0)

    def score(x):
        return float(weights.sum()) * jnp.sin(x).sum(), x[:2]  # a number in Python, which no compiled function has

    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(score)(normal(3))
    assert check_jacobian(score, normal(3))
    with pytest.raises(TypeError, match="a plain `return objective, measures` is expected"):
        check_jacobian(lambda x: x.sum(), normal(3))


def test_a_score_of_structured_solutions_is_checked():
    def score(x):
        return -jnp.sum(x["a"] ** 2) + x["b"][0, 1], jnp.array([x["a"][0], jnp.sum(x["b"])])

    x = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2))}
    assert check_jacobian(score, x)
    kinked = check_jacobian(lambda x: (jnp.linalg.norm(x["a"] - x["a"]), score(x)[1]), x)
    assert "row 0 (the objective) is not finite" in str(kinked)


@jax.custom_jvp
def cube_with_a_wrong_rule(x):
    return x**3


cube_with_a_wrong_rule.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] * tangents[0]))


def test_a_wrong_derivative_rule_inside_a_score_function_is_found():
    report = check_jacobian(lambda x: (cube_with_a_wrong_rule(x).sum(), x[:1]), np.array([0.5, 2.0]))
    assert "row 0 (the objective) is wrong along" in report.message
    assert "row 1" not in report.message


class NumPyModel:
    """Float64 inside, NumPy outside, no transform: f = x0 x1, m = (x2, x0^2)."""

    def evaluate(self, solutions):
        assert isinstance(solutions, np.ndarray)
        x = np.asarray(solutions, np.float64)
        return Evaluation(x[:, 0] * x[:, 1], np.stack([x[:, 2], x[:, 0] ** 2], axis=1))

    def evaluate_with_jacobian(self, solutions):
        x, (zero, one) = np.asarray(solutions, np.float64), np.eye(2)[0][::-1]
        found = self.evaluate(solutions)
        jacobian = [[[b, a, zero], [zero, zero, one], [2 * a, zero, zero]] for a, b, _ in x]
        return Evaluation(found.objective, found.measures, np.array(jacobian))


def test_numpy_evaluators_are_given_numpy_and_checked_in_float64_though_jax_runs_in_float32():
    x = np.array([0.5, -2.0, 7.0])
    assert check_jacobian(NumPyModel(), x)
    assert check_jacobian(NumPyModel(), x, tolerance=1e-9)
    assert x.tolist() == [0.5, -2.0, 7.0]


def test_a_float32_model_behind_float64_arrays_raises_no_alarm():
    class Rounded(NumPyModel):
        def evaluate(self, solutions):
            return super().evaluate(np.asarray(solutions, np.float32).astype(np.float64))

        def evaluate_with_jacobian(self, solutions):
            found = super().evaluate_with_jacobian(solutions)
            return Evaluation(
                *(field.astype(np.float32) for field in (found.objective, found.measures, found.jacobian))
            )

    assert check_jacobian(Rounded(), np.array([0.5, -2.0, 7.0]))


class Tensor:
    """What of a torch tensor is used: it must be detached before NumPy may read it."""

    __module__ = "torch"

    def __init__(self, values, dtype=np.float32, attached=True):
        self.values, self.dtype, self.attached = np.asarray(values, dtype), dtype, attached

    def new_tensor(self, values, dtype):
        return Tensor(values, dtype, attached=False)

    def detach(self):
        return Tensor(self.values, self.dtype, attached=False)

    def cpu(self):
        return self

    def __array__(self, dtype=None, copy=None):
        assert not self.attached, "Can't call numpy() on Tensor that requires grad"
        return np.asarray(self.values, dtype)


def test_tensor_evaluators_are_given_tensors():
    class TensorModel(NumPyModel):
        def evaluate(self, solutions):
            return self.wrapped(super().evaluate(self.unwrapped(solutions)))

        def evaluate_with_jacobian(self, solutions):
            plain = NumPyModel().evaluate_with_jacobian(self.unwrapped(solutions))
            return self.wrapped(plain)

        def unwrapped(self, solutions):
            assert isinstance(solutions, Tensor)
            return solutions.values

        def wrapped(self, found):
            fields = (found.objective, found.measures, found.jacobian)
            return Evaluation(*(None if field is None else Tensor(field) for field in fields))

    assert check_jacobian(TensorModel(), Tensor([0.5, -2.0, 7.0], attached=True))


def test_a_batch_of_points_is_checked_at_each():
    evaluator = Compiled(Arm(6))
    points = jnp.stack([normal(6, seed=seed) for seed in range(3)])
    assert check_jacobian(evaluator, points)
    evaluator.spoil = lambda jacobian: (
        jacobian + 3.0 * (np.indices(jacobian.shape).T == [2, 1, 4]).all(-1).T
    )  # the third
    assert "row 1 (measure 0) is wrong along coordinate 4" in str(check_jacobian(evaluator, points))


def test_a_jump_beside_x_raises_no_alarm():
    evaluator = Compiled(LinearProjection("sphere", 100))
    for beside in (5.1199, 5.1201, -5.1199, -5.1201):
        report = check_jacobian(evaluator, normal(100).at[30].set(beside))
        assert report, report.message


@pytest.mark.parametrize(
    "score",
    [
        lambda x: (10 * jax.lax.stop_gradient(jnp.sum(jnp.sin(1e6 * x))) + jnp.sum(x), x[:1]),  # noise
        lambda x: (jnp.where(jnp.all(x == 1), jnp.sum(x), jnp.nan), x[:1]),  # finite at x alone
    ],
    ids=["noise", "not finite"],
)
def test_what_cannot_be_measured_is_neither_passed_nor_blamed(score):
    report = check_jacobian(score, np.ones(5))
    assert not report
    assert "row 0 (the objective) cannot be checked here: differences do not settle" in report.message
    assert "row 1" not in report.message


def test_gradients_at_the_level_of_round_off_count_as_zero():
    assert check_jacobian(Arm(9), jnp.full(9, 0.1))  # all angles equal: the variance's gradient is nothing but rounding


@pytest.mark.parametrize(
    ("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e3)], ids=["tiny values", "huge values", "an offset"]
)
def test_the_size_of_the_values_does_not_matter(scale, shift):
    right = lambda x: (scale * jnp.sum(jnp.sin(x)) + shift, scale * x[:1] + shift)  # noqa: E731
    assert check_jacobian(right, normal(8))
    stopped = lambda x: (right(x)[0], scale * jax.lax.stop_gradient(x[:1]) + shift)  # noqa: E731
    assert str(check_jacobian(stopped, normal(8))).endswith("row 1 (measure 0) is zero, but the function is not flat")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            Evaluation(np.zeros((1, 1)), np.zeros((1, 2)), np.zeros((1, 3, 4))),
            r"objective: expected (1,) = (batch,), got",
        ),
        (
            Evaluation(np.zeros(1), np.zeros(2), np.zeros((1, 3, 4))),
            "measures: expected (1, k) = (batch, measures), got",
        ),
    ],
)
def test_wrong_shapes_of_the_values_are_told_before_the_jacobian_is_looked_at(found, message):
    class Model:
        def evaluate(self, solutions):
            raise AssertionError("not reached")

        def evaluate_with_jacobian(self, solutions):
            return found

    assert message in str(check_jacobian(Model(), np.zeros(4)))


def test_a_function_of_a_batch_that_returns_a_tuple_is_checked_too():
    def all_three(x, factor=2):
        jacobian = np.zeros((len(x), 2, x.shape[1]))
        jacobian[:, 0], jacobian[:, 1, 0] = -factor * x, 1
        return -(x**2).sum(axis=1), x[:, :1], jacobian

    assert dqd.check_jacobian(dqd.evaluator(all_three), np.ones(3))
    assert not dqd.check_jacobian(dqd.evaluator(lambda x: all_three(x, factor=3)), np.ones(3))


def test_rows_that_are_right_but_cannot_be_followed_are_named():
    def score(x):
        return -jnp.sum(x**2), jnp.array([jnp.round(x[0]), x[1], x[1] ** 3])

    report = check_jacobian(score, jnp.array([0.1, 2.0, 3.0]))
    assert report
    assert "row 1 (measure 0) is zero" in report.message
    assert "row 2 (measure 1) and row 3 (measure 2) have the same direction" in report.message
    assert "row 0" not in report.message


def test_rows_that_differ_somewhere_can_be_followed():
    def score(x):
        return -jnp.sum(x**2), jnp.array([x[0] ** 2, jnp.where(x[0] > 0, x[0], x[1])])

    assert "row" not in str(check_jacobian(score, jnp.array([[1.0, 2.0], [-1.0, 2.0]])))
    assert "row 1 (measure 0) and row 2" in str(check_jacobian(score, jnp.array([1.0, 2.0])))
