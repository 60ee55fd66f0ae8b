#include "analyzer/runtimes/crystal/crystal.h"

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"

#include <string.h>

enum {
	WORD = 8,
	MOST_WORDS = 32, /* of an object that are looked at */
	/* In words; see the picture in crystal.h. */
	STACK_TOP = 1,
	RESUMABLE = 2,
	STACK = 3,
	FIRST_UNKNOWN = 4,
	/* swapcontext() pushes the registers that calls preserve, in the order of the
	 * architecture's table, an argument, and the return address. */
	SAVED_WORDS = 8,
	RETURN_ADDRESS = 7,
	MOST_LAYOUTS = 64,
	MOST_TYPE = 1 << 24,
	PASS_STEP = 1 << 16, /* allocations */
};

static const uint64_t LARGEST_STACK = UINT64_C(1) << 32;

/* A candidate for the layout of class Fiber, and how many objects agree. */
struct layout {
	uint64_t type;
	uint64_t size;
	unsigned int bottom; /* in words */
	size_t votes;
};

struct candidate {
	uint64_t address;
	uint64_t words[MOST_WORDS];
};

struct search {
	ARRAY(struct candidate) candidates; /* by address */
	const struct image *image;
	const struct allocation_index *index;
	allocation_id passed; /* memory below it is released */
	struct layout layouts[MOST_LAYOUTS];
	size_t layout_count;
};

