/*
 * Fibers of MRI that have begun and not ended, and their stacks (cont.c).
 *
 * rb_fiber_t, the data of a Fiber, has the context of its calls (frames.h) and its stack, which is
 * a part of a larger mapping. Its top holds the values and frames of Ruby:
 *
 *	... | stack pointer | ... | base | current | size | available | ...
 *
 *	base         stack pointer              current = base + available        base + size
 *	| free           | native calls               | frames of Ruby and values |
 *
 * The first fiber of a thread is on the thread's own stack, and is one only once another was
 * resumed.
 */
#include "analyzer/runtimes/ruby/objects.h"

#include <elf.h>

enum {
	WORD = 8,
	DATA = 32,
	MOST_SAVED = 26, /* words */
};

/*
 * The words that coroutine_transfer() leaves at its stack pointer: registers that calls preserve,
 * by their DWARF numbers, and the return address. From coroutine/MACHINE/Context.S of Ruby 2.7 to
 * 3.4.
 */
struct saved {
	uint16_t machine;
	uint8_t words, return_address; /* the number of its word */
	/* The word that must be the same as the return address, or 0, if a fiber has not begun. */
	uint8_t link;
	uint8_t first, count; /* words with registers */
	uint8_t registers[12];
};

static const struct saved layouts[] = {
	{ EM_X86_64, 7, 6, 6, 0, 6, { 15, 14, 13, 12, 3, 6 } },
	{ EM_AARCH64, 22, 20, 19, 8, 11, { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 } },
	/* From 3.3 on: the return address may be signed. */
	{ EM_AARCH64, 20, 19, 19, 8, 11, { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 } },
	{ EM_RISCV, 26, 24, 24, 0, 12, { 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27 } },
};

/* Offsets of a stack's address in the data of fibers, the same for all. */
struct place {
	uint64_t stack, pointer; /* in words; 0: no fiber has a stack of its own */
};

struct search {
	const struct runtime_context *context;
	struct view view;
	struct place place;
	ARRAY(struct fiber) first; /* objects that may be on the stacks of threads */
};

