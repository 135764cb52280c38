# SPDX-License-Identifier: Apache-2.0
"""The virtual keyboard in a terminal, and scripts that type on it like a person."""
