"""Build backend: setuptools, with archives that only depend on their files.

pip and `python -m build` call it, as `[build-system]` in pyproject.toml says.
setuptools writes the time of the build into a source archive, and the times and
owners of its files, even if SOURCE_DATE_EPOCH is set (as of setuptools 84.2).
"""

import gzip
import io
import os
import pathlib
import tarfile

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

# 1980-01-01, the earliest time in a zip file. RELEASING.md sets the variable to
# the time of the commit.
_EPOCH = 315532800


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel; PEP 517 describes the arguments."""
    _set_epoch()
    return build_meta.build_wheel(
        wheel_directory, config_settings, metadata_directory
    )


def build_sdist(sdist_directory, config_settings=None):
    """Builds a source archive; PEP 517 describes the arguments."""
    _set_epoch()
    name = build_meta.build_sdist(sdist_directory, config_settings)
    normalize(pathlib.Path(sdist_directory, name))
    return name


def _set_epoch():
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(_EPOCH))


def normalize(archive):
    """Rewrites a `.tar.gz` file with sorted members of equal time and owner.

    Args:
        archive: `pathlib.Path`. All times become SOURCE_DATE_EPOCH, in seconds.
    """
    time = int(os.environ["SOURCE_DATE_EPOCH"])
    with tarfile.open(archive) as old:
        members = [
            (member, old.extractfile(member).read() if member.isfile() else b"")
            for member in sorted(old.getmembers(), key=lambda each: each.name)
            # A list of files that depends on what an earlier build left.
            if ".egg-info" not in member.name
        ]
    packed = io.BytesIO()
    with tarfile.open(
        fileobj=packed, mode="w", format=tarfile.PAX_FORMAT
    ) as new:
        for member, content in members:
            member.mtime, member.pax_headers = time, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            executable = member.isdir() or member.mode & 0o100
            member.mode = 0o755 if executable else 0o644
            new.addfile(member, io.BytesIO(content))
    with archive.open("wb") as file:
        with gzip.GzipFile("", "wb", fileobj=file, mtime=time) as zipped:
            zipped.write(packed.getvalue())
