# SPDX-License-Identifier: Apache-2.0
"""One file per command of `thock`; each is imported only when it is used."""
