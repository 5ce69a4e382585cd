"""Checkpoints to safetensors: the same network comes out, and nothing half-written after an error."""

import contextlib
import io
import os
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from small import Jitted
from typer.testing import CliRunner

from dqd.cli import app
from dqd.latent.generators import stylegan, stylegan2
from dqd.latent.problems.stylegan_clip import make_space
from dqd.latent.weights import clip_weights, files, torch_child
from dqd.latent.weights.convert import convert
from dqd.safe import UnreadableError

torch = pytest.importorskip("torch", reason="checkpoints need PyTorch: pip install 'dqd[test]'")
from latent import checkpoints, nvidia_port  # noqa: E402


@pytest.fixture(autouse=True)
def child(request, monkeypatch):
    """PyTorch takes seconds to start. So the child's program runs here, save in tests that ask for its process."""
    if "process" in request.fixturenames:
        return

    def run(command, **_):
        words = io.StringIO()
        with monkeypatch.context() as patch, contextlib.redirect_stderr(words):
            patch.setattr(sys, "argv", command[2:])
            return subprocess.CompletedProcess(command, torch_child.main(), stderr=words.getvalue())

    monkeypatch.setattr(subprocess, "run", run)


@pytest.fixture
def process():
    """Checkpoints are read in a process of its own, as users have it."""


def same(path, state):
    found = files.load(path, files.shapes(path))
    assert set(found) <= set(state)
    for name, array in found.items():
        np.testing.assert_array_equal(array, state[name].float().numpy(), err_msg=name)


@pytest.mark.parametrize("zipped", [True, False])  # the public file is of 2019, before PyTorch's zip format
def test_stylegan1(tmp_path, zipped):
    state = checkpoints.stylegan1_state()
    torch.save(state, tmp_path / "all.pt", _use_new_zipfile_serialization=zipped)
    (path,) = convert(tmp_path / "all.pt", tmp_path / "weights")
    same(path, state)
    assert path.name == "generator.safetensors"
    assert files.metadata(path)["kind"] == "stylegan1"
    assert os.listdir(tmp_path / "weights") == [path.name]


@pytest.mark.parametrize("prefix", ["g_synthesis.", ""])  # of the whole port's state dict, or of the network by itself
def test_a_synthesis_network_comes_alone(tmp_path, prefix):
    whole = checkpoints.stylegan1_state()
    alone = {name: tensor for name, tensor in whole.items() if name.startswith("g_synthesis.")}
    torch.save({prefix + name.removeprefix("g_synthesis."): part for name, part in alone.items()}, tmp_path / "s.pt")
    (path,) = convert(tmp_path / "s.pt", tmp_path / "weights")
    same(path, whole)
    generator = stylegan.load(path)
    assert (generator.mapping, generator.latent_shape) == (None, (512,))
    assert make_space("w", generator).n == 512
    for space in ("z", "p", "sphere"):
        with pytest.raises(ValueError, match=f"space: '{space}' needs the mapping network.*choose w or w"):
            make_space(space, generator)


@pytest.mark.parametrize("noise", [True, False])
def test_stylegan2_takes_the_average_and_draws_missing_noise(tmp_path, noise):
    checkpoint = checkpoints.stylegan2_checkpoint(noise=noise)
    torch.save(checkpoint, tmp_path / "550000.pt")
    (path,) = convert(tmp_path / "550000.pt", tmp_path / "weights")
    found = files.load(path, files.shapes(path))
    np.testing.assert_array_equal(found["style.1.weight"], checkpoint["g_ema"]["style.1.weight"])
    assert stylegan2.load(path).resolution == 16
    assert np.std(found["noises.noise_3"]) == pytest.approx(1, abs=0.2)


CHANNELS = {4: 12, 8: 10, 16: 8, 32: 6}


@pytest.fixture
def nvidia_pickle(tmp_path, monkeypatch):
    """A snapshot as NVIDIA's training writes it, and the state dict of its G_ema."""
    states = {name: nvidia_port.state_dict(CHANNELS, seed=i) for i, name in enumerate(("G", "G_ema"))}
    modules = nvidia_port.pretend_modules()
    with monkeypatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        options = modules["dnnlib.util"].EasyDict(path="ffhq.zip")
        networks = {name: nvidia_port.module(state) for name, state in states.items()}
        (tmp_path / "ffhq.pkl").write_bytes(pickle.dumps({"training_set_kwargs": options, **networks}))
    return tmp_path / "ffhq.pkl", states["G_ema"]


