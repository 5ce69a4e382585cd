"""What is imported when: names load on first use, and the side that reads files never loads JAX."""

import subprocess
import sys

import pytest


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after a statement."""
    code = f"{statement}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import dqd",
        "import dqd; dqd.__version__; dir(dqd)",
        "import dqd; dqd.Workers; import dqd.workers.worker, dqd.workers.dask",
        "import dqd; dqd.torch_evaluator",
        "import dqd.storage.record",
        "import dqd.figures.panels, dqd.figures.draw",
        "from dqd.paper.report import analysis, collect, panels, write",
        "import dqd.cli",
    ],
)
def test_jax_is_not_loaded_by(statement):
    loaded = loaded_by(statement)
    assert "dqd" in loaded
    assert not {"jax", "jaxlib", "torch", "optax"} & loaded


def test_a_function_in_torch_is_evaluated_without_jax():
    pytest.importorskip("torch")
    evaluate = "dqd.torch_evaluator(lambda x: (x.sum(), x[:2])).evaluate_with_jacobian(torch.ones(3, 4))"
    loaded = loaded_by(f"import dqd, torch; {evaluate}")
    assert "torch" in loaded
    assert not {"jax", "jaxlib"} & loaded


def test_the_command_line_loads_neither_matplotlib_nor_pandas():
    assert not {"matplotlib", "pandas", "scipy", "statsmodels"} & loaded_by("import dqd.cli")


def test_every_public_name_can_be_had():
    import dqd

    for name in dqd.__all__:
        assert getattr(dqd, name).__name__ == name
