"""Writes the files that both systems read.

`pairs.tsv` has all pairs for `examples/translate.py`, which splits them by
source. JoeyNMT reads `train.source`, `train.target` and so on, the subword
model, and its vocabulary.
"""

import argparse
import pathlib
import random

from keras_attn.datasets import read_tsv_pairs, split_by_hash
from keras_attn.text import SubwordTokenizer


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="tab-separated pairs, such as spa-eng.zip")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=29_000)
    parser.add_argument("--vocabulary", type=int, default=4000)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    pairs = read_tsv_pairs(arguments.data)
    train, validation, test = split_by_hash(pairs, key=lambda p: p.source)
    random.Random(1).shuffle(train)
    splits = {
        "train": train[: arguments.pairs],
        "dev": validation[:: max(1, len(validation) // 1000)],
        "test": test,
    }
    with open(folder / "pairs.tsv", "w", encoding="utf-8") as file:
        for part in splits.values():
            file.writelines(f"{p.source}\t{p.target}\n" for p in part)
    for name, part in splits.items():
        for side in ("source", "target"):
            text = "".join(f"{getattr(pair, side)}\n" for pair in part)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
        print(f"{len(part):,} {name} pairs")
    tokenizer = SubwordTokenizer.train_from_lines(
        (sentence for pair in splits["train"] for sentence in pair),
        vocabulary_size=arguments.vocabulary,
    )
    tokenizer.save(folder / "subwords.model")
    # JoeyNMT adds its own special symbols.
    pieces = tokenizer.pieces(range(tokenizer.vocabulary_size))
    special = {"<pad>", "<s>", "</s>", "<unk>"}
    lines = [f"{piece}\n" for piece in pieces if piece not in special]
    (folder / "vocabulary.txt").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
