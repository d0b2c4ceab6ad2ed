"""Losses over large vocabularies in `fit` and `evaluate`."""

from typing import Any

import keras
from keras import ops, tree

from keras_attn.training import Perplexity, SequenceCrossentropy, TokenAccuracy
from keras_attn.training.token_loss import OutputLayer
from keras_attn.typing import Tensor, TensorLike

# Smaller vocabularies were not measured: docs/guides/memory.md.
LEAST_VOCABULARY = 16_384


class ChunkedLoss:
    """A language model whose steps in Keras never hold all logits.

    The logits (B, T, V) and their gradient are the largest arrays of a training
    step. In a step of `fit`, `evaluate`, `train_on_batch` and `test_on_batch`,
    the model returns the input of its output layer instead, and
    `SequenceCrossentropy.of_hidden_states` computes the loss for a few tokens
    at a time. A call of the model and `predict` return logits as ever.

    This happens if the vocabulary has at least `LEAST_VOCABULARY` tokens, the
    loss is a `SequenceCrossentropy` with a reduction and without
    `loss_weights`, and each metric is a `TokenAccuracy` or a `Perplexity` with
    the same `pad_id`: other losses and metrics need logits. A class takes part
    if `_chunks_loss` is True in its own body, not in that of a base class,
    because the `call` of a subclass may do something with the logits.

    A subclass of this class and `keras.Model` returns the input of its output
    layer where `_returns_hidden` is True.
    """

    _chunks_loss = False
    # A counter, because the steps of replicas in `tf.distribute` overlap.
    _chunked_steps = 0

    def _output_parts(self):
        """Returns the `Dense` of the logits, or None, and the embedding."""
        raise NotImplementedError

    @property
    def _returns_hidden(self):
        return self._chunked_steps > 0

    def train_step(self, *args: Any) -> dict[str, Any]:
        """Trains on a batch, as `keras.Model.train_step`."""
        return self._step(super().train_step, *args)

    def test_step(self, *args: Any) -> dict[str, Any]:
        """Evaluates a batch, as `keras.Model.test_step`."""
        return self._step(super().test_step, *args)

    def _step(self, step, *args):
        cls = type(self)
        if not (
            vars(cls).get("_chunks_loss")
            and self._sizes[1] >= LEAST_VOCABULARY
            and cls.compute_loss is ChunkedLoss.compute_loss
            and cls.compute_metrics is ChunkedLoss.compute_metrics
            and self._needs_no_logits()
            and not _is_quantized(*self._output_parts())
        ):
            return step(*args)
        self._chunked_steps += 1
        try:
            return step(*args)
        finally:
            self._chunked_steps -= 1

    def _needs_no_logits(self):
        """Returns whether loss and metrics can do without logits."""
        loss, (plain, weighted) = self.loss, self._metric_groups()
        return (
            type(loss) is SequenceCrossentropy
            and loss.reduction not in (None, "none")
            # Nothing public has these weights (as of Keras 3.15.1).
            and self._compile_loss._user_loss_weights is None
            and all(
                type(metric) in (Perplexity, TokenAccuracy)
                and metric.pad_id == loss.pad_id
                for metric in plain + weighted
            )
        )

    def _metric_groups(self):
        """Returns the metrics of `compile`, and those with sample weights."""
        # Nothing public has these lists (as of Keras 3.15.1).
        given = self._compile_metrics
        groups = given and (given._user_metrics, given._user_weighted_metrics)
        return [
            [metric for metric in tree.flatten(group) if metric is not None]
            for group in groups or ([], [])
        ]

    def compute_loss(
        self,
        x: TensorLike | None = None,
        y: TensorLike | None = None,
        y_pred: TensorLike | None = None,
        sample_weight: TensorLike | None = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss, as `keras.Model.compute_loss`.

        In a step that never holds all logits, `y_pred` is the input of the
        output layer, and the metrics are updated too.
        """
        if not self._chunked_steps:
            return super().compute_loss(x, y, y_pred, sample_weight, training)
        loss, scores = self.loss.of_hidden_states(
            y,
            y_pred,
            _output_layer(*self._output_parts()),
            sample_weight,
            training,
        )
        self._build_metrics(y, y_pred)
        plain, weighted = self._metric_groups()
        for metric in plain:
            metric.update_from_scores(scores)
        for metric in weighted:
            metric.update_from_scores(scores, sample_weight)
        # Of regularizers and `add_loss`, as Keras adds them: divided by the
        # number of replicas on TensorFlow (as of Keras 3.15.1).
        added = [self._aggregate_additional_loss(one) for one in self.losses]
        return ops.sum([loss, *added]) if added else loss

    def _build_metrics(self, y, hidden):
        # On TensorFlow, Keras builds its container of metrics with the first
        # outputs that it sees (as of Keras 3.15.1).
        container = self._compile_metrics
        if container is not None and not container.built:
            shape = (*hidden.shape[:-1], self._sizes[1])
            container.build(y, keras.KerasTensor(shape, hidden.dtype))

    def compute_metrics(
        self,
        x: TensorLike,
        y: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> dict[str, Any]:
        """Updates the metrics and returns them, as `keras.Model` does."""
        if not self._chunked_steps:
            return super().compute_metrics(x, y, y_pred, sample_weight)
        return self.get_metrics_result()


def _is_quantized(dense, embedding):
    if dense is None:
        return embedding.is_quantized
    return dense.quantization_mode is not None


def _output_layer(dense, embedding):
    """Returns the weights of an untied or a tied layer as an `OutputLayer`."""
    if dense is None:
        return OutputLayer(*embedding.logits_weights(), False)
    # The property, not the variable, because it includes LoRA weights.
    return OutputLayer(ops.convert_to_tensor(dense.kernel), dense.bias, True)
