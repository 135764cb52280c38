# SPDX-License-Identifier: Apache-2.0
"""What the person sees, and the companion that ties keyboard and engine together."""
