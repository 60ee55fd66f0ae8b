#include "analyzer/runtimes/rust/rust.h"

#include "analyzer/heap/word_filter.h"

#include <string.h>

/*
 * True if the module's constants have the source paths of panics, even if stripped: "/rustc/" and a
 * number precede them, or the folder where a distribution built the library.
 */
static bool has_places(const struct image *image, const struct module *module)
{
	enum { MOST_SEARCHED = 1 << 26 };
	static const char path[] = "library/std/src/";
	uint64_t searched = 0;
	const struct region *region;

	for (uint64_t at = module->start; at < module->end && searched < MOST_SEARCHED;
	     at = region->end) {
		uint64_t size;
		const uint8_t *bytes = image_bytes(image, at, &size);

		region = image_find(image, at);
		if (!region)
			return false;
		if (!bytes || region->rights & (RIGHT_WRITE | RIGHT_EXECUTE))
			continue;
		if (memmem(bytes, size, path, sizeof(path) - 1))
			return true;
		searched += size;
	}
	return false;
}

/* Libraries in Rust that other programs load are not looked for. */
static bool is_written_in_rust(const struct runtime_context *context)
{
	const struct module *module = program_main_module(context->program);

	return module && has_places(context->image, module);
}

static struct error *open_space(struct object_space *space, bool *ret)
{
	*ret = is_written_in_rust(&space->context);
	return NULL;
}

static void release(struct object_space *space)
{
	struct rust *rust = (struct rust *)space;

	rust_values_release(&rust->values);
	arrays_release(&rust->buffers.roles, &rust->tables.list);
	rust->buffers.layout = (struct rust_layout){ 0 };
}

bool rust_word_beside(const struct rust_reference *reference, int words, uint64_t *ret)
{
	int64_t offset = (int64_t)reference->offset + 8 * words;

	if (offset < 0 || reference->size < sizeof(*ret) ||
	    (uint64_t)offset > reference->size - sizeof(*ret))
		return false;
	memcpy(ret, reference->bytes + offset, sizeof(*ret));
	return true;
}

/* A walk over the words of all used allocations. */
struct walk {
	const struct runtime_context *context;
	struct word_filter filter;
	struct error *(*visit)(void *data, const struct rust_reference *reference);
	void *data;
	size_t hint;
};

static struct error *visit_word(struct walk *walk, struct rust_reference *reference,
				uint64_t offset)
{
	const struct allocation_index *index = walk->context->index;
	uint64_t word = 0;

	reference->offset = offset;
	rust_word_beside(reference, 0, &word);
	reference->target = allocation_find(index, word);
	if (reference->target == NO_ALLOCATION || reference->target == reference->holder ||
	    allocation_state(index, reference->target) != BLOCK_USED)
		return NULL;
	reference->range = allocation_range_near(index, reference->target, &walk->hint);
	return reference->range.start == word ? walk->visit(walk->data, reference) : NULL;
}

static struct error *visit_holder(struct walk *walk, struct rust_reference *reference)
{
	uint64_t words = reference->size / 8;

	for (uint64_t i = 0; i < words; i += FILTER_WORDS) {
		uint64_t left = words - i;
		uint64_t mask = word_filter_mask(&walk->filter, reference->bytes + 8 * i,
						 MIN(left, FILTER_WORDS));

		for (; mask; mask &= mask - 1)
			TRY(visit_word(walk, reference, 8 * (i + (uint64_t)__builtin_ctzll(mask))));
	}
	return NULL;
}

struct error *rust_visit_references(const struct runtime_context *context,
				    struct error *(*visit)(void *data,
							   const struct rust_reference *reference),
				    void *data)
{
	const struct allocation_index *index = context->index;
	struct walk walk = { context, word_filter_for(allocation_bounds(index), 8), visit, data,
			     0 };
	struct view view = { .image = context->image };
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		struct rust_reference reference = { .holder = (allocation_id)id };

		reference.holder_size = range.end - range.start;
		reference.bytes = view_bytes(&view, range.start, &reference.size);
		if (!reference.bytes)
			continue;
		reference.size = MIN(reference.size, reference.holder_size);
		reference.address = range.start;
		TRY(visit_holder(&walk, &reference));
	}
	return NULL;
}

static struct error *find_objects(struct object_space *space, struct debug *debug)
{
	struct rust *rust = (struct rust *)space;
	const struct runtime_context *context = &space->context;

	arrays_use(space->account, &rust->values.vtables, &rust->values.numbers,
		   &rust->buffers.roles, &rust->tables.list);
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	TRY(rust_find_values(context, debug, &rust->values, &space->classes));
	TRY(rust_find_buffers(context, &rust->buffers));
	TRY(rust_find_tables(context, &rust->tables));
	space->has_objects = space->classes.list.count > 0 || rust->buffers.layout.capacity != 0 ||
			     rust->tables.list.count > 0;
	return NULL;
}

/* Addresses and constants of binaries are all that it reads. */
static struct error *visit_structure(struct object_space *space,
				     const struct structure_visitor *visitor)
{
	return NULL;
}

DECLARE_SLOTS(runtime_calls, rust, find_exception);

const struct runtime runtime_rust = {
	.name = "rust",
	.own_code = "core::|alloc::|std::|__rust|rust_|/rustc/|library/",
	.space_size = sizeof(struct rust),
	.open = open_space,
	.release = release,
	.find_objects = find_objects,
	.visit_structure = visit_structure,
	.calls = &(const struct runtime_calls){ .find_exception = rust_find_exception },
};
