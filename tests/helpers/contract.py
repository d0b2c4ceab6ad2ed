"""`check_layer`: the common checks of every layer."""

import json
import os
import tempfile

import keras
import numpy as np
from keras import ops, tree


def check_layer(
    make,
    inputs,
    call_kwargs=None,
    *,
    tolerance=1e-5,
    mixed_dtype=None,
    masks=True,
    trains=True,
    dynamic=True,
):
    """Checks that a layer or model follows the conventions of Keras.

    It can be built, rebuilt from its config and from its serialized form, and
    saved to a `.keras` file in a functional model; its symbolic output has the
    real shape and dtype; it follows mixed precision policies; a call does not
    change its attributes or the masks of its inputs, and propagates the mask of
    the first one; and `fit` trains it.

    Args:
        make: callable that takes constructor keywords (`dtype`) and returns a
            new layer.
        inputs: inputs of the layer: an array, a tuple of arrays (positional
            arguments) or a list of arrays (one argument).
        call_kwargs: dict of keyword arguments. Arrays among them become inputs
            of the functional model too.
        tolerance: float, for the outputs of two equal layers.
        mixed_dtype: str. Dtype of the outputs under a mixed policy. Default:
            the compute dtype.
        masks: bool. The layer propagates the mask of its first input.
        trains: bool. The layer has weights that a step of `fit` changes.
        dynamic: bool. Axis 1 of the inputs may be of unknown length.

    Returns:
        The outputs of the layer on `inputs`, a nest of NumPy arrays.
    """
    call_kwargs = {} if call_kwargs is None else call_kwargs
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    layer = make()
    outputs = _values(layer(*_tensors(args), **_tensors(call_kwargs)))
    assert layer.built
    randomize(layer)
    outputs = _values(layer(*_tensors(args), **_tensors(call_kwargs)))
    _check_config(layer, args, call_kwargs, outputs, tolerance)
    _check_attributes(layer, args, call_kwargs)
    if masks:
        _check_masks(layer, args, call_kwargs)
    _check_mixed(make, args, call_kwargs, mixed_dtype)
    if dynamic:
        _check_symbolic(layer, args, call_kwargs, outputs, dynamic=True)
    model = _check_symbolic(layer, args, call_kwargs, outputs)
    _check_file(model, args, call_kwargs, tolerance)
    if trains:
        _check_fit(model, args, call_kwargs)
    return outputs


def randomize(layer, scale=0.3, seed=0):
    """Randomizes every float weight, so that biases are not zero."""
    draw = np.random.default_rng(seed).normal
    for variable in layer.weights:
        if "float" in keras.backend.standardize_dtype(variable.dtype):
            variable.assign(scale * draw(size=variable.shape))
    return layer


def attach_mask(tensor, mask):
    """Sets a tensor's implicit mask, as an embedding does."""
    tensor._keras_mask = ops.convert_to_tensor(mask, dtype="bool")
    return tensor


def _check_config(layer, args, call_kwargs, outputs, tolerance):
    config = layer.get_config()
    clone = type(layer).from_config(config)
    assert _plain(clone.get_config()) == _plain(config), "config changed"
    serialized = keras.saving.serialize_keras_object(layer)
    json.dumps(serialized)
    restored = keras.saving.deserialize_keras_object(serialized)
    assert type(restored) is type(layer)
    for copy in (clone, restored):
        copy(*_tensors(args), **_tensors(call_kwargs))
        copy.set_weights(layer.get_weights())
        again = copy(*_tensors(args), **_tensors(call_kwargs))
        _assert_close(again, outputs, tolerance)


def _check_attributes(layer, args, call_kwargs):
    # A copy that is built but has never been called.
    serialized = keras.saving.serialize_keras_object(layer)
    fresh = keras.saving.deserialize_keras_object(serialized)
    assert fresh.built, "the serialized layer does not build itself"
    before = dict(vars(fresh))
    fresh(*_tensors(args), **_tensors(call_kwargs))
    after = vars(fresh)
    changed = set(after) ^ set(before)
    changed |= {name for name in before if after[name] is not before[name]}
    changed.discard("_called")  # Keras's own
    assert not changed, f"a call changed the attributes {changed}"


