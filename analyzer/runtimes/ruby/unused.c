/*
 * struct RArray, RString, RHash, RStruct, RObject and rmatch of include/ruby/internal/core and
 * internal/, struct rb_io of include/ruby/io.h, st.h, and rb_execution_context_t of vm_core.h,
 * which MRI marks by the same lengths; struct re_pattern_buffer of onigmo.h, and
 * struct rb_iseq_constant_body of vm_core.h.
 */
#include "analyzer/runtimes/ruby/unused.h"

#include "analyzer/runtimes/ruby/objects.h"

enum {
	WORD = 8,
	CONTENTS = 16,
	POINTER = 24,
	DATA = 32,
	HAS_TABLE = 1 << 15, /* of a Hash */
	BOUND_SHIFT = 20,    /* of a Hash without a table */
	MOST_POWER = 40,
};

bool ruby_read_table(struct ruby_unused *search, uint64_t address, struct ruby_table *ret)
{
	allocation_id id;
	uint64_t power;

	if (address % WORD != 0 || !view_read(&search->targets, address, ret, sizeof(*ret)))
		return false;
	power = ret->powers & UINT8_MAX;
	id = ruby_find_block(search, ret->entries);
	return power <= MOST_POWER && id != NO_ALLOCATION &&
	       allocation_size(search->slots.index, id) >= sizeof(struct ruby_table_entry)
								   << power &&
	       ret->end <= UINT64_C(1) << power && ret->first <= ret->end &&
	       ret->count <= ret->end - ret->first && (ret->type >> 12) != 0 &&
	       ret->type % WORD == 0;
}

/* Entries before the first, behind the last, and deleted ones. */
static struct error *add_table(struct ruby_unused *search, const struct ruby_table *table)
{
	const uint64_t size = sizeof(struct ruby_table_entry);
	bool has_deleted = table->count < table->end - table->first;
	uint64_t start = table->entries, hash;

	TRY(unused_add(search->unused, start, start + size * table->first));
	for (uint64_t i = table->first;
	     has_deleted && i < table->end && budget_take(&search->steps); i++)
		if (view_word(&search->targets, start + size * i, &hash) && hash == UINT64_MAX)
			TRY(unused_add(search->unused, start + size * i, start + size * (i + 1)));
	return unused_add_rest(search->unused, start, size * table->end);
}

/* All tables of malloc(), whosever they are. */
static struct error *add_tables(struct ruby_unused *search)
{
	enum { ROUNDED = 16 };
	const struct allocation_index *index = search->slots.index;
	struct ruby_table table;
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		if (range.end - range.start - sizeof(table) <= ROUNDED &&
		    !bitmap_get(&search->slots.slots, id) &&
		    ruby_read_table(search, range.start, &table))
			TRY(add_table(search, &table));
	}
	return NULL;
}

/* Up to 8 pairs, see ruby_walk_object(): those above the bound, and deleted ones. */
static struct error *add_pairs(struct ruby_unused *search, uint64_t start, uint64_t before,
			       uint64_t flags)
{
	enum { MOST_PAIRS = 8, PAIR = 16, DELETED = 0x24, OLD_DELETED = 0x34 };
	uint64_t bound = flags >> BOUND_SHIFT & (2 * MOST_PAIRS - 1), key;
	struct ruby_table table;

	/* Before 2.6, there are no others. */
	if (ruby_read_table(search, start, &table))
		return NULL;
	TRY(unused_add_rest(search->unused, start, before + PAIR * bound));
	for (uint64_t i = 0; i < bound; i++) {
		uint64_t pair = start + before + PAIR * i;

		if (view_word(&search->targets, pair, &key) &&
		    (key == DELETED || key == OLD_DELETED))
			TRY(unused_add(search->unused, pair, pair + PAIR));
	}
	return NULL;
}

static struct error *add_hash(struct ruby_unused *search, uint64_t start, uint64_t size,
			      uint64_t flags)
{
	enum { OLD_SLOT = 40, HINTS = 8 };
	bool is_apart = size == OLD_SLOT;
	uint64_t address = start + POINTER;
	struct ruby_table table;
	allocation_id id;

	if (is_apart && !view_word(&search->view, start + CONTENTS, &address))
		return NULL;
	if (!(flags & HAS_TABLE))
		return add_pairs(search, address, is_apart ? 0 : HINTS, flags);
	if (!is_apart)
		return ruby_read_table(search, address, &table) ? add_table(search, &table) : NULL;
	id = ruby_find_block(search, address);
	if (id != NO_ALLOCATION)
		bitmap_set(&search->own_tables, id);
	return NULL;
}

/* Add the bytes behind the used ones: in the object's own slot, or in a block for it alone. */
static struct error *add_rest(struct ruby_unused *search, uint64_t start, uint64_t used)
{
	const struct allocation_index *index = search->slots.index;
	allocation_id id = start ? allocation_find(index, start) : NO_ALLOCATION;

