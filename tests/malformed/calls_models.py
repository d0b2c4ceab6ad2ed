"""Malformed calls of models."""

import dataclasses

import keras
import numpy as np

from keras_attn import layers, models
from keras_attn.text import CharacterTokenizer
from tests.malformed.calls import Call, kinds
from tests.malformed.values import (
    ENDLESS,
    NAN,
    Kind,
    choice,
    count,
    fixed,
    flag,
    floats,
    ids,
    instance,
    limited,
    mask,
    number,
    of_keras,
    positive,
    rate,
    size,
    token_id,
)

IDS = np.array([[5, 6, 7, 2], [8, 2, 0, 0]], "int32")
MASK = IDS != 0
FRAMES = np.ones((2, 6, 5), "float32")
IMAGES = np.full((2, 4, 8, 3), 7.0, "float32")
SEGMENTS = np.array([[0, 0, 1, 1], [0, 1, 0, 0]], "int32")
SIZES = {
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
}
V = 12


def gpt(**options):
    """Returns a GPT of one layer."""
    sizes = SIZES | {"max_sequence_length": 8} | options
    return models.GPT(V, **sizes)


def encoder(**options):
    """Returns an encoder of one layer."""
    return models.Encoder(V, **(SIZES | options))


def bert(**options):
    """Returns a BERT of one layer."""
    return models.Bert(V, **(SIZES | {"max_sequence_length": 8} | options))


def transformer(**options):
    """Returns a Transformer of one layer per stack."""
    return models.Transformer(V, **(SIZES | options))


def recurrent(**options):
    """Returns a recurrent model of one layer per stack."""
    return models.RecurrentSeq2Seq(V, hidden_dim=8, **options)


def captioner(**options):
    """Returns a captioner of small images."""
    sizes = {"image_shape": IMAGES.shape[1:], "hidden_dim": 8, "filters": 2}
    return models.ImageCaptioner(V, **(sizes | options))


def vision():
    """Returns a Vision Transformer of one layer."""
    return models.VisionTransformer(
        IMAGES.shape[1:], patch_size=2, num_classes=3, **SIZES
    )


def speech(**options):
    """Returns a speech recognizer of one layer per stack."""
    sizes = {"num_mel_bins": 5, "filters": 2, "num_decoder_layers": 1}
    return models.SpeechTransformer(V, **(SIZES | sizes | options))


def transformer_xl(**options):
    """Returns a Transformer-XL of one layer."""
    return models.TransformerXL(V, **(SIZES | {"memory_length": 3} | options))


def xlnet(**options):
    """Returns an XLNet of one layer."""
    return models.XLNet(V, **(SIZES | {"memory_length": 3} | options))


def _layers(valid=1):
    # A million layers are a hang.
    return limited(valid)


def _stack():
    return kinds(
        num_layers=_layers(),
        num_heads=size(2).plus(no_divisor=3),
        hidden_dim=size(8).plus(no_multiple=7).named("num_heads"),
        intermediate_dim=size(12),
        dropout=rate(0.1),
        activation=of_keras("relu"),
        epsilon=positive(1e-5),
    )


def _dropouts():
    return kinds(
        attention_dropout=rate(0.1),
        activation_dropout=rate(0.1),
        gated=flag(False),
        normalize_first=flag(False),
    )


def _special(start=True):
    found = {"pad_id": token_id(0, V)}
    if start:
        found |= {
            "start_id": token_id(1, V),
            "end_id": token_id(2, V),
        }
    return found


def _block_options():
    return kinds(
        key_dim=size(None).optional(),
        num_key_value_heads=count(1).optional().plus(no_divisor=3),
        use_bias=flag(True),
        sliding_window=count(2)
        .optional()
        .accepts("a list with one value for each layer", "list"),
        normalization=choice("rms_norm"),
        normalize_output=flag(False),
        use_parallel_residual=flag(False),
        qk_norm=choice("head").optional(),
        attention_soft_cap=positive(5.0).optional(),
        use_sinks=flag(False),
        layer_scale=positive(0.1).optional(),
        stochastic_depth=rate(0.0),
        gate_limit=positive(None).optional(),
        use_qkv_bias=flag(None).optional(),
        skip_first_norm=flag(False),
        num_experts=count(3).optional(),
        num_experts_per_tok=count(2),
        router_aux_loss_coef=number(0.01, 0),
    )


