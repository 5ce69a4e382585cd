"""Archives to files and back, to the bit; from runs, from pyribs; and without JAX on the reading side."""

import errno
import math
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

import dqd
from dqd.cli import app

SUFFIXES = (".safetensors", ".npz", ".parquet", ".csv")
GRID = ((-1.0, 0.0), (1.0, 5.0), (4, 5))
AWKWARD = [0.1, 1 / 3, -1e-30, 1.1754944e-38, 16777217.0, math.pi]  # numbers that a short print would change


def made(dtype=np.float64, solutions=True, offset=-2.5):
    """Six elites whose numbers have all the digits of their type."""
    numbers = np.random.default_rng(1)
    measures = (numbers.random((6, 2)) * [0.5, 1.0]).astype(dtype) + np.array(
        [[-1, 0], [-1, 1], [-0.5, 3], [0, 0], [0.5, 2], [0.5, 4]], dtype
    )
    return dqd.SavedArchive(
        cell=np.array([0, 1, 8, 10, 17, 19], np.int32),
        objective=np.array(AWKWARD, dtype),
        measures=measures,
        solutions=numbers.standard_normal((6, 3)).astype(dtype) if solutions else None,
        found=np.arange(6, dtype=np.int32),
        tessellation=dqd.Grid(*GRID),
        qd_score_offset=offset,
    )


