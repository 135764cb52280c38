# SPDX-License-Identifier: Apache-2.0
"""Only what pyproject.toml cannot say: the C core of the firmware is built as an extension by cffi."""

from setuptools import setup

setup(cffi_modules=["firmware_bridge/firmware/build_core.py:ffibuilder"])
