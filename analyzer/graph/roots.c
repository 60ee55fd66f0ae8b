#include "analyzer/graph/roots.h"

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/sort.h"
#include "analyzer/graph/false_references.h"
#include "analyzer/heap/index_side.h"
#include "analyzer/heap/word_filter.h"
#include "analyzer/image/kernel_notes.h"
#include "analyzer/program/symbols.h"
#include "analyzer/runtimes/runtimes.h"

#include <string.h>

const char *root_kind_name(enum root_kind kind)
{
	static const char *const names[ROOT_KINDS + 1] = {
		[ROOT_STATIC] = "static", [ROOT_STACK] = "stack",     [ROOT_REGISTER] = "register",
		[ROOT_KERNEL] = "kernel", [ROOT_INTEGER] = "integer",
	};

	return names[kind];
}

enum { SCANNED_AT_ONCE = 4 << 20 /* bytes of a range that are scanned at a time */ };

struct roots {
	struct roots_input input;
	struct word_filter filter;
	struct false_references false_references;
	bool has_links;		    /* see runtimes_is_link() */
	ARRAY(struct stack) stacks; /* including those of fibers; by address */
	ARRAY(struct root_range) ranges;
	ARRAY(struct root_range) chunks; /* the unit of a thread's scan */
	ARRAY(struct disguised) integers;
	struct bitmap targets[ROOT_KINDS];
	struct split_work work; /* of finding these */
};

static struct error *add_range(struct roots *roots, struct root_range range)
{
	return range.start < range.end ? array_append(&roots->ranges, range) : NULL;
}

/* Add what no allocator claims of the range. */
static struct error *add_unclaimed(struct roots *roots, struct root_range range)
{
	const struct allocation_index *index = roots->input.index;

	for (size_t i = heap_claim_above(index, range.start);
	     i < heap_claim_count(index) && range.start < range.end; i++) {
		struct memory_range claim = heap_claim(index, i);
		struct root_range below = range;

		if (claim.start >= range.end)
			break;
		below.end = claim.start;
		TRY(add_range(roots, below));
		range.start = claim.end;
	}
	return add_range(roots, range);
}

/* Code that no file has: the program made it while it ran. The kernel's vdso is a module. */
static bool is_jit_code(const struct roots *roots, const struct region *region)
{
	return (region->rights & RIGHT_EXECUTE) && !region->mapping &&
	       !program_find_module(roots->input.program, region->start);
}

/* The number of the first stack that ends above address. */
static size_t first_stack(const struct roots *roots, uint64_t address)
{
	const struct stack *stacks = roots->stacks.items;

	return LIST_ABOVE(stacks, roots->stacks.count, end, address);
}

/*
 * The first whole word in which the region differs from its file. Words below, such as headers of
 * modules, refer to no heap. In writable regions, compare only the first page, which may begin with
 * what the file has in front of a module's data.
 */
static uint64_t find_difference(const struct roots *roots, const struct region *region)
{
	const struct mapping *mapping = region->mapping;
	uint64_t size = region->end - region->start, offset, same = 0;
	const unsigned int word = roots->filter.word_size;

	if (!mapping || !mapping->file || mapping->file->partial)
		return region->start;
	offset = mapping->offset + (region->start - mapping->start);
	if (offset > mapping->file->size)
		return region->start;
	size = MIN(size, mapping->file->size - offset);
	if ((region->rights & RIGHT_WRITE) && size > PAGE)
		size = PAGE;
	if (memcmp(region->bytes, mapping->file->bytes + offset, size) == 0)
		return region->start + size / word * word;
	while (size - same >= word &&
	       memcmp(region->bytes + same, mapping->file->bytes + offset + same, word) == 0)
		same += word;
	return region->start + same;
}

/* Add the region, the dead parts of stacks in it left out. */
static struct error *add_memory(struct roots *roots, const struct region *region)
{
	const struct stack *stacks = roots->stacks.items;
	struct root_range rest = {
		.start = find_difference(roots, region),
		.end = region->end,
		.kind = ROOT_STATIC,
		.thread = NO_THREAD,
		.is_code = is_jit_code(roots, region),
		.is_writable = region->rights & RIGHT_WRITE,
	};

