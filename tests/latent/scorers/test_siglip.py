"""Both towers of SigLIP against transformers' SiglipModel with random weights; its tokenizer against `tokenizers`."""

import json

import jax
import numpy as np
import pytest

from dqd.latent.scorers import text
from dqd.latent.scorers.unigram import SPACE, Unigram, clean
from dqd.latent.weights import siglip_weights
from dqd.latent.weights.convert import convert
from dqd.latent.weights.text_image import load

torch = pytest.importorskip("torch", reason="parity needs PyTorch: pip install 'dqd[test]'")
transformers = pytest.importorskip("transformers", reason="parity needs transformers: pip install 'dqd[test]'")
tokenizers = pytest.importorskip("tokenizers", reason="parity needs tokenizers: pip install 'dqd[test]'")

WORDS = ("a", "small", "child", "smiling", "with", "red", "hair", "photo", "of", "an", "old", "young", "face")
LETTERS = "abcdefghilmnoprstuwyz"
PIECES = [
    *(("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), (SPACE, -3.5)),
    *((SPACE + word, -4.0 - 0.37 * i) for i, word in enumerate(WORDS)),
    *((word[:-1], -6.1 - 0.29 * i) for i, word in enumerate(WORDS) if len(word) > 2),
    *((letter, -8.0 - 0.11 * i) for i, letter in enumerate(LETTERS)),
]
TEXTS = [
    "A small child.",
    "a  young, smiling FACE",
    "an oldish redhair zoo",
    "photo of a ☺ face",
    "☺☺",
    "xylophone",
    "",
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """As Hugging Face has it: heads 24 wide, MLPs of other widths."""
    folder = tmp_path_factory.mktemp("siglip")
    torch.manual_seed(0)
    tower = {"num_hidden_layers": 2, "hidden_act": "gelu_pytorch_tanh"}
    config = transformers.SiglipConfig(
        vision_config=tower
        | {"hidden_size": 48, "num_attention_heads": 2, "intermediate_size": 80, "patch_size": 8, "image_size": 32},
        text_config=tower
        | {"hidden_size": 72, "num_attention_heads": 3, "intermediate_size": 96, "vocab_size": len(PIECES)}
        | {"max_position_embeddings": 16, "projection_size": 48},
    )
    model = transformers.SiglipModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)  # biases and norms that do something
    model.save_pretrained(folder)
    table = {"model": {"type": "Unigram", "unk_id": 2, "vocab": PIECES}}
    (folder / "tokenizer.json").write_text(json.dumps(table))
    return folder, model


@pytest.fixture(scope="module")
def converted(directory):
    folder, _ = directory
    paths = convert(folder, folder / "out")
    assert [path.name for path in paths] == ["clip.safetensors", "tokenizer.json"]
    return load(folder / "out", "float32")


def test_both_towers_agree(directory, converted):
    model, tokenizer = converted
    pixels = np.random.default_rng(0).standard_normal((3, 3, 32, 32)).astype(np.float32)
    numbers = tokenizer.batch(TEXTS[:4], 16)
    with torch.no_grad():
        theirs = directory[1](pixel_values=torch.from_numpy(pixels), input_ids=torch.from_numpy(numbers).long())
    np.testing.assert_allclose(jax.jit(text.unit)(model.image(pixels)), theirs.image_embeds, atol=1e-5)
    np.testing.assert_allclose(model.reader(tokenizer)(TEXTS[:4]), theirs.text_embeds, atol=1e-5)
    assert np.ptp(theirs.logits_per_image.numpy()) > 0.1
    assert model.image.resolution == 32


def test_expected_shapes_are_those_of_the_published_model():
    with torch.device("meta"):
        state = transformers.SiglipModel(transformers.SiglipConfig()).state_dict()
    theirs = {name: tuple(t.shape) for name, t in state.items() if not name.endswith(siglip_weights.LEFT_OUT)}
    assert siglip_weights.shapes_like(theirs) == theirs
    assert siglip_weights.shapes_like({}) == theirs


def test_the_tokenizer_cuts_as_theirs():
    ours = Unigram(PIECES, 2)
    theirs = tokenizers.Tokenizer(tokenizers.models.Unigram(PIECES, unk_id=2))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    random = np.random.default_rng(0)
    letters = [*LETTERS, " ", "q", "é"]
    mixed = ["".join(random.choice(letters, random.integers(1, 25))) for _ in range(200)]
    for one in [*TEXTS, *mixed]:
        assert ours.encode(one)[:-1] == theirs.encode(clean(one)).ids, one
    assert ours.encode("a small")[-1] == 1


def test_texts_are_filled_up_and_long_ones_refused(tmp_path):
    ours = Unigram(PIECES, 2)
    np.testing.assert_array_equal(ours.batch(["a small child"], 6), [[4, 5, 6, 1, 1, 1]])
    with pytest.raises(ValueError, match="SigLIP reads at most 3 tokens, got 4"):
        ours.batch(["a small child"], 3)
    (tmp_path / "tokenizer.json").write_text('{"model": {"type": "BPE", "merges": []}}')
    with pytest.raises(ValueError, match="no table of pieces"):
        Unigram.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"expected tokenizer\.json"):
        Unigram.load(tmp_path / "nowhere")