	return id != NO_ALLOCATION && (bitmap_get(&search->slots.slots, id) ||
				       allocation_start(index, id) == start)
		       ? unused_add_rest(search->unused, start, used)
		       : NULL;
}

static struct error *add_array(struct ruby_unused *search, uint64_t start)
{
	uint64_t elements, count;

	if (ruby_shared_with(&search->slots, &search->view, start) ||
	    !ruby_read_array(&search->slots, &search->view, start, &elements, &count) ||
	    count > UINT64_MAX / WORD)
		return NULL;
	return add_rest(search, elements, WORD * count);
}

/* C code may have made one of memory of its own. */
static struct error *add_string(struct ruby_unused *search, uint64_t start, uint64_t flags)
{
	enum { IS_OF_C = 1 << 30 };
	uint64_t text, length;

	if ((flags & IS_OF_C) || ruby_shared_with(&search->slots, &search->view, start) ||
	    !ruby_find_text(&search->slots, &search->view, start, &text, &length))
		return NULL;
	return add_rest(search, text, length);
}

/* struct RStruct: members that are embedded are counted in the flags. */
static struct error *add_struct(struct ruby_unused *search, uint64_t start, uint64_t flags)
{
	enum { SHIFT = 13, BITS = 0x7f, OLD_BITS = 3 };
	uint64_t embedded = flags >> SHIFT & (search->slots.has_length_behind ? BITS : OLD_BITS);
	uint64_t words[2];

	if (embedded)
		return add_rest(search, start + CONTENTS, WORD * embedded);
	if (!view_read(&search->view, start + CONTENTS, words, sizeof(words)) ||
	    words[0] > UINT64_MAX / WORD)
		return NULL;
	return add_rest(search, words[1], WORD * words[0]);
}

/* Up to 3.1: | u32 count | values |; later, shapes count them. */
static struct error *add_variables(struct ruby_unused *search, uint64_t start, uint64_t flags)
{
	uint64_t words[2];

	if (search->slots.has_length_behind || ruby_is_embedded(&search->slots, flags) ||
	    !view_read(&search->view, start + CONTENTS, words, sizeof(words)))
		return NULL;
	return add_rest(search, words[1], WORD * (words[0] & UINT32_MAX));
}

/*
 * Buffers of a file are packed, { char *text; int first, count, capacity }, so at multiples of 4.
 */
static struct error *add_file(struct ruby_unused *search, uint64_t start)
{
	enum { STEP = 4, MOST_BYTES = 512, ROUNDED = 64 };
	const struct allocation_index *index = search->slots.index;
	uint64_t file, size, text;
	uint32_t words[3];
	allocation_id id;

	if (!view_word(&search->view, start + CONTENTS, &file))
		return NULL;
	id = ruby_find_block(search, file);
	size = id == NO_ALLOCATION ? 0 : allocation_size(index, id);
	for (uint64_t at = 0; at + WORD + sizeof(words) <= size && at < MOST_BYTES; at += STEP) {
		if (!view_word(&search->targets, file + at, &text) ||
		    !view_read(&search->targets, file + at + WORD, words, sizeof(words)) ||
		    words[2] == 0 || words[0] > words[2] || words[1] > words[2] - words[0])
			continue;
		id = ruby_find_block(search, text);
		if (id == NO_ALLOCATION || allocation_size(index, id) - words[2] > ROUNDED)
			continue;
		if (words[1] == 0)
			words[0] = 0;
		TRY(unused_add(search->unused, text, text + words[0]));
		TRY(unused_add_rest(search->unused, text, (uint64_t)words[0] + words[1]));
	}
	return NULL;
}

/*
 * struct rmatch: { int allocated, count; long *starts, *ends; offsets }. Its blocks hold numbers
 * only; those of groups that did not match are not even written.
 */
static struct error *add_match(struct ruby_unused *search, uint64_t start)
{
	enum { BLOCKS = 3 };
	uint64_t match, blocks[BLOCKS];
	uint32_t counts[2];

	if (!view_word(&search->view, start + POINTER, &match) ||
	    ruby_find_block(search, match) == NO_ALLOCATION ||
	    !view_read(&search->targets, match, counts, sizeof(counts)) ||
	    !view_read(&search->targets, match + sizeof(counts), blocks, sizeof(blocks)) ||
	    counts[1] > counts[0])
		return NULL;
	for (size_t i = 0; i < BLOCKS; i++) {
		allocation_id id = ruby_find_block(search, blocks[i]);

		if (id != NO_ALLOCATION &&
		    allocation_size(search->slots.index, id) / WORD >= counts[0])
			TRY(unused_add_rest(search->unused, blocks[i], 0));
	}
	return NULL;
}

/* Behind the used bytes of a block that begins there and has room for no more than those bytes. */
static struct error *add_rest_of_room(struct ruby_unused *search, uint64_t start, uint64_t used,
				      uint64_t room)
{
	enum { ROUNDED = 64 };
	allocation_id id = ruby_find_block(search, start);

	return id != NO_ALLOCATION && used <= room &&
			       allocation_size(search->slots.index, id) - room <= ROUNDED
		       ? unused_add_rest(search->unused, start, used)
		       : NULL;
}

