/*
 * The recorder (analyzer/capture/recorder.h) as a file, to be preloaded into a program.
 */
#pragma once

#include "analyzer/base/error.h"

/* Write it to a new file; *ret is its path, to be freed, and the file to be removed. */
struct error *preload_unpack(char **ret);

/* In a process that becomes a program: it is preloaded there, for sizes (RECORDER_SIZES) or all. */
void preload_set(const char *path, const char *sizes);