	for (size_t i = first_stack(roots, region->start);
	     i < roots->stacks.count && stacks[i].start < region->end; i++) {
		const struct stack *stack = &stacks[i];
		struct root_range below = rest, live = {
			.start = stack->live > rest.start ? stack->live : rest.start,
			.end = stack->live_end < rest.end ? stack->live_end : rest.end,
			.kind = ROOT_STACK,
			.thread = stack->thread,
			.is_writable = rest.is_writable,
		};

		below.end = stack->start;
		TRY(add_unclaimed(roots, below));
		TRY(add_unclaimed(roots, live));
		rest.start = stack->end;
	}
	return add_unclaimed(roots, rest);
}

/*
 * The dynamic loader's data that it protected: it was written before there was a heap. Bits that
 * tell of the processor are among it, and a word of 4 of them may look like an address.
 */
static bool precedes_heap(const struct roots *roots, const struct region *region)
{
	const struct module *module;
	uint64_t address;

	if (roots->filter.word_size != sizeof(uint32_t))
		return false;
	module = program_find_module(roots->input.program, region->start);
	return module && module_find_variable(module, "_rtld_global_ro", &address);
}

/*
 * Memory that was written at some time: what is writable, and what no longer is, such as data that
 * the loader relocated and then protected, and memory without rights at present, if the core has
 * it. Constants and the code of files are read from the files.
 */
static bool is_root(const struct roots *roots, const struct region *region)
{
	if (!region->bytes)
		return false;
	if (region->rights & RIGHT_WRITE)
		return true;
	return region->origin == REGION_CORE &&
	       (!(region->rights & RIGHT_EXECUTE) || is_jit_code(roots, region)) &&
	       !precedes_heap(roots, region);
}

/* True if the fiber runs on a thread's own stack, as the first one does. */
static bool is_on_thread_stack(const struct program *program, const struct fiber *fiber)
{
	list_for_each(stack, program->stacks, program->stack_count) {
		if (fiber->start < stack->end && stack->start < fiber->end)
			return true;
	}
	return false;
}

DEFINE_COMPARE(compare_stacks, struct stack, ASCENDING(start))

static struct error *find_stacks(struct roots *roots)
{
	const struct fibers *fibers =
		roots->input.runtimes ? runtimes_fibers(roots->input.runtimes) : NULL;
	const struct program *program = roots->input.program;

	for (size_t i = 0; i < program->stack_count; i++)
		TRY(array_append(&roots->stacks, program->stacks[i]));
	/* One alone may be something else that looks like it. */
	for (size_t i = 0; fibers && fibers->count > 1 && i < fibers->count; i++) {
		const struct fiber *fiber = &fibers->items[i];
		struct stack stack = { .kind = STACK_THREAD,
				       .start = fiber->start,
				       .end = fiber->end,
				       .live = fiber->live,
				       .live_end = fiber->end,
				       .thread = fiber->thread };

		if (!is_on_thread_stack(program, fiber))
			TRY(array_append(&roots->stacks, stack));
	}
	array_sort(&roots->stacks, compare_stacks);
	return NULL;
}

static struct error *find_ranges(struct roots *roots)
{
	const struct image *image = roots->input.image;

	list_for_each(region, image->regions, image->region_count) {
		if (!is_root(roots, region))
			continue;
		TRY(add_memory(roots, region));
	}
	return NULL;
}

/* Finds the words of memory outside of heaps that refer to allocations. */
struct scan {
	const struct roots *roots;
	struct word_filter filter;
	/* Called for each reference, at where, until it returns false. */
	bool (*found)(void *data, uint64_t where, allocation_id target);
	void *data;
	/* Its own; 0 at first. Words that are to be looked up together. */
	uint64_t words[MOST_ADDRESSES], places[MOST_ADDRESSES];
	size_t count, hint;
};