def _causal_options():
    return {
        **_stack(),
        **_dropouts(),
        **{name: kind.optional() for name, kind in _special().items()},
        "end_id": token_id(2, V)
        .optional()
        .accepts("several end ids", "list")
        .plus(no_id=[], list_of_text=["a"], list_outside=[2, V]),
        "intermediate_dim": size(12).optional(),
        "vocabulary_size": size(V),
        "tie_word_embeddings": flag(True),
    }


def _generative(name, model, inputs, batch=True):
    """Calls of a model with `generate`."""
    strategy = choice("greedy").plus(type_of=keras.layers.Dense)
    inputs = inputs.named("token_ids", "source_ids")
    yield Call(
        f"models.{name}.generate",
        model.generate,
        kinds(
            inputs=inputs,
            max_new_tokens=limited(1),
            strategy=strategy,
            batch_size=count(2),
            prefix=prefix(),
            return_weights=flag(False),
            verbose=choice(0).accepts("a bool", "bool"),
            stop_strings=stop_strings(),
            tokenizer=tokenizer(),
            state=prompt_state(),
            cache_dtype=cache_dtype(),
        ),
    )
    yield Call(
        f"models.{name}.stream",
        lambda **given: list(model.stream(**given)),
        kinds(
            inputs=inputs,
            max_new_tokens=limited(1),
            strategy=strategy,
            prefix=prefix(),
            stop_strings=stop_strings(),
            tokenizer=tokenizer(),
            state=prompt_state(),
            cache_dtype=cache_dtype(),
        ),
    )
    yield Call(
        f"models.{name}.start_decoding",
        model.start_decoding,
        kinds(
            inputs=inputs,
            max_new_tokens=limited(1).without("type"),
            **_keeping(model),
        ),
    )
    state = model.start_decoding(inputs.valid, 2)
    # Prompts are padded with -1.
    tokens = ids(np.array([[3], [4]], "int32"), batch=batch)
    yield Call(
        f"models.{name}.decode_step",
        model.decode_step,
        kinds(
            tokens=tokens.without(
                *(label for label in tokens.wrong if "list_" in label)
            ),
            state=instance(state),
        ),
        positional=("tokens", "state"),
        valid=False,
    )


def _keeping(model):
    """Kind of an argument of the causal language models only."""
    causal = isinstance(model, models.GPT | models.TransformerXL | models.XLNet)
    return {"keep_all_tokens": flag(False)} if causal else {}


def prefix():
    """Kind of the first tokens of a search."""
    return Kind(
        None,
        {
            "text": "abc",
            "number": 1.5,
            "nan": NAN,
            "dict": {"a": 1},
            "object": object(),
            "list_of_text": ["a"],
            "list_of_none": [None],
            "fractions": [1.5],
            "bools": [True],
            "deep_list": [[[3]]],
            "mixed": [[3], 4],
            "negative": [-1],
            "giant": [2**40],
            "past_int64": [2**70],
            "too_long": [3] * 10,
            "rows": [[3], [4], [5]],
            "floats": np.ones((2, 1)),
            "scalar": np.array(3),
        },
    )


def cache_dtype():
    # Models without a cache accept None only.
    kind = choice("int8").plus(other="float8").optional()
    return dataclasses.replace(kind, valid=None)


def stop_strings():
    """Kind of the strings that end a sequence."""
    wrong = {
        "number": 1.5,
        "empty": "",
        "list_of_empty": ["a", ""],
        "list_of_numbers": [3],
        "list_of_none": [None],
        "bytes": b"a",
        "dict": {"a": 1},
        "object": object(),
        "surrogate": "\ud800",
    }
    return Kind(["ab"], wrong)


def prompt_state():
    """Kind of the state that a call continues."""
    wrong = {
        "number": 3,
        "text": "abc",
        "object": object(),
        "tuple": (1, 2, 3, 4),
        "type": models.PromptState,
    }
    return Kind(None, wrong)


