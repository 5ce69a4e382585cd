"""CLIP's tokenizer against transformers' and against numbers known from the published model."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest

from dqd.latent.scorers.tokenizer import TABLES, Tokenizer, clean, find_merges, words

transformers = pytest.importorskip("transformers", reason="parity needs transformers: pip install 'dqd[test]'")


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    """OpenAI's table of merges, which the wheel of open_clip_torch holds; nothing of it is installed or run."""
    folder = tmp_path_factory.mktemp("merges")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder), "open_clip_torch"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"the table of merges is inside the open_clip_torch wheel, which could not be downloaded: {error}")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        (folder / TABLES[1]).write_bytes(wheel.read(f"open_clip/{TABLES[1]}"))
    return folder / TABLES[1]


@pytest.fixture(scope="session")
def tokenizer(table):
    return Tokenizer.load(table)


@pytest.fixture(scope="session")
def theirs(tokenizer):
    return transformers.CLIPTokenizer(vocab=tokenizer.numbers, merges=list(tokenizer.ranks))


HOSTILE = [
    "Elon Musk with short hair.",
    "An man with blue eyes.",
    "  A   person\twith\nred hair. ",
    "don't we'll they're I've I'm he'd it's ' 's''t",
    "x's'x 'S 'T 'RE",
    "12345 3.14 1e-4 ½ ² Ⅷ ٣ 五",
    "naïve café cafe\u0301 ÅNGSTRÖM ß ẞ straße",
    "日本語 中文 한국어 हिन्दी العربية עברית ไทย",
    "😀😃 👩‍👩‍👧 🇩🇪 ❤️ ☺",
    "a\u00a0b\u2003c\u3000d\u200be\ufefff",
    "!?...--__(())[]{}<>@#$%^*+=|\\/~`",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "",
    " ",
    "a",
    "</w> <|pad|> <| |>",
    "\x00\x01\x7f",
    "ﬁ ligature ǅ İstanbul",
    "\U0001d400\U0001d401 \U00010400",
]


def random_strings(count, seed=0):
    """Letters of many blocks, mixed."""
    random = np.random.default_rng(seed)
    blocks = [
        (0x21, 0x7E),
        (0xA1, 0x17F),
        (0x370, 0x3A1),
        (0x3B1, 0x3C1),
        (0x410, 0x44F),
        (0x4E00, 0x4EFF),
        (0x1F600, 0x1F64F),
    ]
    for _ in range(count):
        length = random.integers(1, 25)
        picked = random.integers(len(blocks), size=length)
        letters = [chr(random.integers(*blocks[block], endpoint=True)) for block in picked]
        yield "".join(" " if random.random() < 0.15 else letter for letter in letters)


def without_entities(texts):
    """transformers does not unescape HTML, we and OpenAI do."""
    return [text for text in texts if "&" not in text]


@pytest.mark.parametrize("text", without_entities(HOSTILE))
def test_hostile_strings(tokenizer, theirs, text):
    assert tokenizer.encode(text) == theirs(text)["input_ids"]


def test_random_strings(tokenizer, theirs):
    for text in without_entities(random_strings(400)):
        assert tokenizer.encode(text) == theirs(text)["input_ids"], repr(text)


def test_numbers_of_the_published_model(tokenizer):
    assert len(tokenizer) == 49_408
    assert tokenizer.encode("a photo of a cat") == [49406, 320, 1125, 539, 320, 2368, 49407]


def test_html_is_unescaped_twice_as_openai_does():
    assert clean("A &amp;amp; B &lt;3") == "a & b <3"


def test_words():
    assert list(words("it's 12 o'clock!!")) == ["it", "'s", "1", "2", "o", "'", "clock", "!!"]


def test_every_kind_of_table_gives_the_same_numbers(tokenizer, tmp_path):
    import json

    merges = [" ".join(pair) for pair in tokenizer.ranks]
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    assert Tokenizer.load(tmp_path).numbers == tokenizer.numbers
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"merges": merges}}))
    assert Tokenizer.load(tmp_path / "tokenizer.json").numbers == tokenizer.numbers


def test_a_batch_is_padded_and_a_long_prompt_refused(tokenizer):
    rows = tokenizer.batch(["a cat", "a"], 5)
    np.testing.assert_array_equal(rows, [[49406, 320, 2368, 49407, 0], [49406, 320, 49407, 0, 0]])
    with pytest.raises(ValueError, match="at most 77 tokens, got 102"):
        tokenizer.batch(["cat " * 100])


def test_a_damaged_table_is_named(table, tmp_path):
    cut = tmp_path / TABLES[1]
    cut.write_bytes(table.read_bytes()[:1000])
    with pytest.raises(ValueError, match="cut short"):
        Tokenizer.load(cut)
    (tmp_path / "merges.txt").write_text("#version\na b\n")
    with pytest.raises(ValueError, match="48,894 merges"):
        Tokenizer.load(tmp_path / "merges.txt")
    with pytest.raises(FileNotFoundError, match=r"merges\.txt"):
        find_merges(tmp_path / "nowhere")