static bool is_link(const struct scan *scan, allocation_id target, uint64_t word, uint64_t place)
{
	return scan->roots->has_links &&
	       runtimes_is_link(scan->roots->input.runtimes, NO_ALLOCATION, target, word, place);
}

/* Look up the words collected so far. False: found wants no more. */
static bool look_up(struct scan *scan)
{
	const struct roots *roots = scan->roots;
	const struct arch *arch = roots->input.image->arch;
	const bool doubtful = scan->filter.word_size == sizeof(uint32_t) || arch->module_pointer;
	allocation_id targets[MOST_ADDRESSES];
	size_t count = scan->count;

	scan->count = 0;
	allocation_find_many(roots->input.index, scan->words, count, &scan->hint, targets);
	for (size_t i = 0; i < count; i++)
		if (targets[i] != NO_ALLOCATION &&
		    !is_link(scan, targets[i], scan->words[i], scan->places[i]) &&
		    !(doubtful && is_false_reference(&roots->false_references, scan->words[i],
						     scan->places[i])) &&
		    !is_of_cache(&roots->false_references, roots->input.index, targets[i],
				 scan->words[i], scan->places[i]) &&
		    !scan->found(scan->data, scan->places[i], targets[i]))
			return false;
	return true;
}

/* The word at address may be a reference. */
static bool collect(struct scan *scan, uint64_t address, const uint8_t *bytes)
{
	scan->places[scan->count] = address;
	scan->words[scan->count++] = load_word(bytes, scan->filter.word_size);
	return scan->count < MOST_ADDRESSES || look_up(scan);
}

static bool scan_words(struct scan *scan, uint64_t address, const uint8_t *bytes, uint64_t size)
{
	const unsigned int word = scan->filter.word_size;

	for (uint64_t i = 0; i + word <= size; i += FILTER_WORDS * word) {
		uint64_t left = (size - i) / word;
		size_t words = left < FILTER_WORDS ? left : FILTER_WORDS;
		uint64_t mask = word_filter_mask(&scan->filter, bytes + i, words);

		for (; mask; mask &= mask - 1) {
			uint64_t at = i + word * (uint64_t)__builtin_ctzll(mask);

			if (!collect(scan, address + at, bytes + at))
				return false;
		}
	}
	return true;
}

static bool scan_code(struct scan *scan, uint64_t address, const uint8_t *bytes, uint64_t size)
{
	const struct heap_bounds bounds = scan->filter.bounds;

	const unsigned int word = scan->filter.word_size;

	for (uint64_t i = 0; i + word <= size; i++) {
		if (heap_bounds_hold(&bounds, load_word(bytes + i, word)) &&
		    !collect(scan, address + i, bytes + i))
			return false;
	}
	return true;
}

/*
 * Skip a hole of the dump at the start of a long range, and leave the next hole to the next time:
 * returns where that begins.
 */
static uint64_t skip_hole(const struct image *image, struct root_range *range)
{
	uint64_t hole;

	if (range->end - range->start <= SCANNED_AT_ONCE + 7)
		return range->end;
	range->start = image_next_data(image, range->start);
	if (range->start >= range->end)
		return range->end;
	hole = image_next_hole(image, range->start);
	return hole > range->start && hole < range->end ? hole : range->end;
}

/* Call found for each word of the range that is a reference: aligned ones, and in code all. */
static void scan_range(const struct roots *roots, struct root_range range,
		       bool (*found)(void *data, uint64_t where, allocation_id target), void *data)
{
	struct scan scan = {
		.roots = roots,
		.filter = roots->filter,
		.found = found,
		.data = data,
	};
	const uint64_t word = roots->filter.word_size;

	if (!range.is_code)
		range.start = (range.start + word - 1) & ~(word - 1);
	while (range.start < range.end) {
		uint64_t end = skip_hole(roots->input.image, &range), size;
		const uint8_t *bytes = image_bytes(roots->input.image, range.start, &size);

		if (!bytes || range.start >= range.end)
			break;
		size = MIN(size, end - range.start);
		if (!(range.is_code ? scan_code : scan_words)(&scan, range.start, bytes, size))
			return;
		range.start += size;
	}
	look_up(&scan);
}