def tokenizer():
    """Kind of a tokenizer, needed by stop strings."""
    wrong = {
        "none": None,
        "number": 3,
        "text": "abc",
        "object": object(),
        "type": CharacterTokenizer,
    }
    return Kind(CharacterTokenizer("abc"), wrong).named("stop_strings")


def _prompts():
    """Token ids of `generate`: rows of any length."""
    kind = ids(IDS, V).accepts("rows of any length", "rank_less")
    kind = kind.plus(empty_row=[[5], []], set={1, 2})
    return kind.without("ragged", "rank_less")


def _token_ids(*names):
    """Token ids of the call of a model."""
    return ids(IDS, V).named("token_ids", "source_ids", *names)


def _call(name, model, inputs, *, training=False):
    return Call(
        f"models.{name}.call",
        lambda inputs: model(inputs),
        kinds(inputs=inputs),
    )


def _dicts(valid, wrong, names):
    """Kind of a dict of inputs.

    Args:
        valid: dict.
        wrong: dict of keys to kinds; their values replace those of the dict.
        names: tuple of str, further names.
    """
    found = {}
    for key, kind in wrong.items():
        for label, value in kind.wrong.items():
            if label not in kind.accepted:
                found[f"{key}_{label}"] = valid | {key: value}
    found |= {"empty_dict": {}, "unknown_key": valid | {"nonsense": IDS}}
    kind = Kind(valid, found)
    return kind.named("token_ids", *wrong, *names)


def _mask():
    # Lists become arrays, whatever their length.
    return mask(MASK)


def _gpt(folder):
    made = gpt()
    yield Call(
        "models.GPT",
        models.GPT,
        {
            **_causal_options(),
            **_block_options(),
            **kinds(
                embedding_dropout=rate(0.1).optional(),
                position_embedding=choice("learned").optional(),
                attention_position=instance(layers.RotaryPosition())
                .optional()
                .accepts("a list with one for each layer", "list"),
                max_sequence_length=size(8),
                scale_embedding=flag(False),
                logits_soft_cap=positive(5.0).optional(),
            ),
        },
        also={
            "special ids": ({"pad_id": 1}, ("pad_id", "start_id")),
        },
    )
    yield Call(
        "models.GPT.read",
        made.read,
        kinds(inputs=_prompts().named("token_ids"), state=prompt_state()),
    )
    for name in ("gpt", "gpt2"):
        yield Call(
            f"models.GPT.{name}",
            getattr(models.GPT, name),
            kinds(
                vocabulary_size=size(V),
                **({"size": choice("small")} if name == "gpt2" else {}),
            ),
            valid=False,
        )
    mesh = keras.distribution.DeviceMesh(
        (1, 2, 1), ("batch", "model", "context"), ["cpu:0", "cpu:1"]
    )
    yield Call(
        "models.GPT.get_layout_map",
        models.GPT.get_layout_map,
        kinds(
            device_mesh=instance(mesh),
            model_parallel_dim_name=choice("model"),
            data_parallel_dim_name=choice("batch"),
            num_heads=count(4).optional(),
            num_key_value_heads=count(2).optional(),
            vocabulary_size=count(V).optional(),
            context_parallel_dim_name=choice("context").optional(),
        ),
        also={
            "heads": ({"num_heads": 3}, ("num_heads",)),
            "axis": (
                {"data_parallel_dim_name": "model"},
                ("data_parallel_dim_name",),
            ),
            "context": (
                {"context_parallel_dim_name": "model"},
                ("context_parallel_dim_name",),
            ),
        },
    )
    yield _call("GPT", made, _token_ids())
    yield Call(
        "models.GPT.call, a dict",
        made,
        kinds(
            inputs=_dicts(
                {"token_ids": IDS, "padding_mask": MASK},
                {"token_ids": _token_ids(), "padding_mask": _mask()},
                ("inputs",),
            )
        ),
    )
    yield from _generative("GPT", made, _prompts())


