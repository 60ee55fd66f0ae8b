#include "analyzer/classify/classifier.h"
#include "analyzer/program/symbols.h"

/*
 * The container is a single pointer to the first of
 *
 *	| next | element ...
 *
 * Other chains look the same, so it takes at least three nodes of one size, most referred to by
 * nothing but the one before or the container, and ended by a null pointer; a second link in them
 * makes them something else, and larger ones are more often a program's own than of the library.
 * What a variable of a library without C++ refers to is a chain of that library.
 */
enum { LEAST_NODES = 3, MOST_SIZE = MOST_CHAINED - 16 }; /* of the last one: MOST_CHAINED */

static bool is_like(struct memory_range range, uint64_t size)
{
	return range_size(range) + 16 - size <= 32;
}

/* True if a second link leads to an allocation like a node. */
static bool has_second(struct reader *reader, uint64_t second, uint64_t size)
{
	struct memory_range range, other;
	uint64_t next;

	return reader_start(reader, second, &range) != NO_ALLOCATION && range_size(range) == size &&
	       reader_word(reader, second, &next) &&
	       (next == 0 || reader_start(reader, next, &other) != NO_ALLOCATION);
}

static bool is_node(struct reader *reader, uint64_t address, uint64_t size, allocation_id *ret,
		    uint64_t *ret_next)
{
	struct memory_range range;
	uint64_t words[2];

	*ret = reader_start(reader, address, &range);
	if (*ret == NO_ALLOCATION || !is_like(range, size) ||
	    !reader_words(reader, address, 2, words) || has_second(reader, words[1], size))
		return false;
	*ret_next = words[0];
	return true;
}

/*
 * Follow the chain to its end, or to nodes that were found to be a chain before. Returns how many
 * nodes are new, or 0 if it is none. What is left over in memory may refer to a few nodes once
 * more.
 */
static uint64_t measure(struct reader *reader, struct overview *overview, allocation_id first)
{
	uint64_t node = allocation_start(reader->index, first);
	uint64_t size = allocation_size(reader->index, first);
	uint64_t count = 0, others = 0;
	allocation_id id;

	for (; node; count++) {
		if (!is_node(reader, node, size, &id, &node) || !reader_step(reader))
			return 0;
		if (bitmap_get(&overview->walked, id))
			return reader_has_claim(reader, id) ? count : 0;
		bitmap_set(&overview->walked, id);
		others += bitmap_get(&overview->referred_twice, id);
	}
	return count >= LEAST_NODES && others <= 1 + count / 8 ? count : 0;
}

static void claim(struct reader *reader, allocation_id first, uint64_t count)
{
	uint64_t node = allocation_start(reader->index, first);
	uint64_t size = allocation_size(reader->index, first);
	uint64_t owner = reader_owner(reader, first);
	allocation_id id;

	for (; count; count--) {
		if (!is_node(reader, node, size, &id, &node))
			return;
		reader_claim(reader, id, owner);
	}
}

static bool starts_chain(struct reader *reader, allocation_id id)
{
	struct memory_range range;
	uint64_t next;

	return allocation_size(reader->index, id) >= 2 * (uint64_t)reader->word &&
	       allocation_size(reader->index, id) <= MOST_SIZE &&
	       reader_word(reader, allocation_start(reader->index, id), &next) &&
	       reader_start(reader, next, &range) != NO_ALLOCATION &&
	       is_like(range, allocation_size(reader->index, id));
}

/*
 * True if address is in the data of a library that cannot allocate as C++ does, because it does not
 * import operator new.
 */
static bool is_in_c_library(struct reader *reader, uint64_t address)
{
	static const char *const news[] = { "_Znwm", "_ZnwmSt11align_val_t", "_ZnwmRKSt9nothrow_t",
					    "_Znwj", "_ZnwjSt11align_val_t", "_ZnwjRKSt9nothrow_t",
					    NULL };
	const struct module *module = program_find_module(reader->program, address);

	if (!module || module == program_main_module(reader->program))
		return false;
	if (reader->library != module)
		reader->library_has_new =
			module_needs(module, news) || module_defines(module, news);
	reader->library = module;
	return !reader->library_has_new;
}

static bool may_be_chained(const struct reader *reader, const struct reference *reference)
{
	const struct address_filter *chained = &reader->overview->chained;

	return !chained->bits.bytes ||
	       address_filter_may_have(chained, load_word(reference->bytes, reference->word));
}

DEFINE_SUSPECT(suspect, may_be_chained)

/* The referrer becomes the owner if it proves to be part of a chain. */
static void match(struct reader *reader, const struct reference *reference)
{
	if (reference->source == NO_ALLOCATION && reader_in_module(reader, reference->address) &&
	    starts_chain(reader, reference->target) && is_in_c_library(reader, reference->address))
		bitmap_set_atomic(&reader->overview->foreign, reference->target);
	if (reader->owners &&
	    (reference->source == NO_ALLOCATION || reference->address != reference->holder.start ||
	     range_size(reference->range) + 16 - range_size(reference->holder) > 32))
		reader_claim(reader, reference->target, reference->address);
}

/* Nothing that is chained to those of a C library is a std::forward_list. */
static void finish(struct reader *reader, struct overview *overview)
{
	bitmap_for_each(id, &overview->foreign)
		measure(reader, overview, (allocation_id)id);
	bitmap_for_each(id, &overview->held)
		if (!bitmap_get(&overview->walked, id) && starts_chain(reader, (allocation_id)id))
			claim(reader, (allocation_id)id,
			      measure(reader, overview, (allocation_id)id));
}

CLASSIFIER(forward_list_node, "ForwardListNode", "an element of a std::forward_list",
	   "a node of the std::forward_list", .strength = STRENGTH_CHAIN, .narrow = true,
	   .for_cxx = true, .walks = true, .owners_later = true, .match = match, .suspect = suspect,
	   .finish = finish);
