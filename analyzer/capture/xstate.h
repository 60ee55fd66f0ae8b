/*
 * The extended state of x86-64 in a note: vector registers and the like.
 *
 * The kernel hands it out in the layout of XSAVE's standard format, whose offsets depend on the
 * processor (Intel SDM, volume 1, chapter 13): what AMD has right behind the AVX registers, Intel
 * has behind room for MPX; what is newer makes the whole larger. Debuggers know few of these
 * layouts. gdb up to 13 takes Intel's offsets on every processor and computes the size from the
 * enabled parts; later ones guess the layout from the size, and give up vector registers where they
 * do not know it. Intel's layout, of the parts that gdb knows, is understood by all of them: a note
 * is written so.
 */
#ifndef ANALYZER_CAPTURE_XSTATE_H
#define ANALYZER_CAPTURE_XSTATE_H

#include <stddef.h>
#include <stdint.h>

enum {
	XSTATE_PARTS = 32,
	XSTATE_NOTE_SIZE = 2696, /* at most */
};

/* Where a processor's state has its parts; those it lacks are of size 0. */
struct xstate_layout {
	struct {
		uint32_t offset;
		uint32_t size;
	} parts[XSTATE_PARTS];
};

/* The layout of this processor. */
struct xstate_layout xstate_layout_here(void);

/* Write the note's bytes for a state of that layout, and return their size. */
size_t xstate_write_note(const struct xstate_layout *layout, const uint8_t *state, size_t size,
			 uint8_t ret[XSTATE_NOTE_SIZE]);

#endif
