/*
 * The side file of a core, CORE.hcx, as the user asked for it.
 */
#ifndef CLI_PROMPT_SIDE_FILE_H
#define CLI_PROMPT_SIDE_FILE_H

#include "cli/prompt/session.h"

/*
 * Use the side file of the core that is open; make it if there is none, or if it is of another core
 * or another heapcore. Where it cannot be made, the analysis goes on without.
 */
struct error *session_use_side_file(struct session *session, const char *core);

/* Do the analysis anew, and say whether the side file tells the same. */
struct error *session_verify_side_file(struct session *session, const char *core);

#endif