/* Cut the range into chunks; holes of the dump are left out. */
static struct error *cut_range(struct roots *roots, struct root_range range)
{
	struct root_range chunk = range;

	while (chunk.start < range.end) {
		uint64_t data = image_next_data(roots->input.image, chunk.start);

		if (data >= range.end)
			break;
		chunk.start = data;
		chunk.end = range.end;
		/* A word in code may reach into the next chunk. */
		if (chunk.end - chunk.start > SCANNED_AT_ONCE + 7)
			chunk.end = chunk.start + SCANNED_AT_ONCE + (range.is_code ? 7 : 0);
		TRY(array_append(&roots->chunks, chunk));
		if (range.end - chunk.start <= SCANNED_AT_ONCE)
			break;
		chunk.start += SCANNED_AT_ONCE;
	}
	return NULL;
}

/* The set in which a scan marks its targets. */
struct marking {
	const struct bitmap *used;
	struct bitmap *targets;
};

static bool mark(void *data, uint64_t where, allocation_id target)
{
	struct marking *marking = data;

	/* Most targets are referred to more than once. */
	if (bitmap_get(marking->used, target) && !bitmap_get(marking->targets, target))
		bitmap_set_atomic(marking->targets, target);
	return true;
}

static struct error *scan_chunk(void *data, size_t number, unsigned int thread)
{
	struct roots *roots = data;
	struct root_range chunk = roots->chunks.items[number];
	struct marking marking = {
		.used = allocation_used(roots->input.index),
		.targets = &roots->targets[chunk.kind],
	};

	scan_range(roots, chunk, mark, &marking);
	return split_work_check(&roots->work, number, thread, roots->input.progress,
				chunk.end - chunk.start);
}

/* Visits what is at any byte of the state, or of a register, in anchor. */
static bool visit_bytes(const struct roots *roots, const uint8_t *bytes, size_t size,
			struct anchor *anchor,
			bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	const unsigned int word_size = roots->filter.word_size;

	for (size_t i = 0; i + word_size <= size; i++) {
		uint64_t word = load_word(bytes + i, word_size);

		if (!heap_bounds_hold(&roots->filter.bounds, word))
			continue;
		anchor->target = allocation_find(roots->input.index, word);
		if (anchor->target != NO_ALLOCATION && !visit(data, anchor))
			return false;
	}
	return true;
}

/* Visit all vector registers in the dump, in up to three parts. */
static bool visit_state(const struct roots *roots, const struct image_thread *state,
			struct anchor *anchor,
			bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	const struct arch *arch = roots->input.image->arch;
	size_t start = 0, size = state->vectors_size;

	for (size_t i = 0; i < 2 && size >= arch->vectors_head[1].end; i++) {
		size_t end = arch->vectors_head[i].start;

		if (end > start &&
		    !visit_bytes(roots, state->vectors + start, end - start, anchor, visit, data))
			return false;
		start = arch->vectors_head[i].end;
	}
	return start >= size ||
	       visit_bytes(roots, state->vectors + start, size - start, anchor, visit, data);
}

/* Visits the registers that a thread uses, the vector ones at every byte. */
static bool visit_registers(const struct roots *roots, uint32_t number,
			    bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	const struct thread *thread = &roots->input.program->threads[number];
	const struct image_thread *state = thread->state;
	const struct arch *arch = roots->input.image->arch;
	struct anchor anchor = { ROOT_REGISTER, .thread = number };
	uint8_t vector[VECTOR_SIZE];
	size_t size;

	for (size_t i = 0; i < arch->register_count; i++) {
		anchor.register_name = arch->registers[i].name;
		anchor.target = allocation_find(roots->input.index, thread->registers[i]);
		if (anchor.target != NO_ALLOCATION && !visit(data, &anchor))
			return false;
	}
	if (!thread->vectors_used)
		return true;
	anchor.register_name = VECTOR_REGISTER;
	/* The state as it is, then what its layout tears apart. */
	if (!visit_state(roots, state, &anchor, visit, data))
		return false;
	if (!arch->read_vector)
		return true;
	for (size_t i = 0;
	     (size = arch->read_vector(state->vectors, state->vectors_size, i, vector)); i++)
		if (!visit_bytes(roots, vector, size, &anchor, visit, data))
			return false;
	return true;
}

