#include "analyzer/graph/false_references.h"

#include "analyzer/base/macros.h"

enum {
	RANDOM_BYTES = 16,
	FRAME = 4096, /* bytes of a frame with a jmp_buf, at most */

	/* In words of tcbhead_t, which the thread pointer leads to. */
	FRAME_GUARD_AT = 5,
	POINTER_GUARD_AT = 6,

	/* In words of exit()'s list: its head, and an entry. */
	COUNT_AT = 1,
	HEAD_WORDS = 2,
	ENTRY_WORDS = 4,
	FUNCTION_AT = 1,
	MODULE_AT = 3,
	MOST_ENTRIES = 32,
	MOST_KIND = 4,
};

static bool has_module_pointer(const struct false_references *false_references, uint64_t word)
{
	for (size_t i = 0; i < false_references->module_pointer_count; i++)
		if (false_references->module_pointers[i] == word)
			return true;
	return false;
}

static void find_module_pointers(struct false_references *false_references)
{
	const struct program *program = false_references->program;
	const uint8_t number = program->image->arch->module_pointer;
	const size_t most = COUNT_OF(false_references->module_pointers);

	for (size_t i = 0;
	     number && i < program->thread_count && false_references->module_pointer_count < most;
	     i++) {
		uint64_t pointer = program->threads[i].state->registers[number];

		if (!has_module_pointer(false_references, pointer))
			false_references
				->module_pointers[false_references->module_pointer_count++] =
				pointer;
	}
}

struct false_references false_references_of(const struct program *program)
{
	const struct image *image = program->image;
	uint64_t random = image_auxiliary(image, AT_RANDOM, 0), words[2];
	struct false_references false_references = {
		.program = program,
		.loader = program_find_module(program, image_auxiliary(image, AT_BASE, 0)),
	};

	find_module_pointers(&false_references);
	if (!random || !image_read_words(image, random, words, 2))
		return false_references;
	false_references.random = random;
	false_references.frame_guard = words[0] & ~UINT64_C(0xff);
	false_references.pointer_guard = words[1];
	return false_references;
}

/* The value of the word if it is mangled. */
static uint64_t decode(const struct false_references *false_references, uint64_t word)
{
	const unsigned int size = image_word_size(false_references->program->image),
			   bits = 8 * size, turn = 2 * size + 1;
	uint64_t turned = word >> turn | word << (bits - turn);

	if (size == sizeof(uint32_t))
		turned = (uint32_t)turned;
	return turned ^ false_references->pointer_guard;
}

static unsigned int word_size(const struct false_references *false_references)
{
	return image_word_size(false_references->program->image);
}

/* The word so many behind the place, or before it; 0: it is not in the dump. */
static uint64_t word_at(const struct false_references *false_references, uint64_t place,
			int64_t number)
{
	int64_t offset = number * (int64_t)word_size(false_references);
	uint64_t word;

	return image_read_word(false_references->program->image, place + (uint64_t)offset, &word)
		       ? word
		       : 0;
}

static bool is_code(const struct false_references *false_references, uint64_t address)
{
	const struct region *region = image_find(false_references->program->image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

/* True if a jmp_buf has its stack pointer at the place, followed by the program counter. */
static bool is_jump(const struct false_references *false_references, uint64_t place)
{
	uint64_t pointer = decode(false_references, word_at(false_references, place, 0));

	return place - pointer - 1 < FRAME &&
	       is_code(false_references,
		       decode(false_references, word_at(false_references, place, 1)));
}

/* True if the word at the place is the function of an entry in libc's list for exit(). */
static bool is_called_at_exit(const struct false_references *false_references, uint64_t decoded,
			      uint64_t place)
{
	const struct module *module = program_find_module(false_references->program, place);
	uint64_t owner = word_at(false_references, place, MODULE_AT - FUNCTION_AT);

	if (!module || !module_is_libc(module) || !is_code(false_references, decoded) ||
	    (owner && !program_find_module(false_references->program, owner)))
		return false;
	for (int64_t i = 0; i < MOST_ENTRIES; i++) {
		int64_t entry = -FUNCTION_AT - i * ENTRY_WORDS, head = entry - HEAD_WORDS;
		uint64_t count = word_at(false_references, place, head + COUNT_AT);

		if (word_at(false_references, place, entry) > MOST_KIND)
			return false;
		if (word_at(false_references, place, head) == 0 && count > (uint64_t)i &&
		    count <= MOST_ENTRIES)
			return true;
	}
	return false;
}

/* True if the word at the place belongs to a thread's control block. */
static bool is_of_thread(const struct false_references *false_references, uint64_t place,
			 unsigned int number)
{
	const struct program *program = false_references->program;
	const uint64_t offset = (uint64_t)number * word_size(false_references);

	for (size_t i = 0; i < program->thread_count; i++)
		if (program->threads[i].thread_pointer + offset == place)
			return true;
	return false;
}

static bool is_guard(const struct false_references *false_references, uint64_t word, uint64_t place)
{
	if (word == false_references->frame_guard)
		return program_find_stack(false_references->program, place) ||
		       is_of_thread(false_references, place, FRAME_GUARD_AT);
	return word == false_references->pointer_guard &&
	       is_of_thread(false_references, place, POINTER_GUARD_AT);
}

bool is_false_reference(const struct false_references *false_references, uint64_t word,
			uint64_t place)
{
	const unsigned int size = word_size(false_references);

	/* A frame has saved it. */
	if (has_module_pointer(false_references, word) &&
	    program_find_stack(false_references->program, place))
		return true;
	if (!false_references->random)
		return false;
	return place + size - 1 - false_references->random < RANDOM_BYTES + size - 1 ||
	       is_guard(false_references, word, place) || is_jump(false_references, place) ||
	       is_jump(false_references, place - size) ||
	       is_called_at_exit(false_references, decode(false_references, word), place);
}

bool is_of_cache(const struct false_references *false_references,
		 const struct allocation_index *index, allocation_id target, uint64_t word,
		 uint64_t place)
{
	const struct module *loader = false_references->loader;

	return loader && place - loader->start < loader->end - loader->start &&
	       word - allocation_start(index, target) >= PAGE;
}
