# SPDX-License-Identifier: Apache-2.0
"""Times and numbers of one model on one device: `python -m engine.bench`, for `thock bench engine`."""
