/*
 * Checks that the gate would see a leak on this machine, with its C library and the user's
 * permissions, by analysing a process that leaks.
 */
#pragma once

#include "analyzer/base/progress.h"

/* An error says that, or why, leaks are not found. */
struct error *gate_self_check(struct progress *progress);

/* The leaking process is heapcore itself, with this as its first argument. */
#define PLANT_LEAKS "--plant-leaks"

/* Entry point of the leaking process. */
int plant_leaks_main(int count, char **arguments);
