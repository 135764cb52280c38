# SPDX-License-Identifier: Apache-2.0
"""How the commands and the settings window talk to the running companion."""
