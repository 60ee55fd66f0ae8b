/*
 * A process with musl, made in memory: libc with its variables, a meta area, and groups.
 */
#include "tests/allocators/process.h"

static const uint64_t CONTEXT = DATA + 0x40, AREA = 0x7e0000001000, HEAP = 0x7d0000000000,
		      HEAP_SIZE = 0x20000, SECRET = 0x5ec2e75ec2e75ec2;
/* Numbers of classes, of 32 and of 1008 bytes. */
enum { CLASS_32 = 1, CLASS_1008 = 19, SLOT = 32 };

struct made {
	struct process process;
	unsigned int metas;
};

static void made_init(struct made *made)
{
	struct core *core = &made->process.core;

	process_init(&made->process, "/lib/ld-musl-x86_64.so.1");
	core_add(core, AREA, PAGE, RIGHTS_RW);
	core_add(core, HEAP, HEAP_SIZE, RIGHTS_RW);
	core_set(core, CONTEXT, SECRET);
	core_set(core, CONTEXT + 56, AREA);
	core_set(core, AREA, SECRET);
	core_set(core, AREA + 16, 10);
	made->metas = 0;
}

DEFINE_MADE_DEINIT

/* A group; returns its meta. */
static uint64_t add_group(struct made *made, uint64_t start, unsigned int slots, unsigned int class,
			  uint64_t pages, uint32_t available, uint32_t freed)
{
	struct core *core = &made->process.core;
	uint64_t meta = AREA + 24 + 40 * (uint64_t)made->metas++;

	core_set(core, meta + 16, start);
	core_set(core, meta + 24, available | (uint64_t)freed << 32);
	core_set(core, meta + 32, (slots - 1) | 1 << 5 | class << 6 | pages << 12);
	core_set(core, start, meta);
	return meta;
}

/* Write the header of a slot's block, at that many units from the start of its slots. */
static void add_header(struct made *made, uint64_t block, unsigned int slot, unsigned int spare,
		       unsigned int units)
{
	const uint8_t header[] = { 0, (uint8_t)(slot | spare << 5), (uint8_t)units,
				   (uint8_t)(units >> 8) };

	memcpy(core_at(&made->process.core, block - 4, 4), header, sizeof(header));
}

/* A group of 3 slots of 32 bytes: of 28 and 25 bytes, and free. */
static uint64_t add_small(struct made *made, uint32_t freed)
{
	add_group(made, HEAP, 3, CLASS_32, 0, freed ? 0 : 4, freed ? 4 : 0);
	add_header(made, HEAP + 16, 0, 0, 0);
	add_header(made, HEAP + 16 + SLOT, 1, 3, 2);
	return HEAP + 16;
}

TEST(size_is_that_asked_for)
{
	MADE(made);
	uint64_t slot = add_small(&made, 0);

	process_open(&made.process);
	assert_block(&made.process, slot, 28, BLOCK_USED);
	assert_block(&made.process, slot + SLOT, 25, BLOCK_USED);
	assert_block(&made.process, slot + 2 * SLOT, 28, BLOCK_FREE);
	assert_free_kind(&made.process, slot + 2 * SLOT, "available slot");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(freed_slots_are_told_apart)
{
	MADE(made);
	uint64_t slot = add_small(&made, 4);

	process_open(&made.process);
	assert_free_kind(&made.process, slot + 2 * SLOT, "freed slot");
	assert_told(&made.process, slot + 2 * SLOT,
		    "in slot 2 of the group at 0x7d0000000000, of slots of 32 bytes");
	assert_told(&made.process, HEAP + 8, "the header of the group at 0x7d0000000000");
	assert_told(&made.process, AREA + 24, "the meta of the group at 0x7d0000000000");
	assert_told(&made.process, AREA + 8, "in a meta area");
}

TEST(large_block_has_pages_and_says_how_many_bytes_are_spare)
{
	MADE(made);
	const uint32_t spare = 1000;

	add_small(&made, 0);
	add_group(&made, HEAP + 0x1000, 1, 0, 4, 0, 0);
	add_header(&made, HEAP + 0x1010, 0, 5, 0);
	memcpy(core_at(&made.process.core, HEAP + 0x5000 - 8, 4), &spare, 4);
	process_open(&made.process);
	assert_block(&made.process, HEAP + 0x1010, 4 * PAGE - 20 - spare, BLOCK_USED);
}

TEST(block_may_begin_later_in_its_slot)
{
	MADE(made);

	add_small(&made, 0);
	add_group(&made, HEAP + 0x1000, 2, CLASS_1008, 0, 2, 0);
	add_header(&made, HEAP + 0x1010, 0, 7, 5);
	add_header(&made, HEAP + 0x1010 + 80, 0, 4, 5);
	process_open(&made.process);
	assert_block(&made.process, HEAP + 0x1010 + 80, 1008 - 4 - 80 - 4, BLOCK_USED);
	assert_int_equal(find_block(&made.process, HEAP + 0x1010), NO_ALLOCATION);
}

TEST(group_in_a_slot_takes_its_place)
{
	MADE(made);
	uint64_t inner = HEAP + 0x1010;

	add_group(&made, inner, 3, CLASS_32, 0, 6, 0);
	add_header(&made, inner + 16, 0, 0, 0);
	add_group(&made, HEAP + 0x1000, 2, CLASS_1008, 0, 2, 0);
	process_open(&made.process);
	assert_block(&made.process, inner + 16, 28, BLOCK_USED);
	assert_block(&made.process, inner + 16 + SLOT, 28, BLOCK_FREE);
	assert_block(&made.process, HEAP + 0x1010 + 1008, 1004, BLOCK_FREE);
	assert_int_equal(find_block(&made.process, inner), NO_ALLOCATION);
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(block_of_no_bytes_has_an_address)
{
	MADE(made);

	add_small(&made, 0);
	add_header(&made, HEAP + 16, 0, 5, 0);
	core_set(&made.process.core, HEAP + 16 + 24,
		 28 | (uint64_t)(1 | 3 << 5) << 40 | UINT64_C(2) << 48);
	process_open(&made.process);
	assert_block(&made.process, HEAP + 16, 1, BLOCK_USED);
	assert_block(&made.process, HEAP + 16 + SLOT, 25, BLOCK_USED);
}

TEST(contradictions_are_said)
{
	MADE(made);
	uint64_t slot = add_small(&made, 0);

	add_header(&made, slot, 7, 0, 0);
	add_group(&made, HEAP + 32, 4, CLASS_32, 0, 0, 0);
	core_set(&made.process.core, add_group(&made, HEAP + 0x2000, 1, CLASS_32, 0, 0, 0) + 16,
		 HEAP);
	process_open(&made.process);
	assert_block(&made.process, slot, 28, BLOCK_USED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"musl: slots in use whose header is not theirs: 1, the first at 0x7d0000000010; the whole slot counts as used");
	assert_finding(analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		       "musl: groups that overlap others: 1, the first at 0x7d0000000020");
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"musl: metas and their areas that are not as they should be: 1, the first at 0x7e0000001068");
}

TEST(areas_in_a_circle_are_read_once)
{
	MADE(made);

	add_small(&made, 0);
	core_set(&made.process.core, AREA + 8, AREA);
	process_open(&made.process);
	assert_block(&made.process, HEAP + 16, 28, BLOCK_USED);
}
