"""Programs of an object are dropped when something they have read changes."""

import copy
import gc
import pickle
import types
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn.backend import PythonState, compiled, programs_of


class Part:
    """Object of the owner's package."""

    def __init__(self):
        self.depth = 1


class Owner:
    """Dummy model."""

    scale = 1.0

    def __init__(self):
        self.end_id = 2
        self.rate = 0.0
        self.items = [1, 2]
        self.table = {"a": 1}
        self.kinds = {1, 2}
        self.nested = ([Part()],)
        self.array = np.zeros(3)
        self.layer = keras.layers.Dense(2)
        self.layer.build((None, 2))
        self.space = types.SimpleNamespace(value=1)
        self.itself = self


CHANGES = {
    "int": lambda owner: setattr(owner, "end_id", 3),
    "bool for int": lambda owner: setattr(owner, "end_id", True),
    "float": lambda owner: setattr(owner, "rate", -0.0),
    "NaN": lambda owner: setattr(owner, "rate", float("nan")),
    "new": lambda owner: setattr(owner, "other", None),
    "removed": lambda owner: delattr(owner, "rate"),
    "list": lambda owner: owner.items.append(3),
    "item": lambda owner: owner.items.__setitem__(0, 5),
    "dict": lambda owner: owner.table.update(a=2),
    "key": lambda owner: owner.table.update(b=1),
    "set": lambda owner: owner.kinds.add(3),
    "part": lambda owner: setattr(owner.nested[0][0], "depth", 2),
    "array": lambda owner: owner.array.__setitem__(0, 1.0),
    "namespace": lambda owner: setattr(owner.space, "value", 2),
    "layer": lambda owner: setattr(owner.layer, "use_bias", False),
    "activation": lambda owner: setattr(owner.layer, "activation", ops.tanh),
    "dtype": lambda owner: setattr(
        owner.layer, "dtype_policy", keras.DTypePolicy("float16")
    ),
    "LoRA": lambda owner: owner.layer.enable_lora(1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_attributes_drop_programs(change):
    owner = Owner()
    programs = programs_of(owner, owner.layer.variables)
    first = programs.get("key", object)
    assert programs.get("key", object) is first
    CHANGES[change](owner)
    again = programs_of(owner, owner.layer.variables)
    assert again is programs
    assert programs.get("key", object) is not first


def test_changed_classes_drop_programs(monkeypatch):
    owner = Owner()
    first = programs_of(owner, []).get("key", object)
    monkeypatch.setattr(Owner, "scale", 2.0)
    assert programs_of(owner, []).get("key", object) is not first


@pytest.mark.parametrize(
    "setting, values",
    [
        ("floatx", ["float16", "float32"]),
        ("epsilon", [1e-3, 1e-7]),
        ("dtype_policy", ["mixed_bfloat16", "float32"]),
    ],
)
def test_changed_settings_drop_programs(setting, values):
    owner = Owner()
    first = programs_of(owner, []).get("key", object)
    change = getattr(keras.config, f"set_{setting}")
    try:
        change(values[0])
        assert programs_of(owner, []).get("key", object) is not first
    finally:
        change(values[1])


def test_equal_attributes_keep_programs():
    owner = Owner()
    first = programs_of(owner, []).get("key", object)
    owner.end_id, owner.items, owner.table = int("2"), [1, 2], {"a": 1}
    owner.array, owner.nested = np.zeros(3), ([Part()],)
    owner.layer.dtype_policy = keras.DTypePolicy("float32")
    assert programs_of(owner, []).get("key", object) is first


def test_training_keeps_programs():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    first = programs_of(model, model.variables).get("key", object)
    model.compile("adam", "mse")
    x = np.ones((2, 2))
    model.fit(x, x, verbose=0, validation_data=(x, x))
    model.evaluate(x, x, verbose=0)
    model.predict(x, verbose=0)
    assert programs_of(model, model.variables).get("key", object) is first


def test_new_variables_drop_programs():
    owner = Owner()
    one, other = (keras.Variable([0.0]) for _ in range(2))
    first = programs_of(owner, [one]).get("key", object)
    assert programs_of(owner, [one]).get("key", object) is first
    assert programs_of(owner, [other]).get("key", object) is not first


@pytest.mark.one_backend
@pytest.mark.parametrize("way", ["copy", "deepcopy", "pickle"])
def test_copies_have_no_programs(way):
    owner = Part()
    programs = programs_of(owner, [])
    first = programs.get("key", lambda: lambda: None)  # cannot be pickled
    if way == "pickle":
        made = pickle.loads(pickle.dumps(owner))
    else:
        made = getattr(copy, way)(owner)
    assert programs_of(made, []) is not programs
    assert programs_of(made, []).get("key", object) is not first
    assert programs_of(owner, []).get("key", object) is first


def test_programs_are_freed_with_their_owner():
    owner = Owner()
    variables = owner.layer.variables

    def function(x):
        return x + variables[0]

    programs = programs_of(owner, variables)
    compiled(function, variables, programs, "key")(ops.ones((2,)))
    references = weakref.ref(owner), weakref.ref(programs)
    del owner, programs
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_what_a_program_changes_itself_keeps_it():
    owner = Owner()
    kept = weakref.proxy(owner)

    def function(x):
        kept.end_id += 1
        return 2 * x

    for _ in range(3):
        programs = programs_of(owner, [])
        compiled(function, [], programs, "key")(ops.ones((2,)))
    if keras.backend.backend() != "torch":
        assert owner.end_id == 3


@pytest.mark.one_backend
def test_snapshots_of_equal_objects_are_equal():
    one, other = Part(), Part()
    assert PythonState(one) == PythonState(other)
    assert hash(PythonState(one)) == hash(PythonState(other))
    other.depth = 2
    assert PythonState(one) != PythonState(other)