def assert_same(one, other):
    ours, theirs = one.arrays(), other.arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert theirs[name].dtype == array.dtype, name
        assert theirs[name].shape == array.shape, name
        assert theirs[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solutions", [True, False])
def test_a_round_trip_keeps_every_bit(tmp_path, suffix, dtype, solutions):
    archive = made(dtype, solutions)
    assert_same(archive, dqd.load(archive.save(tmp_path / f"new folder/archive{suffix}")))
    assert len(list((tmp_path / "new folder").iterdir())) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_solutions_can_be_left_out(tmp_path, suffix):
    assert_same(made(solutions=False), dqd.load(made().save(tmp_path / f"archive{suffix}", solutions=False)))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_archive_without_elites_keeps_its_grid(tmp_path, suffix):
    archive = dqd.Archive.empty(dqd.Grid(*GRID), 3)
    back = dqd.load(archive.save(tmp_path / f"archive{suffix}"))
    assert_same(archive.to_numpy(), back)
    assert (len(back), back.coverage, back.best, back.qd_score) == (0, 0, -math.inf, 0)
    assert math.isnan(back.mean)
    assert back.retrieve([0, 0]).occupied.tolist() == [False]
    with pytest.raises(KeyError, match="empty"):
        back.best_solution()


def test_every_float32_survives_csv(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    numbers = bits[np.isfinite(bits)][:8_000].reshape(-1, 4)
    cell = np.arange(len(numbers), dtype=np.int32)
    measures = (cell[:, None] + 0.5).astype(np.float32)
    archive = dqd.SavedArchive(
        cell, numbers[:, 0].copy(), measures, numbers, None, dqd.Grid([0.0], [len(cell)], [len(cell)])
    )
    assert_same(archive, dqd.load(archive.save(tmp_path / "archive.csv")))


def score(x):
    return 50 - jnp.sum(x**2), x[:2]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "x"
    emitter = dqd.map_elites(0.5, batch_size=8, initial_population=8)
    options = {"x0": jnp.zeros(3), "iterations": 6, "progress": False, "qd_score_offset": -7.0}
    return folder, dqd.illuminate(score, emitter, dqd.Grid([-3, -2], [3, 2], [6, 5]), out=folder, **options)


def test_a_run_gives_its_archive_back(run):
    folder, result = run
    archive = dqd.load(folder)
    assert_same(result.archive.to_numpy(), archive)
    for name in ("qd_score", "coverage", "best", "mean"):
        assert getattr(archive, name) == pytest.approx(getattr(result, name), rel=1e-6)
    assert archive.config["summary"]["iterations"] == 6
    assert archive.metrics[-1]["iteration"] == 6
    assert len(archive) == len(result.archive)


def test_an_archive_of_a_search_is_exported_directly(run, tmp_path):
    _, result = run
    assert_same(result.archive.to_numpy(), dqd.load(result.archive.save(tmp_path / "archive.npz")))
    pandas.testing.assert_frame_equal(result.archive.to_pandas(), result.to_pandas())


def test_a_saved_archive_becomes_one_of_a_search_again(run):
    _, result = run
    again = dqd.Archive.from_numpy(result.archive.to_numpy())
    assert_same(result.archive.to_numpy(), again.to_numpy())
    for name in ("qd_score", "coverage", "best", "mean"):
        assert float(getattr(again.metrics, name)) == pytest.approx(float(getattr(result.archive.metrics, name)))
    assert sorted(np.asarray(again.occupied)[: len(again)].tolist()) == result.elites.cell.tolist()
    better = dqd.Evaluation(jnp.array([99.0]), jnp.asarray(result.elites.measures[:1]))
    grown, verdict = again.add(jnp.ones((1, 3)), better)
    assert (int(verdict.status[0]), len(grown)) == (1, len(again))
    with pytest.raises(ValueError, match="solutions were not saved"):
        dqd.Archive.from_numpy(made(solutions=False))


def test_a_saved_archive_a_live_one_and_a_result_answer_alike(run):
    folder, result = run
    saved, live = dqd.load(folder), result.archive
    asked = np.random.default_rng(0).uniform(-4, 4, (500, 2)).astype(np.float32)
    expected = live.retrieve(asked)
    assert 0 < expected.occupied.sum() < 500
    for each in (saved, result, live.to_numpy()):
        found = each.retrieve(asked)
        for name in ("cell", "occupied", "objective"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        for name in ("solutions", "measures", "found"):
            np.testing.assert_array_equal(
                getattr(found, name)[found.occupied], getattr(expected, name)[expected.occupied]
            )
        np.testing.assert_array_equal(each.best_solution(), live.best_solution())
        np.testing.assert_array_equal(each.elites.cell, live.elites.cell)
        assert each.best == float(live.best)
        assert each.coverage == pytest.approx(live.coverage, rel=1e-6)
        assert each.qd_score == pytest.approx(live.qd_score, rel=1e-6)
        assert each.mean == pytest.approx(live.mean, rel=1e-6)
    with pytest.raises(ValueError, match=r"\(batch, 2\), got \(3,\)"):
        saved.retrieve([1, 2, 3])


def test_a_result_in_arrays_is_what_its_folder_holds(run):
    folder, result = run
    assert_same(result.to_numpy(), dqd.load(folder))
    held, there = result.to_numpy(), dqd.load(folder)
    assert held.config["emitter"] == there.config["emitter"]
    times = ("seconds", "compile_seconds")
    ours, theirs = ({**each.config["summary"], **dict.fromkeys(times)} for each in (held, there))
    assert ours == theirs
    assert held.metrics == there.metrics
    assert held.to_numpy(solutions=False).qd_score == there.qd_score
    assert result.to_numpy(solutions=False).solutions is None


def test_what_is_printed_of_an_archive_is_one_line(run):
    _, result = run
    for each in (result, result.archive, result.to_numpy()):
        assert "\n" not in repr(each)
        assert f"qd_score={result.qd_score:.4g}, coverage={result.coverage:.2f} %, best={result.best:.4g}" in repr(each)
    assert (
        repr(result.elites)
        == f"Elites(rows={len(result.elites)}, occupied={len(result.elites)}, best={result.best:.4g})"
    )
    assert repr(result.retrieve(result.elites.measures[:1])).startswith("Elites(rows=1, occupied=1, best=")
    several = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), result.archive)
    traced = []
    jax.eval_shape(lambda archive: traced.append(repr(archive)), result.archive)
    assert [repr(several), *traced] == ["Archive(cells=30)"] * 2


def test_pandas_reads_the_tables_without_us(tmp_path):
    archive = made()
    names = ["cell", "objective", "measure_0", "measure_1", "solution_0", "solution_1", "solution_2", "found"]
    table = pandas.read_csv(archive.save(tmp_path / "a.csv"), comment="#")
    assert list(table.columns) == names
    np.testing.assert_allclose(table["solution_2"], archive.solutions[:, 2], rtol=1e-15)
    pandas.testing.assert_frame_equal(pandas.read_parquet(archive.save(tmp_path / "a.parquet")), archive.to_pandas())


def test_a_saved_archive_is_drawn(tmp_path):
    made().plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000


# pyribs ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def theirs():
    from ribs.archives import GridArchive

    numbers = np.random.default_rng(3)
    archive = GridArchive(solution_dim=3, dims=GRID[2], ranges=list(zip(*GRID[:2], strict=True)))
    archive.add(numbers.random((40, 3)), numbers.random(40), numbers.random((40, 2)) * [2, 5] - [1, 0])
    return archive


@pytest.mark.parametrize("as_csv", [False, True])
def test_an_archive_of_pyribs_is_read(theirs, tmp_path, as_csv):
    frame = theirs.data(return_type="pandas")
    frame.to_csv(tmp_path / "theirs.csv", index=False)
    ours = dqd.from_pyribs(tmp_path / "theirs.csv" if as_csv else frame, dqd.Grid(*GRID))
    assert ours.cell.tolist() == sorted(frame["index"])
    expected = frame.sort_values("index")
    np.testing.assert_array_equal(ours.objective, expected["objective"])
    np.testing.assert_array_equal(ours.measures, expected[["measures_0", "measures_1"]])
    np.testing.assert_array_equal(ours.solutions, expected[[f"solution_{i}" for i in range(3)]])
    assert ours.coverage == pytest.approx(100 * theirs.stats.coverage)
    assert ours.qd_score == pytest.approx(theirs.stats.norm_qd_score)


@pytest.mark.parametrize("name", ["behavior", "measure"])
def test_older_column_names_are_understood(theirs, name):
    frame = theirs.data(return_type="pandas")
    older = frame.rename(columns={f"measures_{j}": f"{name}_{j}" for j in range(2)})
    assert_same(dqd.from_pyribs(frame, GRID), dqd.from_pyribs(older, GRID))


def test_in_a_coarser_grid_the_best_of_each_cell_stays(theirs):
    frame = theirs.data(return_type="pandas")
    ours = dqd.from_pyribs(frame, (GRID[0], GRID[1], (1, 2)))
    upper = frame["measures_1"] >= 2.5
    assert ours.objective.tolist() == [frame["objective"][~upper].max(), frame["objective"][upper].max()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop(columns="objective"), "expected columns objective"),
        (lambda frame: frame.drop(columns="measures_1"), "the grid has 2 measures, the archive 1"),
        (lambda frame: frame.drop(columns="measures_0"), "measures_0 is missing"),
        (lambda frame: frame.drop(columns="solution_1"), "solution_1 is missing among 2 columns"),
        (lambda frame: frame.assign(objective=np.nan), "finite"),
        (lambda frame: frame.assign(objective="a"), r"expected real numbers, got others \(could not convert"),
        (lambda frame: frame.assign(objective=1j), r"expected real numbers, got others \(complex"),
    ],
)
def test_what_is_not_an_archive_of_pyribs_is_refused(theirs, change, message):
    with pytest.raises(ValueError, match=message):
        dqd.from_pyribs(change(theirs.data(return_type="pandas")), GRID)


