# SPDX-License-Identifier: GPL-2.0-or-later
# Choices that a keymap makes in its rules.mk; docs/firmware/qmk.md explains them.

ifeq ($(strip $(THOCK_ACCEPT_KEY)), yes)
    OPT_DEFS += -DTHOCK_ENABLE_ACCEPT=1
endif
ifeq ($(strip $(THOCK_VIA_CHANNEL)), yes)
    OPT_DEFS += -DTHOCK_VIA_CHANNEL
endif
ifeq ($(strip $(THOCK_ALL_REPORTS)), yes)
    ifeq ($(strip $(LTO_ENABLE)), yes)
        $(error THOCK_ALL_REPORTS needs LTO_ENABLE = no: link-time optimisation may call past the wrapper)
    endif
    # In older trees the call and QMK's own, weak raw_hid_receive() are in one file: the linker would wrap nothing.
    ifeq ($(wildcard quantum/raw_hid.c),)
        $(error THOCK_ALL_REPORTS needs a tree of QMK since May 2025: quantum/raw_hid.c is missing)
    endif
    OPT_DEFS += -DTHOCK_ALL_REPORTS
    EXTRALDFLAGS += -Wl,--wrap=raw_hid_receive
endif
ifeq ($(strip $(THOCK_POLLED_EVENTS)), yes)
    OPT_DEFS += -DTHOCK_ENABLE_POLL=1
endif
ifeq ($(strip $(THOCK_SPLIT_SYNC)), yes)
    OPT_DEFS += -DTHOCK_SPLIT_SYNC
endif
