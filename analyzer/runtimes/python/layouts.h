/*
 * Offsets in thread states, frames and code objects of CPython, by which calls are known: a row for
 * each version, for cores and for the recorder.
 */
#pragma once

#include <stdint.h>

enum { NO_OFFSET = UINT16_MAX };

enum line_table {
	LINES_COUNTED, /* Objects/lnotab_notes.txt up to 3.9 */
	LINES_RANGED,  /* the same file of 3.10: PEP 626 */
	LINES_LOCATED, /* Objects/locations.md */
};

/* Bytes at the beginning of strings, up to 3.11 and from 3.12 on. */
enum { STRING_HEAD_OLD = 48, STRING_HEAD = 40 };

/* Offsets in a state, in frames and in code objects. */
struct python_layout {
	uint16_t minor;	       /* from that version 3 on */
	uint16_t frame, inner; /* of the frame in a state; where that leads to more: in it */
	uint16_t raised,
		handled; /* exceptions in a state: one on its way; the list of handled ones */
	uint16_t code, back, instruction, owner, locals;
	uint16_t flags, first_line, names, file, name, lines, start;
	enum line_table line_table;
	unsigned int string_head;
};

/* In the order of the members. */
static const struct python_layout python_layouts[] = {
	{ 14, 64, NO_OFFSET, 104, 112, 0, 8, 56, 74, 80, 48, 68, 96, 112, 128, 136, 208,
	  LINES_LOCATED, STRING_HEAD }, /* not tried */
	{ 13, 72, NO_OFFSET, 112, 120, 0, 8, 56, 70, 72, 48, 68, 96, 112, 128, 136, 200,
	  LINES_LOCATED, STRING_HEAD },
	{ 12, 56, 0, 96, 104, 0, 8, 56, 70, 72, 48, 68, 96, 112, 128, 136, 192, LINES_LOCATED,
	  STRING_HEAD },
	{ 11, 56, 8, 104, 120, 32, 48, 56, 69, 72, 48, 72, 96, 112, 128, 136, 184, LINES_LOCATED,
	  STRING_HEAD_OLD },
	{ 10, 24, NO_OFFSET, 96, 144, 32, 24, 96, NO_OFFSET, 352, 36, 40, 72, 104, 112, 120, 0,
	  LINES_RANGED, STRING_HEAD_OLD },
	{ 8, 24, NO_OFFSET, 96, 144, 32, 24, 104, NO_OFFSET, 360, 36, 40, 72, 104, 112, 120, 0,
	  LINES_COUNTED, STRING_HEAD_OLD },
	{ 7, 24, NO_OFFSET, 96, 144, 32, 24, 104, NO_OFFSET, 360, 32, 36, 64, 96, 104, 112, 0,
	  LINES_COUNTED, STRING_HEAD_OLD },
	{ 6, 24, NO_OFFSET, 88, NO_OFFSET, 32, 24, 120, NO_OFFSET, 376, 32, 36, 64, 96, 104, 112, 0,
	  LINES_COUNTED, STRING_HEAD_OLD },
};
