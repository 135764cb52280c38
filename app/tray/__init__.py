# SPDX-License-Identifier: Apache-2.0
"""The icon in the panel: what it shows and offers is a function of the host's state."""
