/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
 * Other programs on the same interface: what we send reaches them too, and most take any report for their answer.
 *
 * The VIA app begins with the question for its version. A frame in VIA form that is under way then is as good an
 * answer as VIA's own. But then VIA's own answer is one too many, and spoils the app's next question, if that comes
 * fast. So it waits: if the app asks on, it has had its answer; if not, it gets it now. */
#include "thock_internal.h"

#include <string.h>

/* The host falls silent when others come, so its subscription has run out by the time that this ends; were this
 * shorter, events would still go out. */
#define HOLD_MS THOCK_TIMEOUT_MS
#define MUTE_MS 100u  /* all frames after a request of theirs: as long as the host needs to notice it, and more */
#define UNDER_WAY_MS 50u /* from our sending a frame until surely every program has it */

enum { OTHERS_SILENT = 0, OTHERS_BEGAN = 1, OTHERS_TALK = 2 };

static bool since_other(const thock_t *core, uint32_t now_ms, uint16_t limit_ms)
{
    return (uint16_t)((uint16_t)now_ms - core->other_ms) < limit_ms;
}

bool thock_events_held(const thock_t *core, uint32_t now_ms)
{
    return core->others != OTHERS_SILENT && since_other(core, now_ms, HOLD_MS);
}

#if THOCK_ENABLE_VIA_FORM

bool thock_wants_via_form(const thock_t *core, uint8_t client)
{
    return core->client != 0 && core->client == client && (core->events & THOCK_WANT_VIA_FORM);
}

/* Whether a frame of ours may be under way. */
static bool since_sent(const thock_t *core, uint32_t now_ms)
{
    return core->sent_any && (uint16_t)((uint16_t)now_ms - core->sent_ms) < UNDER_WAY_MS;
}

static bool in_use(const thock_t *core)
{
    return thock_wants_via_form(core, core->client);
}

bool thock_is_mute(const thock_t *core, uint8_t type, uint32_t now_ms)
{
    if (core->answer_late) {
        return true; /* it lies where the answer would be made */
    }
    /* HELLO is what our own host says after such a question; it must not let out an answer that waits. */
    return (type != THOCK_TYPE_HELLO || core->reply_waits) && in_use(core) && core->others != OTHERS_SILENT &&
           since_other(core, now_ms, MUTE_MS);
}

bool thock_send(thock_t *core, const uint8_t *report)
{
    if (!core->hooks->send(core->hooks->context, report, core->config.report_length)) {
        return false;
    }
    core->sent_any = true;
    core->sent_ms = core->now_ms;
    return true;
}

void thock_others_reset(thock_t *core)
{
    /* A program that has only asked for the version may be our own host, which then says HELLO. */
    if (core->others == OTHERS_BEGAN) {
        core->others = OTHERS_SILENT;
    }
}

void thock_others_forget(thock_t *core)
{
    core->answer_late = false;
    core->others = OTHERS_SILENT;
}

bool thock_other_request(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms)
{
    bool begins = report[0] == THOCK_VIA_VERSION;
    bool had_answer = core->answer_late;

    core->answer_late = false; /* it asks on, so it took a frame of ours for that answer */
    if (begins && !in_use(core)) {
        return false;
    }
    core->others = begins && core->others != OTHERS_TALK ? OTHERS_BEGAN : OTHERS_TALK;
    core->other_ms = (uint16_t)now_ms;
    if (in_use(core)) {
        core->reply_waits = false; /* the host asks again */
    }
    if (!begins || had_answer || length != core->config.report_length || !since_sent(core, now_ms)) {
        return false;
    }
    memcpy(core->reply, report, length);
    core->reply[1] = (uint8_t)(core->config.via_version >> 8);
    core->reply[2] = (uint8_t)core->config.via_version;
    core->answer_late = true;
    return true;
}

void thock_others_task(thock_t *core, uint32_t now_ms)
{
    core->now_ms = (uint16_t)now_ms;
    if (core->answer_late && !since_other(core, now_ms, MUTE_MS)) {
        core->answer_late = !core->hooks->send(core->hooks->context, core->reply, core->config.report_length);
    }
    if (!since_sent(core, now_ms)) {
        core->sent_any = false; /* so that it is not young again when the clock has wrapped */
    }
    if (!thock_events_held(core, now_ms)) {
        core->others = OTHERS_SILENT;
    }
}

#else

void thock_others_forget(thock_t *core)
{
    core->others = OTHERS_SILENT;
}

bool thock_other_request(thock_t *core, const uint8_t *report, uint8_t length, uint32_t now_ms)
{
    (void)length;
    if (report[0] != THOCK_VIA_VERSION) {
        core->others = OTHERS_TALK;
        core->other_ms = (uint16_t)now_ms;
    }
    return false;
}

void thock_others_task(thock_t *core, uint32_t now_ms)
{
    if (!thock_events_held(core, now_ms)) {
        core->others = OTHERS_SILENT;
    }
}

#endif
