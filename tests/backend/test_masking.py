import keras
import numpy as np
import pytest

from keras_attn.backend import is_statically_false, zero_masked

torch_only = pytest.mark.skipif(
    keras.backend.backend() != "torch", reason="PyTorch's shortcut"
)
THERE = np.array([[True, True, False], [True, False, False]])


def rows(hidden=7.0, there=THERE):
    x = np.random.default_rng(0).normal(size=(2, 3, 2, 4)).astype("float32")
    x[~there] = hidden
    return x


def answer(x, there=THERE):
    tensors = map(keras.ops.convert_to_tensor, (x, there))
    return keras.ops.convert_to_numpy(zero_masked(*tensors))


@pytest.mark.parametrize("hidden", [np.nan, np.inf, -np.inf, 1e30, -1e7])
@pytest.mark.parametrize("shape", [(2, 3, 2, 4), (2, 3, 8), (2, 3)])
def test_what_could_do_harm_becomes_zero(hidden, shape):
    x = rows(hidden)
    if shape == (2, 3):
        x = x[..., 0, 0]
    x = x.reshape(shape)
    found = answer(x)
    np.testing.assert_array_equal(found[THERE], x[THERE])
    assert not found[~THERE].any()


def test_a_sequence_without_tokens_becomes_zero():
    there = THERE & [[True], [False]]
    found = answer(rows(there=there), there)
    assert not found[~there].any()
    np.testing.assert_array_equal(found[there], rows(there=there)[there])


@torch_only
def test_the_harmless_is_not_copied():
    import torch

    x, there = torch.from_numpy(rows()), torch.from_numpy(THERE)
    assert zero_masked(x, there) is x
    pretransposed = x.transpose(2, 3)
    assert not zero_masked(pretransposed, there)[~there].any()


@torch_only
def test_programs_take_no_decision():
    import torch

    there = torch.from_numpy(THERE)
    x = torch.from_numpy(rows())
    found = torch.func.vmap(lambda y: zero_masked(y, there))(x[None])
    assert not found[0][~there].any()
    slope = torch.func.grad(lambda y: zero_masked(y, there).sum())(x)
    assert slope[there].min() == 1


def test_a_mask_is_surely_false_only_where_one_can_see_it():
    mask = keras.ops.convert_to_tensor(THERE & False)
    assert is_statically_false(mask) is (keras.backend.backend() == "torch")
    assert not is_statically_false(keras.ops.convert_to_tensor(THERE))
    assert not is_statically_false(keras.KerasTensor((2, 3), "bool"))


@torch_only
def test_nobody_sees_a_mask_in_a_program():
    import torch

    def answer(mask):
        assert not is_statically_false(mask)
        return mask

    torch.func.vmap(answer)(torch.from_numpy(THERE & False))