def test_what_is_neither_a_frame_nor_a_path_is_refused(theirs):
    with pytest.raises(TypeError, match="expected a DataFrame or the path of a CSV, got list"):
        dqd.from_pyribs([1, 2], GRID)


def test_other_columns_of_pyribs_are_left_alone(theirs, tmp_path):
    frame = theirs.data(return_type="pandas")
    more = frame.assign(metadata="words", objective_note="words", solution_id="words", threshold=1.0)
    more.to_csv(tmp_path / "more.csv")  # with the index of the frame as well
    assert_same(dqd.from_pyribs(frame, GRID), dqd.from_pyribs(tmp_path / "more.csv", GRID))


# What is refused ------------------------------------------------------------------------------------------------------

WRONG = {
    "a cell twice": ({"cell": [0, 0, 8, 10, 17, 19]}, "every cell once"),
    "a cell outside": ({"cell": [0, 1, 8, 10, 17, 20]}, "from 0 to 19"),
    "a negative cell": ({"cell": [-1, 1, 8, 10, 17, 19]}, "from 0 to 19"),
    "NaN": ({"objective": [np.nan] * 6}, "objective: expected finite"),
    "measures elsewhere": ({"cell": [0, 2, 8, 10, 17, 19]}, "row 1 does not lie in its cell"),
    "too few rows": ({"objective": np.zeros(5)}, r"objective: expected shape \(6,\)"),
    "words": ({"objective": np.array(["a"] * 6)}, "objective: expected float32"),
}
WRONG_GRIDS = {
    "upside down": ({"grid_lower": [2.0, 0.0]}, "lower must lie below upper"),
    "too many cells": ({"grid_shape": [2**16, 2**16]}, r"more than the 2\*\*31 - 1"),
    "no cells": ({"grid_shape": [0, 5]}, "at least 1 each"),
    "an edge at infinity": ({"grid_upper": [np.inf, 5.0]}, "must be finite"),
    "too many measures": (
        {f"grid_{name}": [value] * 33 for name, value in zip(("lower", "upper", "shape"), (0, 1, 1))},
        "1 to 32 measures",
    ),
    "one end only": ({"grid_upper": None}, "grid_upper missing"),
    "none": ({"grid_lower": None, "grid_upper": None, "grid_shape": None}, "no tessellation of a known kind"),
}


