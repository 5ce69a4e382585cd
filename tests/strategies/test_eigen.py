import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dqd.strategies.eigen import eigh, jacobi

decompose = jax.jit(jacobi)


def orthogonal(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def check(matrix, values, vectors, tolerance):
    """Eigenvalues as NumPy's, an orthonormal basis, and the matrix back from both, relative to the matrix's norm."""
    norm = np.linalg.norm(matrix, 2)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), rtol=0, atol=tolerance * norm)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=tolerance)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, matrix, rtol=0, atol=tolerance * norm)


@pytest.mark.x64
@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_jacobi_equals_numpy_in_float64(d, condition, scale):
    for seed in range(5):
        basis = orthogonal(d, seed)
        matrix = scale * basis @ np.diag(np.geomspace(1, condition, d)) @ basis.T
        matrix = (matrix + matrix.T) / 2
        check(matrix, *map(np.asarray, decompose(matrix)), tolerance=1e-13)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_jacobi_equals_numpy_in_float32(d, condition):
    basis = orthogonal(d, 0)
    matrix = (basis @ np.diag(np.geomspace(1, condition, d)) @ basis.T).astype(np.float32)
    matrix = (matrix + matrix.T) / 2
    check(matrix, *map(np.asarray, decompose(matrix)), tolerance=2e-6)


@pytest.mark.x64
@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3),
        np.zeros((3, 3)),
        np.diag([3.0, -1.0, 2.0]),
        np.diag([1e12, 1.0, 1e-12]),
        np.ones((4, 4)),  # eigenvalue 0 three times
        2 * np.eye(4) + np.ones((4, 4)),  # eigenvalue 2 three times
        np.array([[2.0, 1.0], [1.0, 2.0]]),  # equal diagonal: a rotation by 45 degrees
        np.array([[1.0, 1e-200, 0.0], [1e-200, 2.0, 0.0], [0.0, 0.0, 2.0]]),
        np.array([[0.0, 5.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
    ],
)
def test_jacobi_handles_degenerate_matrices(matrix):
    check(matrix, *map(np.asarray, decompose(matrix)), tolerance=1e-14)


@pytest.mark.x64
def test_jacobi_keeps_the_identity_exactly():
    values, vectors = decompose(np.eye(4))
    np.testing.assert_array_equal(values, np.ones(4))
    np.testing.assert_array_equal(vectors, np.eye(4))


@pytest.mark.x64
def test_jacobi_sees_small_eigenvalues_of_a_graded_matrix_to_full_relative_precision():
    scale = np.array([1.0, 1e-3, 1e-6])  # D A D with A well conditioned: where rotations beat other methods
    matrix = np.array([[2.0, 0.5, 0.3], [0.5, 3.0, -0.4], [0.3, -0.4, 1.5]]) * np.outer(scale, scale)
    determinant = np.linalg.det(matrix / np.outer(scale, scale)) * np.prod(scale) ** 2
    assert np.prod(decompose(matrix)[0]) == pytest.approx(determinant, rel=1e-13)


@pytest.mark.x64
@pytest.mark.parametrize("d", [1, 2, 4, 5, 30])
def test_eigh_decomposes_every_size(d):
    factor = np.random.default_rng(d).normal(size=(d, d + 1))
    matrix = factor @ factor.T
    check(matrix, *map(np.asarray, jax.jit(eigh)(matrix)), tolerance=1e-13)


@pytest.mark.x64
def test_jacobi_under_vmap_equals_a_loop():
    factors = np.random.default_rng(0).normal(size=(5, 3, 4))
    matrices = jnp.asarray(factors @ factors.transpose(0, 2, 1))
    values, vectors = jax.jit(jax.vmap(jacobi))(matrices)
    for i in range(5):
        check(np.asarray(matrices[i]), np.asarray(values[i]), np.asarray(vectors[i]), tolerance=1e-13)