static bool is_code(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

/* Returns the count of words; 0: the object is too small for a fiber. Ids grow from call to call.
 */
static unsigned int read_object(struct search *search, allocation_id id,
				uint64_t words[static MOST_WORDS])
{
	uint64_t start = allocation_start(search->index, id);
	uint64_t count = allocation_size(search->index, id) / WORD;

	if (id - search->passed >= PASS_STEP) {
		allocations_release(search->image, search->index, search->passed, id);
		search->passed = id;
	}
	if (count <= FIRST_UNKNOWN || count > 2 * MOST_WORDS)
		return 0;
	count = MIN(count, MOST_WORDS);
	return image_read(search->image, start, words, count * WORD) ? (unsigned int)count : 0;
}

static bool may_wait(const struct image *image, const uint64_t *words)
{
	uint64_t address;

	return words[0] > 0 && words[0] < MOST_TYPE && words[RESUMABLE] == 1 && words[STACK] > 0 &&
	       words[STACK] % PAGE == 0 && words[STACK_TOP] % WORD == 0 &&
	       words[STACK_TOP] > words[STACK] && words[STACK_TOP] - words[STACK] < LARGEST_STACK &&
	       image_read_u64(image, words[STACK_TOP] + RETURN_ADDRESS * WORD, &address) &&
	       is_code(image, address);
}

static bool is_bottom(const uint64_t *words, uint64_t bottom)
{
	return bottom > words[STACK_TOP] && bottom - words[STACK] < LARGEST_STACK;
}

static void vote(struct search *search, struct layout layout)
{
	list_for_each(known, search->layouts, search->layout_count) {
		if (known->type == layout.type && known->size == layout.size &&
		    known->bottom == layout.bottom) {
			known->votes++;
			return;
		}
	}
	if (search->layout_count < MOST_LAYOUTS) {
		layout.votes = 1;
		search->layouts[search->layout_count++] = layout;
	}
}

/* The layout that most objects which look like waiting fibers agree on. */
static const struct layout *find_layout(struct search *search, const struct bitmap *managed)
{
	const struct layout *best = NULL;
	uint64_t words[MOST_WORDS];

	bitmap_for_each(id, managed) {
		unsigned int count = read_object(search, (allocation_id)id, words);

		if (count == 0 || !may_wait(search->image, words))
			continue;
		for (unsigned int i = FIRST_UNKNOWN; i < count; i++)
			if (words[i] % PAGE == 0 && is_bottom(words, words[i]))
				vote(search,
				     (struct layout){ .type = words[0],
						      .size = allocation_size(search->index,
									      (allocation_id)id),
						      .bottom = i });
	}
	for (size_t i = 0; i < search->layout_count; i++)
		if (!best || search->layouts[i].votes > best->votes)
			best = &search->layouts[i];
	return best;
}

static bool is_fiber(const uint64_t *words, const struct layout *layout)
{
	uint64_t bottom = words[layout->bottom];

	return words[0] == layout->type && words[RESUMABLE] <= 1 && words[STACK] > 0 &&
	       bottom > words[STACK] &&
	       (words[RESUMABLE] == 0 ||
		(words[STACK_TOP] >= words[STACK] && words[STACK_TOP] < bottom));
}

static struct error *collect(struct search *search, const struct bitmap *managed,
			     const struct layout *layout)
{
	struct candidate candidate = { 0 };

	bitmap_for_each(id, managed) {
		if (!bitmap_get(allocation_used(search->index), id) ||
		    allocation_size(search->index, (allocation_id)id) != layout->size ||
		    read_object(search, (allocation_id)id, candidate.words) <= layout->bottom ||
		    !is_fiber(candidate.words, layout))
			continue;
		candidate.address = allocation_start(search->index, (allocation_id)id);
		TRY(array_append(&search->candidates, candidate));
	}
	return NULL;
}

DEFINE_COMPARE(compare_candidates, struct candidate, ASCENDING(address))

static const struct candidate *find_candidate(const struct search *search, uint64_t address)
{
	struct candidate key = { .address = address };

	return address ? bsearch(&key, search->candidates.items, search->candidates.count,
				 sizeof(key), compare_candidates)
		       : NULL;
}

/* Offsets of a fiber's links in the list of all fibers. */
struct links {
	unsigned int next, previous; /* both 0: not known */
};

static struct links find_links(const struct search *search)
{
	const struct candidate *list = search->candidates.items;
	size_t votes[MOST_WORDS][MOST_WORDS] = { 0 }, most = 0;
	struct links best = { 0 };

	for (size_t i = 0; i < search->candidates.count; i++)
		for (unsigned int n = FIRST_UNKNOWN; n < MOST_WORDS; n++) {
			const struct candidate *next = find_candidate(search, list[i].words[n]);

			if (!next || next == &list[i])
				continue;
			for (unsigned int p = FIRST_UNKNOWN; p < MOST_WORDS; p++)
				votes[n][p] += p != n && next->words[p] == list[i].address;
		}
	for (unsigned int n = FIRST_UNKNOWN; n < MOST_WORDS; n++)
		for (unsigned int p = FIRST_UNKNOWN; p < MOST_WORDS; p++)
			if (votes[n][p] > most) {
				most = votes[n][p];
				best = (struct links){ n, p };
			}
	return best;
}

/* The text of the String at address, and its size in bytes; NULL: there is none. */
static const char *read_string(const struct image *image, uint64_t address, uint64_t *ret_size)
{
	enum { HEADER = 12 };
	uint32_t header[3]; /* type id, bytes, characters or 0 */
	uint64_t size;
	const uint8_t *bytes;

	if (address % 4 != 0 || !image_read(image, address, header, sizeof(header)) ||
	    header[0] != STRING_TYPE || header[1] > INT32_MAX || header[2] > header[1])
		return NULL;
	bytes = image_bytes(image, address + HEADER, &size);
	if (!bytes || size <= header[1] || bytes[header[1]] != 0)
		return NULL;
	*ret_size = header[1];
	return (const char *)bytes;
}

/* Find the offset of a fiber's name: the main fiber is called "main". 0: not found. */
static unsigned int find_names(const struct search *search)
{
	static const char main_name[] = "main";
	const struct candidate *list = search->candidates.items;

	for (size_t i = 0; i < search->candidates.count; i++)
		for (unsigned int n = FIRST_UNKNOWN; n < MOST_WORDS; n++) {
			uint64_t size;
			const char *text = read_string(search->image, list[i].words[n], &size);

			if (text && size == sizeof(main_name) - 1 &&
			    memcmp(text, main_name, size) == 0)
				return n;
		}
	return 0;
}

/* A copy of the String at address, or NULL. */
static char *copy_name(const struct image *image, uint64_t address)
{
	enum { LONGEST_NAME = 256 };
	uint64_t size;
	const char *text = read_string(image, address, &size);

	return text ? strndup(text, MIN(size, LONGEST_NAME)) : NULL;
}

/*
 * The main fiber has the process's stack, which without a limit seems to begin where the mapping
 * below ends, or ended when it was asked: it begins where its own mapping does.
 */
static uint64_t stack_start(const struct image *image, uint64_t start, uint64_t end)
{
	const struct region *region;

	if (end - start < LARGEST_STACK)
		return start;
	region = image_find(image, end - WORD);
	return region && region->start > start ? region->start : start;
}

static struct fiber make_fiber(const struct image *image, const struct candidate *candidate,
			       const struct layout *layout, const struct program *program)
{
	struct fiber fiber = {
		.object = candidate->address,
		.start = stack_start(image, candidate->words[STACK],
				     candidate->words[layout->bottom]),
		.end = candidate->words[layout->bottom],
		.live = candidate->words[STACK_TOP],
		.running = candidate->words[RESUMABLE] == 0,
		.thread = NO_THREAD,
	};

	if (!fiber.running)
		return fiber;
	fiber.live = fiber.start;
	for (size_t i = 0; i < program->thread_count; i++) {
		const struct thread *thread = &program->threads[i];

		if (thread->stack_pointer < fiber.start || thread->stack_pointer >= fiber.end)
			continue;
		fiber.thread = (uint32_t)i;
		fiber.live = thread_live(thread, fiber.start);
	}
	return fiber;
}

static struct error *add_fibers(const struct search *search, const struct layout *layout,
				const struct program *program, struct fibers *fibers)
{
	const struct candidate *candidates = search->candidates.items;
	struct links links = find_links(search);
	unsigned int name = find_names(search);

	for (size_t i = 0; i < search->candidates.count; i++) {
		const uint64_t *words = candidates[i].words;
		struct fiber fiber;

		if (links.next && !words[links.next] && !words[links.previous])
			continue;
		fiber = make_fiber(search->image, &candidates[i], layout, program);
		if (name)
			fiber.name = copy_name(search->image, words[name]);
		TRY(fibers_add(fibers, fiber));
	}
	return NULL;
}

struct error *crystal_find_fibers(const struct runtime_context *context, struct fibers *fibers,
				  uint32_t *ret_type)
{
	_cleanup_(array_release) struct search search = {
		.image = context->image,
		.index = context->index,
		.candidates = { .memory.account = context->account },
	};
	const struct bitmap *managed = allocation_having(context->index, TRAIT_COLLECTABLE);
	const struct layout *layout = managed ? find_layout(&search, managed) : NULL;

	*ret_type = 0;
	if (!layout)
		return NULL;
	TRY(collect(&search, managed, layout));
	if (search.candidates.count > 0)
		*ret_type = (uint32_t)layout->type;
	return add_fibers(&search, layout, context->program, fibers);
}

struct error *crystal_visit_fiber(uint64_t address, const struct structure_visitor *visitor)
{
	/* The stack may begin with a guard, whose address counts for none. */
	return visitor->number(visitor->data, address + STACK_TOP * WORD,
			       (STACK + 1 - STACK_TOP) * WORD);
}

static void set_register(struct frame_state *state, uint8_t number, uint64_t value)
{
	state->registers[number] = value;
	state->known |= UINT64_C(1) << number;
}

bool crystal_fiber_registers(const struct image *image, const struct fiber *fiber,
			     struct frame_state *ret)
{
	const struct arch *arch = image->arch;
	uint64_t saved[SAVED_WORDS];
	size_t next = 0;

	if (!image_read(image, fiber->live, saved, sizeof(saved)))
		return false;
	*ret = (struct frame_state){ .address = saved[RETURN_ADDRESS] };
	for (size_t i = 0; i < arch->register_count && next < RETURN_ADDRESS; i++)
		if (arch->registers[i].preserved)
			set_register(ret, arch->registers[i].unwound, saved[next++]);
	set_register(ret, arch->unwound_return, ret->address);
	set_register(ret, arch_unwound_stack_pointer(arch), fiber->live + sizeof(saved));
	return true;
}
