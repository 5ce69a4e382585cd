"""SigLIP's tokenizer: the likeliest way to cut a text into pieces of a table (Kudo 2018). No JAX.

    Unigram.load("siglip-base-patch16-224").encode("A small child.")

The table is `tokenizer.json` of a Hugging Face directory: pieces with their log-probabilities. Text is normalised
(NFKC), lower-cased, without punctuation, its white space made single: so SigLIP was trained.
"""

from __future__ import annotations

import os
import string
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dqd.safe import UnreadableError, load_json

TABLE = "tokenizer.json"
LARGEST_TABLE = 64 * 2**20  # bytes
SPACE, END = "\u2581", "</s>"
UNKNOWN = 10.0  # below the rarest piece
PUNCTUATION = str.maketrans("", "", string.punctuation)

Piece = tuple[str, float]


class Unigram:
    """Text to token numbers, by pieces and their log-probabilities in order of their numbers."""

    def __init__(self, pieces: Sequence[Piece], unknown: int) -> None:
        self.pieces, self.unknown = list(pieces), unknown
        self.numbers = {piece: number for number, (piece, _) in enumerate(self.pieces)}
        self.end = self.numbers[END]
        self.longest = max(len(piece) for piece, _ in self.pieces)
        self.rare = min(score for _, score in self.pieces) - UNKNOWN

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Unigram:
        """From a table, or a directory that holds one."""
        return Unigram(*read_pieces(find_table(path)))

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Token numbers, with that of the end."""
        words = clean(text)
        found = self._cut(SPACE + words.replace(" ", SPACE)) if words else []
        unknown = self.unknown  # several in a row are one
        return [n for i, n in enumerate(found) if n != unknown or found[i - 1 : i] != [unknown]] + [self.end]

    def batch(self, texts: Sequence[str], length: int) -> np.ndarray:
        """(number of texts, length), filled up with the end; what is too long is refused."""
        found = np.full((len(texts), length), self.end, np.int32)
        for row, text in zip(found, texts, strict=True):
            numbers = self.encode(text)
            if len(numbers) > length:
                raise ValueError(f"prompt: SigLIP reads at most {length} tokens, got {len(numbers)}: {text[:60]!r}...")
            row[: len(numbers)] = numbers
        return found

    def _cut(self, text: str) -> list[int]:
        """The best way to every place in the text (Viterbi), then back from the end."""
        score = [0.0] + [-np.inf] * len(text)
        ways = [(0, 0)] * (len(text) + 1)  # where a way comes from, and its last piece
        for start in range(len(text)):
            for end in range(start + 1, min(start + self.longest, len(text)) + 1):
                number = self.numbers.get(text[start:end])
                if number is None and end > start + 1:
                    continue
                number = self.unknown if number is None else number
                gain = self.rare if number == self.unknown else self.pieces[number][1]
                if score[start] + gain > score[end]:
                    score[end], ways[end] = score[start] + gain, (start, number)
        numbers, at = [], len(text)
        while at:
            at, number = ways[at]
            numbers.append(number)
        return numbers[::-1]


def clean(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).lower().translate(PUNCTUATION).split())


def find_table(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    table = path if path.is_file() else path / TABLE
    if not table.is_file():
        raise FileNotFoundError(f"{path}: no table of SigLIP's tokenizer there; expected {TABLE}")
    return table


def read_pieces(path: Path) -> tuple[list[Piece], int]:
    """Pieces in order, and the number of the unknown one."""
    match load_json(path, LARGEST_TABLE):
        case {"model": {"type": "Unigram", "vocab": [*rows], "unk_id": int(unknown)}}:
            pieces = [(str(piece), float(score)) for piece, score in rows]
            if 0 <= unknown < len(pieces) and END in dict(pieces):
                return pieces, unknown
    raise UnreadableError(path, "no table of pieces, as SigLIP's tokenizer has it", "SigLIP 2's is not read")
