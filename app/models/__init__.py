# SPDX-License-Identifier: Apache-2.0
"""The model store behind `thock model add|list|check|remove`."""
