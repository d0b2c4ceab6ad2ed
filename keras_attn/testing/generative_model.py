"""Checks of models that generate token sequences."""

import os
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_attn import checks
from keras_attn.backend.host_reads import list_host_reads
from keras_attn.cache import reorder
from keras_attn.decoding import generate
from keras_attn.decoding.protocol import end_ids
from keras_attn.testing.check_failure import (
    compare,
    dtype_of,
    require,
    values,
)
from keras_attn.testing.running import (
    Check,
    chosen_names,
    copy_of,
    custom_objects,
    run_checks,
    takes,
)
from keras_attn.testing.sequences import (
    HALF_PRECISION,
    compare_specs,
    require_no_reads,
)
from keras_attn.typing import Nest

_PROTOCOL = "start_decoding", "decode_step", "pad_id", "start_id", "end_id"


def check_generative_model(
    model: keras.Model,
    only: tuple[str, ...] | None = None,
    except_for: tuple[str, ...] = (),
    inputs: Nest | None = None,
    full_pass: Callable[..., Any] | None = None,
    vocabulary_size: int | None = None,
    tolerance: float = 1e-5,
) -> tuple[str, ...]:
    """Checks the properties of a model that generates token sequences.

    The model implements the decoding protocol of
    `keras_attn.decoding.DecodingState`:

        start_decoding(inputs, max_new_tokens) -> state
        decode_step(tokens, state) -> (logits, state)

    Decoding is compared with a full pass, the logits of all tokens at once. If
    the first token of `start_decoding` is `start_id`, the full pass is
    `model((inputs, tokens))`, that of an encoder-decoder; otherwise the first
    token is the last one of a prompt, and the full pass is `model` on the
    prompt and the tokens after it. Sequences have at most 8 tokens. Weights get
    noise during the checks and are restored afterwards. The checks, in
    this order, are

    - `batch_invariance`: a row does not depend on the other rows.
    - `serialization`: config and `.keras` file restore the model.
    - `causality`: later tokens have no influence on earlier logits.
    - `cached_decoding`: the steps of `decode_step` equal the full pass, also
      with the weights of `prepare_weights`, if the model has it.
    - `beam_reordering`: after `keras_attn.cache.reorder` of the state, steps
      continue the reordered sequences.
    - `padding_invariance`: `pad_id` after the inputs changes no logits, of
      steps or of the full pass.
    - `fully_masked_rows`: a row that is all padding gives finite logits and
      changes no other row.
    - `dtype_policies`: under mixed_bfloat16 and mixed_float16 weights are
      float32, and full pass and steps give the logits of float32, up to
      rounding.
    - `symbolic_shapes`: shapes and dtypes of symbolic calls are the real ones.
    - `zero_length_axes`: without rows or tokens, the logits have the right
      shape, or the call raises ValueError.
    - `host_reads`: the full pass, `start_decoding` and `decode_step` read no
      tensor on the host.
    - `greedy_search`: `keras_attn.decoding.generate`, compiled or captured,
      returns the most likely tokens of full passes.

    Args:
        model: a `keras.Model` that implements the decoding protocol.
        only: tuple of str. The checks to run. Default None: all that apply.
        except_for: tuple of str. Checks that do not run. Default: none.
        inputs: nest of arrays with two rows or more, for a model whose inputs
            are not token ids. `padding_invariance` and `fully_masked_rows` then
            do not apply. Default None: random token ids.
        full_pass: function of the model, its inputs and int32 tokens (B, T), of
            which the first is that of `start_decoding`, that returns the logits
            (B, T, V) after each token. It is also called on symbolic tensors.
            Default None: as described.
        vocabulary_size: int. Number of ids that the inputs may have. Default:
            that of the attribute `source_vocabulary_size` or
            `vocabulary_size` of the model.
        tolerance: float. Rounding errors, relative to the largest logit or, if
            that is below 1, absolute. Default 1e-5.

    Returns:
        Tuple of str, the names of the checks that ran.

    Raises:
        CheckFailure: an `AssertionError`, for the first property that does not
            hold.
        ValueError: `model` is no such model, its vocabulary is unknown, an
            unknown check, or one in `only` that does not apply.

    Examples:
        >>> model = keras_attn.models.GPT(
        ...     20, num_layers=1, num_heads=2, hidden_dim=8,
        ...     max_sequence_length=8)
        >>> keras_attn.testing.check_generative_model(
        ...     model, only=("causality", "cached_decoding"))
        ('causality', 'cached_decoding')
    """
    names = chosen_names(_CHECKS, only, except_for)
    checks.instance("model", model, keras.Model, "a Keras model")
    for name in _PROTOCOL:
        if not hasattr(model, name):
            raise ValueError(
                "`model` must implement the decoding protocol. "
                f"Received: a {type(model).__name__} without `{name}`"
            )
    if full_pass is not None and not callable(full_pass):
        raise ValueError(
            "`full_pass` must be a function of the model, its inputs and "
            f"tokens. Received: full_pass={checks.shown(full_pass)}"
        )
    checks.positive("tolerance", tolerance)
    if inputs is None:
        vocabulary_size = _vocabulary_size(model, vocabulary_size)
    else:
        _check_inputs(inputs)
    subject = _Model(model, inputs, full_pass, vocabulary_size, tolerance)
    return run_checks(subject, _CHECKS, *names)