def _check_masks(layer, args, call_kwargs):
    tensors = [_with_mask(x) if _is_sequence(x) else x for x in _tensors(args)]
    given = [getattr(x, "_keras_mask", None) for x in tensors]
    assert given[0] is not None, "the first input is no (B, T, D)"
    output = tree.flatten(layer(*tensors, **_tensors(call_kwargs)))[0]
    for tensor, mask in zip(tensors, given, strict=True):
        assert getattr(tensor, "_keras_mask", None) is mask, "mask erased"
    passed_on = getattr(output, "_keras_mask", None)
    assert passed_on is not None, "the mask of the first input was lost"
    np.testing.assert_array_equal(_values(passed_on), _values(given[0]))


def _check_mixed(make, args, call_kwargs, mixed_dtype):
    for compute_dtype in ("bfloat16", "float16"):
        layer = make(dtype=f"mixed_{compute_dtype}")
        outputs = layer(*_tensors(args), **_tensors(call_kwargs))
        for variable in layer.trainable_weights:
            dtype = keras.backend.standardize_dtype(variable.dtype)
            assert dtype == "float32"
        for output in tree.flatten(outputs):
            dtype = keras.backend.standardize_dtype(output.dtype)
            assert dtype == (mixed_dtype or compute_dtype), "policy ignored"
            finite = np.isfinite(_values(ops.cast(output, "float32")))
            assert finite.all(), f"not finite in {compute_dtype}"


def _check_symbolic(layer, args, call_kwargs, outputs, dynamic=False):
    symbolic_args = tree.map_structure(lambda x: _input(x, dynamic), args)
    symbolic_kwargs = {
        name: _input(x, dynamic) if isinstance(x, np.ndarray) else x
        for name, x in call_kwargs.items()
    }
    symbolic = layer(*symbolic_args, **symbolic_kwargs)
    inputs = [
        x
        for x in tree.flatten((symbolic_args, symbolic_kwargs))
        if isinstance(x, keras.KerasTensor)
    ]
    for promised, output in zip(
        tree.flatten(symbolic), tree.flatten(outputs), strict=True
    ):
        assert len(promised.shape) == len(output.shape)
        for size, real in zip(promised.shape, output.shape, strict=True):
            assert size in (None, real), "the symbolic shape is wrong"
        if not dynamic:
            assert promised.shape[1:] == output.shape[1:]
        assert keras.backend.standardize_dtype(promised.dtype) == output.dtype
    return keras.Model(inputs, symbolic)


def _check_file(model, args, call_kwargs, tolerance):
    feeds = _feeds(args, call_kwargs)
    outputs = _values(model(_tensors(feeds)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        loaded = keras.saving.load_model(path)
    _assert_close(loaded(_tensors(feeds)), outputs, tolerance)


def _check_fit(model, args, call_kwargs):
    feeds = _feeds(args, call_kwargs)
    output = model.outputs[0]
    trained = keras.Model(model.inputs, output)
    target = np.zeros((feeds[0].shape[0], *output.shape[1:]), "float32")
    trained.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    before = trained.get_weights()
    history = trained.fit(feeds, target, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    after = trained.get_weights()
    assert all(np.isfinite(array).all() for array in after)
    assert any(
        not np.array_equal(old, new)
        for old, new in zip(before, after, strict=True)
    ), "a step of fit changed no weight"


def _feeds(args, call_kwargs):
    return [
        x
        for x in tree.flatten((args, call_kwargs))
        if isinstance(x, np.ndarray)
    ]


def _input(x, dynamic):
    shape = list(x.shape[1:])
    if dynamic:
        shape[0] = None
    return keras.Input(shape, dtype=str(x.dtype))


def _is_sequence(x):
    return (
        not isinstance(x, (list, tuple))
        and len(x.shape) > 2
        and "float" in keras.backend.standardize_dtype(x.dtype)
    )


def _with_mask(tensor):
    """Masks the last position of the first row."""
    mask = np.ones(tensor.shape[:-1], "bool")
    mask[(0,) + (-1,) * (mask.ndim - 1)] = False
    return attach_mask(ops.copy(tensor), mask)


def _tensors(nest):
    return tree.map_structure(
        lambda x: ops.convert_to_tensor(x) if isinstance(x, np.ndarray) else x,
        nest,
    )


def _values(nest):
    return tree.map_structure(ops.convert_to_numpy, nest)


def _plain(config):
    return json.loads(json.dumps(config, default=str))


def _assert_close(outputs, expected, tolerance):
    # Flat: a reloaded Keras model returns a list instead of a tuple.
    for output, other in zip(
        tree.flatten(_values(outputs)), tree.flatten(expected), strict=True
    ):
        np.testing.assert_allclose(
            output, other, rtol=tolerance, atol=tolerance
        )
