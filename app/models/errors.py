# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with the model store; each message ends with what to do."""

from __future__ import annotations


class ModelStoreError(Exception):
    """Base of every error of the store."""


class UnknownModelError(ModelStoreError):
    """No model of that name is installed, and no file of that path exists."""


class ModelExistsError(ModelStoreError):
    """A model of that name is installed already."""


class DownloadError(ModelStoreError):
    """The package could not be fetched: offline, no room, or pip is missing."""


class WrongContentError(ModelStoreError):
    """What arrived is not the file that the catalogue names."""