/* The thread whose value it is. */
static uint32_t find_holder(const struct program *program, struct held_value value)
{
	if (value.kind != HELD_SIGNAL_STACK && value.kind != HELD_SIGNAL)
		return NO_THREAD;
	for (uint32_t i = 0; i < program->thread_count; i++)
		if (program->threads[i].id == value.holder)
			return i;
	return NO_THREAD;
}

static allocation_id find_target(const struct allocation_index *index, struct held_value value)
{
	return value.kind < HELD_KINDS ? allocation_find(index, value.value) : NO_ALLOCATION;
}

/* Targets for which the core has no value: stacks for signals, as roots_assume_stacks() found. */
static void visit_assumed(const struct roots *roots,
			  bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	const struct image *image = roots->input.image;
	const struct bitmap *all = &roots->targets[ROOT_KERNEL];
	_cleanup_(bitmap_deinit) struct bitmap rest = { 0 };
	struct anchor anchor = { .kind = ROOT_KERNEL, .thread = NO_THREAD, .held = ASSUMED_STACK };
	struct error *error;

	if (image_held_sought(image, HELD_SIGNAL_STACK) || bitmap_next(all, 0) == all->count)
		return;
	error = bitmap_init_minus(&rest, all, NULL, roots->input.account);
	if (error) {
		error_destroy(error);
		return;
	}
	for (size_t i = 0; i < image_held_count(image); i++) {
		allocation_id id = find_target(roots->input.index, image_held(image, i));

		if (id != NO_ALLOCATION)
			bitmap_clear(&rest, id);
	}
	bitmap_for_each(id, &rest) {
		anchor.target = (allocation_id)id;
		if (!visit(data, &anchor))
			return;
	}
}

/* Visits what the kernel holds for the program. */
static void visit_held(const struct roots *roots,
		       bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	for (size_t i = 0; i < image_held_count(roots->input.image); i++) {
		struct held_value value = image_held(roots->input.image, i);
		struct anchor anchor = {
			.kind = ROOT_KERNEL,
			.thread = NO_THREAD,
			.held = (uint32_t)i,
			.target = find_target(roots->input.index, value),
		};

		if (anchor.target == NO_ALLOCATION)
			continue;
		anchor.thread = find_holder(roots->input.program, value);
		if (!visit(data, &anchor))
			return;
	}
	visit_assumed(roots, visit, data);
}

/* Visits the blocks that threads inside of malloc have in hand. */
static void visit_malloc(const struct allocation_index *index,
			 bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	for (size_t i = 0; i < allocation_held_count(index); i++) {
		struct anchor anchor = {
			.kind = ROOT_REGISTER,
			.register_name = INSIDE_MALLOC,
			.thread = NO_THREAD,
			.target = allocation_held(index, i),
		};

		if (anchor.target != NO_ALLOCATION && !visit(data, &anchor))
			return;
	}
}

static bool mark_anchor(void *data, const struct anchor *anchor)
{
	return mark(data, 0, anchor->target);
}

static struct error *find_targets(struct roots *roots)
{
	struct marking marking = {
		.used = allocation_used(roots->input.index),
		.targets = &roots->targets[ROOT_REGISTER],
	};
	unsigned int threads = parallel_threads_for(roots->input.progress);

