"""CLIPs in OpenAI's and OpenCLIP's own files: the same features come out, and nothing of a file is run."""

import copy
import json
import os
import pickle
import warnings
import zipfile

import jax
import numpy as np
import pytest

from dqd.latent.weights import text_image
from dqd.latent.weights.convert import convert
from dqd.safe import UnreadableError, torchscript

torch = pytest.importorskip("torch", reason="checkpoints need PyTorch: pip install 'dqd[test]'")
from latent import checkpoints, openai_port  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

PIXELS = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
TEXTS = ["a", "an old"]


def agrees(folder, theirs):
    """Both towers of the converted model with the port's."""
    model, tokenizer = text_image.load(folder, "float32")
    numbers = tokenizer.batch(TEXTS, 20)
    with torch.no_grad():
        image, text = theirs(torch.from_numpy(PIXELS), torch.from_numpy(numbers).long())
    np.testing.assert_allclose(jax.jit(lambda tower: tower(PIXELS))(model.image), image, rtol=1e-4, atol=1e-4)
    text = text / text.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(model.reader(tokenizer)(TEXTS), text, atol=1e-5)
    assert float(model.logit_scale) == pytest.approx(theirs.logit_scale.item(), rel=1e-6)
    return model


def port(**sizes):
    torch.manual_seed(0)
    return openai_port.CLIP(**sizes).eval()


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """A file such as OpenAI's: a program with its weights, in 16 bits."""
    folder = tmp_path_factory.mktemp("openai")
    model = port(image=(128, 2, 512), text=(64, 1, 256))
    numbers = torch.zeros(2, 20, dtype=torch.long)
    numbers[:, 5] = 49_407
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.data = parameter.half().float()
        with warnings.catch_warnings():  # PyTorch would have us write other files; OpenAI's are of this kind
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(copy.deepcopy(model), (torch.from_numpy(PIXELS), numbers), check_trace=False)
            torch.jit.save(traced.half(), folder / "ViT-B-32.pt")
    checkpoints.merges(folder)
    return folder, model


def test_openais_own_file(script, tmp_path):
    folder, model = script
    assert torchscript.is_torchscript(folder / "ViT-B-32.pt")
    convert(folder / "ViT-B-32.pt", tmp_path / "out")
    found = agrees(tmp_path / "out", model)
    assert (found.image.transformer.heads, found.image.transformer.activation) == (2, "quick_gelu")


def test_openclips_directory(tmp_path):
    """Other heads (32 and 16 wide), other MLPs, another activation."""
    model = port(image=(96, 3, 224), text=(64, 4, 160), activation=torch.nn.GELU)
    save_file(
        {name: tensor.contiguous() for name, tensor in model.state_dict().items()}, tmp_path / checkpoints.OPENCLIP
    )
    checkpoints.merges(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"open_clip_config\.json is missing; it says which activation"):
        convert(tmp_path, tmp_path / "out")
    config = {"model_cfg": {"vision_cfg": {"head_width": 32}, "text_cfg": {"heads": 4}}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    convert(tmp_path, tmp_path / "out")
    assert agrees(tmp_path / "out", model).image.transformer.activation == "gelu"
    for strange, words in [
        ({"vision_cfg": {"timm_model_name": "vit"}}, "a vision tower of timm"),
        ({"vision_cfg": {"layers": [3, 4, 6, 3]}}, "a ResNet"),
        ({"text_cfg": {"hf_model_name": "roberta"}}, "a text tower of Hugging Face"),
    ]:
        (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": strange}))
        with pytest.raises(ValueError, match=f"{words}, which is not read here"):
            convert(tmp_path, tmp_path / "other")
    assert not (tmp_path / "other").exists()


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def archive(path, content):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("evil/constants.pkl", b"")
        file.writestr("evil/data.pkl", content)
        file.writestr("evil/data/0", bytes(16))
    return path


def test_nothing_of_a_script_is_run(tmp_path):
    evil = archive(tmp_path / "evil.pt", pickle.dumps({"a": Evil(tmp_path / "ran")}, 2))
    with pytest.raises(
        UnreadableError, match="its pickle wants to call posix mkdir; only modules and tensors are read"
    ):
        convert(evil, tmp_path / "out")
    other = archive(tmp_path / "other.pt", b"\x80\x02X\x01\x00\x00\x00aS'b'\n.")
    with pytest.raises(UnreadableError, match="its pickle asks for STRING"):
        torchscript.read(other)
    for content in (b"\x80\x02}", b"\x80\x02h\x07.", b"\x80\x02.", b"\x80\x02N.", b"\x80\x02}e.", b"garbage"):
        with pytest.raises(UnreadableError):
            torchscript.read(archive(tmp_path / "cut.pt", content))
    assert sorted(os.listdir(tmp_path)) == ["cut.pt", "evil.pt", "other.pt"]


TENSOR = {"": "tensor", "key": "0", "kind": "FloatStorage", "offset": 0, "shape": (2, 2), "strides": (2, 1)}
LIES = {
    "strides that lead out and back": {"strides": (-1000, 1001)},
    "a number repeated until memory ends": {"shape": (10**9,), "strides": (0,)},
    "more than all": {"shape": (10**12,), "strides": (0,)},
    "negative": {"offset": -1},
    "lengths that do not fit": {"strides": (1,)},
    "words": {"shape": ("a", "b")},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_tensor_that_lies_is_refused(tmp_path, lie):
    honest = archive(tmp_path / "honest.pt", pickle.dumps({"a": TENSOR}, 2))
    assert torchscript.read(honest)["a"].shape == (2, 2)
    with pytest.raises(UnreadableError):
        torchscript.read(archive(tmp_path / "lie.pt", pickle.dumps({"a": TENSOR | lie}, 2)))


def test_a_module_within_itself_is_refused(tmp_path):
    module = {}
    module["again"] = module
    with pytest.raises(UnreadableError):
        torchscript.read(archive(tmp_path / "endless.pt", pickle.dumps(module, 2)))


def test_a_damaged_script_is_named(script, tmp_path):
    """Every tensor stays within its numbers, whatever the pickle says of it."""
    source = zipfile.ZipFile(script[0] / "ViT-B-32.pt")
    with zipfile.ZipFile(tmp_path / "short.pt", "w") as file:
        for name in source.namelist():
            content = source.read(name)
            file.writestr(name, content[:8] if "/data/" in name else content)
    with pytest.raises(UnreadableError, match="reaches beyond its 4 numbers"):
        torchscript.read(tmp_path / "short.pt")
