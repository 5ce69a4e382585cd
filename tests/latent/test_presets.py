"""Latent domains by name: settings, options, and what is provisional."""

import errno

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from dqd import illuminate
from dqd.cli import app
from dqd.cli.finish import finish
from dqd.figures import draw
from dqd.latent import Cutouts, with_judges
from dqd.latent import presets as latent
from dqd.latent.ascent import ascend
from dqd.latent.judgement import SALTS
from dqd.paper import presets
from dqd.paper.presets import make_problem, preset, settings
from dqd.types import replace

# The hyper-parameters of the authors' released code in the latent space of a StyleGAN.
PUBLISHED = {
    "map-elites": {"sigma": 0.2, "initial_population": 100},
    "map-elites-line": {"sigma1": 0.1, "sigma2": 0.2, "initial_population": 100},
    "cma-me": {"sigma": 0.02},
    "cma-mega": {"sigma": 0.002, "learning_rate": 1.0},
    "cma-mega-adam": {"sigma": 0.002, "learning_rate": 0.002},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DQD_NO_CACHE", "1")


@pytest.mark.parametrize("algorithm", PUBLISHED)
def test_values_are_those_of_the_paper(algorithm):
    assert settings("lsi-stylegan", algorithm).items() >= {**PUBLISHED[algorithm], "batch_size": 36}.items()


@pytest.mark.parametrize("domain", latent.LATENT)
def test_every_algorithm_of_a_domain_can_be_made(domain):
    for algorithm in latent.LATENT[domain].settings:
        emitter = preset(domain, algorithm)
        assert emitter.batch_size + emitter.num_points == 36
    assert latent.ALGORITHM in latent.LATENT[domain].settings


def test_mistakes_are_answered_with_what_there_is():
    for call, words in (
        (lambda: make_problem("lsi-digit"), "did you mean 'lsi-digits'"),
        (lambda: settings("lsi-digits", "omg-mega"), "unknown algorithm for lsi-digits 'omg-mega'"),
        (lambda: make_problem("lsi-digits", preview=True), "unknown option of lsi-digits 'preview'"),
        (lambda: make_problem("lsi-digits", 20), "n: a solution of lsi-digits has 16 numbers, got 20"),
        (lambda: make_problem("lsi-stylegan"), "weights: lsi-stylegan needs those of StyleGAN and CLIP"),
        (lambda: make_problem("arm", objective="age"), "objective: only latent domains"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_common_options_reach_the_domain():
    problem = make_problem("lsi-digits", images=5, norm_penalty=0.5, cutouts=3, resolution=9)
    assert (problem.domain.images, problem.domain.norm_penalty, problem.domain.cutouts.count) == (5, 0.5, 3)
    assert problem.domain.cutouts.size == 28
    assert problem.grid.shape == (9, 9)
    assert (problem.final, problem.salts) == (problem.domain, SALTS)  # luck with the crops is taken away
    plain = make_problem("lsi-digits", norm_penalty=0.5)
    assert plain.domain.cutouts is plain.final is None


@pytest.mark.parametrize("luck", [{"fresh": True}, {"cutouts": Cutouts(2, 5)}])
def test_elites_that_may_be_lucky_are_judged_again_under_other_salts(luck):
    problem = make_problem("lsi-digits")
    assert with_judges(problem) is problem
    noisy = replace(problem, domain=replace(problem.domain, **luck))
    assert with_judges(noisy).final is noisy.domain
    better = replace(noisy.domain, norm_penalty=1.0)  # as the full network judges what a preview found
    for judged in (with_judges(noisy), with_judges(replace(noisy, final=better))):
        assert [judge.salt for judge in judged.judges] == list(SALTS)
        assert noisy.domain.salt not in SALTS
    assert judged.judges[0].norm_penalty == 1.0


def test_the_papers_own_problems_are_as_before():
    problem = make_problem("lp-sphere", 8, 10)
    assert problem.domain == presets.make_domain("lp-sphere", 8)
    assert problem.grid == problem.domain.grid(10)
    assert problem.x0.tolist() == [0] * 8


def test_adam_climbs_to_the_top_of_a_sphere_and_stays_within_bounds():
    problem = make_problem("lp-sphere", 4, 10)
    said = []
    found = ascend(problem, 120, learning_rate=0.1, say=lambda done, best: said.append((done, best)))
    assert found.objective == pytest.approx(100, abs=0.01)
    np.testing.assert_allclose(found.solution, 2.048, atol=0.05)
    assert [done for done, _ in said] == [50, 100, 120]
    assert said[-1][1] == pytest.approx(found.objective, abs=1e-3)
    assert len(found.history) == 120
    assert found.history[0] == pytest.approx(91.84, abs=0.01)
    held = ascend(replace(problem, bounds=(-1.0, 1.0)), 60, learning_rate=0.1)
    assert held.solution.tolist() == jnp.ones(4).tolist()


def test_what_adam_found_is_judged_by_the_final_judge():
    problem = make_problem("lsi-digits")
    stern = replace(problem.domain, objective="-ink", measures=("ink", "slant"))
    found = ascend(replace(problem, final=stern, salts=(1, 2)), 1)
    assert found.objective == pytest.approx(100 - 10 * float(found.measures[0]), rel=1e-4)


# The command line -----------------------------------------------------------------------------------------------------


def test_a_run_writes_a_collage_and_says_what_was_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["run", "--domain", "lsi-digits", "--measure", "width", "--measure", "slant", "--resolution", "8"]
    done = CliRunner().invoke(app, [*command, "--iterations", "12"])
    assert done.exit_code == 0, done.output
    assert "CMA-MEGA (Adam) on lsi-digits, n = 16, 64 cells" in done.stdout
    assert "runs/lsi-digits/collage.png" in done.stdout
    assert Image.open(tmp_path / "runs/lsi-digits/collage.png").width > 500


@pytest.mark.parametrize(("measures", "cells"), [(["ink"], "8 cells"), (["ink", "width", "slant"], "512 cells")])
def test_any_number_of_measures(tmp_path, measures, cells):
    command = ["run", "--domain", "lsi-digits", "--resolution", "8", "--iterations", "2", f"--out={tmp_path / 'run'}"]
    done = CliRunner().invoke(app, [*command, *(f"--measure={name}" for name in measures)])
    assert done.exit_code == 0, done.output
    assert f"n = 16, {cells}, seed 0" in done.stdout
    assert (tmp_path / "run" / "heatmap.png").exists()
    assert not (tmp_path / "run" / "collage.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--objective", "digit3"], "unknown objective 'digit3'; did you mean 'digit-3'"),
        (["--n", "20"], "has 16 numbers, got 20"),
        (["--prompts", "elon"], "unknown option of lsi-digits 'prompts'"),
        (["--space", "w"], "unknown space 'w'"),
        (["--measure", "ink", "--measure", "ink"], "measures: 'ink' twice"),
    ],
)
def test_wrong_usage_is_answered_in_one_line(options, words):
    done = CliRunner().invoke(app, ["run", "--domain", "lsi-digits", *options])
    assert done.exit_code == 2
    assert done.stderr.startswith("dqd: error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_optimize_writes_the_picture_it_climbed_to(tmp_path):
    out = tmp_path / "deep" / "eight.png"
    done = CliRunner().invoke(
        app, ["optimize", "--domain", "lsi-digits", "--objective", "digit-8", "--iterations", "50", "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "best objective 9" in done.stdout
    assert Image.open(out).size == (28, 28)


def optimized(tmp_path, *options):
    command = ["optimize", "--domain", "lsi-digits", "--iterations", "20", "--out", str(tmp_path / "image.png")]
    return CliRunner().invoke(app, [*command, *options])


@pytest.mark.parametrize("given", [["--norm-penalty", "40"], ["--cutouts", "2"]])
def test_options_of_optimize_change_what_is_found(tmp_path, given):
    plain, other = optimized(tmp_path), optimized(tmp_path, *given)
    assert plain.exit_code == other.exit_code == 0
    assert plain.stdout != other.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--preview"], "unknown option of lsi-digits 'preview'"),
        (["--proper-preprocessing"], "unknown option of lsi-digits 'proper_preprocessing'"),
        (["--dtype", "float99"], "dtype"),
        (["--objective", ""], "unknown objective ''"),
        (["--out", "found.pngg"], "found.pngg: expected the name of a picture, such as found.png"),
    ],
)
def test_options_of_optimize_that_do_not_fit_are_named(tmp_path, given, words):
    done = optimized(tmp_path, *given)
    assert done.exit_code == 2
    assert words in done.stderr
    assert not (tmp_path / "image.png").exists()


def test_provisional_scores_are_judged_again_and_kept(tmp_path, monkeypatch, capsys):
    problem = make_problem("lsi-digits", resolution=8)
    judge = replace(problem.domain, norm_penalty=0.3)  # elites far out lose; measures stay as they were
    problem = replace(problem, final=judge)
    result = illuminate(problem, preset("lsi-digits", "cma-mega-adam"), iterations=3)
    out, ours = tmp_path / "run", tmp_path / "ours"
    out.mkdir()
    ours.write_text("precious")
    for name in ("collage.png", "heatmap.png", "disagreement.png"):  # in somebody's run they may be links
        (out / name).symlink_to(ours)
    told = finish(problem, result, out)
    assert ours.read_text() == "precious"

    kept, searched = result.archive.elites, result.provisional.archive.elites
    assert len(kept) == told["rescored"]["cells"] == len(result.archive)
    np.testing.assert_allclose(kept.measures, searched.measures, atol=1e-6)
    lost = problem.domain.stored[0] * 0.3 * np.mean(kept.solutions**2, axis=1)
    np.testing.assert_allclose(kept.objective, searched.objective - lost, atol=1e-3)
    np.testing.assert_allclose(told["rescored"]["best"], kept.objective.max(), rtol=1e-6)
    assert told["trusted_qd_score"] == result.agreement.qd_score
    assert told["opinions"][0]["judge"] == "neighbours"
    assert {path.name for path in out.iterdir()} == {"collage.png", "heatmap.png", "disagreement.png"}
    assert f"judged again: {len(kept)} of {len(kept)} elites" in capsys.readouterr().err

    def read_only(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(draw, "replace_file", read_only)
    assert finish(problem, result, tmp_path)["pictures"] == []
    assert f"the pictures are not written: Read-only file system: {tmp_path}" in capsys.readouterr().err
