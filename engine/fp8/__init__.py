# SPDX-License-Identifier: Apache-2.0
"""FP8 weights: the e4m3 codec, scales, the packed fragment layout and its disk cache. numpy only."""
