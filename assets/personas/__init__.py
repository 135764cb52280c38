# SPDX-License-Identifier: Apache-2.0
"""Who answers in chat mode, one file per persona, one table per language."""