/* struct re_pattern_buffer of Onigmo: { code, u32 used, room; ... }. */
static struct error *add_pattern(struct ruby_unused *search, uint64_t start)
{
	uint64_t pattern, code;
	uint32_t counts[2];

	if (!view_word(&search->view, start + CONTENTS, &pattern) ||
	    !view_word(&search->targets, pattern, &code) ||
	    !view_read(&search->targets, pattern + WORD, counts, sizeof(counts)))
		return NULL;
	return add_rest_of_room(search, code, counts[0], counts[1]);
}

/* The body of an iseq: { u32 type, count; words; ... }. */
static struct error *add_instructions(struct ruby_unused *search, uint64_t start)
{
	uint64_t body, words;
	uint32_t counts[2];

	if (!view_word(&search->view, start + CONTENTS, &body) ||
	    !view_read(&search->targets, body, counts, sizeof(counts)) ||
	    !view_word(&search->targets, body + sizeof(counts), &words))
		return NULL;
	return add_rest_of_room(search, words, (uint64_t)counts[1] * WORD,
				(uint64_t)counts[1] * WORD);
}

/* rb_env_t, what a block captured: | flags | iseq | ep | words | u32 how many |. */
static struct error *add_environment(struct ruby_unused *search, uint64_t start)
{
	enum { WORDS = 24 };
	uint64_t words[2];

	if (!view_read(&search->view, start + WORDS, words, sizeof(words)))
		return NULL;
	words[1] = (words[1] & UINT32_MAX) * WORD;
	return add_rest_of_room(search, words[0], words[1], words[1]);
}

static struct error *add_internal(struct ruby_unused *search, uint64_t start, uint64_t flags)
{
	switch (ruby_imemo_kind(&search->slots, flags)) {
	case RUBY_ISEQ:
		return add_instructions(search, start);
	case RUBY_ENV:
		return add_environment(search, start);
	default:
		return NULL;
	}
}

/* The context of a thread or fiber says what of its stack is between its values and its frames. */
static struct error *add_stack(struct ruby_unused *search, uint64_t start)
{
	char name[RUBY_MOST_NAME + 1];
	uint64_t type = ruby_find_data_type(search->ruby, &search->view, start), data;
	uint64_t sp = 0, frame = 0;

	if (!type || !ruby_read_data_name(search->slots.image, type, name) ||
	    !view_word(&search->view, start + DATA, &data) || !data)
		return NULL;
	if (strcmp(name, "VM/thread") == 0 || strcmp(name, "fiber") == 0)
		ruby_find_stack(&search->targets, data, &sp, &frame);
	return unused_add(search->unused, sp, frame);
}

static struct error *add_object(struct ruby_unused *search, struct memory_range slot)
{
	uint64_t flags;

	if (!view_word(&search->view, slot.start, &flags))
		return NULL;
	switch (flags % RUBY_TYPES) {
	case RUBY_STRING:
		return add_string(search, slot.start, flags);
	case RUBY_ARRAY:
		return add_array(search, slot.start);
	case RUBY_HASH:
		return add_hash(search, slot.start, slot.end - slot.start, flags);
	case RUBY_STRUCT:
		return add_struct(search, slot.start, flags);
	case RUBY_OBJECT:
		return add_variables(search, slot.start, flags);
	case RUBY_FILE:
		return add_file(search, slot.start);
	case RUBY_MATCH:
		return add_match(search, slot.start);
	case RUBY_REGEXP:
		return add_pattern(search, slot.start);
	case RUBY_IMEMO:
		return add_internal(search, slot.start, flags);
	case RUBY_DATA:
		return add_stack(search, slot.start);
	default:
		return NULL;
	}
}

static struct error *find_all(struct ruby_unused *search)
{
	size_t hint = 0;

	bitmap_for_each(id, &search->slots.slots)
		TRY(add_object(search, allocation_range_near(search->slots.index, (allocation_id)id,
							     &hint)));
	TRY(add_tables(search));
	return ruby_find_weak(search);
}

struct error *ruby_find_unused(struct object_space *space, struct unused *ret)
{
	const struct ruby *ruby = (const struct ruby *)space;
	const struct runtime_context *context = &ruby->space.context;
	struct ruby_unused search = {
		.ruby = ruby,
		.view = { context->image },
		.targets = { context->image },
		.unused = ret,
		.steps = { context->image->size / WORD },
	};
	struct error *error = ruby_slots_find(&search.slots, context);

	if (!error)
		error = bitmap_init(&search.own_tables, allocation_count(context->index),
				    context->account);
	if (!error)
		error = find_all(&search);
	bitmap_deinit(&search.own_tables);
	ruby_slots_deinit(&search.slots);
	return error;
}
