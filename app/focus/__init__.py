# SPDX-License-Identifier: Apache-2.0
"""Which program is in front. Only its name is ever read, never the title of a window."""
