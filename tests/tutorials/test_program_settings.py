"""Settings of programs: types, dependent defaults and errors."""

import pathlib
from typing import NamedTuple

import program_settings
import pytest

pytestmark = pytest.mark.one_backend


class Settings(NamedTuple):
    data: str = ""
    out: pathlib.Path = pathlib.Path("runs/x")
    quick: bool = False
    epochs: int = 4
    rate: float = 0.1
    dropout: float = 0.2


def read(**environment):
    return program_settings.read(
        Settings(),
        {"epochs": 9, "rate": 0.5},
        {"epochs": 1},
        zeros=("dropout",),
        environment=environment,
    )


def test_defaults():
    assert read() == read(EPOCHS="", QUICK=" ", PATH="/bin") == Settings()


def test_types():
    run = read(DATA="a,b", OUT="o", EPOCHS="7", RATE="1e-3", DROPOUT="0")
    assert run == Settings("a,b", pathlib.Path("o"), False, 7, 1e-3, 0.0)
    assert list(map(type, run)) == list(map(type, Settings()))


def test_data_and_quick_change_defaults():
    assert read(DATA="a") == Settings(data="a", epochs=9, rate=0.5)
    assert read(QUICK="1") == Settings(quick=True, epochs=1)
    assert read(DATA="a", QUICK="1", RATE="2") == Settings(
        data="a", quick=True, epochs=1, rate=2.0
    )
    for no in ("0", "no", "false"):
        assert read(QUICK=no) == Settings()


@pytest.mark.parametrize(
    "name, text",
    [
        ("EPOCHS", "0"),
        ("EPOCHS", "-1"),
        ("EPOCHS", "2.5"),
        ("EPOCHS", "many"),
        ("RATE", "0"),
        ("RATE", "nan"),
        ("RATE", "inf"),
        ("DROPOUT", "-0.1"),
    ],
)
def test_invalid_numbers_raise(name, text):
    with pytest.raises(ValueError, match=f"{name}.*Received: {name}={text}"):
        read(**{name: text})


def test_resumed_runs_share_their_identity():
    assert program_settings.identity(Settings(), "epochs") == {
        "data": "",
        "quick": False,
        "rate": 0.1,
        "dropout": 0.2,
    }


def test_errors_exit_with_one_line_and_status_2(capsys):
    with pytest.raises(SystemExit) as left:
        program_settings.explain_and_leave("tagging", ValueError("No."))
    assert left.value.code == 2
    assert capsys.readouterr().err == "tagging: No.\n"
