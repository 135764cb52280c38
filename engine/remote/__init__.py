# SPDX-License-Identifier: Apache-2.0
"""A server with the OpenAI API in place of the model: the only part of Thock that text leaves through."""
