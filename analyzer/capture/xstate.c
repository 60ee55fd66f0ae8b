#include "analyzer/capture/xstate.h"

#include <cpuid.h>
#include <string.h>

enum {
	XSTATE_LEAF = 0xd, /* of the instruction cpuid */
	ENABLED = 464,	   /* the parts that the kernel enabled */
	IN_USE = 512,	   /* those of them that are not as after a reset */
	COMMON_SIZE = 576, /* the same everywhere: x87, SSE, the header */
	X87_AND_SSE = 3,   /* the parts of it */
};

/*
 * What a note can hold, in Intel's layout, and the size that gdb expects of a state with that part.
 * APX, which gdb does not know yet, is where MPX was.
 */
static const struct part {
	unsigned number;
	uint32_t offset, size;
	size_t whole;
} note_parts[] = {
	{ 2, 576, 256, 832 },	 /* AVX: upper halves of ymm0 to ymm15 */
	{ 3, 960, 64, 1088 },	 /* MPX: bounds */
	{ 4, 1024, 64, 1088 },	 /* MPX: configuration */
	{ 5, 1088, 64, 2688 },	 /* AVX-512: masks */
	{ 6, 1152, 512, 2688 },	 /* AVX-512: upper halves of zmm0 to zmm15 */
	{ 7, 1664, 1024, 2688 }, /* AVX-512: zmm16 to zmm31 */
	{ 9, 2688, 8, 2696 },	 /* protection keys */
	{ 19, 960, 128, 0 },	 /* APX: r16 to r31 */
};

struct xstate_layout xstate_layout_here(void)
{
	struct xstate_layout layout = { 0 };

	for (unsigned number = 2; number < XSTATE_PARTS; number++) {
		unsigned size, offset, c, d;

		if (!__get_cpuid_count(XSTATE_LEAF, number, &size, &offset, &c, &d))
			break;
		layout.parts[number].size = size;
		layout.parts[number].offset = offset;
	}
	return layout;
}

/* Leave in a set of parts, at an offset of the state, only those. */
static void keep_parts(uint8_t *state, size_t offset, uint64_t kept)
{
	uint64_t parts;

	memcpy(&parts, state + offset, sizeof(parts));
	parts &= kept;
	memcpy(state + offset, &parts, sizeof(parts));
}

size_t xstate_write_note(const struct xstate_layout *layout, const uint8_t *state, size_t size,
			 uint8_t ret[XSTATE_NOTE_SIZE])
{
	uint64_t enabled, kept = X87_AND_SSE;
	size_t whole = COMMON_SIZE;

	if (size < COMMON_SIZE) {
		memcpy(ret, state, size);
		return size;
	}
	memset(ret, 0, XSTATE_NOTE_SIZE);
	memcpy(ret, state, COMMON_SIZE);
	memcpy(&enabled, state + ENABLED, sizeof(enabled));
	for (size_t i = 0; i < sizeof(note_parts) / sizeof(*note_parts); i++) {
		const struct part *part = &note_parts[i];
		uint32_t offset = layout->parts[part->number].offset;

		if (!(enabled >> part->number & 1) ||
		    layout->parts[part->number].size != part->size || offset > size ||
		    size - offset < part->size)
			continue;
		if (part->whole > whole)
			whole = part->whole;
		if (part->offset + part->size > whole)
			continue;
		memcpy(ret + part->offset, state + offset, part->size);
		kept |= UINT64_C(1) << part->number;
	}
	keep_parts(ret, ENABLED, kept);
	keep_parts(ret, IN_USE, kept);
	return whole;
}