@pytest.mark.parametrize("case", WRONG_GRIDS)
def test_a_file_with_a_wrong_grid_is_refused(tmp_path, case):
    change, message = WRONG_GRIDS[case]
    arrays = {**made().arrays(), **{name: values and np.asarray(values) for name, values in change.items()}}
    np.savez(tmp_path / "archive.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(dqd.UnreadableError, match=message):
        dqd.load(tmp_path / "archive.npz")


@pytest.mark.parametrize("case", WRONG)
def test_arrays_that_are_no_archive_are_refused(case):
    change, message = WRONG[case]
    fields = {name: getattr(made(), name) for name in made().__dataclass_fields__}
    given = {name: value if isinstance(value, tuple) else np.asarray(value) for name, value in change.items()}
    with pytest.raises(ValueError, match=message):
        dqd.SavedArchive(**{**fields, **{k: v.astype(np.int32) if k == "cell" else v for k, v in given.items()}})


def test_measures_on_an_edge_or_outside_the_range_are_fine():
    archive = dqd.Archive.empty(dqd.Grid([0.0], [1.0], [10]), 1)
    measures = jnp.array([[i / 10 + shift] for i in range(11) for shift in (-1e-7, 0.0, 1e-7)] + [[-5.0], [7.0]])
    for row in measures:  # one by one, each better than the last, so that every one is stored for a while
        best = archive.best + 1 if len(archive) else jnp.array(0.0)
        archive, _ = archive.add(jnp.zeros((1, 1)), dqd.Evaluation(best[None], row[None]))
        archive.to_numpy()


@pytest.mark.parametrize("name", ["archive.txt", "archive", "archive.pkl"])
def test_other_kinds_of_files_are_refused_by_name(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(ValueError, match=r"expected a file that ends in \.safetensors"):
        dqd.load(tmp_path / name)
    with pytest.raises(ValueError, match=r"expected a file that ends in \.parquet"):
        made().save(tmp_path / name)


def test_a_table_that_lost_a_column_is_refused(tmp_path):
    path = made().save(tmp_path / "archive.csv")
    about = path.read_text().splitlines()[0]
    pandas.read_csv(path, comment="#").drop(columns="solution_1").to_csv(tmp_path / "rest.csv", index=False)
    path.write_text(f"{about}\n{(tmp_path / 'rest.csv').read_text()}")
    with pytest.raises(dqd.UnreadableError, match="solution_1 is missing"):
        dqd.load(path)


@pytest.mark.parametrize(("suffix", "n"), [(".parquet", 9_995), (".csv", 70_000)])
def test_no_table_is_written_that_is_too_wide_to_be_read(tmp_path, suffix, n):
    grid = ((0.0,), (1.0,), (2,))
    for width, fits in ((n, True), (n + 1_000, False)):
        archive = dqd.from_pyribs(
            {"objective": [1.0], "measures_0": [0.1]} | {f"solution_{i}": [0.5] for i in range(width)}, grid
        )
        if fits:
            assert_same(archive, dqd.load(archive.save(tmp_path / f"fits{suffix}")))
        else:
            with pytest.raises(ValueError, match=r"too wide .*choose \.npz"):
                archive.save(tmp_path / f"wide{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == [f"fits{suffix}"]


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match=r"could not write the archive: No space left on device: '.*archive.npz'"):
        made().save(tmp_path / "archive.npz")


def test_a_failed_export_leaves_nothing_and_spares_what_was_there(tmp_path, monkeypatch):
    target = made().save(tmp_path / "archive.npz")
    before = target.read_bytes()

    def full(file, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="disk full"):
        made(np.float32).save(target)
    assert (target.read_bytes(), os.listdir(tmp_path)) == (before, ["archive.npz"])


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".NPZ"])
def test_an_export_replaces_a_link_and_leaves_what_it_led_to(tmp_path, suffix):
    (tmp_path / "ours").write_text("precious")
    target = tmp_path / f"archive{suffix}"
    target.symlink_to(tmp_path / "ours")
    assert_same(made(), dqd.load(made().save(target)))
    assert (tmp_path / "ours").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == [target.name, "ours"]


