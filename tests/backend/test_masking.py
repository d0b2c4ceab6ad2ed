"""Zeroing of masked rows and its shortcut on PyTorch."""

import keras
import numpy as np
import pytest

from keras_attn.backend import is_statically_false, zero_masked

torch_only = pytest.mark.skipif(
    keras.backend.backend() != "torch", reason="PyTorch's shortcut"
)
TOKEN_MASK = np.array([[True, True, False], [True, False, False]])


def rows(masked=7.0, token_mask=TOKEN_MASK):
    x = np.random.default_rng(0).normal(size=(2, 3, 2, 4)).astype("float32")
    x[~token_mask] = masked
    return x


def zeroed(x, token_mask=TOKEN_MASK):
    tensors = map(keras.ops.convert_to_tensor, (x, token_mask))
    return keras.ops.convert_to_numpy(zero_masked(*tensors))


@pytest.mark.parametrize("masked", [np.nan, np.inf, -np.inf, 1e30, -1e7])
@pytest.mark.parametrize("shape", [(2, 3, 2, 4), (2, 3, 8), (2, 3)])
def test_extreme_masked_values_become_zero(masked, shape):
    x = rows(masked)
    if shape == (2, 3):
        x = x[..., 0, 0]
    x = x.reshape(shape)
    found = zeroed(x)
    np.testing.assert_array_equal(found[TOKEN_MASK], x[TOKEN_MASK])
    assert not found[~TOKEN_MASK].any()


def test_empty_sequence_becomes_zero():
    mask = TOKEN_MASK & [[True], [False]]
    x = rows(token_mask=mask)
    found = zeroed(x, mask)
    assert not found[~mask].any()
    np.testing.assert_array_equal(found[mask], x[mask])


@torch_only
def test_ordinary_values_are_not_copied():
    import torch

    x, mask = torch.from_numpy(rows()), torch.from_numpy(TOKEN_MASK)
    assert zero_masked(x, mask) is x
    transposed = x.transpose(2, 3)
    assert not zero_masked(transposed, mask)[~mask].any()


@torch_only
def test_transforms_do_not_branch_on_values():
    import torch

    mask = torch.from_numpy(TOKEN_MASK)
    x = torch.from_numpy(rows())
    found = torch.func.vmap(lambda y: zero_masked(y, mask))(x[None])
    assert not found[0][~mask].any()
    slope = torch.func.grad(lambda y: zero_masked(y, mask).sum())(x)
    assert slope[mask].min() == 1


def test_is_statically_false():
    mask = keras.ops.convert_to_tensor(TOKEN_MASK & False)
    assert is_statically_false(mask) is (keras.backend.backend() == "torch")
    assert not is_statically_false(keras.ops.convert_to_tensor(TOKEN_MASK))
    assert not is_statically_false(keras.KerasTensor((2, 3), "bool"))


@torch_only
def test_is_statically_false_under_vmap():
    import torch

    def check(mask):
        assert not is_statically_false(mask)
        return mask

    torch.func.vmap(check)(torch.from_numpy(TOKEN_MASK & False))
