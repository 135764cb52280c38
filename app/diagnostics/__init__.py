# SPDX-License-Identifier: Apache-2.0
"""A report for whoever helps: what is in it can be read before it is written."""
