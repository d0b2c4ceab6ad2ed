"""Input validation at the API boundary, before any trainer runs."""

import contextlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import (
    TorchNames,
    bool_mask,
    export_onnx,
    export_options,
    first_replica,
    known_size,
    row_divisor,
    sequence_split,
    writes_onnx,
)
from keras_attn.layers.id_range import check_id_range
from keras_attn.layers.quantized_parts import QuantizedModelParts
from keras_attn.models.compile_config import portable_compile_config
from keras_attn.typing import Nest, PathLike, Tensor, TensorLike


def check_ids(
    name: str,
    ids: TensorLike,
    vocabulary_size: int | None,
    axes: tuple[str, ...] = ("batch", "length"),
    least: int = 0,
) -> Tensor:
    """Checks token ids; the values only if they are concrete.

    Args:
        name: str. Name of the argument, for error messages.
        ids: NumPy array, nest of lists, tensor or symbolic tensor.
        vocabulary_size: int. Ids must lie in [least, vocabulary_size).
        axes: tuple of str. Names of their axes. Default ("batch", "length").
        least: int. The lowest id. Default 0.

    Returns:
        The ids; lists come back as an int32 array.

    Raises:
        ValueError: ids of the wrong rank, not integers or out of range, or an
            empty batch.

    Examples:
        >>> keras_attn.models.input_checks.check_ids("source_ids", [[1, 9]], 5)
        Traceback (most recent call last):
        ValueError: `source_ids` must lie in [0, 5). Received: ids from 1 to 9
    """
    if isinstance(ids, (list, tuple)):
        ids = checks.array(name, ids)
        if not ids.size:
            ids = ids.astype("int32")
        checks.integers(name, ids)
        # Before the cast, which would wrap large ids.
        check_id_range(name, ids, vocabulary_size, least)
        ids = ids.astype("int32")
    checks.tensor(name, ids, "token ids, a tensor, an array or a list of rows")
    if len(ids.shape) != len(axes):
        raise ValueError(
            f"`{name}` must have shape ({', '.join(axes)}). "
            f"Received: {tuple(ids.shape)}"
        )
    if 0 in tuple(ids.shape):
        raise ValueError(
            f"`{name}` must hold at least one row and one token. "
            f"Received: shape {tuple(ids.shape)}"
        )
    checks.integers(name, ids)
    check_id_range(name, ids, vocabulary_size, least)
    return ids


def check_mask(
    mask: TensorLike,
    shape: tuple[Any, ...],
    name: str = "padding_mask",
    what: str = "at tokens",
) -> Tensor:
    """Checks a token mask and converts it to bool.

    Args:
        mask: array, nest of lists, tensor or symbolic tensor.
        shape: tuple, the expected shape.
        name: str. Name of the argument, for error messages.
        what: str. Where the mask is True, for error messages.

    Returns:
        The mask as bool; lists come back as an array.

    Raises:
        ValueError: the wrong shape, or a mask that `bool_mask` rejects.

    Examples:
        >>> from keras_attn.models.input_checks import check_mask
        >>> check_mask([[True, False]], (1, 2))
        array([[ True, False]])
    """
    mask = checks.array(name, mask)
    if not checks.fits(tuple(mask.shape), tuple(shape)):
        raise ValueError(
            f"`{name}` must have shape {tuple(shape)}, True {what}. "
            f"Received: shape {tuple(mask.shape)}"
        )
    return bool_mask(name, mask)


def check_pair(
    inputs: Nest,
    sizes: tuple[int, int],
    max_sequence_length: int | None = None,
) -> list[Tensor]:
    """Checks a pair of source ids and target ids.

    Args:
        inputs: pair of (B, S) and (B, T) ids, of any type that `check_ids`
            accepts.
        sizes: pair of int. The vocabulary sizes.
        max_sequence_length: int. The longest sequence, in tokens. Default None.

    Returns:
        Source ids and target ids.

    Raises:
        ValueError: not a pair, ids that `check_ids` rejects, different numbers
            of rows, or a sequence that is too long.
    """
    names = "source_ids", "target_ids"
    pair = check_source_and_target(
        inputs,
        names[0],
        lambda name, ids: check_ids(name, ids, sizes[0]),
        sizes[1],
    )
    for name, ids in zip(names, pair, strict=True):
        length = ids.shape[1]
        if (
            max_sequence_length is not None
            and (known_size(length) or 0) > max_sequence_length
        ):
            raise ValueError(
                f"`{name}` must not be longer than the position table of "
                f"max_sequence_length={max_sequence_length} rows. Received: "
                f"{length} tokens"
            )
    return pair


