"""Callbacks hear of all that happens, and cannot stop a run."""

import warnings

import jax.numpy as jnp
import pytest

import dqd

GRID = dqd.Grid(lower=[-2, -2], upper=[2, 2], shape=[20, 20])
OPTIONS = {"x0": jnp.zeros(5), "progress": False}
MEGA = dqd.cma_mega(0.5)


def score(x):
    return -jnp.sum(x**2), x[:2]


class Diary:
    def __init__(self):
        self.events = []

    def on_start(self, settings):
        self.events.append(("start", settings))

    def on_chunk(self, now):
        self.events.append(("chunk", dict(now)))

    def on_checkpoint(self, folder):
        assert (folder / "manifest.json").exists()
        self.events.append(("checkpoint", folder))

    def on_end(self, result):
        self.events.append(("end", result))


@pytest.mark.parametrize("path", ["compiled", "evaluator", "seeds"])
def test_they_hear_of_all_in_order(path, tmp_path):
    diary, folder = Diary(), dqd.Folder(tmp_path / "run", checkpoint_seconds=0)
    numpy = dqd.evaluator(lambda x: (-(x**2).sum(axis=1), x[:, :2]))
    problem, emitter = (numpy, dqd.map_elites(0.1)) if path == "evaluator" else (score, MEGA)
    more = {"seeds": [3, 4]} if path == "seeds" else {"seed": 3}
    result = dqd.illuminate(problem, emitter, GRID, **OPTIONS, **more, iterations=30, out=folder, callbacks=[diary])
    kinds = [kind for kind, _ in diary.events]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert "checkpoint" in kinds
    (_, settings), (_, end) = diary.events[0], diary.events[-1]
    assert end is result
    assert (settings["iterations"], settings.get("seed", settings.get("seeds"))) == (30, more.get("seed", [3, 4]))
    chunks = [now for kind, now in diary.events if kind == "chunk"]
    assert [now["iteration"] for now in chunks] == sorted(now["iteration"] for now in chunks)
    assert chunks[-1]["iteration"] == 30
    assert set(chunks[0]) == {"iteration", "seconds", "evaluations", "qd_score", "coverage", "best", "mean"}


def test_what_they_raise_is_told_once_and_changes_nothing():
    class Broken:
        def on_chunk(self, now):
            raise OSError("no space left")

        on_start = on_end = on_chunk

    diary = Diary()
    plain = dqd.illuminate(score, MEGA, GRID, **OPTIONS, iterations=30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        heard = dqd.illuminate(score, MEGA, GRID, **OPTIONS, iterations=30, callbacks=[Broken(), diary])
    assert [str(each.message) for each in caught] == [
        "callbacks: Broken.on_start failed and the run goes on without it: OSError: no space left"
    ]
    assert heard.qd_score == plain.qd_score
    assert diary.events[-1][0] == "end"


def test_one_with_none_of_the_methods_is_refused_before_the_run():
    with pytest.raises(TypeError, match=r"callbacks: expected objects with one of on_start.*got function"):
        dqd.illuminate(score, MEGA, GRID, **OPTIONS, callbacks=[lambda now: None])
    with pytest.raises(TypeError, match="the class Diary"):
        dqd.illuminate(score, MEGA, GRID, **OPTIONS, callbacks=[Diary])
