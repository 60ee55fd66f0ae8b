/*
 * The prompt: a line editor with completion and a history that is kept.
 *
 * Ctrl-C ends the command, or drops the line; Ctrl-D leaves. The history is in
 * $XDG_STATE_HOME/heapcore/history, ~/.local/state without it, for nobody else's eyes; each line
 * goes there at once.
 */
#pragma once

#include "cli/prompt/session.h"

/* True if it begins with the first screen: not when quiet, or when the output is not text. */
bool prompt_greets(const struct session *session);

/* Run what is typed until the user leaves. */
void prompt_run(struct session *session);

/* The number-th line of the history, the oldest first, or NULL. */
const char *history_line(size_t number);