	for (size_t i = 0; i < ROOT_KINDS; i++)
		TRY(bitmap_init(&roots->targets[i], allocation_count(roots->input.index),
				roots->input.account));
	for (size_t i = 0; i < roots->ranges.count; i++)
		TRY(cut_range(roots, root_range(roots, i)));
	progress_begin(roots->input.progress, "scanning the roots", roots->input.image->size);
	TRY(split_work_run(&roots->work, roots->input.progress, roots->chunks.count, threads,
			   scan_chunk, roots));
	array_release(&roots->chunks);
	for (uint32_t i = 0; i < roots->input.program->thread_count; i++)
		visit_registers(roots, i, mark_anchor, &marking);
	visit_malloc(roots->input.index, mark_anchor, &marking);
	marking.targets = &roots->targets[ROOT_KERNEL];
	visit_held(roots, mark_anchor, &marking);
	return NULL;
}

/* All of the roots but what they refer to. */
static struct error *create(const struct roots_input *input, struct roots **ret)
{
	_cleanup_(roots_destroy) struct roots *roots = calloc(1, sizeof(*roots));

	TRY_MEMORY(roots);
	roots->input = *input;
	roots->filter =
		word_filter_for(allocation_bounds(input->index), image_word_size(input->image));
	roots->false_references = false_references_of(input->program);
	roots->has_links = runtimes_have_links_outside(input->runtimes);
	arrays_use(input->account, &roots->stacks, &roots->ranges, &roots->chunks,
		   &roots->integers);
	TRY(find_stacks(roots));
	TRY(find_ranges(roots));
	*ret = take(roots);
	return NULL;
}

struct error *roots_create(const struct roots_input *input, struct roots **ret)
{
	_cleanup_(roots_destroy) struct roots *roots = NULL;

	TRY(create(input, &roots));
	TRY(find_targets(roots));
	*ret = take(roots);
	return NULL;
}

struct error *roots_save(const struct roots *roots, struct side_writer *writer)
{
	for (unsigned int i = 0; i < ROOT_KINDS; i++)
		TRY(allocation_set_save(&roots->targets[i], writer, SIDE_TARGETS + i));
	return side_writer_array(writer, SIDE_INTEGERS, roots->integers.items,
				 roots->integers.count * sizeof(struct disguised));
}

/* Each is there once, as a target, and stands for one. */
static struct error *load_integers(struct roots *roots, struct side_file *file)
{
	struct bitmap *targets = &roots->targets[ROOT_INTEGER];
	size_t count = bitmap_weight(targets);
	const void *bytes;
	const struct disguised *integers;

	TRY(side_file_take(file, SIDE_INTEGERS, count, sizeof(*integers), &bytes));
	integers = bytes;
	for (size_t i = 0; i < count; i++)
		if (integers[i].target >= targets->count ||
		    !bitmap_get(targets, integers[i].target) ||
		    (integers[i].disguise < DISGUISES && integers[i].disguise != DISGUISE_PACKED) ||
		    !disguise_name(roots->input.runtimes, integers[i].disguise))
			return error_create(ERROR_BAD_DUMP, "it is damaged");
	TRY(array_resize(&roots->integers, count));
	if (count > 0)
		memcpy(roots->integers.items, integers, count * sizeof(*integers));
	return NULL;
}

struct error *roots_load(const struct roots_input *input, struct side_file *file,
			 struct roots **ret)
{
	_cleanup_(roots_destroy) struct roots *roots = NULL;
	const struct bitmap *used = allocation_used(input->index);

	TRY(create(input, &roots));
	for (unsigned int i = 0; i < ROOT_KINDS; i++) {
		TRY(allocation_set_load(file, SIDE_TARGETS + i, used->count, &roots->targets[i]));
		if (!bitmap_within(&roots->targets[i], used))
			return error_create(ERROR_BAD_DUMP, "it is damaged");
	}
	TRY(load_integers(roots, file));
	*ret = take(roots);
	return NULL;
}

void roots_destroy(struct roots *roots)
{
	arrays_release(&roots->stacks, &roots->ranges, &roots->chunks, &roots->integers);
	for (size_t i = 0; i < ROOT_KINDS; i++)
		bitmap_deinit(&roots->targets[i]);
	free(roots);
}

void roots_assume_stacks(struct roots *roots, const struct bitmap *stacks)
{
	bitmap_or(&roots->targets[ROOT_KERNEL], stacks);
}

