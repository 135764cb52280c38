# SPDX-License-Identifier: Apache-2.0
"""The settings as a file: where it lies, how it is read whatever is in it, and how it is written."""
