/*
 * The folder of cores that last as long as heapcore runs.
 */
#pragma once

#include "analyzer/base/error.h"

/* $TMPDIR, or /tmp. */
const char *copies_folder(void);

/* A file without a name, there. */
struct error *copies_open(int *ret);
