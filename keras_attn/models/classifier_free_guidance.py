"""Classifier-free guidance of a language model."""

from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.decoding import DecodingState
from keras_attn.decoding.logits_rule import float32_number
from keras_attn.models.causal_lm import CausalLM
from keras_attn.models.generative_model import GenerativeModel
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARTS = "inputs", "negative_prompt_ids"


@keras.saving.register_keras_serializable(package="keras_attn")
class ClassifierFreeGuidance(GenerativeModel):
    """Language model that follows its prompts more closely, or less.

        score(v | y) = log p(v | n, y)
                       + guidance_scale (log p(v | x, y) - log p(v | n, y))

    for a prompt x and a negative prompt n, from which the output moves away if
    the scale is above 1. Sanchez et al. 2023,
    https://arxiv.org/abs/2306.17806. These scores are the logits of each step,
    so strategies and their rules read the distribution that is proportional to
    their exponentials. Each step runs the model for both prompts.

    Args:
        model: `GPT`, `TransformerXL` or `XLNet`, whose weights are used, not
            copied.
        guidance_scale: float. 1: the model itself; 0: the model with the
            negative prompts. Default 1.5.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: as for the model.
        training: bool. Whether to apply dropout.

    Returns:
        The logits of the model, without guidance, which needs two prompts.

    `generate` and `stream` take the prompts of the model, or a dict with them
    as `"inputs"` and with `"negative_prompt_ids"`: one prompt for all rows, or
    one for each row. By default it is the last token of each prompt, as in
    Hugging Face.

    Raises:
        ValueError: arguments out of range.

    Examples:
        >>> gpt = keras_attn.models.GPT(
        ...     20, num_layers=1, num_heads=1, hidden_dim=4,
        ...     max_sequence_length=16)
        >>> model = keras_attn.models.ClassifierFreeGuidance(gpt, 1.5)
        >>> prompts = {
        ...     "inputs": [[5, 6, 7], [8]], "negative_prompt_ids": [[9, 3]]}
        >>> model.generate(prompts, 4).tokens.shape
        (2, 1, 4)
    """

    def __init__(
        self, model: CausalLM, guidance_scale: float = 1.5, **kwargs: Any
    ) -> None:
        checks.instance(
            "model", model, CausalLM, "a `GPT`, `TransformerXL` or `XLNet`"
        )
        float32_number("guidance_scale", guidance_scale)
        super().__init__(**{"dtype": model.dtype_policy, **kwargs})
        self.model = model
        self.guidance_scale: float = float(guidance_scale)
        self.source_vocabulary_size: int | None = model.vocabulary_size
        self.pad_id: int | None = model.pad_id
        self.start_id: int | None = model.start_id
        self.end_id: int | Sequence[int] | None = model.end_id
        self.max_sequence_length: int | None = model.max_sequence_length
        self.built = True

    def call(self, inputs: Nest, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        return self.model(inputs, training=training)

    if TYPE_CHECKING:
        __call__ = call

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        return self.model.input_specs()

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError."""
        return self.model.check_inputs(inputs)

    def read_sources(self, inputs: Nest) -> dict[str, Any]:
        """Reads and checks the prompts of `generate` and `stream`.

        Args:
            inputs: as for the model, or a dict of two such inputs: see the
                class docstring.

        Returns:
            Dict with what the model's `read_sources` returns for `"inputs"`
            and for `"negative_prompt_ids"`, with B rows each.

        Raises:
            ValueError: invalid ids, a row without tokens, or another number of
                negative prompts.
        """
        negative = None
        if isinstance(inputs, dict) and not inputs.keys().isdisjoint(_PARTS):
            _check_parts(inputs)
            inputs, negative = (inputs[name] for name in _PARTS)
        given = self.model.read_sources(inputs)
        count = len(given["lengths"])
        if negative is None:
            rows = np.empty(count, object)
            for index, row in enumerate(given["token_ids"]):
                rows[index] = row[-1:]
            without = {"token_ids": rows, "lengths": np.ones(count, "int32")}
        else:
            without = self.model.read_sources(negative)
            found = len(without["lengths"])
            if found not in (1, count):
                raise ValueError(
                    "`negative_prompt_ids` must have one row for all, or one "
                    f"for each of the {count} rows of `inputs`. Received: "
                    f"{found} rows"
                )
            if found != count:
                rows = np.zeros(count, int)
                without = {name: part[rows] for name, part in without.items()}
        return dict(zip(_PARTS, (given, without), strict=True))

    def start_decoding(
        self, inputs: Nest, max_new_tokens: int
    ) -> DecodingState:
        """Reads both prompts into a cache each.

        Args:
            inputs: dict of two inputs of the model's `start_decoding`.
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`.
        """
        _check_parts(inputs)
        given, without = (
            self.model.start_decoding(inputs[name], max_new_tokens)
            for name in _PARTS
        )
        # The last token of the negative prompt, which its first step reads.
        first = ops.cast(without.tokens, "int32")
        return DecodingState(
            (given.memory, without.memory),
            (given.hypothesis, without.hypothesis, first),
            given.tokens,
        )

    def prompt_tokens(self, inputs: Nest) -> Tensor:
        """Returns the tokens of the prompts, for the rules of a strategy.

        Args:
            inputs: as for `start_decoding`.

        Returns:
            Int32 (B, S): each prompt at the end of its row, after -1.
        """
        return self.model.prompt_tokens(inputs["inputs"])

    def prepare_weights(self) -> Any:
        """Returns weights in the layout that decoding steps read fastest."""
        return self.model.prepare_weights()

    def decode_step(
        self, tokens: TensorLike, state: DecodingState
    ) -> tuple[Tensor, DecodingState]:
        """Reads the next tokens of every hypothesis, after both prompts.

        Args:
            tokens: int32 (R, T), R rows of hypotheses.
            state: `DecodingState`, consumed.

        Returns:
            Guided scores, float32 (R, T, V), and the next `DecodingState`.
        """
        self._check_step(tokens, state)
        memory, hypothesis = state.memory, state.hypothesis
        first = hypothesis[2]
        read = ops.where(first < 0, tokens[:, :1], first)
        if tokens.shape[1] > 1:
            read = ops.concatenate([read, tokens[:, 1:]], axis=1)
        scores, parts = [], []
        for part, ids in enumerate((tokens, read)):
            logits, after = self.model.decode_step(
                ids,
                state._replace(
                    memory=memory[part], hypothesis=hypothesis[part]
                ),
            )
            scores.append(ops.log_softmax(ops.cast(logits, "float32")))
            parts.append(after.hypothesis)
        given, without = scores
        guided = without + self.guidance_scale * (given - without)
        # The model can exclude tokens: -inf - -inf would be NaN.
        guided = ops.where(given > -float("inf"), guided, -float("inf"))
        parts.append(ops.full_like(first, -1))
        return guided, state._replace(hypothesis=tuple(parts))

    def _check_start(self, inputs, max_new_tokens):
        return inputs

    def _check_room(self, sources, max_new_tokens):
        for part in sources.values():
            self.model._check_room(part, max_new_tokens)

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits."""
        return self.model.compute_output_shape(inputs_shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "model": keras.saving.serialize_keras_object(self.model),
            "guidance_scale": self.guidance_scale,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and the one that it guides."""
        model = config["model"]
        if isinstance(model, dict):
            model = keras.saving.deserialize_keras_object(model)
        return super().from_config({**config, "model": model})


def _check_parts(inputs):
    """Raises ValueError unless inputs are a dict of both prompts."""
    if not isinstance(inputs, dict) or inputs.keys() != {*_PARTS}:
        found = [*inputs] if isinstance(inputs, dict) else inputs
        raise ValueError(
            "`inputs` must be a dict of inputs and negative_prompt_ids. "
            f"Received: {checks.shown(found)}"
        )