def _guidance(folder):
    made = models.ClassifierFreeGuidance(gpt())
    yield Call(
        "models.ClassifierFreeGuidance",
        models.ClassifierFreeGuidance,
        kinds(
            model=instance(gpt()),
            guidance_scale=number(1.5).plus(giant=2**2000, past_float32=1e39),
        ),
    )
    prompts = _prompts().named("inputs", "token_ids")
    for part, kind in {
        "inputs": prompts,
        "negative_prompt_ids": prompts.optional(),
    }.items():
        yield Call(
            f"models.ClassifierFreeGuidance.generate, {part}",
            lambda part=part, **given: made.generate(
                {"inputs": IDS, "negative_prompt_ids": IDS, **given}, 1
            ),
            {part: kind},
        )
    for name in ("start_decoding", "generate"):
        yield Call(
            f"models.ClassifierFreeGuidance.{name}, keys",
            lambda inputs, name=name: getattr(made, name)(inputs, 1),
            kinds(
                inputs=Kind(
                    {"inputs": IDS, "negative_prompt_ids": IDS},
                    {
                        "none": None,
                        "number": 3,
                        "text": "abc",
                        "one_key": {"inputs": IDS},
                        "another_key": {"negative_prompt_ids": IDS, "a": 1},
                    },
                )
            ),
        )


def _encoder(folder):
    made = encoder(num_segments=2, character_vocabulary_size=9)
    characters = np.ones((2, 4, 3), "int32")
    yield Call(
        "models.Encoder",
        models.Encoder,
        {
            **_stack(),
            **_dropouts(),
            **_block_options(),
            **_special(start=False),
            **kinds(
                vocabulary_size=size(V),
                position_embedding=choice("learned").optional(),
                attention_position=instance(layers.RotaryPosition())
                .optional()
                .accepts("a list with one for each layer", "list"),
                max_sequence_length=size(8),
                character_vocabulary_size=size(9).optional(),
                num_segments=size(2).optional(),
                scale_embedding=flag(True),
                normalize_embedding=flag(False),
                embedding_dim=size(6).optional(),
                share_blocks=flag(False),
                initializer=of_keras(None),
            ),
        },
    )
    yield _call("Encoder", encoder(), _token_ids())
    yield Call(
        "models.Encoder.call, a dict",
        made,
        kinds(
            inputs=_dicts(
                {
                    "token_ids": IDS,
                    "padding_mask": MASK,
                    "segment_ids": SEGMENTS,
                    "character_ids": characters,
                },
                {
                    "token_ids": _token_ids(),
                    "padding_mask": _mask(),
                    "segment_ids": ids(SEGMENTS, 2, batch=True, length=True),
                    "character_ids": ids(
                        characters, 9, batch=True, length=True
                    ),
                },
                ("inputs",),
            )
        ),
    )
    yield _generic("Encoder", encoder())


def _generic(name, model):
    """Inputs of `predict`, which checks before Keras takes the variables."""
    return Call(
        f"models.{name}.predict_on_batch",
        lambda inputs: model.predict_on_batch(inputs),
        kinds(
            # Keras's trainer reads what is no array.
            inputs=_token_ids().without(
                *("none", "text", "bytes", "object", "type"),
                *("function", "endless"),
            )
        ),
    )


def _bert(folder):
    yield Call(
        "models.Bert",
        models.Bert,
        {
            **_stack(),
            **kinds(
                vocabulary_size=size(V),
                attention_dropout=rate(0.1),
                max_sequence_length=size(8),
                num_segments=size(2).optional(),
                pooler=flag(True),
                initializer=of_keras(None),
            ),
        },
    )
    yield Call(
        "models.Bert.call",
        bert(),
        kinds(
            inputs=_dicts(
                {
                    "token_ids": IDS,
                    "padding_mask": MASK,
                    "segment_ids": SEGMENTS,
                },
                {
                    "token_ids": _token_ids(),
                    "padding_mask": _mask(),
                    "segment_ids": ids(SEGMENTS, 2, batch=True, length=True),
                },
                ("inputs",),
            )
        ),
    )


def _roberta(folder):
    yield Call(
        "models.Roberta",
        lambda vocabulary_size: models.Roberta(vocabulary_size, **SIZES),
        kinds(vocabulary_size=size(V)),
    )


