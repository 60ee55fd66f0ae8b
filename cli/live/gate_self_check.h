/*
 * Whether the gate would see a leak on this machine, under its C library and with the rights that
 * there are here: a process that leaks is looked into.
 */
#ifndef CLI_LIVE_GATE_SELF_CHECK_H
#define CLI_LIVE_GATE_SELF_CHECK_H

#include "analyzer/base/progress.h"

/* An error says that, or why, leaks are not found. */
struct error *gate_self_check(struct progress *progress);

/* The leaking process is heapcore itself, with this as its first argument. */
#define PLANT_LEAKS "--plant-leaks"

/* What it does then. */
int plant_leaks_main(int count, char **arguments);

#endif
