#!/bin/sh
# Creates or updates a virtual environment with this checkout and some of its
# extras: sh tools/make_venv.sh .venv test,torch
#
# PYTHON: the interpreters to try, in order. Each is run, because an existing
# command may not work (a shim of a version manager).
set -eu
venv=$1
extras=$2
candidates=${PYTHON:-python3.11 python3.12 python3.13 python3}
fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'

if "$venv/bin/python" -c "import pip; $fits" >/dev/null 2>&1; then
    echo "Updating $venv ..."
else
    found=
    for candidate in $candidates; do
        if "$candidate" -c "import ensurepip, venv; $fits" >/dev/null 2>&1; then
            found=$candidate
            break
        fi
    done
    if [ -z "$found" ]; then
        echo "No Python from 3.11 to 3.13 with venv and pip was found." >&2
        echo "Tried: $candidates. Install one (Debian, Ubuntu: the packages" >&2
        echo "python3 and python3-venv) or set its path: make PYTHON=..." >&2
        exit 1
    fi
    echo "Creating $venv with $("$found" --version) ($found), extras: $extras."
    echo "This happens once and takes a few minutes."
    "$found" -m venv --clear "$venv"
fi
# Without compilation: Python compiles the modules that are imported, and all of
# them take a minute.
PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install \
    --no-compile --constraint constraints.txt --editable ".[$extras]"
echo "$venv is ready."