def _with_encoder(name, make, **options):
    def calls(folder):
        model = make()
        yield Call(
            f"models.{name}",
            getattr(models, name),
            kinds(
                **{
                    (
                        "classifier" if name == "MultipleChoice" else "encoder"
                    ): instance(_inner(name))
                },
                **options,
            ),
        )
        valid = IDS if name != "MultipleChoice" else np.stack([IDS, IDS], 1)
        kind = ids(valid, V).named("token_ids")
        yield Call(
            f"models.{name}.call",
            lambda inputs: model(inputs),
            kinds(
                inputs=kind.plus(empty_dict={}, unknown_key={"nonsense": IDS})
            ),
        )
        if name == "BertPretrainer":
            given = {
                "token_ids": IDS,
                "segment_ids": SEGMENTS,
                "padding_mask": MASK,
                "mask_positions": np.array([[1], [0]], "int32"),
            }
            yield Call(
                "models.BertPretrainer.call, a dict",
                model,
                kinds(
                    inputs=_dicts(
                        given,
                        {
                            "token_ids": _token_ids(),
                            "mask_positions": ids(
                                given["mask_positions"], 4, batch=True
                            ).optional(),
                        },
                        ("inputs",),
                    )
                ),
            )
        if name == "SpanExtractor":
            yield Call(
                "models.SpanExtractor.extract",
                model.extract,
                kinds(
                    inputs=kind,
                    max_answer_length=count(2).optional(),
                    batch_size=count(2),
                    verbose=fixed(0),
                ),
            )

    return calls


def _inner(name):
    if name == "MultipleChoice":
        return models.SequenceClassifier(encoder(), 1)
    return bert() if name == "BertPretrainer" else encoder()


def _transformer(folder):
    made = transformer()
    yield Call(
        "models.Transformer",
        models.Transformer,
        {
            **_stack(),
            **_dropouts(),
            **_block_options(),
            **_special(),
            **kinds(
                source_vocabulary_size=size(V),
                target_vocabulary_size=size(V).optional(),
                position_embedding=choice("sinusoidal").optional(),
                position_embedding_layout=choice("halves"),
                encoder_attention_position=instance(layers.RotaryPosition())
                .optional()
                .accepts("a list with one for each layer", "list"),
                decoder_attention_position=instance(layers.RotaryPosition())
                .optional()
                .accepts("a list with one for each layer", "list"),
                max_sequence_length=size(8).optional(),
                scale_embedding=flag(True),
                normalize_embedding=flag(False),
                tie_word_embeddings=flag(True),
                output_bias=flag(None).optional(),
                num_decoder_layers=_layers().optional(),
                num_decoder_heads=size(2).optional(),
                decoder_intermediate_dim=size(8).optional(),
            ),
        },
        also={"special ids": ({"end_id": 0}, ("pad_id", "end_id"))},
    )
    for name in ("base", "big"):
        yield Call(
            f"models.Transformer.{name}",
            lambda name=name, **given: getattr(models.Transformer, name)(
                **(SIZES | given)
            ),
            kinds(
                source_vocabulary_size=size(V),
                target_vocabulary_size=size(V).optional(),
            ),
            valid=False,
        )
    yield from _pairs("Transformer", made)
    yield from _generative("Transformer", made, _prompts())
    yield from _align("Transformer", made)


def _pairs(name, model, source=None, source_name="source_ids"):
    target = np.array([[1, 5, 6], [1, 7, 0]], "int32")
    source = _token_ids() if source is None else source
    valid = source.valid
    accepted = {f"source_{k}": v for k, v in source.accepted.items()}
    wrong = {
        f"source_{label}": (value, target)
        for label, value in source.wrong.items()
    }
    wrong |= {
        f"target_{label}": (valid, value)
        for label, value in ids(target, V, batch=True).wrong.items()
    }
    wrong |= {
        "none": None,
        "one": (valid,),
        "three": (valid, target, target),
        "text": "ab",
        "dict": {source_name: valid},
        "array": valid,
        "batch": (valid, target[:1]),
    }
    kind = Kind((valid, target), wrong, accepted)
    yield Call(
        f"models.{name}.call",
        lambda inputs: model(inputs),
        kinds(inputs=kind.named(source_name, "target_ids")),
    )


