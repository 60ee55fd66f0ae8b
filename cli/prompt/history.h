/*
 * The lines typed at the prompt, kept across runs.
 *
 * They are in $XDG_STATE_HOME/heapcore/history, or ~/.local/state/heapcore, for nobody else's eyes.
 * Each line goes there at once.
 */
#ifndef CLI_PROMPT_HISTORY_H
#define CLI_PROMPT_HISTORY_H

#include "cli/prompt/session.h"

/* Read what was kept. That nothing can be kept is only worth a note. */
void history_open(struct session *session);
void history_close(void);

/* Keep a line, unless it is blank or the last one again. */
void history_remember(const char *line);

/* The number-th line, the oldest first, or NULL. */
const char *history_line(size_t number);

#endif