def check_source_and_target(
    inputs: Nest,
    source_name: str,
    check_source: Callable[..., Any],
    vocabulary_size: int,
) -> list[Any]:
    """Checks a pair of sources, such as images, and target ids.

    Args:
        inputs: pair of sources and (B, T) ids.
        source_name: str. Name of the sources, for error messages.
        check_source: callable. `check_source(source_name, sources)` returns the
            sources, an array or a tensor (B, ...), or raises ValueError.
        vocabulary_size: int. V of the target.

    Returns:
        List of sources and target ids.

    Raises:
        ValueError: not a pair, sources or ids that are rejected, or different
            numbers of rows.
    """
    if not isinstance(inputs, (list, tuple)) or len(inputs) != 2:
        raise ValueError(
            f"`inputs` must be a pair ({source_name}, target_ids). "
            f"Received: {type(inputs).__name__}"
        )
    source = check_source(source_name, inputs[0])
    target = check_ids("target_ids", inputs[1], vocabulary_size)
    if not checks.fits((source.shape[0],), (target.shape[0],)):
        raise ValueError(
            f"`{source_name}` and `target_ids` must have the same number of "
            f"rows. Received: {source.shape[0]} and {target.shape[0]}"
        )
    # A list: with a tuple, Keras splits programs of `torch.compile`
    # (as of Keras 3.15.1, keras/src/tree/torchtree_impl.py:39).
    return [source, target]


def check_image_shape(shape: Any, multiple_of: int = 1) -> Any:
    """Returns (H, W, C) of images.

    Args:
        shape: iterable of three int, the argument `image_shape`.
        multiple_of: int. Must divide H and W. Default 1.

    Raises:
        ValueError: it is none, or an image is too large.
    """
    expected = "three integers (height, width, channels)"
    shape = tuple(checks.iterable("image_shape", shape, expected))
    if len(shape) != 3:
        raise ValueError(
            f"`image_shape` must be {expected}. "
            f"Received: image_shape={checks.shown(shape)}"
        )
    shape = tuple(
        checks.positive_int(f"image_shape[{i}]", size, _MOST_PIXELS)
        for i, size in enumerate(shape)
    )
    for i, size in enumerate(shape[:2]):
        if size % multiple_of:
            raise ValueError(
                f"`image_shape[{i}]` must be a multiple of {multiple_of}, the "
                f"side of a patch. Received: image_shape[{i}]={size}"
            )
    return shape


def ids_spec(*further_axes: Any) -> Any:
    """Returns the spec of token ids (B, T, ...) of any size, for `export`."""
    return keras.InputSpec(shape=(None, None, *further_axes), dtype="int32")


_MOST_PIXELS = 4096  # along an axis
# Inputs that are not one per token.
_OTHER_LENGTHS = "mask_positions", "target_positions"

# In the order of the states of Keras's trainer on JAX.
_JAX_GROUPS = (
    "trainable_variables",
    "non_trainable_variables",
    "optimizer_variables",
    "metrics_variables",
)


