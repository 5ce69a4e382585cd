"""Numbers of the user's own: kept for every elite on every path, saved, exported, drawn; and no cost without them."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance.table import quick_to_compile
from small import GRID, MEGA
from typer.testing import CliRunner

import dqd
from dqd.archives.archive import Archive
from dqd.cli import app
from dqd.explorer import describe

FIELDS = {"energy": (), "forces": (3,)}
N = 6
ELITES = dqd.map_elites(0.5, batch_size=16, initial_population=0)


def energy(x):
    return 3 * x[..., 0] - x[..., 1]


def score(x):
    fields = {"energy": energy(x), "forces": 2 * x[..., :3], "ignored": x}
    return 50 - jnp.sum(x**2), x[:2] + 0.1 * x[2:4] ** 2, fields


def batch(x):
    fields = {"energy": energy(x), "forces": 2 * x[:, :3]}
    return 50 - np.sum(x**2, axis=1), x[:, :2] + 0.1 * x[:, 2:4] ** 2, fields


def told(solutions, jacobian):
    """As a user tells it."""
    objective, measures, fields = batch(solutions)
    rows = np.zeros((len(solutions), 3, N))
    rows[:, 0] = -2 * solutions
    for j in range(2):
        rows[:, 1 + j, j], rows[:, 1 + j, 2 + j] = 1, 0.2 * solutions[:, 2 + j]
    return dqd.Evaluation(objective, measures, rows if jacobian else None, fields=fields)


def illuminate(function=score, emitter=MEGA, **options):
    settings = {"x0": np.zeros(N), "iterations": 10, "progress": False, "fields": FIELDS}
    with quick_to_compile(True):
        return dqd.illuminate(function, emitter, GRID, **{**settings, **options})


def assert_kept(archive):
    elites = archive.elites
    assert len(elites) > 5
    np.testing.assert_allclose(elites.fields["energy"], energy(elites.solutions), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(elites.fields["forces"], 2 * elites.solutions[:, :3], rtol=1e-6)


@pytest.fixture(scope="module")
def result():
    return illuminate()


def test_a_compiled_search_keeps_them_and_finds_what_it_finds_without(result):
    assert_kept(result)
    without = illuminate(fields=None)
    np.testing.assert_array_equal(without.elites.solutions, result.elites.solutions)
    assert without.elites.fields == {}
    assert len(jax.tree.leaves(without.state)) == len(jax.tree.leaves(result.state)) - len(FIELDS)


def test_several_seeds_and_a_feasible_flag():
    both = lambda x: (*score(x)[:2], x[0] < 0.5, score(x)[2])  # noqa: E731
    for each in illuminate(both, ELITES, seeds=[1, 2]):
        assert_kept(each)
        assert each.infeasible


def test_an_evaluator_keeps_them_here_and_on_workers():
    assert_kept(illuminate(dqd.evaluator(batch), ELITES))
    with ThreadPoolExecutor(2) as pool:
        assert_kept(illuminate(dqd.evaluator(batch, repetitions=2), ELITES, where=pool))
        assert_kept(illuminate(dqd.evaluator(batch), ELITES, where=dqd.Workers(pool, rounds=2)))


def test_a_loop_of_ones_own_keeps_them():
    with quick_to_compile(True):
        search = dqd.AskTell(MEGA, GRID, x0=np.zeros(N), fields=FIELDS)
        for _ in range(5):
            search.tell_dqd(told(search.ask_dqd(), jacobian=True))
            solutions = search.ask()
            found = told(solutions, jacobian=False)
            with pytest.raises(TypeError, match="tell: field_energy is missing"):
                search.tell(found.objective, found.measures, fields={"forces": found.fields["forces"]})
            search.tell(found.objective, found.measures, fields=found.fields)
    assert_kept(search.archive)
    assert search.result().to_numpy().config["fields"] == {"energy": [], "forces": [3]}


@pytest.mark.parametrize("suffix", ["npz", "safetensors", "csv", "parquet"])
def test_files_hold_them(result, suffix, tmp_path):
    loaded = dqd.load(result.archive.save(tmp_path / f"archive.{suffix}"))
    assert_kept(loaded)
    for name in FIELDS:
        np.testing.assert_array_equal(loaded.fields[name], result.elites.fields[name])
    columns = result.to_pandas().columns
    assert [name for name in columns if "field" in name] == ["field_energy", *(f"field_forces_{i}" for i in range(3))]


def test_a_run_on_disk_goes_on_with_them_and_not_without(tmp_path, result):
    illuminate(out=tmp_path / "run", iterations=5)
    assert_kept(dqd.load(tmp_path / "run"))
    again = illuminate(out=tmp_path / "run")
    np.testing.assert_array_equal(again.elites.fields["energy"], result.elites.fields["energy"])
    with pytest.raises(ValueError, match=r"run of other settings .*fields"):
        illuminate(out=tmp_path / "run", fields={"energy": ()})


def test_a_search_that_begins_with_elites_knows_theirs(result):
    begun = illuminate(emitter=ELITES, archive=result, iterations=1, fields={"energy": ()})
    np.testing.assert_allclose(begun.elites.fields["energy"], energy(begun.elites.solutions), rtol=1e-5, atol=1e-5)
    known = {name: getattr(result.elites, name) for name in ("solutions", "objective", "measures")}
    unknown = illuminate(emitter=ELITES, archive=known, iterations=1, fields={"energy": ()})
    assert np.isnan(unknown.elites.fields["energy"]).any()
    assert_kept(Archive.from_numpy(result.to_numpy()))


def test_colours_show_them(result, tmp_path):
    axes = result.plot(field="energy", labels=("a", "b"))
    drawn = np.ma.compressed(np.ma.masked_invalid(axes.images[0].get_array()))
    np.testing.assert_allclose(np.sort(drawn), np.sort(result.elites.fields["energy"]), rtol=1e-5)
    assert result.plot(field="forces_2").images
    with pytest.raises(ValueError, match="Known: energy, forces_0, forces_1, forces_2"):
        result.plot(field="forces")
    with pytest.raises(ValueError, match="unknown field 'enrgy'; did you mean 'energy'"):
        result.plot(field="enrgy")
    result.save(tmp_path / "run")
    done = CliRunner().invoke(
        app, ["plot", str(tmp_path / "run"), "--field", "energy", "--out", str(tmp_path / "a.png")]
    )
    assert done.exit_code == 0, done.output
    shown = describe.elites(dqd.load(tmp_path / "run"))
    np.testing.assert_array_equal(shown["field_energy"], result.elites.fields["energy"])
    assert "field_forces" not in shown


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (["energy"], "fields: expected names and shapes"),
        ({"my energy": ()}, "fields: expected names like those of variables"),
        ({"energy_2": ()}, "without a number at the end"),
        ({"energy": 3}, r"fields: energy: expected the shape \(\) or \(m,\), got 3"),
        ({"power": ()}, r"score: fields: expected power of shape \(\), got nothing; return it last"),
        ({"forces": (2,)}, r"score: fields: expected forces of shape \(2,\), got \(3,\)"),
    ],
)
def test_what_does_not_fit_is_said(fields, words):
    with pytest.raises((TypeError, ValueError), match=words):
        illuminate(fields=fields)


def test_an_evaluator_that_does_not_return_them_is_named():
    with pytest.raises(TypeError, match="evaluator: field_power is missing"):
        illuminate(dqd.evaluator(batch), ELITES, fields={"power": ()})
