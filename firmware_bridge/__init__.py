# SPDX-License-Identifier: Apache-2.0
"""USB bytes <-> typed events and frames. Knows nothing of models or windows."""