# The command line -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_command_exports_a_run(run, tmp_path, suffix):
    folder, result = run
    target = tmp_path / f"elites{suffix}"
    done = CliRunner().invoke(app, ["export", str(folder), "--to", str(target)])
    assert done.exit_code == 0, done.output
    assert f"{len(result.archive)} elites" in done.output
    assert_same(result.archive.to_numpy(), dqd.load(target))
    again = CliRunner().invoke(app, ["export", str(target), "--to", str(tmp_path / "small.csv"), "--no-solutions"])
    assert again.exit_code == 0, again.output
    assert dqd.load(tmp_path / "small.csv").solutions is None


def test_the_command_explains_what_is_wrong(run, tmp_path):
    folder, _ = run
    made().save(tmp_path / "there.csv")
    for arguments, code, words in (
        ((folder, tmp_path / "there.csv"), 2, "already exists"),
        ((folder, tmp_path / "elites.xlsx"), 2, "expected a file that ends in .parquet"),
        ((tmp_path / "nothing", tmp_path / "new.csv"), 1, "no such run or file"),
    ):
        done = CliRunner().invoke(app, ["export", str(arguments[0]), "--to", str(arguments[1])])
        assert done.exit_code == code
        assert words in done.output


def test_reading_needs_no_jax(run, tmp_path):
    folder, result = run
    files = [str(folder), *(str(result.archive.save(tmp_path / f"a{suffix}")) for suffix in SUFFIXES)]
    code = (
        "import sys, dqd\n"
        "for path in sys.argv[1:]: archive = dqd.load(path); archive.retrieve([0, 0]); print(len(archive))\n"
        "print(sorted({'jax', 'pandas', 'pyarrow', 'matplotlib', 'optax'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:6] == [*[str(len(result.archive))] * 5, "[]"]
