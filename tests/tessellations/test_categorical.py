"""Categories: as pyribs places them, in files of every kind, in figures, in a search that knows names only."""

import jax.numpy as jnp
import numpy as np
import pytest
from ribs.archives import CategoricalArchive
from small import add

import dqd
from dqd.figures import panels, plot
from dqd.tessellations import kinds

MATERIALS, SIZES = ["wood", "steel", "stone $5"], ["small", "large"]
MIXED = dqd.CategoricalGrid([MATERIALS, (0.0, 10.0, 5)])


def test_elites_are_those_of_pyribs():
    cells = dqd.CategoricalGrid([MATERIALS, SIZES])
    theirs = CategoricalArchive(solution_dim=1, categories=[MATERIALS, SIZES])
    ours = dqd.Archive.empty(cells, 1)
    random = np.random.default_rng(0)
    for i in range(6):
        rows = [[random.choice(MATERIALS), random.choice(SIZES)] for _ in range(4)]
        objective, solutions = random.normal(size=4).astype(np.float32), np.full((4, 1), i, np.float32)
        theirs.add(solutions, objective, rows)
        ours, _ = add(
            ours,
            jnp.asarray(solutions),
            dqd.Evaluation(jnp.asarray(objective), jnp.asarray(cells.encode(rows), jnp.float32)),
        )
    data, elites = theirs.data(), ours.elites
    order = np.argsort(data["index"])
    assert elites.cell.tolist() == data["index"][order].tolist()
    np.testing.assert_array_equal(elites.objective, data["objective"][order].astype(np.float32))
    assert [list(row) for row in cells.decode(elites.measures)] == data["measures"][order].tolist()


@pytest.mark.parametrize("kind", [".csv", ".npz", ".parquet", ".safetensors"])
def test_files_keep_the_names(kind, tmp_path):
    archive = dqd.Archive.empty(MIXED, 1)
    measures = MIXED.encode([["steel", 3.5], ["stone $5", 9.0]])
    archive, _ = add(archive, jnp.ones((2, 1)), dqd.Evaluation(jnp.ones(2), jnp.asarray(measures, jnp.float32)))
    saved = dqd.load(archive.save(tmp_path / f"elites{kind}"))
    assert saved.tessellation == MIXED
    assert saved.tessellation.decode(saved.measures) == [("steel", 3.5), ("stone $5", 9.0)]
    assert len(saved.retrieve(MIXED.encode([["steel", 2.5]])).solutions) == 1


def test_damaged_names_are_refused():
    arrays = MIXED.arrays()
    for bad in (b"[", b'[["a"]]', b"[[1],[]]", b'[["a","a","b"],[]]', b"\xff"):
        with pytest.raises(ValueError, match=r"[cC]ategorical"):
            kinds.from_arrays(arrays | {"categorical_names": np.frombuffer(bad, np.uint8).astype(np.int32)})


def test_wrong_axes_and_unknown_categories_are_refused_in_words():
    with pytest.raises(ValueError, match=r"measure 0: expected one of wood, steel, stone \$5, got 'glass'"):
        MIXED.encode([["glass", 1.0]])
    with pytest.raises(ValueError, match=r"expected 2 in a row, got 'wood'"):
        MIXED.encode(["wood"])
    for bad in (["wood", "wood"], "wood", [1, 2], ["wood", 2, 3]):
        with pytest.raises(ValueError, match=r"CategoricalGrid: measure 0"):
            dqd.CategoricalGrid([bad])


def test_figures_and_the_explorer_name_them(tmp_path):
    from dqd.explorer import describe

    archive = dqd.Archive.empty(MIXED, 1)
    measures = jnp.asarray(MIXED.encode([["steel", 3.5], ["stone $5", 9.0]]), jnp.float32)
    archive, _ = add(archive, jnp.ones((2, 1)), dqd.Evaluation(jnp.ones(2), measures))
    panel = panels.heatmap(archive.arrays())
    assert (panel.x_marks, panel.y_marks) == (tuple(enumerate(MATERIALS)), ())
    axes = plot.heatmap(archive)
    assert [label.get_text() for label in axes.get_xticklabels()] == MATERIALS
    shown = describe.shape(archive.to_numpy())
    assert shown["categories"] == (tuple(MATERIALS), ())
    assert shown["grid"]["shape"] == [3, 5]
    archive.plot(tmp_path / "map.png")


def test_a_loop_of_ones_own_speaks_in_names():
    cells = dqd.CategoricalGrid([["even", "odd"], (0.0, 1.0, 4)])
    search = dqd.AskTell(dqd.map_elites(0.3, batch_size=8, initial_population=8), cells, x0=np.zeros(2))
    for _ in range(5):
        x = np.asarray(search.ask())
        rows = [("odd" if int(np.floor(4 * a)) % 2 else "even", float(np.clip(b, 0, 1))) for a, b in x]
        search.tell(-np.abs(x).sum(axis=1), cells.encode(rows))
    assert {name for name, _ in cells.decode(search.archive.elites.measures)} == {"even", "odd"}
