# SPDX-License-Identifier: Apache-2.0
"""What each operating system does in its own way, one subject a file."""
