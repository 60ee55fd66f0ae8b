#include "analyzer/diff/diff.h"
#include "analyzer/image/own_notes.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t STACK = 0x7ffc00000000, PROGRAM = 0x555500000040;

/* A core of which everything that tells a process can be changed. */
static struct lineage lineage_from(uint8_t random, int process, uint64_t program, uint64_t time)
{
	const struct elf_prpsinfo info = { .pr_pid = process };
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;

	core_init(&core);
	memset(core_add(&core, STACK, PAGE, RIGHTS_RW), random, PAGE);
	core_add_auxiliary(&core, AT_RANDOM, STACK + 0x100);
	core_add_auxiliary(&core, AT_PHDR, program);
	core_add_note(&core, "CORE", NT_PRPSINFO, &info, sizeof(info));
	if (time)
		core_add_note(&core, NOTE_OWNER, NOTE_TIME, &time, sizeof(time));
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	return lineage_of(image);
}

TEST(same_process_is_told)
{
	struct lineage one = lineage_from(1, 10, PROGRAM, 0);
	struct lineage other = lineage_from(1, 10, PROGRAM, 5);

	assert_int_equal(lineage_compare(&one, &other), KIN_SAME_PROCESS);
}

TEST(other_run_is_told)
{
	struct lineage one = lineage_from(1, 10, PROGRAM, 0);
	struct lineage random = lineage_from(2, 10, PROGRAM, 0);
	struct lineage child = lineage_from(1, 11, PROGRAM, 0);
	struct lineage moved = lineage_from(1, 10, PROGRAM + PAGE, 0);

	assert_int_equal(lineage_compare(&one, &random), KIN_OTHER_RANDOM);
	assert_int_equal(lineage_compare(&one, &child), KIN_OTHER_ID);
	assert_int_equal(lineage_compare(&one, &moved), KIN_OTHER_PLACE);
}

/* Its random bytes are placeholders, so what else tells a process decides. */
TEST(a_slim_core_is_of_the_process_that_has_its_places)
{
	struct lineage one = lineage_from(1, 10, PROGRAM, 0);
	struct lineage slim = lineage_from(2, 10, PROGRAM, 0);
	struct lineage moved = lineage_from(2, 10, PROGRAM + PAGE, 0);

	slim.is_replaced = moved.is_replaced = true;
	assert_int_equal(lineage_compare(&one, &slim), KIN_SAME_PLACES);
	assert_int_equal(lineage_compare(&slim, &one), KIN_SAME_PLACES);
	assert_int_equal(lineage_compare(&one, &moved), KIN_OTHER_PLACE);
}

TEST(without_random_bytes_nothing_is_known)
{
	struct lineage one = lineage_from(1, 10, PROGRAM, 0);
	struct lineage other = one;

	other.random = 0;
	assert_int_equal(lineage_compare(&one, &other), KIN_UNKNOWN);
}

TEST(time_in_the_core_goes_before_that_of_the_file)
{
	struct lineage kept = lineage_from(1, 10, PROGRAM, 77);
	struct lineage file = lineage_from(1, 10, PROGRAM, 0);

	assert_int_equal(kept.source, TIME_CORE);
	assert_int_equal(kept.time, 77);
	assert_int_equal(file.source, TIME_FILE);
}
