# SPDX-License-Identifier: Apache-2.0
"""Acceptance runs of the GPU engine: `python -m engine.bench.gpu`, or `thock bench gpu`."""
