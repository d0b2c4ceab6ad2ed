"""Hides the other backends in the process that others are forked from."""

import os

from tools.hidden_packages import hide_other_backends

os.environ["ALONE"] = "1"
hide_other_backends()
