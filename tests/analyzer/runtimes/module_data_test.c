#include "analyzer/runtimes/module_data.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t MODULE = 0x7f0000000000, DATA = MODULE + PAGE, BEHIND = DATA + 3 * PAGE;

static bool is_mark(struct view *view, uint64_t place, uint64_t word, void *data)
{
	return word == *(const uint64_t *)data;
}

static uint64_t find(const struct image *image, const struct program *program, uint64_t mark)
{
	return module_data_search(image, program, is_mark, &mark);
}

/* The kernel merges zeroed variables with memory that is mapped right behind them. */
TEST(variables_end_where_the_module_does_and_not_the_mapping)
{
	enum { MEMORY_SIZE_OF_DATA = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 40 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(image_close) struct image *image = NULL;
	_cleanup_(program_destroy) struct program *program = NULL;
	struct memory_range piece;
	size_t number = 0;

	core_init(&core);
	core_add_module(&core, MODULE, PAGE, "/lib/libinterpreter.so");
	core_set(&core, MODULE + MEMORY_SIZE_OF_DATA, BEHIND - DATA);
	core_add(&core, DATA + PAGE, 8 * PAGE, RIGHTS_RW);
	core_set(&core, DATA + 0x10, 1);
	core_set(&core, BEHIND - 8, 2);
	core_set(&core, BEHIND, 3);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_no_error(program_create(image, &findings, &program));
	assert_int_equal(find(image, program, 1), DATA + 0x10);
	assert_int_equal(find(image, program, 2), BEHIND - 8);
	assert_int_equal(find(image, program, 3), 0);
	assert_true(module_data_next(image, &program->modules[0], &number, &piece));
	assert_int_equal(piece.start, DATA);
	assert_int_equal(piece.end, DATA + PAGE);
	assert_true(module_data_next(image, &program->modules[0], &number, &piece));
	assert_int_equal(piece.end, BEHIND);
	assert_false(module_data_next(image, &program->modules[0], &number, &piece));
}
