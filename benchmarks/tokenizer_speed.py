"""Time of `encode_batch` against the wrapped library's own call.

    python -m benchmarks.tokenizer_speed [--texts N] [--rounds N]

The calls alternate, and the table has the median of each. A ratio of 1.2 is the
limit that a change of the tokenizers must keep.
"""

import argparse
import statistics
import tempfile
import time

from keras_attn import datasets, text


def measure(ours, theirs, rounds):
    """Returns the median seconds of two functions, called in turn."""
    seconds = [], []
    for _ in range(rounds):
        for call, found in zip((ours, theirs), seconds, strict=True):
            begin = time.perf_counter()
            call()
            found.append(time.perf_counter() - begin)
    return [statistics.median(found) for found in seconds]


def main(arguments=None):
    """Prints a table of the tokenizers."""
    parser = argparse.ArgumentParser(
        description="Compares encode_batch with the wrapped library."
    )
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    documents = datasets.make_documents(options.texts // 4, seed=1)
    lines = [line for document in documents for line in document]
    lines = lines[: options.texts]
    print("| tokenizer | encode_batch, s | library, s | ratio |")
    print("| --- | --- | --- | --- |")
    for name, tokenizer, call in contestants(lines):
        ours, theirs = measure(
            lambda tokenizer=tokenizer: tokenizer.encode_batch(lines),
            lambda call=call: call(lines),
            options.rounds,
        )
        print(f"| {name} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} |")


def contestants(lines):
    """Yields names, tokenizers, and calls of the library they wrap."""
    import sentencepiece
    import tokenizers

    for name, kind, size in (
        ("WordPieceTokenizer", text.WordPieceTokenizer, 500),
        ("BytePairTokenizer", text.BytePairTokenizer, 500),
        ("UnigramTokenizer", text.UnigramTokenizer, 300),
    ):
        tokenizer = kind.train_from_lines(lines, size)
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(folder)
            engine = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")

        def call(texts, engine=engine):
            return engine.encode_batch(texts, add_special_tokens=False)

        yield name, tokenizer, call
    yield from _marian(tokenizer, sentencepiece)


def _marian(tokenizer, sentencepiece):
    import json
    import pathlib

    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        tokenizer.save(folder)
        model = (folder / "spiece.model").read_bytes()
        (folder / "tokenizer.json").unlink()
        for name in ("source.spm", "target.spm"):
            (folder / name).write_bytes(model)
        vocab = {t: i for i, t in enumerate(tokenizer.vocabulary)}
        (folder / "vocab.json").write_text(json.dumps(vocab), "utf-8")
        config = json.dumps({"tokenizer_class": "MarianTokenizer"})
        (folder / "tokenizer_config.json").write_text(config, "utf-8")
        marian = text.load_tokenizer(folder)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def call(texts):
        # The ids of the model are not those of vocab.json: pieces are needed.
        return processor.encode(texts, out_type=str)

    yield "UnigramTokenizer (Marian)", marian, call


if __name__ == "__main__":
    main()
