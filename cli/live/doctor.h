/*
 * Checks of what this system lets heapcore do: trace processes, get cores, keep them, find debug
 * information.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdbool.h>

enum { DOCTOR_TEXT_SIZE = 256 };

struct diagnosis {
	const char *of; /* "snap, -p" */
	bool is_limited;
	char finding[DOCTOR_TEXT_SIZE];
	const char *change; /* the command that changes it; NULL: there is none, or no need */
};

/* Call visit for each check, one after the other. */
void doctor_visit(void (*visit)(void *data, const struct diagnosis *diagnosis), void *data);
