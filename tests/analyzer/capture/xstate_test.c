#include "analyzer/capture/machine.h"
#include "tests/assertions.h"

#include <string.h>

enum { ENABLED = 464, IN_USE = 512, MOST = 11008 };

/* A part of the state, as this processor and as Intel's layout have it. */
struct place {
	unsigned number;
	uint32_t size, here, there;
};

/* Each byte of a part is the part's number; what is enabled is in use. */
static void check(const struct place *places, size_t size, uint64_t enabled, uint64_t kept,
		  size_t expected)
{
	struct xstate_layout layout = { 0 };
	uint8_t state[MOST], note[XSTATE_NOTE_SIZE];
	uint64_t found;

	memset(state, 0xee, sizeof(state));
	memset(state, 1, 576);
	memcpy(state + ENABLED, &enabled, 8);
	memcpy(state + IN_USE, &enabled, 8);
	for (const struct place *place = places; place->number; place++) {
		layout.parts[place->number].size = place->size;
		layout.parts[place->number].offset = place->here;
		memset(state + place->here, (int)place->number, place->size);
	}
	assert_int_equal(xstate_write_note(&layout, state, size, note), expected);
	memcpy(&found, note + ENABLED, 8);
	assert_int_equal(found, kept);
	memcpy(&found, note + IN_USE, 8);
	assert_int_equal(found, kept);
	assert_memory_equal(note, state, ENABLED);
	for (const struct place *place = places; place->number; place++)
		for (uint32_t i = 0; (kept >> place->number & 1) && i < place->size; i++)
			assert_int_equal(note[place->there + i], place->number);
}

TEST(intel_writes_what_the_processor_has)
{
	static const struct place avx[] = { { 2, 256, 576, 576 }, { 0 } };
	static const struct place mpx[] = {
		{ 2, 256, 576, 576 }, { 3, 64, 960, 960 }, { 4, 64, 1024, 1024 }, { 0 }
	};
	static const struct place avx_512[] = { { 2, 256, 576, 576 },	{ 5, 64, 1088, 1088 },
						{ 6, 512, 1152, 1152 }, { 7, 1024, 1664, 1664 },
						{ 9, 8, 2688, 2688 },	{ 0 } };

	check(avx, 576, 0x3, 0x3, 576);
	check(avx, 832, 0x7, 0x7, 832);
	check(mpx, 1088, 0x1f, 0x1f, 1088);
	check(avx_512, 2688, 0xe7, 0xe7, 2688);
	check(avx_512, 2696, 0x2e7, 0x2e7, 2696);
}

TEST(amd_is_written_with_room_for_mpx)
{
	static const struct place keys[] = { { 2, 256, 576, 576 }, { 9, 8, 832, 2688 }, { 0 } };
	static const struct place avx_512[] = { { 2, 256, 576, 576 },  { 5, 64, 832, 1088 },
						{ 6, 512, 896, 1152 }, { 7, 1024, 1408, 1664 },
						{ 9, 8, 2432, 2688 },  { 0 } };

	check(keys, 840, 0x207, 0x207, 2696);
	check(avx_512, 2440, 0x2e7, 0x2e7, 2696);
}

TEST(parts_that_gdb_does_not_know_change_no_size)
{
	/* Intel with AMX, and with APX. */
	static const struct place amx[] = { { 2, 256, 576, 576 },   { 5, 64, 1088, 1088 },
					    { 6, 512, 1152, 1152 }, { 7, 1024, 1664, 1664 },
					    { 9, 8, 2688, 2688 },   { 17, 64, 2752, 0 },
					    { 18, 8192, 2816, 0 },  { 0 } };
	static const struct place apx[] = {
		{ 2, 256, 576, 576 }, { 9, 8, 2688, 2688 }, { 19, 128, 960, 960 }, { 0 }
	};
	static const struct place no_room[] = { { 2, 256, 576, 576 }, { 19, 128, 960, 0 }, { 0 } };

	check(amx, 11008, 0x602e7, 0x2e7, 2696);
	check(apx, 2696, 0x80207, 0x80207, 2696);
	check(no_room, 1088, 0x80007, 0x7, 832);
}

TEST(a_state_that_was_cut_off_is_not_read_beyond)
{
	static const struct place avx[] = { { 2, 256, 576, 0 }, { 0 } };
	struct xstate_layout layout = { 0 };
	uint8_t state[512] = { 7 }, note[XSTATE_NOTE_SIZE];

	check(avx, 831, 0x7, 0x3, 576);
	assert_int_equal(xstate_write_note(&layout, state, 512, note), 512);
	assert_memory_equal(note, state, 512);
}

TEST(this_processor_has_a_layout)
{
	struct xstate_layout layout = xstate_layout_here();

	if (!__builtin_cpu_supports("avx"))
		skip();
	assert_int_equal(layout.parts[2].offset, 576);
	assert_int_equal(layout.parts[2].size, 256);
}
