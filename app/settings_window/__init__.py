# SPDX-License-Identifier: Apache-2.0
"""The settings window, a child process of its own. Only this package imports Qt."""
