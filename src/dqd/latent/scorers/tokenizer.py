"""CLIP's tokenizer: byte pair encoding (Sennrich et al. 2016) of lower-cased text. No JAX.

    Tokenizer.load("clip-vit-base-patch32").encode("A small child.")

The table of merges is `merges.txt` or `tokenizer.json` of a Hugging Face directory, or OpenAI's
`bpe_simple_vocab_16e6.txt.gz`; the numbers of the tokens follow from it. Text is unescaped (HTML), normalised (NFC),
lower-cased, its white space made single. Repairing broken encodings, as OpenAI's code does with `ftfy`, is left out.
"""

from __future__ import annotations

import functools
import html
import itertools
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from dqd.safe import load_json, load_text

NUM_MERGES = 49_152 - 256 - 2  # of the published table; what follows in OpenAI's file is not used
LARGEST_TABLE = 16 * 2**20  # bytes, unpacked
START, END = "<|startoftext|>", "<|endoftext|>"
WORD_END = "</w>"

# Unicode's White_Space. Python's own \s also holds the separators U+001C to U+001F.
SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
SPACES = re.compile(f"[{SPACE}]+")
FIXED = re.compile(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d", re.IGNORECASE)

Pair = tuple[str, str]


class Tokenizer:
    """Text to token numbers, by a table of merges in order of rank."""

    def __init__(self, merges: Sequence[Pair]) -> None:
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        letters = list(byte_letters().values())
        tokens = letters + [letter + WORD_END for letter in letters] + ["".join(pair) for pair in merges]
        self.numbers = {token: number for number, token in enumerate([*tokens, START, END])}
        self._pieces = functools.lru_cache(maxsize=4096)(self._merge)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Tokenizer:
        """From a table of merges, or a directory that holds one."""
        return Tokenizer(read_merges(find_merges(path)))

    def __len__(self) -> int:
        return len(self.numbers)

    def encode(self, text: str) -> list[int]:
        """Token numbers, between those of start and end."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"prompt: expected text in UTF-8, got {text!r}") from error
        pieces = [piece for word in words(clean(text)) for piece in self._pieces(word)]
        return [self.numbers[piece] for piece in (START, *pieces, END)]

    def batch(self, texts: Sequence[str], length: int = 77) -> np.ndarray:
        """(number of texts, length), zeros behind the end."""
        found = np.zeros((len(texts), length), np.int32)
        for row, text in zip(found, texts, strict=True):
            numbers = self.encode(text)
            if len(numbers) > length:
                raise ValueError(f"prompt: CLIP reads at most {length} tokens, got {len(numbers)}: {text[:60]!r}...")
            row[: len(numbers)] = numbers
        return found

    def _merge(self, word: str) -> tuple[str, ...]:
        """Join the pair of neighbours of lowest rank, everywhere, until none is in the table."""
        if word in (START, END):
            return (word,)
        letters = byte_letters()
        parts = [letters[byte] for byte in word.encode()]
        parts[-1] += WORD_END
        while len(parts) > 1:
            pair = min(itertools.pairwise(parts), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if pair not in self.ranks:
                break
            parts = _join(parts, pair)
        return tuple(parts)


def _join(parts: list[str], pair: Pair) -> list[str]:
    joined: list[str] = []
    at = 0
    while at < len(parts):
        both = tuple(parts[at : at + 2]) == pair
        joined.append("".join(pair) if both else parts[at])
        at += 2 if both else 1
    return joined


def clean(text: str) -> str:
    text = unicodedata.normalize("NFC", html.unescape(html.unescape(text)))
    return SPACES.sub(" ", text).strip(" ").lower()


def words(text: str) -> Iterator[str]:
    """A special token, an English ending, a run of letters, one digit, or a run of anything else but space."""
    at = 0
    while at < len(text):
        end = at + 1
        if match := FIXED.match(text, at):
            end = match.end()
        elif (kind := _kind(text[at])) in "LO":
            while end < len(text) and _kind(text[end]) == kind:
                end += 1
        elif kind == " ":
            at = end
            continue
        yield text[at:end]
        at = end


@functools.lru_cache(maxsize=4096)
def _kind(letter: str) -> str:
    """L letter, N number, space, or O other."""
    if SPACES.match(letter):
        return " "
    category = unicodedata.category(letter)[0]
    return category if category in "LN" else "O"


@functools.cache
def byte_letters() -> dict[int, str]:
    """A printable letter for every byte, as the table of merges writes them: first the bytes that are printable."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


# The table ------------------------------------------------------------------------------------------------------------

TABLES = ("merges.txt", "bpe_simple_vocab_16e6.txt.gz", "tokenizer.json")


def find_merges(path: str | os.PathLike[str]) -> Path:
    """The table itself, or the one in a directory."""
    path = Path(path)
    if path.is_file():
        return path
    for name in TABLES:
        if (path / name).is_file():
            return path / name
    raise FileNotFoundError(f"{path}: no table of CLIP's tokenizer there; expected one of {', '.join(TABLES)}")


def read_merges(path: Path) -> list[Pair]:
    """The pairs of a table, in order of rank."""
    rows = (_json_rows if path.suffix == ".json" else _lines)(path)[:NUM_MERGES]
    if len(rows) < NUM_MERGES or any([type(part) for part in row] != [str, str] for row in rows):
        raise ValueError(f"{path}: expected {NUM_MERGES:,} merges of two parts each; cut short or another table")
    return [(first, second) for first, second in rows]


def _lines(path: Path) -> list[list[str]]:
    """Without the first one, which names a version."""
    return [line.split() for line in load_text(path, LARGEST_TABLE).splitlines()[1:]]


def _json_rows(path: Path) -> list[list[str]]:
    match load_json(path, LARGEST_TABLE):
        case {"model": {"merges": [*rows]}} if all(isinstance(row, str | list) for row in rows):
            return [row.split(" ") if isinstance(row, str) else row for row in rows]
    return []