def _align(name, model, inputs=None):
    inputs = _prompts().named("source_ids") if inputs is None else inputs
    tokens = np.array([[[3, 4]], [[5, 6]]], "int32")
    lengths = np.array([[2], [1]], "int32")
    yield Call(
        f"models.{name}.align",
        model.align,
        kinds(
            inputs=inputs,
            tokens=ids(tokens, V, batch=True).accepts(
                "padding of models without a padding token",
                *("negative", "list_negative"),
            ),
            lengths=ids(lengths, batch=True).plus(
                too_long=np.array([[3], [1]]), negative=np.array([[-1], [1]])
            ),
        ),
    )


def _recurrent_options():
    return kinds(
        cell=choice("lstm"),
        num_layers=size(1),
        hidden_dim=size(8),
        attention=choice("additive").optional(),
        input_feeding=flag(False),
        scheduled_sampling=instance(None).without(
            "none", "own_type", "function"
        ),
        dropout=rate(0.1),
    )


def _recurrent(folder):
    made = recurrent()
    yield Call(
        "models.RecurrentSeq2Seq",
        models.RecurrentSeq2Seq,
        {
            **_special(),
            **_recurrent_options(),
            **kinds(
                source_vocabulary_size=size(V).optional(),
                target_vocabulary_size=size(V).optional(),
                bidirectional=flag(False),
                max_sequence_length=size(8).optional(),
            ),
        },
    )
    yield from _pairs("RecurrentSeq2Seq", made)
    yield from _generative("RecurrentSeq2Seq", made, _prompts(), batch=False)
    yield from _align("RecurrentSeq2Seq", made)


def _captioner(folder):
    made = captioner()
    images = floats(IMAGES, batch=False, length=True)
    images = images.plus(no_rows=IMAGES[:0])
    images = images.accepts("pixels may be integers", "integers", "bools")
    images = images.named("images", "inputs")
    shape = instance(IMAGES.shape[1:]).without("own_type")
    shape = shape.named(*(f"image_shape[{axis}]" for axis in range(3)))
    yield Call(
        "models.ImageCaptioner",
        models.ImageCaptioner,
        {
            **_special(),
            **_recurrent_options(),
            **kinds(
                vocabulary_size=size(V),
                image_shape=shape.plus(
                    two=(4, 8),
                    zero=(4, 0, 3),
                    fractions=(4, 8.5, 3),
                    giant=(2**40, 8, 3),
                    endless=ENDLESS,
                ),
                filters=size(2),
            ),
        },
    )
    yield Call(
        "models.ImageCaptioner, an encoder",
        lambda encoder: captioner(encoder=encoder),
        kinds(encoder=instance(vision()).optional()),
    )
    yield from _pairs("ImageCaptioner", made, images, "images")
    yield from _generative("ImageCaptioner", made, images, batch=False)
    yield from _align("ImageCaptioner", made, images)


def _vision(folder):
    made = vision()
    options = _block_options()
    del options["sliding_window"]  # of a sequence, not of an image
    shape = instance(IMAGES.shape[1:]).without("own_type")
    shape = shape.named(*(f"image_shape[{axis}]" for axis in range(3)))
    yield Call(
        "models.VisionTransformer",
        models.VisionTransformer,
        {
            **_stack(),
            **_dropouts(),
            **options,
            **kinds(
                image_shape=shape.plus(
                    two=(4, 8),
                    zero=(4, 0, 3),
                    indivisible=(4, 7, 3),
                    giant=(2**40, 8, 3),
                    endless=ENDLESS,
                ),
                patch_size=size(2),
                num_classes=size(3).optional(),
                pooling=choice("token"),
                distillation_token=flag(False),
                distillation_classifier=flag(False),
                initializer=of_keras(None),
            ),
        },
    )
    images = floats(IMAGES, batch=False, length=True)
    images = images.plus(no_rows=IMAGES[:0])
    images = images.accepts("pixels may be integers", "integers", "bools")
    images = images.accepts("positions are interpolated", "long")
    yield _call("VisionTransformer", made, images)


