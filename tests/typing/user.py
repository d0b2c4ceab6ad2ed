"""A program of a user, for type checkers: it is checked and never run.

It uses every public name, as a user would. `tests/typing/test_typing.py` fails
if it lacks one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_type

import keras  # type: ignore[import-untyped]
import numpy as np

import keras_attn
from keras_attn import (
    blocks,
    cache,
    datasets,
    decoding,
    explain,
    layers,
    models,
    ops,
    pretrained,
    testing,
    text,
    training,
)

IDS = np.array([[7, 8, 9, 2]])
X = np.ones((2, 5, 8), "float32")
FOLDER = Path("runs")


class DistanceBias(layers.AttentionPosition):
    """A user's own position encoding of the scores."""

    def __init__(self, scale: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scale = scale

    def bias(self) -> ops.PositionBias:
        def near(_: Any, query: Any, key: Any) -> Any:
            return -self.scale * abs(query[:, None, :, None] - key)

        return ops.PositionBias(near)


class SecondBest(decoding.SingleSequenceStrategy):
    """A user's own decoding strategy."""

    def get_next_token(self, log_probs: Any, step: Any, uniforms: Any) -> Any:
        return keras.ops.top_k(log_probs, 2)[1][..., 1]


class NoDouble(decoding.LogitsRule):
    """A user's own rule."""

    can_be_positive = False

    def apply(
        self, scores: Any, tokens: Any, step: Any, spec: decoding.SearchSpec
    ) -> Any:
        ids = keras.ops.arange(scores.shape[-1], dtype="int32")
        return keras.ops.where(ids == tokens[..., -1:], -1e9, scores)


class LanguageModel(models.GenerativeModel):
    """A user's own generative model."""

    def __init__(self, vocabulary_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.source_vocabulary_size = vocabulary_size
        self.embedding = layers.TokenEmbedding(vocabulary_size, 16)

    def call(self, token_ids: Any) -> Any:
        return self.embedding.logits(self.embedding(token_ids))

    def start_decoding(
        self, inputs: Any, max_new_tokens: int
    ) -> decoding.DecodingState:
        return decoding.DecodingState((), (), inputs[:, :1])

    def decode_step(
        self, tokens: Any, state: decoding.DecodingState
    ) -> tuple[Any, decoding.DecodingState]:
        return self(tokens), state._replace(hypothesis=())


def use_layers() -> None:
    rotary = layers.RotaryPosition(max_wavelength=10_000.0)
    attention = layers.MultiHeadAttention(
        num_heads=2, key_dim=4, causal=True, attention_position=rotary
    )
    y = attention(X, X, query_mask=X[..., 0] > 0, training=True)
    y, weights = attention(X, X, return_attention_scores=True)
    print(y.shape, weights.shape)
    assert_type(attention.num_heads, int)
    assert_type(attention.dropout, float)
    attention(X, X, causal=True)  # type: ignore[call-arg]
    attention(X)  # type: ignore[call-arg]
    layers.MultiHeadAttention("two", key_dim=4)  # type: ignore[arg-type]
    layers.MultiHeadAttention(2, 4, dropout="0.1")  # type: ignore[arg-type]

    positions: list[layers.AttentionPosition] = [
        DistanceBias(0.5),
        layers.ALiBiPosition(num_heads=2),
        layers.T5Position(num_heads=2, num_buckets=32),
        layers.TransformerXLPosition(2, 4),
        layers.XLNetPosition(2, 4),
    ]
    for position in positions:
        layers.MultiHeadAttention(2, 4, attention_position=position)(X, X)

    embedding = layers.TokenEmbedding(100, 8, pad_id=None, scale=False)
    x = layers.PositionalEmbedding("learned", max_sequence_length=32)(
        embedding(IDS)
    )
    x = layers.Dropout(0.1, seed=0)(x, training=False)
    x = layers.FeedForward(32, "gelu", gated=True)(x)
    x = layers.MixtureOfExperts(32, num_experts=4)(x, training=True)
    print(embedding.logits(x))
    layers.CharacterEmbedding(30, 8, kernel_sizes=(2, 3))(IDS[None])
    layers.GlimpseSensor(4)(np.ones((1, 8, 8, 3)), np.zeros((1, 2)))
    layers.LogMelSpectrogram(8000)(np.ones((2, 800)), lengths=[800, 400])
    look = layers.ScoredAttention("general", hard="reinforce")
    seen, log_probability = look(X, X, return_log_probability=True)
    layers.Reinforce("mse", momentum=0.5)(seen, X, log_probability)
    model = keras.Sequential([embedding, layers.FeedForward(16)])
    model.compile("adam")


def use_blocks() -> None:
    encoder = blocks.EncoderBlock(
        num_heads=2, intermediate_dim=32, activation=keras.activations.relu
    )
    memory = encoder(X, mask=X[..., 0] > 0, training=True)
    decoder = blocks.DecoderBlock(num_heads=2, intermediate_dim=32)
    decoder(X, memory, memory_mask=X[..., 0] > 0, positions=None)
    blocks.SegmentBlock(num_heads=2, intermediate_dim=32)(X[:, 3:], X[:, :3])
    content, output = blocks.TwoStreamBlock(num_heads=2, intermediate_dim=32)(
        X, queries=X, query_visibility=ops.Visibility(causal=True, strict=True)
    )
    residual = blocks.Residual(
        dropout=0.1, normalize_first=True, normalize_input=False
    )
    print(residual.post(X, residual.pre(X)), content, output)
    blocks.EncoderBlock(2, 32)  # type: ignore[call-arg]


def use_models() -> None:
    sizes: dict[str, Any] = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16}
    gpt = models.GPT(100, max_sequence_length=32, pad_id=None, **sizes)
    decoded = gpt.generate([[7, 8, 9], [5]], max_new_tokens=4)
    state = gpt.read([[7, 8, 9], [5]])
    assert_type(state, models.PromptState)
    gpt.generate([[3], [4]], 4, state=gpt.read([[6], [7]], state))
    assert_type(decoded, decoding.Decoded)
    for item in gpt.stream([[5, 6]], 3, strategy="beam"):
        assert_type(item, decoding.StreamedToken)

    guided = models.ClassifierFreeGuidance(gpt, guidance_scale=1.5)
    prompts = {"inputs": [[5, 6], [7]], "negative_prompt_ids": [[8]]}
    assert_type(guided.generate(prompts, 3), decoding.Decoded)

    bert = models.Bert(100, **sizes)
    pooled = bert({"token_ids": IDS}, training=False)["pooled_output"]
    print(pooled, models.Roberta(100, **sizes)(IDS))
    classifier = models.SequenceClassifier(bert, num_classes=3)
    modern = models.Bert(
        100,
        normalize_first=True,
        normalization="bias_free_layer_norm",
        skip_first_norm=True,
        pooler=False,
        **sizes,
    )
    models.SequenceClassifier(modern, num_classes=3, transform=True)
    models.TokenClassifier(modern, num_classes=3, transform=True)
    models.SpanExtractor(modern, transform=True)
    classifier.compile("adam", training.SequenceCrossentropy())
    classifier.fit(IDS, np.array([1]), epochs=2)
    print(classifier(IDS), classifier.predict(IDS))
    heads: list[keras.Model] = [
        models.BertPretrainer(bert, next_sentence=False),
        models.MultipleChoice(models.SequenceClassifier(bert, 1)),
        models.ReplacedTokenDetector(bert),
        models.TokenClassifier(models.Encoder(100, **sizes), 5),
        LanguageModel(100),
    ]
    for head in heads:
        head(IDS)
    extractor = models.SpanExtractor(bert, no_answer="first")
    assert_type(extractor.extract(IDS, max_answer_length=30), models.Spans)
    assert_type(models.best_spans(np.zeros((1, 2, 3))), models.Spans)

    transformer = models.Transformer.base(100, 120, dropout=0.2)
    assert_type(transformer, models.Transformer)
    print(transformer((IDS, IDS), training=True), transformer.pad_id + 1)
    memory, positions = transformer.encode(IDS)
    print(transformer.decode(IDS, memory, positions))
    recurrent = models.RecurrentSeq2Seq(
        100, hidden_dim=16, bidirectional=True, attention="general"
    )
    recurrent((IDS, IDS))
    captioner = models.ImageCaptioner(20, image_shape=(10, 16, 3))
    captioner.generate(np.zeros((2, 10, 16, 3)), 5, return_weights=True)
    vision = models.VisionTransformer((8, 8, 3), patch_size=4, num_classes=3)
    print(vision(np.zeros((2, 8, 8, 3)), training=True), vision.grid_size)
    models.ImageCaptioner(20, (8, 8, 3), hidden_dim=768, encoder=vision)
    speech = models.SpeechTransformer(20, num_mel_bins=8, filters=4)
    speech.transcribe(np.zeros((2, 30, 8)), 5)
    xl = models.TransformerXL(100, memory_length=4, **sizes)
    logits, segment_memory = xl.advance(IDS)
    assert_type(segment_memory, models.SegmentMemory)
    assert_type(xl.with_memory(8), models.TransformerXL)
    print(models.XLNet(100, **sizes)(IDS), logits)

    assert_type(models.bio_spans(["O", "B-city"]), list[models.Entity])
    scores = models.entity_scores([["B-city", "O"]], [["O", "O"]])
    assert_type(scores, models.EntityScores)
    assert_type(models.Entity("city", 1, 2).end, int)
    models.align_labels_with_tokens([[-1, 0, 1]], [[5, 7]])


def use_ops() -> None:
    see = ops.Visibility(causal=True)
    y, weights = ops.attend(X, X, X, see, return_weights=True)
    assert_type(ops.attention_plan(X, X, see), ops.AttentionPlan)
    dropout = ops.WeightDropout(0.5, keras.random.SeedGenerator(1).next())
    ops.attend(X, X, X, dropout=dropout, scale=0.5)
    with ops.capture_weights() as captured:
        layers.MultiHeadAttention(2, 4)(X, X)
    for (path, call), found in captured.items():
        assert_type(path, str)
        print(call, found.shape)
    ops.packed_positions(IDS, mask=None)
    ops.relative_shift(ops.scaled_dot_scores(X, X), 2)
    ops.sinusoid(ops.positions_from_mask(IDS > 0), 4)
    print(y, weights)


def use_cache() -> None:
    state = cache.empty(2, 8, 1, 4, 16, 16, "float32", sliding_window=[4])
    assert_type(state, cache.KVCache)
    positions, state = cache.open_slots(state, 1)
    step = cache.DecodingStep(positions)
    state = cache.append(state, 0, X, X)
    state = cache.close_slots(state, 1)
    keys, values, positions = cache.read(state, 0, 4)
    state = cache.from_projections([keys], [values], positions)
    state = cache.grown(cache.expand_beams(state, 2), 4)
    print(cache.beam_mask(state, 1, layer=0), step)
    print(cache.reorder(state, [0, 0]))
    state = cache.quantized(cache.empty(2, 8, 1, 4, 16, 16, "float32"))
    assert_type(cache.slots(state), int)
    assert_type(cache.sources(state), int)
    print(cache.free_slots(state), cache.crop(state, np.array([1, 0])))


def use_decoding() -> None:
    model = models.Transformer(12, num_layers=1, num_heads=1, hidden_dim=4)
    strategies: list[decoding.Strategy] = [
        decoding.BeamSearch(
            num_beams=4, length_penalty=1.0, coverage_penalty=0.2
        ),
        decoding.DiverseBeamSearch(
            num_beams=4, num_beam_groups=2, diversity_penalty=0.5
        ),
        decoding.ConstrainedBeamSearch(words=[[5, 6]], num_beams=2),
        decoding.GreedySearch(min_new_tokens=4),
        decoding.Sampling(top_p=0.9, seed=7, num_return_sequences=3),
        SecondBest(),
        decoding.GreedySearch(rules=[NoDouble(), decoding.MinP(0.1)]),
        decoding.BeamSearch(
            rules=(
                decoding.RepetitionPenalty(1.2),
                decoding.PresencePenalty(0.5),
                decoding.FrequencyPenalty(0.5),
                decoding.NoRepeatNGram(ngram_size=3),
                decoding.LogitBias({5: -1.0, (6, 7): -2.0}),
            )
        ),
        decoding.Sampling(
            rules=[
                decoding.Temperature(0.7),
                decoding.TypicalP(0.9),
                decoding.EpsilonCutoff(1e-3),
                decoding.AllowedTokens(
                    lambda tokens, step, spec, size: tokens[..., -1:] > 0
                ),
                decoding.AllowedSequences([[5, 6], [7]]),
                decoding.ForcedWords(words=[[5]]),
            ]
        ),
    ]
    for strategy in strategies:
        decoding.generate(model, IDS, 3, strategy, prefix=[8])
    gpt = models.GPT(12, num_layers=1, num_heads=1, hidden_dim=4)
    found = gpt.generate(
        IDS, 3, decoding.SpeculativeDecoding(gpt, num_speculative_tokens=2)
    )
    decoding.generate(
        gpt, IDS, 3, decoding.PromptLookup(2, 1, decoding.Sampling(seed=1))
    )
    assert_type(decoding.SpeculativeCounts(1, 2, 3)[0], Any)
    print(found.speculation, decoding.Sampling().probabilities(IDS))
    characters = text.CharacterTokenizer("abc")
    assert_type(characters.token_bytes(), list[bytes])
    decoding.generate(
        model,
        IDS,
        3,
        "beam",
        stop_strings=["ab"],
        tokenizer=characters,
        cache_dtype="int8",
    )
    for item in decoding.stream(model, IDS, 3, "beam", tokenizer=characters):
        assert_type(item.texts, list[list[str]] | None)
        assert_type(item.active, decoding.ActiveHypotheses)
    spec = decoding.SearchSpec(8, 0, 1, (2,))
    assert_type(spec.end_ids, tuple[int, ...])
    print(decoding.Choice(search_state=(), tokens=None).parents)
    decoding.Sampling(top_k="5")  # type: ignore[arg-type]


def use_training() -> None:
    model = models.Encoder(9, num_layers=2, num_heads=1, hidden_dim=4)
    multipliers = training.layerwise_lr_multipliers(model, 0.5)
    assert_type(multipliers, dict[str, float])
    schedule = training.WarmupSchedule(hidden_dim=4, warmup_steps=100)
    optimizer = training.LayerwiseLearningRates(
        keras.optimizers.Adam(schedule), multipliers
    )
    model.compile(
        optimizer,
        training.SequenceCrossentropy(label_smoothing=0.1),
        [training.TokenAccuracy(), training.Perplexity(pad_id=0)],
    )
    average = training.CheckpointAverage(num_checkpoints=2)
    progress = training.TrainingProgress(minutes=1)
    backup = training.TrainingBackup(FOLDER, [average], save_freq=100)

    def encode(words: Sequence[str], length: int, random: Any) -> Any:
        return np.array([word.ljust(length) for word in words])

    words = ["a", "the"]
    batches = training.BucketedDataset(words, [1, 3], encode, 2)
    model.fit(batches, callbacks=[average, progress, backup])
    assert_type(progress.losses, list[float])
    assert_type(training.freeze(model, "embedding"), list[str])
    assert_type(training.unfreeze(model), list[str])
    assert_type(training.enable_lora(model, rank=2), list[str])
    training.check_processes_agree(model, settings={"rate": 0.1})
    training.CheckpointAverage(num_checkpoints="2")  # type: ignore[arg-type]


def use_text() -> None:
    lines = ["the cat sat", "the dog"]
    tokenizer = text.SubwordTokenizer.train_from_lines(lines, 290)
    assert_type(tokenizer, text.SubwordTokenizer)
    assert_type(tokenizer.vocabulary_size, int)
    assert_type(tokenizer.tokens("the cat"), list[str])
    print(tokenizer.decode(tokenizer.encode(lines)))
    tokenizer.save(FOLDER)
    byte_pairs = text.BytePairTokenizer.train_from_lines(lines, 264)
    characters = text.CharacterTokenizer.train_from_lines(lines)
    unigrams = text.UnigramTokenizer([("<pad>", 0.0), ("</s>", 0.0)])
    word_pieces = text.WordPieceTokenizer(["[PAD]", "[UNK]", "un"])
    packed = word_pieces.pack(["unlikely"], ["you"], max_length=16)
    assert_type(byte_pairs.chat_template, str | None)
    message = {"role": "user", "content": "Hello"}
    print(byte_pairs.apply_chat_template([message], tokenize=False))
    print(packed["token_ids"], byte_pairs, characters.end_id + 1, unigrams)
    print(text.load_tokenizer(FOLDER).tokens("the cat"))

    pairs = text.token_batches(lines, lines, tokenizer, tokens_per_batch=12)
    assert_type(pairs, text.TokenDataset)
    assert_type(pairs.report, text.BatchReport | None)
    rows = text.packed_batches(lines, None, tokenizer, tokens_per_batch=12)
    assert_type(rows, text.TokenDataset)
    text.token_blocks(np.arange(10), length=4, batch_size=2)
    text.token_streams([[1, 2, 3]], length=2, batch_size=2)
    masked = text.mask_tokens([[2, 7, 3]], 12, mask_id=4, seed=1)
    assert_type(masked, text.MaskedTokens)
    permuted = text.permute_tokens([[2, 7, 3]], seed=np.random.default_rng(0))
    assert_type(permuted, text.PermutedTokens)
    found = text.sentence_pairs([[[5], [6]], [[8]]], seed=0)
    assert_type(found, list[text.SentencePair])
    text.pack_segments([[5, 6]], [[8]], start_id=1, end_id=2)
    question = "Where is Ann?", "Ann sits in Oslo.", [("Oslo", 12)]
    windows = text.question_windows([question], tokenizer)
    assert_type(windows, list[text.QuestionWindow])
    inputs, labels = text.pad_windows(windows, length=8)
    print(inputs["token_ids"], labels.shape)
    assert_type(text.edit_distance("kitten", "sitting"), int)
    assert_type(text.error_rate(["HELO"], ["HELLO"], unit="word"), float)
    scores = text.squad_scores("a red box", ["The box!"])
    assert_type(scores, text.SquadScores)
    text.squad_threshold(["box"], [1.5], [["box"]])


def use_explain() -> None:
    model = models.GPT(20, num_layers=2, num_heads=2, hidden_dim=8)
    maps = explain.attention_maps(model, IDS, layers="block_1/")
    assert_type(maps, list[explain.AttentionMap])
    assert_type(explain.view_attention(maps), explain.AttentionView)
    print(explain.head_entropy(maps[0]), explain.head_distance(maps[0]))
    print(explain.padding_attention(maps[0], IDS > 0), explain.rollout(maps))
    print(explain.hidden_states(model, IDS)[0].shape)
    logits = explain.logit_lens(model, IDS)
    explain.plot_logit_lens(logits, ["a", "b"], str).savefig("lens.png")
    patched = explain.patch(model, IDS, IDS, lambda logits: logits[:, -1, 3])
    assert_type(patched, explain.PatchScores)
    print(patched.scores, patched.clean - patched.corrupted, patched.restored)
    explain.plot_patch(patched, title="Patches").savefig("patches.png")
    report = keras_attn.doctor(model, IDS, mask=IDS > 0)
    assert_type(report, explain.Report)
    assert_type(explain.doctor(model, IDS).probes, list[explain.Probe])
    assert_type(explain.Leak("pool", "encoder/pool", 0.5, 3), explain.Leak)

    def score(ids: Any) -> Any:
        return (ids[:, 1] == 7).astype("float32")

    masks = explain.TokenMasks(mask_id=1)
    saliency = explain.rise(score, IDS[0], masks, num_masks=100, verbose=0)
    curves = explain.deletion_and_insertion(score, IDS[0], saliency, masks)
    assert_type(curves, explain.DeletionInsertion)
    explain.PatchMasks(grid=(2, 3)).draw(np.random.default_rng(0), (8, 6), 5)
    explain.FrameMasks(grid=4, probability=0.5)
    explain.plot_attention(maps[0], ["a"], ["b"], title="Causal")
    explain.plot_beam(model.stream([[5]], 3, strategy="beam"))
    explain.plot_confusion(["a", "b"], ["a", "a"])
    explain.plot_image_attention(np.zeros((1, 4, 4, 3)), X, [["a"]])
    explain.plot_training([4.0, 3.0], [(2, 3.1)]).savefig("loss.png")


def use_pretrained() -> None:
    model = pretrained.load(FOLDER, allow_nonfinite=False)
    pretrained.save(model, "copy", max_shard_size=2)
    pretrained.register_family(
        "mine",
        "MineForCausalLM",
        like="mistral",
        arguments={"gated": False},
        config_keys={"epsilon": ("norm_eps", 1e-6)},
        tensor_names={"feed_forward/inner": "mlp.up"},
        defaults={"sliding_window": None},
    )


def use_testing() -> None:
    attention = layers.MultiHeadAttention(2, 4)
    checks = testing.check_attention_layer(
        attention, except_for=testing.ATTENTION_LAYER_CHECKS[:1]
    )
    assert_type(checks, tuple[str, ...])
    block = blocks.EncoderBlock(num_heads=2, intermediate_dim=16)
    testing.check_block(block, only=testing.BLOCK_CHECKS)
    try:
        testing.check_generative_model(
            LanguageModel(20), only=testing.GENERATIVE_MODEL_CHECKS
        )
    except testing.CheckFailure as failure:
        assert_type(failure.check, str)
    with testing.host_reads() as reads:
        print(float(X[0, 0, 0]))
    assert_type(reads, list[str])


def make_datasets() -> None:
    d = datasets
    assert_type(d.make_aligned_pairs(2, max_phrases=2), list[d.AlignedPair])
    assert_type(d.make_cluttered_digits(5), d.ClutteredDigits)
    assert_type(d.make_comparison_task(2), d.NumberComparisons)
    assert_type(d.make_copy_task(2, length=4), d.SequencePairs)
    assert_type(d.make_reversal_task(2, length=4), d.SequencePairs)
    assert_type(d.make_sorting_task(2, length=4), d.SequencePairs)
    assert_type(d.make_lookup_task(1, num_pairs=3), d.RecallSequences)
    assert_type(d.make_recall_task(1, length=6), d.RecallSequences)
    assert_type(d.make_dialogues(9), list[d.DialogueTurn])
    assert_type(d.make_digit_audio(2, max_digits=3), list[d.Recording])
    assert_type(d.make_disfluent_questions(2), list[d.DisfluentQuestion])
    assert_type(d.make_documents(4), list[list[str]])
    assert_type(d.make_entailment_pairs(4), list[d.EntailmentPair])
    assert_type(d.make_labeled_sentences(3), list[d.LabeledSentence])
    assert_type(d.make_misspellings(4), list[d.Misspelling])
    assert_type(d.make_morse_audio(3, snr=20.0), list[d.MorseMessage])
    assert_type(d.make_pronoun_sentences(2), list[d.PronounSentence])
    assert_type(d.make_questions(2, split="test"), list[d.Question])
    assert_type(d.make_scenes(2, size=64), d.Scenes)
    assert_type(d.make_sentence_pairs(6), list[d.SentencePair])
    assert_type(d.make_tagged_sentences(3), list[d.TaggedSentence])
    assert_type(d.make_translation_pairs(9), list[d.TranslationPair])
    assert_type(d.load_handwritten_digits("test"), d.HandwrittenDigits)
    assert_type(d.spelling_words(), list[str])
    assert_type(d.SHOWCASE_PAIRS[0].target, str)
    assert_type(d.encode_morse("SOS", wpm=12), d.MorseMessage)
    assert_type(d.misspell("separate", seed=1), str)
    assert_type(d.word_stem("calculate"), str)
    d.make_copy_task(n="2")  # type: ignore[arg-type]


def read_datasets() -> None:
    d = datasets
    path = FOLDER / "file"
    bad_lines: list[d.BadLine] = []
    pairs = d.read_tsv_pairs(path, on_bad_lines=bad_lines.append)
    assert_type(pairs, list[d.TranslationPair])
    with d.report_bad_lines(limit=0) as on_bad_lines:
        d.read_parallel(path, str(path), on_bad_lines=on_bad_lines)
    try:
        assert_type(d.read_lines(path), list[str])
    except d.DataFileError as error:
        assert_type(error.line, int | None)
    assert_type(d.read_captions(FOLDER, height=50), d.CaptionedImages)
    assert_type(d.read_nlvr(FOLDER, "dev"), d.CaptionedImages)
    assert_type(d.read_classification_csv(path), list[d.LabeledSentence])
    assert_type(d.read_conll_bio(path), list[d.TaggedSentence])
    assert_type(d.read_conllu(path, tags="xpos"), list[d.TaggedSentence])
    assert_type(d.read_disfl_qa(path), list[d.DisfluentQuestion])
    assert_type(d.read_documents(path), list[list[str]])
    assert_type(d.read_misspellings(path), list[d.Misspelling])
    assert_type(d.read_restaurants8k(path), list[d.DialogueTurn])
    assert_type(d.read_squad(path), list[d.Question])
    assert_type(d.read_wav_folder(FOLDER), list[d.Recording])
    samples, sample_rate = d.read_wav(path)
    assert_type(sample_rate, int)
    d.write_squad(path, d.read_squad(path))
    sources, references = d.group_references(pairs)
    assert_type(sources, list[str])
    print(d.reference_streams(references), samples.shape)
    train, validation, test = d.split_by_hash(pairs, parts=20)
    turn = d.DialogueTurn("At 6.", ("time",), (d.Slot("time", "6", 3),))
    assert_type(d.slot_questions([turn])[0].answers, tuple[d.Answer, ...])
    scene = (
        d.SceneObject("square", "red", 8.0, 20.0, 4.0),
        d.SceneObject("ring", "blue", 30.0, 12.0, 4.0),
    )
    assert_type(d.check_caption(scene, "a red square"), d.CaptionCheck)
    print(train, validation, test)
