# SPDX-License-Identifier: GPL-2.0-or-later
# QMK itself adds companion.c, which has the name of this folder.
SRC += companion_keys.c companion_link.c companion_output.c
SRC += thock.c thock_caps.c thock_capture.c thock_display.c thock_events.c thock_font.c thock_lights.c thock_others.c thock_wire.c
OPT_DEFS += -DTHOCK_CONFIG_HEADER=\"thock_board.h\"
