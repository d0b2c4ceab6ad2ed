"""`keras_attn.info` reports what a bug report needs.

`test_imports` runs the program.
"""

from keras_attn import backend, info


def test_a_device_that_does_not_start_is_reported(monkeypatch):
    def failing():
        raise RuntimeError("no driver\nfound")

    monkeypatch.setattr(backend, "device_names", failing)
    assert info.information()["devices"] == "error: no driver found"