class CheckedModel(QuantizedModelParts, TorchNames, keras.Model):
    """Model that checks arrays before Keras's trainer takes the variables.

    Subclasses override `check_inputs` with their own checks. If an exception is
    raised inside a step nevertheless, for example by a loss, the model keeps
    its weights, on JAX too.
    """

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns the inputs, or raises ValueError. No checks by default."""
        return inputs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Checks the inputs, then calls the model."""
        if args:
            args = (self.check_inputs(args[0]), *args[1:])
        elif "inputs" in kwargs:
            kwargs["inputs"] = self.check_inputs(kwargs["inputs"])
        return super().__call__(*args, **kwargs)

    def fit(
        self, x: TensorLike | None = None, *args: Any, **kwargs: Any
    ) -> keras.callbacks.History:
        """Checks arrays, then calls `keras.Model.fit`."""
        _check_class_weight(self, super().fit, x, *args, **kwargs)
        _check_rows(super().fit, x, *args, **kwargs)
        validation = kwargs.get("validation_data")
        if isinstance(validation, tuple):
            size = kwargs.get("validation_batch_size")
            size = size or kwargs.get("batch_size")
            _check_rows(super().evaluate, validation[0], batch_size=size)
            x_validation = self._checked(validation[0])
            kwargs["validation_data"] = (x_validation, *validation[1:])
        elif validation is not None:
            _check_rows(super().evaluate, validation)
        x = self._checked(x)
        self._build_optimizer()
        return super().fit(x, *args, **kwargs)

    def evaluate(
        self, x: TensorLike | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        """Checks arrays, then calls `keras.Model.evaluate`."""
        if "class_weight" in kwargs:
            raise ValueError(_no_class_weight("no argument of `evaluate`"))
        _check_rows(super().evaluate, x, *args, **kwargs)
        with self._weights_restored():
            return super().evaluate(self._checked(x), *args, **kwargs)

    def predict(self, x: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """Checks arrays, then calls `keras.Model.predict`."""
        _check_rows(super().predict, x, *args, **kwargs)
        with self._weights_restored():
            return super().predict(self._checked(x), *args, **kwargs)

    def train_on_batch(self, x: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """Checks arrays, then calls `keras.Model.train_on_batch`."""
        _check_class_weight(self, super().train_on_batch, x, *args, **kwargs)
        _check_rows(super().train_on_batch, x, *args, **kwargs)
        with self._weights_restored():
            return super().train_on_batch(self._checked(x), *args, **kwargs)

    def test_on_batch(self, x: TensorLike, *args: Any, **kwargs: Any) -> Any:
        """Checks arrays, then calls `keras.Model.test_on_batch`."""
        if "class_weight" in kwargs:
            raise ValueError(_no_class_weight("no argument of `test_on_batch`"))
        _check_rows(super().test_on_batch, x, *args, **kwargs)
        with self._weights_restored():
            return super().test_on_batch(self._checked(x), *args, **kwargs)

    def predict_on_batch(self, x: TensorLike) -> Any:
        """Checks arrays, then calls `keras.Model.predict_on_batch`."""
        _check_rows(super().predict_on_batch, x)
        with self._weights_restored():
            return super().predict_on_batch(self._checked(x))

    def export(
        self,
        filepath: PathLike,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Calls `keras.Model.export`, also before the first call of the model.

        Args:
            filepath: path of the folder or file, ending with `.pt2` for the
                format `"torch"`.
            format: str, as in Keras. On PyTorch `"torch"` or `"onnx"`, which
                needs the packages of the extra `export`.
            verbose: bool. Whether to print a message.
            input_signature: list with the nest of `keras.InputSpec` of the
                inputs. Default: the inputs that the model requires, as int32,
                with any batch size and length.
            **kwargs: options of the format, as in Keras; `opset_version` for
                ONNX on PyTorch.

        Raises:
            ValueError: a format that the backend cannot write, or a signature
                that is no list.
        """
        if input_signature is None:
            specs = self.input_specs()
            input_signature = None if specs is None else [specs]
        if input_signature is not None:
            checks.instance(
                "input_signature",
                input_signature,
                (list, tuple),
                "a list with the specs of the inputs",
            )
            if writes_onnx(format):
                return export_onnx(self, filepath, input_signature, **kwargs)
            kwargs = export_options(
                format, input_signature, kwargs, _OTHER_LENGTHS
            )
        return super().export(
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )

    def input_specs(self) -> Nest:
        """Returns the specs of the inputs, or None to let Keras find them."""
        return None

    @contextlib.contextmanager
    def _weights_restored(self):
        """Returns the weights to the model if a step of Keras raises."""
        try:
            yield
        finally:
            # Only JAX has it; does nothing if the weights are in the model.
            getattr(self, "jax_state_sync", lambda: None)()

    def _get_jax_state(self, **groups):
        # On JAX, the trainer takes the variables and returns those of the
        # previous step if a step raises. Before the first step there are none,
        # and the model would lose its weights (as of Keras 3.15.1,
        # keras-team/keras#21019).
        state = super()._get_jax_state(**groups)
        names = [name for name in _JAX_GROUPS if groups.get(name)]
        self._jax_state = dict(zip(names, state, strict=True))
        return state

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        # Under `tf.distribute`, Keras builds a model on the mean of the batches
        # of all replicas: ids would be floats, and masks and batches of unequal
        # size have no mean (as of Keras 3.15.1).
        strategy = self._distribute_strategy
        if iterator is not None and strategy is not None:
            for _, _, batches in iterator:
                data_batch = first_replica(strategy, next(batches))
                break
        super()._maybe_symbolic_build(data_batch=data_batch)

    def _build_optimizer(self):
        # TensorFlow traces a training step twice if its first trace creates
        # variables, such as those of the optimizer (as of TensorFlow 2.21.0).
        optimizer = getattr(self, "optimizer", None)
        if self.built and optimizer is not None and not optimizer.built:
            # Only on TensorFlow; its variables must be those of the strategy.
            strategy = getattr(self, "distribute_strategy", None)
            with strategy.scope() if strategy else contextlib.nullcontext():
                optimizer.build(self.trainable_variables)

    def get_compile_config(self) -> dict[str, Any] | None:
        """Returns a compile config that every backend can load."""
        return portable_compile_config(super().get_compile_config())

    def _checked(self, x):
        if hasattr(x, "element_spec"):
            spec = x.element_spec
            # (inputs, labels) or, for `predict`, (inputs,).
            self.check_inputs(spec[0] if isinstance(spec, tuple) else spec)
            return x
        arrays = isinstance(x, (list, tuple, dict)) or hasattr(x, "shape")
        return self.check_inputs(x) if arrays else x


# The default of Keras's `batch_size`.
_KERAS_BATCH_SIZE = 32

# Losses of one-hot labels, for which Keras computes the right class weights.
_ONE_HOT_LOSSES = (
    keras.losses.CategoricalCrossentropy,
    keras.losses.CategoricalFocalCrossentropy,
)
_ONE_HOT_NAMES = {
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
}


def _check_class_weight(model, method, *args, **kwargs):
    """Raises if `class_weight` would not be the weights of the labels."""
    if "class_weight" not in kwargs and len(args) < 4:
        return
    # Unknown arguments raise a TypeError in the method itself.
    given = inspect.signature(method).bind_partial(*args, **kwargs).arguments
    if given.get("class_weight") is None:
        return
    x, y = given.get("x"), given.get("y")
    if hasattr(x, "element_spec"):
        y = keras.utils.unpack_x_y_sample_weight(x.element_spec)[1]
    elif isinstance(x, keras.utils.PyDataset) and len(x):
        y = keras.utils.unpack_x_y_sample_weight(x[0])[1]
    if isinstance(y, list):
        y = np.asarray(y)
    shape = tuple(getattr(y, "shape", ()))
    if len(shape) <= 1 or (len(shape) == 2 and shape[1] == 1):
        return
    loss = model.loss
    one_hot = (
        isinstance(loss, _ONE_HOT_LOSSES)
        or (loss if isinstance(loss, str) else getattr(loss, "__name__", None))
        in _ONE_HOT_NAMES
    )
    if len(shape) > 2 or not one_hot:
        raise ValueError(_no_class_weight(f"labels of shape {shape}"))


def _no_class_weight(received):
    # Keras takes the argmax over the last axis (as of Keras 3.15.1).
    return (
        "`class_weight` must be a weight per row, with labels of shape "
        "(batch,), or one-hot labels and a categorical crossentropy; for "
        "labels per token, compile with "
        f"`SequenceCrossentropy(class_weight=...)`. Received: {received}"
    )


def _check_rows(method, x, *args, **kwargs):
    """Raises ValueError if devices cannot share rows, or tokens of a row.

    Args:
        method: of `keras.Model`.
        x: its inputs. Of a `keras.utils.PyDataset`, the first and last batch
            are checked; generators and other data sets are not.
        *args: its other arguments.
        **kwargs: its keyword arguments.
    """
    _check_lengths(x)
    divisor = row_divisor()
    if divisor > 1 and isinstance(x, keras.utils.PyDataset):
        _check_batches(x, divisor)
    leaves = keras.tree.flatten(x) if divisor > 1 else []
    if not leaves or not getattr(leaves[0], "shape", ()):
        return
    # Unknown arguments raise a TypeError in the method itself.
    signature = inspect.signature(method)
    given = signature.bind_partial(x, *args, **kwargs).arguments
    if given.get("validation_split"):
        return  # Keras does not say how many rows remain.
    rows = size = leaves[0].shape[0]
    if "batch_size" in signature.parameters:
        size = given.get("batch_size") or _KERAS_BATCH_SIZE
    sizes = [min(size, rows), rows % size] if rows else []
    if any(count % divisor for count in sizes):
        size = min(size, rows)
        raise _indivisible(divisor, f"{rows} rows in batches of {size}")


def _check_batches(data, divisor):
    # `num_batches` is None if it is infinite. A data set that is empty, or has
    # no batches that Keras can read, raises there.
    for index in sorted({0, (data.num_batches or 1) - 1}):
        batch = keras.utils.unpack_x_y_sample_weight(data[index])
        for leaf in keras.tree.flatten(batch):
            rows = (getattr(leaf, "shape", ()) or (0,))[0]
            if rows % divisor:
                received = f"{rows} rows in batch {index} of the data set"
                raise _indivisible(divisor, received)


def _indivisible(divisor, received):
    return ValueError(
        f"Every batch must have a multiple of {divisor} rows, the number of "
        "devices that share them; pad with rows of weight zero, as "
        f"`token_batches(rows_multiple_of={divisor})` does. Received: "
        f"{received}"
    )


def _check_lengths(x):
    """Raises ValueError if devices cannot share the tokens of each row."""
    split = sequence_split()
    if split is None:
        return
    if isinstance(x, dict):
        x = {k: v for k, v in x.items() if k not in _OTHER_LENGTHS}
    for leaf in keras.tree.flatten(x):
        shape = tuple(getattr(leaf, "shape", ()))
        if len(shape) == 2 and shape[1] % split.devices:
            raise ValueError(
                f"Every row must have a multiple of {split.devices} tokens, "
                f"the number of devices of the mesh axis {split.context!r} "
                f"that share them; pad the rows. Received: {shape[1]} tokens"
            )
