/*
 * heapcore run: a program is run, and its memory looked into at its end.
 */
#ifndef CLI_LIVE_RUN_H
#define CLI_LIVE_RUN_H

/* heapcore run [OPTIONS] -- PROGRAM [ARGUMENTS...]; returns the exit status. */
int run_main(int count, char **arguments);

#endif
