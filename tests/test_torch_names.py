"""On PyTorch, every weight is a parameter with a stable name."""

import copy
import time
import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import blocks, layers, models
from tests.test_host_reads import CASES, tensors

pytestmark = pytest.mark.one_backend("torch")
if keras.backend.backend() != "torch":
    pytest.skip("PyTorch's modules", allow_module_level=True)
import torch

MODELS = {
    name: case
    for name, case in CASES.items()
    if isinstance(getattr(models, name, None), type)
}


def built(name):
    """Returns a layer and a function that calls it."""
    make, args, kwargs = CASES[name]
    args, kwargs = tensors((args, kwargs))
    layer = make()
    if not layer.built:
        layer(*args, **kwargs)
    return layer, lambda layer: keras.tree.map_structure(
        ops.convert_to_numpy, keras.tree.flatten(layer(*args, **kwargs))
    )


def changed(layer):
    """Draws all weights anew, so that a missing one is noticed."""
    draw = np.random.default_rng(1)
    for variable in layer.weights:
        shape, dtype = variable.shape, variable.dtype
        if "float" in dtype:
            variable.assign(0.3 * draw.normal(size=shape))
    return layer


# The case of a `Residual` is a layer around it that is not of the library.
@pytest.mark.parametrize("name", [name for name in CASES if name != "Residual"])
def test_weights_of_a_fresh_layer(name):
    layer, call = built(name)
    other, _ = built(name)
    changed(layer)
    names = list(layer.state_dict())
    assert names == list(other.state_dict())
    values = {id(variable.value) for variable in layer.variables}
    found = dict(layer.named_parameters())
    assert {id(parameter) for parameter in found.values()} == values
    assert list(found) == names and len(names) == len(values)
    assert len(list(layer.parameters())) == len(values)
    other.load_state_dict(layer.state_dict(), strict=True)
    for one, two in zip(call(layer), call(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_weights_of_a_residual():
    states = []
    for _ in range(2):
        residual = blocks.Residual(dropout=0.1)
        residual.build((None, None, 8))
        states.append(residual.state_dict())
    one, other = states
    assert list(one) == list(other) and len(one) == len(residual.variables)


def test_names_are_paths():
    model = MODELS["GPT"][0]()
    names = [name.removeprefix("_torch_params.") for name in model.state_dict()]
    assert "token_embedding/table/embeddings" in names
    assert "block_0/self_attention/query/kernel" in names
    # The paths of Keras where they do not depend on the process.
    paths = [weight.path for weight in model.weights]
    assert set(paths) <= set(names)
    classifier = MODELS["SequenceClassifier"][0]()
    assert not [n for n in classifier.state_dict() if "classifier_" in n]


@pytest.mark.parametrize("name", MODELS)
def test_in_other_modules(name):
    """Modules around a model that has never been called."""
    model = MODELS[name][0]()
    names = list(MODELS[name][0]().state_dict())
    around = torch.nn.Sequential(model)
    assert list(around.state_dict()) == [f"0.{name}" for name in names]
    again = torch.nn.Sequential(MODELS[name][0]())
    again.load_state_dict(around.state_dict(), strict=True)
    assert len(list(torch.nn.Sequential(MODELS[name][0]()).parameters())) == (
        len(names)
    )
    compiled = torch.compile(MODELS[name][0](), backend="eager")
    assert list(compiled.state_dict()) == [f"_orig_mod.{n}" for n in names]
    compiled.load_state_dict(
        {f"_orig_mod.{n}": x for n, x in model.state_dict().items()},
        strict=True,
    )


@pytest.mark.parametrize("name", ["GPT", "RecurrentSeq2Seq"])
def test_half_precision_and_meta(name):
    model = MODELS[name][0]()
    expected = [weight.dtype == "float32" for weight in model.weights]
    assert any(expected)
    model.half()
    for variable in model.variables:
        if "float" in variable.dtype:
            assert variable.value.dtype == torch.float16
    model.to(torch.float64)
    for parameter in model.parameters():
        assert parameter.dtype in (torch.float64, torch.int32, torch.int64)


@pytest.mark.parametrize("name", MODELS)
def test_a_half_model_computes(name):
    model, call = built(name)
    expected = call(model)
    model.half()
    assert model.dtype_policy.name == "float16"
    dtypes = {weight.dtype for weight in model.weights}
    assert dtypes - {"int32"} == {"float16"}
    for one, two in zip(call(model), expected, strict=True):
        np.testing.assert_allclose(one, two, atol=2e-2)
    for one, two in zip(call(model.float()), expected, strict=True):
        np.testing.assert_allclose(one, two, atol=2e-2)


def test_a_half_model_generates():
    """The captured step belongs to another dtype and is captured again."""
    model = MODELS["GPT"][0]()
    expected = model.generate([[5, 6]], 3).tokens
    for method in (model.half, model.double, model.float):
        np.testing.assert_array_equal(
            method().generate([[5, 6]], 3).tokens, expected
        )


def test_a_compiled_model_is_moved():
    model = MODELS["GPT"][0]()
    model.compile("adam", "mse", metrics=["mae"])
    x, y = np.int32([[5, 6, 7, 8]]), np.zeros((1, 4, 11), "float32")
    model.fit(x, y, verbose=0)
    model.half().fit(x, y, verbose=0)
    for metric in model.metrics:
        assert {v.value.dtype for v in metric.variables} == {torch.float32}
    model.to("meta")
    for metric in model.metrics:
        assert {v.value.device.type for v in metric.variables} == {"meta"}


@pytest.mark.parametrize("name", ["GPT", "RecurrentSeq2Seq"])
def test_assigned_parameters_are_used(name):
    model, call = built(name)
    other, _ = built(name)
    state = {k: v.clone() for k, v in changed(model).state_dict().items()}
    # A sublayer that has been asked before sees the new parameters too.
    assert len(list(other._layers[0].parameters()))
    other.load_state_dict(state, assign=True)
    for one, two in zip(call(model), call(other), strict=True):
        np.testing.assert_array_equal(one, two)
    values = {id(value) for value in other.parameters()}
    for inner in other._layers:
        assert {id(value) for value in inner.parameters()} <= values


def test_distributed_data_parallel(tmp_path):
    """One process is enough to see which weights PyTorch synchronizes."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        make, args, _ = CASES["Transformer"]
        model = make()
        names = list(make().state_dict())
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        assert list(parallel.state_dict()) == [f"module.{n}" for n in names]
        output = parallel(*tensors(args))
        output.square().mean().backward()
        for variable in model.trainable_weights:
            assert variable.value.grad is not None, variable.path
    finally:
        # The destructor of the group holds Python's lock and waits for threads,
        # which need the lock to release the last gradients.
        time.sleep(0.2)
        torch.distributed.destroy_process_group()


def quantize(model):
    with warnings.catch_warnings():
        # Keras names the layers that it does not quantize.
        warnings.simplefilter("ignore")
        model.quantize("int8")


def test_weights_that_come_and_go():
    model = MODELS["GPT"][0]()
    before = list(model.state_dict())
    block = model._blocks[0]
    block._self_attention.query_dense.enable_lora(2)
    after = list(model.state_dict())
    added = sorted(set(after) - set(before))
    path = "_torch_params.block_0/self_attention/query"
    assert added == [f"{path}/lora_kernel_a", f"{path}/lora_kernel_b"]
    assert len(list(model.parameters())) == len(model.variables)
    quantize(model)
    names = list(model.state_dict())
    assert any(name.endswith("kernel_scale") for name in names)
    assert len(names) == len({id(v.value) for v in model.variables})
    other = MODELS["GPT"][0]()
    other._blocks[0]._self_attention.query_dense.enable_lora(2)
    quantize(other)
    assert list(other.state_dict()) == names
    other.load_state_dict(model.state_dict(), strict=True)


def test_tied_weights_have_one_name(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model, call = built("Transformer")
    changed(model)
    path = tmp_path / "weights.safetensors"
    safetensors.save_file(model.state_dict(), path)
    other, _ = built("Transformer")
    other.load_state_dict(safetensors.load_file(path), strict=True)
    for one, two in zip(call(model), call(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_missing_weight_is_reported():
    model = MODELS["GPT"][0]()
    state = dict(model.state_dict())
    state.pop("_torch_params.block_0/self_attention/query/kernel")
    with pytest.raises(RuntimeError, match=r"Missing key.*query/kernel"):
        model.load_state_dict(state)


def test_copies_and_training():
    model = MODELS["GPT"][0]()
    names = list(model.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copied = copy.deepcopy(model)
    assert list(copied.state_dict()) == names
    model.compile("adam", "mse")
    x = np.int32([[5, 6, 7, 8]])
    model.fit(x, np.zeros((1, 4, 11), "float32"), verbose=0)
    assert list(model.state_dict()) == names


def test_layers_with_default_names_are_numbered_within_their_parent():
    class Two(layers.FeedForward):
        def build(self, shape):
            super().build(shape)
            self.one = keras.layers.Dense(3)
            self.two = keras.layers.Dense(3)
            self.one.build((None, 2))
            self.two.build((None, 2))

    keras.layers.Dense(1)
    layer = Two(4)
    layer.build((None, None, 8))
    names = [name.removeprefix("_torch_params.") for name in layer.state_dict()]
    assert {"dense/kernel", "dense_1/kernel"} < set(names)