struct error *roots_add_integers(struct roots *roots, const struct disguised *integers,
				 size_t count)
{
	struct bitmap *targets = &roots->targets[ROOT_INTEGER];

	for (size_t i = 0; i < count; i++) {
		if (bitmap_get(targets, integers[i].target))
			continue;
		TRY(array_append(&roots->integers, integers[i]));
		bitmap_set(targets, integers[i].target);
	}
	return NULL;
}

size_t root_range_count(const struct roots *roots)
{
	return roots->ranges.count;
}

struct root_range root_range(const struct roots *roots, size_t number)
{
	return roots->ranges.items[number];
}

const struct bitmap *root_targets(const struct roots *roots, enum root_kind kind)
{
	return &roots->targets[kind];
}

enum root_kind roots_first_kind(const struct roots *roots, allocation_id id)
{
	enum root_kind kind = 0;

	while (kind < ROOT_KINDS && !bitmap_get(root_targets(roots, kind), id))
		kind++;
	return kind;
}

struct error *roots_find_targets(const struct roots *roots,
				 bool (*narrow)(const void *data, struct root_range *range),
				 const void *data, struct bitmap *ret)
{
	struct marking marking = { allocation_used(roots->input.index), ret };

	for (size_t i = 0; i < roots->ranges.count; i++) {
		struct root_range range = root_range(roots, i);

		if (!narrow(data, &range))
			continue;
		scan_range(roots, range, mark, &marking);
		TRY(progress_check(roots->input.progress, range.end - range.start));
	}
	return NULL;
}

/* Hands anchors on whose target is asked for. */
struct visiting {
	const struct bitmap *targets;
	bool (*visit)(void *data, const struct anchor *anchor);
	void *data;
	struct anchor anchor; /* of the range being scanned */
	bool ended;
};

static bool visit_anchor(void *data, const struct anchor *anchor)
{
	struct visiting *visiting = data;

	if (!bitmap_get(visiting->targets, anchor->target))
		return true;
	visiting->ended = !visiting->visit(visiting->data, anchor);
	return !visiting->ended;
}

static bool visit_word(void *data, uint64_t where, allocation_id target)
{
	struct visiting *visiting = data;

	visiting->anchor.address = where;
	visiting->anchor.target = target;
	return visit_anchor(visiting, &visiting->anchor);
}

static void visit_integers(const struct roots *roots, struct visiting *visiting)
{
	const struct disguised *integers = roots->integers.items;

	for (size_t i = 0; i < roots->integers.count && !visiting->ended; i++) {
		visiting->anchor = (struct anchor){
			.kind = ROOT_INTEGER,
			.integer = disguise_name(roots->input.runtimes, integers[i].disguise),
			.packed = integers[i].disguise == DISGUISE_PACKED
					  ? runtimes_packed(roots->input.runtimes)
					  : NULL,
			.thread = NO_THREAD,
		};
		visit_word(visiting, integers[i].place, integers[i].target);
	}
}

void roots_visit(const struct roots *roots, const struct bitmap *targets,
		 bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	struct visiting visiting = { targets, visit, data };

	for (enum root_kind kind = ROOT_STATIC; kind <= ROOT_STACK; kind++) {
		for (size_t i = 0; i < roots->ranges.count; i++) {
			struct root_range range = root_range(roots, i);

			if (range.kind != kind)
				continue;
			visiting.anchor = (struct anchor){ .kind = kind, .thread = range.thread };
			scan_range(roots, range, visit_word, &visiting);
			if (visiting.ended)
				return;
		}
	}
	for (uint32_t i = 0; i < roots->input.program->thread_count && !visiting.ended; i++)
		visit_registers(roots, i, visit_anchor, &visiting);
	if (!visiting.ended)
		visit_malloc(roots->input.index, visit_anchor, &visiting);
	if (!visiting.ended)
		visit_held(roots, visit_anchor, &visiting);
	visit_integers(roots, &visiting);
}