def _speech(folder):
    made = speech()
    frames = floats(FRAMES, batch=False).plus(
        no_rows=FRAMES[:0], no_frames=FRAMES[:, :0]
    )
    frames = frames.accepts("levels may be integers", "integers", "bools")
    frames = frames.named("frames", "inputs")
    yield Call(
        "models.SpeechTransformer",
        models.SpeechTransformer,
        {
            **_stack(),
            **_special(),
            **kinds(
                vocabulary_size=size(V),
                num_mel_bins=size(5),
                filters=size(2),
                ctc_weight=number(0.3, 0),
                num_decoder_layers=_layers().optional(),
                normalize_first=flag(True),
            ),
        },
    )
    for name in ("base", "big"):
        yield Call(
            f"models.SpeechTransformer.{name}",
            lambda name=name, **given: getattr(models.SpeechTransformer, name)(
                **(SIZES | given)
            ),
            kinds(vocabulary_size=size(V)),
            valid=False,
        )
    yield from _pairs("SpeechTransformer", made, frames, "frames")
    yield from _generative("SpeechTransformer", made, frames, batch=False)
    yield from _align("SpeechTransformer", made, frames)
    yield Call(
        "models.SpeechTransformer.transcribe",
        made.transcribe,
        kinds(frames=frames, max_new_tokens=limited(2), num_beams=count(2)),
    )


def _recurrent_lm(name, make, **options):
    def calls(folder):
        made = make()
        yield Call(
            f"models.{name}",
            getattr(models, name),
            {
                **_causal_options(),
                **kinds(
                    memory_length=count(3, 0).plus(
                        past_int32=2**31, giant=2**40
                    ),
                    stateful_batch_size=size(2).optional(),
                ),
                **kinds(**options),
            },
        )
        yield _call(name, made, _token_ids())
        given = {"token_ids": IDS, "padding_mask": MASK}
        yield Call(
            f"models.{name}.call, a dict",
            made,
            kinds(
                inputs=_dicts(
                    given,
                    {
                        "token_ids": _token_ids(),
                        "padding_mask": _mask(),
                        "memory": instance(
                            models.SegmentMemory(None, None)
                        ).without("none"),
                    },
                    ("inputs",),
                )
            ),
        )
        yield Call(
            f"models.{name}.advance", made.advance, kinds(inputs=_token_ids())
        )
        yield Call(
            f"models.{name}.with_memory",
            made.with_memory,
            kinds(
                memory_length=count(3, 0).plus(past_int32=2**31),
                stateful_batch_size=size(2).optional(),
            ),
        )
        yield from _generative(name, made, _prompts())

    return calls


def _generative_base(folder):
    made = gpt()
    yield Call(
        "models.GenerativeModel.read_sources",
        made.read_sources,
        kinds(inputs=_prompts()),
    )


def _align_labels(folder):
    wrong_words = {
        "none": None,
        "number": 3,
        "text": "abc",
        "list_of_none": [None],
        "fractions": [[0.5, 1.0]],
        "list_of_text": [["a", "b"]],
        "bools": [[True, False]],
        "dict": {"a": 1},
        "deep": [[[0]]],
        "below": [[-2, 0]],
        "outside": [[0, 5]],
        "giant": [[2**70]],
        "object": object(),
    }
    yield Call(
        "models.align_labels_with_tokens",
        models.align_labels_with_tokens,
        kinds(
            words=Kind([[-1, 0, 1, 1]], wrong_words).named("labels"),
            labels=Kind(
                [[3, 4]],
                {
                    key: value
                    for key, value in wrong_words.items()
                    if key not in ("outside",)
                }
                | {"rows": [[3, 4], [5, 6]], "short": [[3]]},
            ).named("words"),
            length=count(4).plus(too_short=2).optional().named("words"),
        ),
    )


