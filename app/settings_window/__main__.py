# SPDX-License-Identifier: Apache-2.0
"""See `app.settings_window.main`."""

import sys

from app.settings_window.main import main

sys.exit(main())
