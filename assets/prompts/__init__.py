# SPDX-License-Identifier: Apache-2.0
"""The words that go to the model, one file per use, one table per language."""
