# SPDX-License-Identifier: Apache-2.0
"""setuptools' build of the package, made in a copy of this folder: beside the sources it would leave
`build` and `tilewire.egg-info`. An editable installation needs the folder itself.
"""
import contextlib
import os
import shutil
import tempfile

from setuptools import build_meta
from setuptools.build_meta import (build_editable, get_requires_for_build_editable,  # noqa: F401
                                   prepare_metadata_for_build_editable)


@contextlib.contextmanager
def _copy():
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(before, os.path.join(folder, 'tilewire'),
                               ignore=shutil.ignore_patterns('build', '*.egg-info', '__pycache__'))
        os.chdir(copy)
        try:
            yield
        finally:
            os.chdir(before)


def get_requires_for_build_wheel(config_settings=None):
    with _copy():
        return build_meta.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_sdist(config_settings=None):
    with _copy():
        return build_meta.get_requires_for_build_sdist(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with _copy():
        return build_meta.prepare_metadata_for_build_wheel(os.path.abspath(metadata_directory), config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with _copy():
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    with _copy():
        return build_meta.build_sdist(sdist_directory, config_settings)
