# SPDX-License-Identifier: Apache-2.0
"""Keyboards with VIA, Vial or Viable firmware and without our module: their lights."""
