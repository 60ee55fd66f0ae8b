/*
 * Ctrl-C ends what is being done, not the program.
 */
#ifndef CLI_PROMPT_INTERRUPT_H
#define CLI_PROMPT_INTERRUPT_H

#include "analyzer/base/progress.h"

/*
 * From now on SIGINT sets progress->interrupted, and system calls that wait return EINTR. With
 * once, a second one kills the program as usual.
 */
void interrupt_catch(struct progress *progress, bool once);

#endif