static bool is_code(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

/* The registers that a fiber that waits has left there; NULL: it has left none. */
static const struct saved *find_saved(const struct image *image, uint64_t pointer,
				      uint64_t words[MOST_SAVED])
{
	for (size_t i = 0; pointer % WORD == 0 && i < COUNT_OF(layouts); i++) {
		const struct saved *layout = &layouts[i];
		uint64_t address, link;

		if (layout->machine != image->arch->machine ||
		    !image_read(image, pointer, words, WORD * layout->words))
			continue;
		address = words[layout->return_address] & ~image->signatures.code;
		link = words[layout->link];
		if (!is_code(image, address) || (link && link != words[layout->return_address]))
			continue;
		words[layout->return_address] = address;
		return layout;
	}
	return NULL;
}

static bool is_saved(const struct image *image, uint64_t pointer)
{
	uint64_t words[MOST_SAVED];

	return find_saved(image, pointer, words) != NULL;
}

static bool knows_machine(const struct arch *arch)
{
	for (size_t i = 0; i < COUNT_OF(layouts); i++)
		if (layouts[i].machine == arch->machine)
			return true;
	return false;
}

static bool read_stack(struct view *view, uint64_t address, struct fiber *ret)
{
	enum { BASE, CURRENT, SIZE, AVAILABLE, WORDS };
	uint64_t words[WORDS];

	if (!view_read(view, address, words, sizeof(words)) || words[BASE] == 0 ||
	    words[BASE] % PAGE != 0 || words[SIZE] == 0 || words[SIZE] % PAGE != 0 ||
	    words[AVAILABLE] > words[SIZE] || words[CURRENT] - words[BASE] != words[AVAILABLE] ||
	    words[BASE] > UINT64_MAX - words[SIZE])
		return false;
	ret->start = words[BASE];
	ret->end = words[BASE] + words[SIZE];
	return true;
}

/* The stack pointer is what leads into the stack and stands last before it. */
static bool find_place(struct search *search, uint64_t data, struct place *ret)
{
	enum { MOST_WORDS = 128, FARTHEST = 16 };
	struct fiber fiber;
	uint64_t pointer;

	for (uint64_t i = 1; i < MOST_WORDS; i++) {
		if (!read_stack(&search->view, data + WORD * i, &fiber))
			continue;
		for (uint64_t j = i - 1; j > 0 && i - j < FARTHEST; j--)
			if (view_word(&search->view, data + WORD * j, &pointer) &&
			    pointer - fiber.start < fiber.end - fiber.start) {
				*ret = (struct place){ i, j };
				return true;
			}
	}
	return false;
}

/* A running fiber's registers are its thread's. */
static void find_thread(const struct program *program, struct fiber *fiber)
{
	for (size_t i = 0; i < program->thread_count; i++) {
		const struct thread *thread = &program->threads[i];

		if (thread->stack_pointer - fiber->start >= fiber->end - fiber->start)
			continue;
		fiber->running = true;
		fiber->thread = (uint32_t)i;
		fiber->live = thread_live(thread, fiber->start);
		return;
	}
}

static struct error *add_fiber(struct search *search, uint64_t object, uint64_t data,
			       struct fibers *fibers)
{
	struct fiber fiber = { .object = object, .thread = NO_THREAD };

	if (!search->place.stack && !find_place(search, data, &search->place))
		return array_append(&search->first, fiber);
	if (!read_stack(&search->view, data + WORD * search->place.stack, &fiber))
		return array_append(&search->first, fiber);
	find_thread(search->context->program, &fiber);
	if (!fiber.running &&
	    (!view_word(&search->view, data + WORD * search->place.pointer, &fiber.live) ||
	     fiber.live - fiber.start >= fiber.end - fiber.start ||
	     !is_saved(search->context->image, fiber.live)))
		return NULL;
	return fibers_add(fibers, fiber);
}

/* True if the stack belongs to a thread that runs a fiber now. */
static bool is_left(const struct program *program, const struct stack *stack)
{
	if (stack->thread == NO_THREAD)
		return stack->kind == STACK_MAIN;
	return program->threads[stack->thread].stack_pointer - stack->start >=
	       stack->end - stack->start;
}

static struct error *add_first(struct search *search, struct fiber fiber, struct fibers *fibers)
{
	const struct program *program = search->context->program;
	const struct stack *stack;
	uint64_t data;

	if (!view_word(&search->view, fiber.object + DATA, &data) ||
	    !view_word(&search->view, data + WORD * search->place.pointer, &fiber.live) ||
	    !is_saved(search->context->image, fiber.live))
		return NULL;
	stack = program_find_stack(program, fiber.live);
	if (!stack || !is_left(program, stack))
		return NULL;
	fiber.start = stack->start;
	fiber.end = stack->end;
	return fibers_add(fibers, fiber);
}

static struct error *find_all(struct search *search, const struct ruby *ruby,
			      const struct ruby_slots *slots, struct fibers *fibers)
{
	char name[RUBY_MOST_NAME + 1];
	size_t hint = 0;

	bitmap_for_each(id, &slots->slots) {
		uint64_t start =
			allocation_range_near(slots->index, (allocation_id)id, &hint).start;
		uint64_t flags, type, data;

		if (!view_word(&search->view, start, &flags) || flags % RUBY_TYPES != RUBY_DATA)
			continue;
		type = ruby_find_data_type(ruby, &search->view, start);
		if (type && ruby_read_data_name(slots->image, type, name) &&
		    strcmp(name, "fiber") == 0 && view_word(&search->view, start + DATA, &data) &&
		    data != 0)
			TRY(add_fiber(search, start, data, fibers));
	}
	for (size_t i = 0; search->place.stack && i < search->first.count; i++)
		TRY(add_first(search, search->first.items[i], fibers));
	return NULL;
}

struct error *ruby_find_fibers(struct object_space *space, struct fibers *fibers)
{
	const struct ruby *ruby = (const struct ruby *)space;
	_cleanup_(ruby_slots_deinit) struct ruby_slots slots = { 0 };
	struct search search = { &ruby->space.context, { ruby->space.image } };
	struct error *error;

	if (!knows_machine(ruby->space.image->arch))
		return NULL;
	search.first.memory.account = ruby->space.account;
	TRY(ruby_slots_find(&slots, &ruby->space.context));
	error = find_all(&search, ruby, &slots, fibers);
	array_release(&search.first);
	return error;
}

bool ruby_fiber_registers(const struct image *image, const struct fiber *fiber,
			  struct frame_state *ret)
{
	const struct arch *arch = image->arch;
	uint64_t words[MOST_SAVED];
	const struct saved *saved = find_saved(image, fiber->live, words);

	if (!saved)
		return false;
	*ret = (struct frame_state){ .address = words[saved->return_address] };
	for (size_t i = 0; i < saved->count; i++) {
		ret->registers[saved->registers[i]] = words[saved->first + i];
		ret->known |= UINT64_C(1) << saved->registers[i];
	}
	ret->registers[arch->unwound_return] = ret->address;
	ret->registers[arch_unwound_stack_pointer(arch)] = fiber->live + WORD * saved->words;
	ret->known |= UINT64_C(1) << arch->unwound_return |
		      UINT64_C(1) << arch_unwound_stack_pointer(arch);
	return true;
}
