/*
 * Leaks as annotations of the service that runs the gate: GitHub Actions reads commands from the
 * log, as "::error title=TITLE::MESSAGE", and shows ten of each step beside the change. GitLab has
 * no such commands; it reads the JUnit report.
 */
#pragma once

#include "analyzer/gate/leak_kinds.h"

#include <stdio.h>

/* One for each of the first kinds that count, if GitHub Actions runs this. */
void gate_annotate(const struct leak_kinds *kinds, FILE *out);