def _vocabulary_size(model, size):
    for name in ("source_vocabulary_size", "vocabulary_size"):
        size = getattr(model, name, None) if size is None else size
    checks.positive_int("vocabulary_size", size)
    special = {model.pad_id, model.start_id, *end_ids(model.end_id)} - {None}
    if size < len(special) + 2:
        raise ValueError(
            "`vocabulary_size` must be at least the number of special ids "
            f"plus 2. Received: vocabulary_size={size}"
        )
    return size


def _check_inputs(inputs):
    checks.nest("inputs", inputs)
    parts = tree.flatten(inputs)
    for part in parts:
        checks.tensor("inputs", part, "a nest of arrays")
    rows = {part.shape[0] for part in parts if part.shape}
    if len(rows) != 1 or min(rows) < 2:
        raise ValueError(
            "`inputs` must be a nest of arrays with the same number of rows, 2 "
            f"or more. Received: {sorted(rows)} rows"
        )


class _Model:
    """A generative model, called on random inputs and tokens.

    Sizes are (rows, length of the inputs, number of tokens).
    """

    def __init__(self, model, inputs, full_pass, vocabulary_size, tolerance):
        self.layer = model
        self.given = inputs
        self.given_pass = full_pass
        self.vocabulary_size = vocabulary_size
        self.tolerance = tolerance
        self.least = 1, 1, 1
        # The lengths of given inputs are not varied.
        self.most = (2, 3 if inputs is None else 1, 3)
        self.special = {model.pad_id, model.start_id, *end_ids(model.end_id)}
        self.special -= {None}
        sources = self.sources((1, 1, 1))
        first = self.first_tokens(sources)
        self.prompted = bool(first[0, 0] != model.start_id)
        self.target_size = self.pass_of(sources, first).shape[-1]

    @property
    def is_called_on_ids(self):
        """Whether `model(token_ids)` returns the logits of a prompt."""
        return self.prompted and self.given_pass is None

    def shapes(self, size):
        """Dict of the names of the inputs to their shapes."""
        rows, length, count = size
        if self.given is None:
            shapes = {"inputs": (rows, length)}
        else:
            parts = tree.flatten(self.sources(size))
            names = [f"inputs[{i}]" for i in range(len(parts))]
            names = names if len(parts) > 1 else ["inputs"]
            shapes = {
                name: part.shape
                for name, part in zip(names, parts, strict=True)
            }
        return shapes | {"tokens": (rows, count)}

    def sources(self, size):
        """The inputs of `start_decoding`, without padding."""
        if self.given is not None:
            return tree.map_structure(
                lambda part: np.asarray(part)[: size[0]], self.given
            )
        return self._ids(self.vocabulary_size, size[:2], seed=0)

    def tokens(self, size, sources):
        """The inputs of the steps: the first tokens and random ones."""
        drawn = self._ids(self.target_size, (size[0], size[2]), seed=1)
        drawn[:, :1] = self.first_tokens(sources)
        return drawn

    def _ids(self, vocabulary_size, shape, seed):
        special = [i for i in self.special if i in range(vocabulary_size)]
        random = np.random.default_rng(seed)
        ids = random.integers(vocabulary_size - len(special), size=shape)
        for number in sorted(special):
            ids += ids >= number
        return ids.astype("int32")

    @property
    def usual(self):
        """Two ids of the vocabulary that have no special meaning."""
        ids = range(len(self.special) + 2)
        return [i for i in ids if i not in self.special][:2]

    def first_tokens(self, sources):
        """The tokens that `start_decoding` returns, int (B, 1)."""
        state = self.layer.start_decoding(_tensors(sources), 1)
        return ops.convert_to_numpy(state.tokens)

    def call(self, inputs, model=None):
        """Calls the model itself."""
        model = self.layer if model is None else model
        arguments = {"training": False} if takes(model, "training") else {}
        return model(inputs, **arguments)

    def full(self, sources, tokens, model=None):
        """The logits of all tokens at once, of tensors or symbolic tensors."""
        if self.given_pass is not None:
            model = self.layer if model is None else model
            return self.given_pass(model, sources, tokens)
        if not self.prompted:
            return self.call((sources, tokens), model)
        before = sources.shape[1] - 1
        ids = ops.concatenate([sources[:, :before], tokens], axis=1)
        return self.call(ids, model)[:, before:]

    def pass_of(self, sources, tokens, model=None):
        """The logits of a full pass over arrays, float32 (B, T, V)."""
        return values(self.full(_tensors(sources), _tensors(tokens), model))

    def steps(self, sources, tokens, model=None, weights=()):
        """The logits of decoding steps, float32 (B, T, V)."""
        model = self.layer if model is None else model
        state = model.start_decoding(_tensors(sources), tokens.shape[1])
        if weights:
            state = state._replace(weights=weights)
        found = []
        for index in range(tokens.shape[1]):
            step = _tensors(tokens[:, index : index + 1])
            logits, state = model.decode_step(step, state)
            found.append(values(logits))
        return np.concatenate(found, axis=1)


