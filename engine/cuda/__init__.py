# SPDX-License-Identifier: Apache-2.0
"""The FP8 engine on NVIDIA GPUs. Imports no torch; loads the driver only when a device is opened."""