def _best_spans(folder):
    logits = np.ones((2, 2, 4), "float32")
    yield Call(
        "models.best_spans",
        models.best_spans,
        kinds(
            logits=floats(logits, batch=False, width=False).accepts(
                "numbers", "integers", "bools"
            ),
            max_answer_length=count(2).optional(),
            threshold=number(0.5).accepts("always an answer", "negative_inf"),
        ),
    )


def _entity_scores(folder):
    sentences = Kind(
        [["B-a", "O"], ["O"]],
        {
            "none": None,
            "number": 3,
            "text": "B-a",
            "flat": ["B-a", "O"],
            "shorter": [["B-a", "O"]],
            "tag_missing": [["B-a"], ["O"]],
            "unknown": [["X-a", "O"], ["O"]],
            "numbers": [[1, 2], [3]],
            "dict": {"a": 1},
            "object": object(),
            "array": np.ones((2, 2)),
            "endless": ENDLESS,
        },
    )
    yield Call(
        "models.entity_scores",
        models.entity_scores,
        kinds(
            predictions=sentences,
            references=sentences.named("predictions"),
        ),
    )


def _bio(folder):
    yield Call(
        "models.bio_spans",
        models.bio_spans,
        kinds(
            tags=Kind(
                ["B-a", "I-a", "O"],
                {
                    "none": None,
                    "number": 3,
                    "text": "B-a",
                    "bytes": b"B-a",
                    "list_of_none": [None],
                    "numbers": [1, 2],
                    "list_of_bytes": [b"O"],
                    "nested": [["O"]],
                    "dict": {"a": 1},
                    "unknown": ["X-a"],
                    "no_label": ["B-"],
                    "lower": ["b-a"],
                    "object": object(),
                    "array": np.ones(2),
                },
            )
        ),
    )


CALLS = {
    "Bert": _bert,
    "BertPretrainer": _with_encoder(
        "BertPretrainer",
        lambda: models.BertPretrainer(bert()),
        masked_lm=flag(True),
        next_sentence=flag(True),
    ),
    "ClassifierFreeGuidance": _guidance,
    "Encoder": _encoder,
    "Entity": "a plain tuple that `bio_spans` returns",
    "EntityScores": "a plain tuple that `entity_scores` returns",
    "GPT": _gpt,
    "GenerativeModel": _generative_base,
    "ImageCaptioner": _captioner,
    "MultipleChoice": _with_encoder(
        "MultipleChoice",
        lambda: models.MultipleChoice(_inner("MultipleChoice")),
    ),
    "RecurrentSeq2Seq": _recurrent,
    "ReplacedTokenDetector": _with_encoder(
        "ReplacedTokenDetector",
        lambda: models.ReplacedTokenDetector(encoder()),
    ),
    "Roberta": _roberta,
    "PromptState": "a plain tuple of arrays",
    "SegmentMemory": "a plain tuple of tensors",
    "SequenceClassifier": _with_encoder(
        "SequenceClassifier",
        lambda: models.SequenceClassifier(encoder(), 2),
        num_classes=size(2),
        dropout=rate(0.1),
        pooled_token=choice("first"),
        pooler_activation=of_keras("tanh"),
        transform=flag(False),
    ),
    "SpanExtractor": _with_encoder(
        "SpanExtractor",
        lambda: models.SpanExtractor(encoder()),
        dropout=rate(0.1),
        no_answer=choice("mean").optional(),
        transform=flag(False),
    ),
    "Spans": "a plain tuple that `best_spans` returns",
    "SpeechTransformer": _speech,
    "VisionTransformer": _vision,
    "TokenClassifier": _with_encoder(
        "TokenClassifier",
        lambda: models.TokenClassifier(encoder(), 2),
        num_classes=size(2),
        dropout=rate(0.1),
        transform=flag(False),
    ),
    "Transformer": _transformer,
    "TransformerXL": _recurrent_lm("TransformerXL", transformer_xl),
    "XLNet": _recurrent_lm(
        "XLNet",
        xlnet,
        bidirectional_data=flag(False),
        output_bias=flag(True),
    ),
    "align_labels_with_tokens": _align_labels,
    "best_spans": _best_spans,
    "bio_spans": _bio,
    "entity_scores": _entity_scores,
}