def _tensors(nest):
    return tree.map_structure(ops.convert_to_tensor, nest)


def _rows(nest, rows):
    return tree.map_structure(lambda part: part[rows], nest)


def _drawn(subject, size):
    sources = subject.sources(size)
    return sources, subject.tokens(size, sources)


def _cached_decoding(subject, size):
    sources, tokens = _drawn(subject, size)
    expected = subject.pass_of(sources, tokens)
    compare(
        subject.steps(sources, tokens),
        expected,
        subject.tolerance,
        "the logits of `decode_step` must equal those of the full pass",
    )
    prepare = getattr(subject.layer, "prepare_weights", None)
    weights = prepare() if prepare else ()
    if weights:
        compare(
            subject.steps(sources, tokens, weights=weights),
            expected,
            subject.tolerance,
            "the logits of `decode_step` with the weights of "
            "`prepare_weights` must equal those of the full pass",
        )


def _beam_reordering(subject, size):
    # Two hypotheses of one source that differ in their second token.
    sources = _rows(subject.sources((1, *size[1:])), [0, 0])
    tokens = subject.tokens((2, size[1], 3), sources)
    tokens[:, 1] = subject.usual
    state = subject.layer.start_decoding(_tensors(sources), 3)
    for index in range(2):
        step = _tensors(tokens[:, index : index + 1])
        _, state = subject.layer.decode_step(step, state)
    order = np.array([1, 0], "int32")
    kept = reorder(state.hypothesis, _tensors(order))
    state = state._replace(hypothesis=kept)
    logits, _ = subject.layer.decode_step(_tensors(tokens[order, 2:]), state)
    compare(
        values(logits)[:, 0],
        subject.pass_of(sources, tokens[order])[:, 2],
        subject.tolerance,
        "after the rows of `state.hypothesis` are exchanged, each must "
        "continue the other sequence",
    )


def _greedy_search(subject, size):
    model = subject.layer
    sources, tokens = _drawn(subject, size)
    count = size[2]
    decoded = generate(model, sources, count, "greedy", verbose=0)
    never = {model.pad_id, model.start_id} - {None, *end_ids(model.end_id)}
    for index in range(count):
        logits = subject.pass_of(sources, tokens[:, : index + 1])[:, -1]
        logits[:, sorted(never)] = -np.inf
        found = decoded.tokens[:, 0, index]
        chosen = np.take_along_axis(logits, found[:, None], 1)[:, 0]
        active = index < decoded.lengths[:, 0]
        compare(
            chosen[active],
            logits.max(axis=1)[active],
            subject.tolerance,
            "`generate` must return the most likely tokens of the full pass",
        )
        if index + 1 < count:
            tokens[:, index + 1] = np.where(active, found, tokens[:, index + 1])


