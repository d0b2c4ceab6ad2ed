"""Translating sentences with a trained model, and scoring translations."""

import numpy as np


def translate(model, tokenizer, sentences, longest=64, batch_size=64):
    """Translates sentences greedily, sentences of like length together.

    Args:
        model: `keras_attn.models.Transformer`.
        tokenizer: `keras_attn.text.SubwordTokenizer`.
        sentences: list of str.
        longest: int. Most tokens in a translation.
        batch_size: int. Sentences translated together.

    Returns:
        A list of str, in the order of `sentences`.
    """
    ids = [
        [*row, tokenizer.end_id] for row in tokenizer.encode(list(sentences))
    ]
    groups = {}
    for number, row in enumerate(ids):
        groups.setdefault(-(-len(row) // 16) * 16, []).append(number)
    translations = [""] * len(ids)
    for length, numbers in sorted(groups.items()):
        batch = np.full((len(numbers), length), tokenizer.pad_id, "int32")
        for slot, number in enumerate(numbers):
            batch[slot, : len(ids[number])] = ids[number]
        decoded = model.generate(
            batch,
            max_new_tokens=min(2 * length + 16, longest),
            batch_size=batch_size,
        )
        texts = tokenizer.decode([row[0].tolist() for row in decoded.tokens])
        for number, text in zip(numbers, texts, strict=True):
            translations[number] = text
    return translations


def bleu(translations, references):
    """Returns the sacreBLEU score of a corpus.

    Args:
        translations: list of str.
        references: list of lists of str: one or more for each translation.

    Returns:
        `sacrebleu.metrics.bleu.BLEUScore`.
    """
    import sacrebleu

    most = max(len(group) for group in references)
    streams = [
        [group[i] if i < len(group) else None for group in references]
        for i in range(most)
    ]
    return sacrebleu.corpus_bleu(translations, streams)