def test_nvidias_pickles_need_trust_but_not_nvidias_code(tmp_path, nvidia_pickle, process):
    source, state = nvidia_pickle
    with pytest.raises(ValueError, match="--i-trust-this-file"):
        convert(source, tmp_path / "weights")
    (path,) = convert(source, tmp_path / "weights", trust=True)
    assert files.metadata(path)["kind"] == "stylegan2"
    generator = Jitted(stylegan2.load(path))
    z = np.random.default_rng(0).standard_normal((2, 32)).astype(np.float32)
    np.testing.assert_allclose(generator.mapping(z), nvidia_port.mapping(state, torch.from_numpy(z)), atol=1e-4)
    ws = np.random.default_rng(1).standard_normal((1, generator.num_layers, 32)).astype(np.float32)
    theirs = nvidia_port.image(state, CHANNELS, torch.from_numpy(ws[0])).numpy()
    np.testing.assert_allclose(generator.images(ws), theirs, atol=1e-4 * np.abs(theirs).max(), rtol=0)


def test_what_is_wrong_with_nvidias_tensors_is_named(tmp_path):
    state = nvidia_port.state_dict(CHANNELS)
    other = state | {"synthesis.b8.conv0.resample_filter": torch.ones(4, 4) / 16}
    conditional = state | {"mapping.embed.weight": torch.zeros(32, 10)}
    missing = {name: tensor for name, tensor in state.items() if name != "synthesis.b16.torgb.bias"}
    cases = [(other, "b8.conv0.kernel is another filter"), (conditional, "not expected: mapping.embed.weight")]
    for tensors, words in [*cases, (missing, r"tensors missing: to_rgbs.1.bias")]:
        torch.save(tensors, tmp_path / "some.pt")
        with pytest.raises(ValueError, match=words):
            convert(tmp_path / "some.pt", tmp_path / "weights")
    assert not (tmp_path / "weights").exists()


@pytest.mark.parametrize("binary", [False, True])
def test_clip(tmp_path, binary):
    source = checkpoints.clip_directory(tmp_path / "clip", binary=binary, activation="gelu")
    path, table = convert(source, tmp_path / "weights")
    assert (path.name, table.name) == ("clip.safetensors", "merges.txt")
    assert table.read_text() == (source / "merges.txt").read_text()
    transformer = clip_weights.load(path).image.transformer
    assert (transformer.activation, transformer.heads) == ("gelu", 4)  # 16 wide
    expected = clip_weights.random_tensors(3, **checkpoints.SIZES)
    found = files.load(path, files.shapes(path))
    assert set(found) == set(expected)
    np.testing.assert_allclose(found["text_projection.weight"], expected["text_projection.weight"], rtol=1e-3)


def damaged(folder):
    """Name -> (source, words of the message)."""
    state = checkpoints.stylegan1_state()
    missing = {name: tensor for name, tensor in state.items() if name != "g_synthesis.torgb.bias"}
    torch.save(missing, folder / "missing.pt")
    torch.save(state | {"g_mapping.dense3.weight": torch.zeros(512, 7)}, folder / "shape.pt")
    torch.save(state | {"g_mapping.dense9.weight": torch.zeros(2)}, folder / "extra.pt")
    torch.save(state | {"g_synthesis.torgb.bias": torch.tensor([0.0, torch.nan, 1.0])}, folder / "diverged.pt")
    torch.save({"something": torch.zeros(3)}, folder / "other.pt")
    torch.save({"visual.class_embedding": torch.zeros(768)}, folder / "openclip.pt")
    (folder / "short.pt").write_bytes((folder / "shape.pt").read_bytes()[:5000])
    (folder / "short.safetensors").write_bytes(b"\x10\x00")
    (folder / "table.csv").write_text("objective,measure\n1,2\n")
    return {
        "missing.pt": "tensors missing: g_synthesis.torgb.bias",
        "shape.pt": r"g_mapping.dense3.weight \(expected \(512, 512\), got \(512, 7\)\)",
        "extra.pt": "tensors not expected: g_mapping.dense9.weight",
        "diverged.pt": "NaN or infinity in g_synthesis.torgb.bias; the training diverged",
        "other.pt": "neither stylegan1, stylegan2, clip nor siglip by the names of its tensors",
        "openclip.pt": "no table of CLIP's tokenizer there",
        "short.pt": "cut short or not a PyTorch checkpoint",
        "short.safetensors": "a header of 16 bytes; allowed are 1,048,576 within the file of 2",
        "table.csv": "neither a PyTorch checkpoint nor safetensors",
        "nowhere.pt": "no such file or directory",
    }


