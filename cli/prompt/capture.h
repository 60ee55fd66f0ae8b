/*
 * Text that is written to a stream and kept in memory, up to a limit; the rest is counted.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdint.h>
#include <stdio.h>

/* Must stay where it is. */
struct capture {
	FILE *stream;
	char *bytes; /* with a NUL behind; owned */
	size_t used, room, most;
	uint64_t left_out; /* bytes */
	bool failed;	   /* memory was short */
};

struct error *capture_init(struct capture *capture, size_t most);
void capture_deinit(struct capture *capture);
DEFINE_DEINIT(capture_deinit, struct capture)

/* The text written so far; "" if there is none. */
const char *capture_text(struct capture *capture);

/* Drop the beginning of a line at the end, if there was more than is kept. */
void capture_cut_to_lines(struct capture *capture);
