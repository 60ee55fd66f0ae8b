/*
 * Files that become shorter while they are mapped: the core, while it is still written or already
 * removed, or a program that is replaced in place.
 *
 * To read what is gone raises SIGBUS. It then reads as zeros, and later questions learn of it, so
 * that answers are not relied on.
 */
#ifndef CLI_PROMPT_VANISHED_H
#define CLI_PROMPT_VANISHED_H

#include <stdbool.h>

/* From now on that does not end the program. */
void vanished_catch(void);

/* Whether it happened. */
bool vanished_any(void);

#endif
