"""Prints sacreBLEU of both systems at each mark."""

import argparse
import pathlib
import re

import sacrebleu

from keras_attn.datasets import (
    group_references,
    read_parallel,
    reference_streams,
)


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    pairs = read_parallel(folder / "test.source", folder / "test.target")
    sources, references = group_references(pairs)
    first = {pair.source: i for i, pair in reversed(list(enumerate(pairs)))}
    streams = reference_streams(references)
    print(f"{len(sources):,} different test sentences")
    for path in sorted(folder.glob("*-*.txt"), key=_order):
        lines = path.read_text(encoding="utf-8").split("\n")
        translations = [lines[first[source]] for source in sources]
        print(f"{path.stem:12} {sacrebleu.corpus_bleu(translations, streams)}")


def _order(path):
    return int(re.search(r"\d+", path.stem)[0]), path.stem


if __name__ == "__main__":
    main()