def _causality(subject, size):
    sources, tokens = _drawn(subject, size)
    changed = tokens.copy()
    one, other = subject.usual
    changed[:, -1] = np.where(tokens[:, -1] == one, other, one)
    before = subject.pass_of(sources, tokens)
    after = subject.pass_of(sources, changed)
    compare(
        after[:, :-1],
        before[:, :-1],
        subject.tolerance,
        "a change of the last token must not change earlier logits",
    )
    require(
        not np.array_equal(after[:, -1], before[:, -1]),
        "a change of the last token must change the logits after it",
    )


def _padding_invariance(subject, size):
    sources, tokens = _drawn(subject, size)
    padding = np.full((size[0], 2), subject.layer.pad_id, "int32")
    padded = np.concatenate([sources, padding], axis=1)
    compare(
        subject.steps(padded, tokens),
        subject.steps(sources, tokens),
        subject.tolerance,
        "padding after the inputs of `start_decoding` must not change the "
        "logits of `decode_step`",
    )
    if subject.is_called_on_ids:
        after = values(subject.call(_tensors(padded)))[:, : size[1]]
        before = values(subject.call(_tensors(sources)))
    elif subject.prompted:
        return  # Tokens cannot follow padding in a `full_pass`.
    else:
        after = subject.pass_of(padded, tokens)
        before = subject.pass_of(sources, tokens)
    compare(
        after,
        before,
        subject.tolerance,
        "padding after the inputs must not change the logits of the full pass",
    )


def _fully_masked_rows(subject, size):
    sources, tokens = _drawn(subject, size)
    masked = sources.copy()
    masked[0] = subject.layer.pad_id
    if subject.is_called_on_ids:
        after, before = (
            values(subject.call(_tensors(x))) for x in (masked, sources)
        )
    else:
        after, before = (subject.pass_of(x, tokens) for x in (masked, sources))
    require(
        np.isfinite(after).all(),
        "logits must be finite if a row of the inputs is all padding",
    )
    compare(
        after[1:],
        before[1:],
        subject.tolerance,
        "a row of the inputs that is all padding must not change other rows",
    )


def _lacks_padding(subject):
    if subject.given is not None:
        return "inputs that are token ids"
    return "" if subject.layer.pad_id is not None else "a `pad_id`"


def _lacks_masked_pass(subject):
    if subject.prompted and not subject.is_called_on_ids:
        return "a model called on token ids, without `full_pass`"
    return _lacks_padding(subject)


def _batch_invariance(subject, size):
    sources, tokens = _drawn(subject, size)
    full = subject.pass_of(sources, tokens)
    steps = subject.steps(sources, tokens)
    for row in range(size[0]):
        one = slice(row, row + 1)
        alone = _rows(sources, one)
        for name, logits, together in (
            ("full pass", subject.pass_of(alone, tokens[one]), full),
            ("steps", subject.steps(alone, tokens[one]), steps),
        ):
            compare(
                logits,
                together[one],
                subject.tolerance,
                f"the logits of a row in the {name} must not depend on the "
                "other rows",
            )


def _dtype_policies(subject, size):
    sources, tokens = _drawn(subject, size)
    expected = subject.pass_of(sources, tokens)
    for dtype in ("bfloat16", "float16"):
        policy = f"mixed_{dtype}"
        model = copy_of(subject.layer, dtype=policy)
        subject.pass_of(sources, tokens, model)
        model.set_weights(subject.layer.get_weights())
        wrong = {dtype_of(v) for v in model.trainable_weights} - {"float32"}
        require(
            not wrong,
            f"under the policy {policy} the weights must have the dtype "
            f"float32, not {', '.join(wrong)}",
        )
        for name, logits in (
            ("full pass", subject.pass_of(sources, tokens, model)),
            ("steps", subject.steps(sources, tokens, model)),
        ):
            compare(
                logits,
                expected,
                HALF_PRECISION,
                f"under the policy {policy} the logits of the {name} must be "
                "those of float32, up to rounding",
            )