def test_what_is_wrong_is_named_and_nothing_is_written(tmp_path):
    for name, words in damaged(tmp_path).items():
        with pytest.raises((ValueError, OSError), match=words):
            convert(tmp_path / name, tmp_path / "weights")
        assert not (tmp_path / "weights").exists(), name


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_a_pickle_is_not_run_without_the_flag(tmp_path, process):
    torch.save({"g": Evil(tmp_path / "ran")}, tmp_path / "evil.pt")
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Evil(tmp_path / "ran")))
    for name in ("evil.pt", "evil.pkl"):
        outcome = CliRunner().invoke(app, ["convert", str(tmp_path / name), "--to", str(tmp_path / "weights")])
        assert outcome.exit_code == 1
        assert "--i-trust-this-file" in outcome.output
    assert sorted(os.listdir(tmp_path)) == ["evil.pkl", "evil.pt"]


def test_a_trusted_pickle_whose_code_is_not_here(tmp_path):
    (tmp_path / "old.pkl").write_bytes(b"\x80\x04cnowhere_at_all\nThing\n.")
    with pytest.raises(ValueError, match="could not be unpickled: No module named 'nowhere_at_all'"):
        convert(tmp_path / "old.pkl", tmp_path / "weights", trust=True)


def test_a_trusted_pickle_is_read(tmp_path):
    state = checkpoints.stylegan1_state()
    torch.save({"when": Fraction(1, 3), "model": state}, tmp_path / "old.pt")
    arguments = ["convert", str(tmp_path / "old.pt"), "--to", str(tmp_path / "weights"), "--i-trust-this-file"]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    same(tmp_path / "weights" / "generator.safetensors", state)


def test_other_filters_and_taken_names_and_unknown_kinds_are_refused(tmp_path):
    source = checkpoints.clip_directory(tmp_path / "clip")
    convert(source, tmp_path / "weights")
    with pytest.raises(FileExistsError, match=r"clip\.safetensors already exists"):
        convert(source, tmp_path / "weights")
    with pytest.raises(ValueError, match="did you mean 'stylegan2' or 'stylegan1'"):
        convert(source, tmp_path / "other", kind="stylegan")
    with pytest.raises(ValueError, match="no tensor conv1"):
        convert(source, tmp_path / "other", kind="stylegan2")
    (source / "config.json").write_text('{"vision_config": {"hidden_act": "relu"}}')
    with pytest.raises(ValueError, match="expected one hidden_act"):
        convert(source, tmp_path / "other")
    (source / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match="no table of CLIP's tokenizer"):
        convert(source, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_weights_of_a_file_are_checked_before_use(tmp_path):
    path = files.write(tmp_path / "some.safetensors", {"a": np.ones((2, 3)), "b": np.ones(4)}, {})
    with pytest.raises(ValueError, match=r"missing: c; of another shape: a \(expected \(3, 2\).*not expected: b"):
        files.load(path, {"a": (3, 2), "c": ()})
    wrong = files.write(tmp_path / "wrong.safetensors", {"a": np.ones(3), "b": np.array([1, np.inf])}, {})
    with pytest.raises(ValueError, match=r"wrong\.safetensors: NaN or infinity in b;"):
        files.load(wrong, {"a": (3,), "b": (2,)})
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UnreadableError, match="72 bytes of arrays; its header declares 80"):
        files.load(path, {"a": (2, 3), "b": (4,)})
    with pytest.raises(FileNotFoundError, match="dqd convert"):
        files.shapes(tmp_path / "nowhere.safetensors")
