#include "analyzer/runtimes/ruby/objects.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t CODE = 0x400000, STACK = 0x7f1000000000, LIVE = STACK + 0x800,
		      SIGNATURE = UINT64_C(0x7f) << 48;

/* The words that coroutine_transfer() saves: numbers of words. */
struct saved {
	uint16_t machine;
	uint64_t words, return_address, register_word;
	unsigned int register_number;
};

static const struct saved kinds[] = {
	{ EM_X86_64, 7, 6, 5, 6 },
	{ EM_AARCH64, 22, 20, 18, 29 },
	{ EM_AARCH64, 20, 19, 8, 19 }, /* from 3.3 on */
	{ EM_RISCV, 26, 24, 2, 18 },
};

/* The core is left open in *core. */
static struct image *open_image(struct core *core, const struct saved *kind, uint64_t address,
				struct findings *findings)
{
	struct image *image = NULL;

	core_init(core);
	core->header.e_machine = kind->machine;
	core_add(core, CODE, PAGE, PF_R | PF_X);
	core_add(core, STACK, PAGE, RIGHTS_RW);
	core_set(core, LIVE + 8 * kind->return_address, address);
	core_set(core, LIVE + 8 * kind->register_word, STACK + 0x900);
	/* Old ones of aarch64 save the return address twice. */
	if (kind->machine == EM_AARCH64)
		core_set(core, LIVE + 8 * UINT64_C(19), address);
	core_write_file(core);
	assert_no_error(image_open(core->path, findings, &image));
	return image;
}

TEST(registers_of_a_fiber_that_waits_are_those_that_it_saved)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct saved *kind = &kinds[i];
		const bool is_signed = kind->machine == EM_AARCH64;
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		_cleanup_(core_deinit) struct core core;
		_cleanup_(image_close) struct image *image =
			open_image(&core, kind, CODE + 8 + (is_signed ? SIGNATURE : 0), &findings);
		const struct fiber fiber = { .start = STACK, .end = STACK + PAGE, .live = LIVE };
		struct frame_state state;
		unsigned int pointer = arch_unwound_stack_pointer(image->arch);

		image->signatures.code = is_signed ? UINT64_C(0xff) << 48 : 0;
		assert_true(ruby_fiber_registers(image, &fiber, &state));
		assert_int_equal(state.address, CODE + 8);
		assert_int_equal(state.registers[image->arch->unwound_return], CODE + 8);
		assert_int_equal(state.registers[pointer], LIVE + 8 * kind->words);
		assert_true(state.known >> kind->register_number & 1);
		assert_int_equal(state.registers[kind->register_number], STACK + 0x900);
	}
}

TEST(a_fiber_without_a_return_address_has_no_registers)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		_cleanup_(core_deinit) struct core core;
		_cleanup_(image_close) struct image *image =
			open_image(&core, &kinds[i], STACK, &findings);
		const struct fiber fiber = { .start = STACK, .end = STACK + PAGE, .live = LIVE };
		struct frame_state state;

		assert_false(ruby_fiber_registers(image, &fiber, &state));
	}
}