def _serialization(subject, size):
    sources, tokens = _drawn(subject, size)
    expected = subject.pass_of(sources, tokens)
    copy = copy_of(subject.layer)
    subject.pass_of(sources, tokens, copy)
    copy.set_weights(subject.layer.get_weights())
    compare(
        subject.pass_of(sources, tokens, copy),
        expected,
        subject.tolerance,
        "a model made from the config, with the same weights, must give the "
        "same logits",
    )
    with custom_objects(subject.layer), tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        subject.layer.save(path)
        loaded = keras.saving.load_model(path)
    compare(
        subject.pass_of(sources, tokens, loaded),
        expected,
        subject.tolerance,
        "a model loaded from a .keras file must give the same logits",
    )


def _symbolic_shapes(subject, size):
    sources, tokens = _drawn(subject, size)
    real = [subject.full(_tensors(sources), _tensors(tokens))]
    symbolic = subject.full(*_inputs((sources, tokens)))
    compare_specs([symbolic], real, "for inputs of known length")
    if subject.given is not None or subject.given_pass is not None:
        return
    arrays = sources if subject.is_called_on_ids else (sources, tokens)
    real = [subject.call(_tensors(arrays))]
    symbolic = subject.call(_inputs(arrays, known=False))
    compare_specs([symbolic], real, "for inputs of unknown length")


def _inputs(nest, known=True):
    return tree.map_structure(
        lambda x: keras.Input(
            x.shape[1:] if known else (None, *x.shape[2:]), dtype=str(x.dtype)
        ),
        nest,
    )


def _zero_length_axes(subject, size):
    sources, tokens = _drawn(subject, size)
    cases = {"no rows": (_rows(sources, slice(0)), tokens[:0])}
    if subject.is_called_on_ids:
        # A prompt without tokens has no last token: a call instead.
        calls = {"no rows": sources[:0], "no tokens": sources[:, :0]}
    else:
        calls = {}
        cases["no tokens"] = sources, tokens[:, :0]
        if subject.given is None and not subject.prompted:
            cases["no tokens in `inputs`"] = sources[:, :0], tokens
    found = {
        name: (subject.pass_of, pair, pair[1].shape)
        for name, pair in cases.items()
        if name not in calls
    } | {
        name: (
            lambda ids: values(subject.call(_tensors(ids))),
            (ids,),
            ids.shape,
        )
        for name, ids in calls.items()
    }
    for name, (function, arguments, shape) in found.items():
        try:
            logits = function(*arguments)
        except ValueError:
            continue
        expected = (*shape, subject.target_size)
        require(
            logits.shape == expected,
            f"with {name} the logits must have the shape {expected}, not "
            f"{logits.shape}, or the call must raise ValueError",
        )


def _host_reads(subject, size):
    sources, tokens = _drawn(subject, size)
    sources, tokens = _tensors(sources), _tensors(tokens)
    with list_host_reads() as found:
        subject.full(sources, tokens)
    require_no_reads(found)
    first = tokens[:, :1]
    with list_host_reads() as found:
        state = subject.layer.start_decoding(sources, 2)
        for _ in range(2):
            _, state = subject.layer.decode_step(first, state)
    require_no_reads(found)


# In the order in which they run: those that others rely on come first.
_CHECKS = {
    "batch_invariance": Check(_batch_invariance, least_too=False),
    "serialization": Check(_serialization, least_too=False),
    "causality": Check(_causality, least_too=False),
    "cached_decoding": Check(_cached_decoding, least_too=False),
    "beam_reordering": Check(_beam_reordering, least_too=False),
    "padding_invariance": Check(
        _padding_invariance, least_too=False, needs=_lacks_padding
    ),
    "fully_masked_rows": Check(
        _fully_masked_rows, least_too=False, needs=_lacks_masked_pass
    ),
    "dtype_policies": Check(_dtype_policies, least_too=False),
    "symbolic_shapes": Check(_symbolic_shapes, least_too=False),
    "zero_length_axes": Check(_zero_length_axes, least_too=False),
    "host_reads": Check(_host_reads, least_too=False),
    "greedy_search": Check(_greedy_search, least_too=False),
}
GENERATIVE_MODEL_CHECKS = tuple(_CHECKS)
"""The names of the checks of `check_generative_model`, in their order."""
