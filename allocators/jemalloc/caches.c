/*
 * The caches of threads (tcache.h, cache_bin.h).
 *
 * An arena lists the descriptors of the caches of its threads, those that the program made itself
 * among them: { next, previous, bins, from 5.1 to 5.2 also bins of large classes }. A bin is of 24
 * bytes, on i386 of 20, for the class of its number. Its regions are on a stack:
 *
 *	5.3	{ top, requests, 16 bits each: low water, full, empty, ... }	top up to empty
 *	5.0	{ low water, count, requests, end }			count words below end
 *
 * The stack is in an allocation like any other. 5.0 has no descriptors, but lists the caches: { 16
 * bytes, bins, next, previous, ..., bins of large classes }. Where no arena is found, bins are
 * searched for in front of the thread pointers, where the threads' own variables are.
 */
#include "allocators/jemalloc/jemalloc.h"

enum {
	MOST_BIN = 24,
	MOST_CACHED = 1 << 13,
	MOST_CACHES = 1 << 20,
	ARENA_BYTES = 256 << 10,
	TLS_BYTES = 64 << 10,
	GAP_BYTES = 1024, /* between the bins of small and large classes, at most */
	LARGE_BINS = 32,  /* at most */
	OLD_BINS = 16,	  /* of a cache of 5.0 */
};

/* A bin: count regions, by the words from first on. */
struct bin {
	uint64_t first, count;
	uint64_t stack; /* an address in the stack's memory */
	uint64_t next;	/* where the next bin's stack may begin or end */
};

struct cache_search {
	struct jemalloc *je;
	const struct heap_context *context;
	struct view view, stacks;
	bool falls;		      /* the form of the bins: from 5.3 on */
	struct number_list registers; /* of threads that run; sorted */
};

static unsigned int word_of(const struct cache_search *search)
{
	return search->je->geometry.word;
}

static uint64_t bin_bytes(const struct cache_search *search)
{
	return word_of(search) == sizeof(uint64_t) ? MOST_BIN : 20;
}

static bool is_readable(struct cache_search *search, uint64_t address)
{
	uint64_t word;

	return address % word_of(search) == 0 && view_word(&search->stacks, address, &word);
}

/* The form from 5.3 on. */
static bool read_falling(struct cache_search *search, const uint8_t *bytes, struct bin *ret)
{
	const unsigned int word = word_of(search);
	uint64_t top = load_word(bytes, word);
	uint16_t ends[3], used, room;

	memcpy(ends, bytes + word + sizeof(uint64_t), sizeof(ends));
	used = (uint16_t)(ends[2] - top);
	room = (uint16_t)(ends[2] - ends[1]);
	if (used > room || used % word != 0 || room % word != 0)
		return false;
	*ret = (struct bin){ top, used / word, top + used - room, top + used };
	return is_readable(search, ret->stack);
}

static bool read_rising(struct cache_search *search, const uint8_t *bytes, struct bin *ret)
{
	const unsigned int word = word_of(search);
	uint64_t end = load_word(bytes + 2 * sizeof(uint64_t), word);
	uint32_t low, count;

	memcpy(&low, bytes, sizeof(low));
	memcpy(&count, bytes + sizeof(low), sizeof(count));
	if (count > MOST_CACHED || (low > count && low != UINT32_MAX) || end < PAGE)
		return false;
	*ret = (struct bin){ end - word * (uint64_t)count, count, end - word, end };
	return is_readable(search, ret->stack) && is_readable(search, ret->first);
}

static bool read_bin(struct cache_search *search, uint64_t address, struct bin *ret)
{
	uint8_t bytes[MOST_BIN];

	return view_read(&search->view, address, bytes, bin_bytes(search)) &&
	       (search->falls ? read_falling(search, bytes, ret) : read_rising(search, bytes, ret));
}

/*
 * How many bins of classes from class on are at address: stacks of most are rooms in a row. All
 * must be there if they are of small classes.
 */
static unsigned int count_bins(struct cache_search *search, uint64_t address, unsigned int most)
{
	struct bin bin;
	unsigned int count = 0;

	while (count < most && read_bin(search, address + bin_bytes(search) * count, &bin))
		count++;
	return count;
}

/* True if the region is in use and of the class. */
static bool is_of_class(const struct jemalloc *je, uint64_t address, unsigned int class)
{
	struct memory_range range;
	unsigned int found;

	return jemalloc_find_region(je, address, &range, &found) && found == class &&
	       range.start == address;
}

/*
 * True if the region may already be freed. A cache that is being emptied lists its regions until
 * all are freed.
 */
static bool is_in_transit(const struct jemalloc *je, uint64_t address)
{
	const struct jemalloc_extent *extent = jemalloc_find_extent(je, address);
	size_t number = LIST_ABOVE(je->changing.items, je->changing.count, end, address);

	if (extent)
		return !is_active(&je->layout, extent);
	return number < je->changing.count && address >= je->changing.items[number].start;
}

/* How many regions of the bin are not of its class, or absent. */
static uint64_t count_strangers(struct cache_search *search, const struct bin *bin,
				unsigned int class)
{
	uint64_t strangers = 0, word;

	for (uint64_t i = 0; i < bin->count; i++)
		strangers +=
			!view_word(&search->stacks, bin->first + word_of(search) * i, &word) ||
			(!is_of_class(search->je, word, class) && !is_in_transit(search->je, word));
	return strangers;
}

/* Sort, and keep one of each; twice gets those that there were more of. */
static size_t drop_repeated(uint64_t *list, size_t count, struct heap_damage *twice)
{
	size_t kept = 0;

	SORT(list, count, compare_u64);
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || list[kept - 1] != list[i])
			list[kept++] = list[i];
		else
			heap_damage_note(twice, list[i]);
	return kept;
}

/*
 * free() writes the new top of the stack before the region to which it is to point, in 5.3.0 of
 * Debian: between these two instructions, a region that the program uses is the latest in the
 * cache.
 */
static bool is_changing_top(const struct cache_search *search, const struct bin *bin)
{
	return search->falls && bin->count > 0 && number_list_has(&search->registers, bin->first);
}

static struct error *list_registers(struct cache_search *search)
{
	const struct program *program = search->context->program;

	list_for_each(thread, program->threads, program->thread_count)
		for (size_t i = 0; thread->system_call == SYSTEM_CALL_NONE && i < MOST_REGISTERS;
		     i++)
			TRY(array_append(&search->registers, thread->state->registers[i]));
	number_list_sort(&search->registers);
	return NULL;
}

static struct error *add_bin(struct cache_search *search, const struct bin *bin, unsigned int class)
{
	struct jemalloc *je = search->je;
	const size_t first = je->cached.count;

	je->changing_caches += is_changing_top(search, bin);
	for (uint64_t i = 0; i < bin->count; i++) {
		uint64_t word;

		if (!view_word(&search->stacks, bin->first + word_of(search) * i, &word))
			word = 0;
		if (is_of_class(je, word, class))
			TRY(array_append(&je->cached, word));
		else if (!is_in_transit(je, word))
			heap_damage_note(&je->strangers, bin->first + word_of(search) * i);
	}
	/*
	 * A region in several bins is no damage: a bin that is being emptied lists regions that
	 * others may have already.
	 */
	je->cached.count = first + drop_repeated(je->cached.items + first, je->cached.count - first,
						 &je->lists.twice);
	return NULL;
}

static struct error *add_bins(struct cache_search *search, uint64_t address, unsigned int count,
			      unsigned int class)
{
	const struct memory_range range = { address, address + bin_bytes(search) * count };

	for (unsigned int i = 0; i < count; i++) {
		struct bin bin;

		if (read_bin(search, address + bin_bytes(search) * i, &bin))
			TRY(add_bin(search, &bin, class + i));
	}
	return count > 0 ? array_append(&search->je->bins, range) : NULL;
}

/* How many bins of large classes are at address; none have strangers if they are to be believed. */
static unsigned int count_large(struct cache_search *search, uint64_t address)
{
	unsigned int class = search->je->layout.small_count, count = 0;
	struct bin bin;

	while (count < LARGE_BINS && read_bin(search, address + bin_bytes(search) * count, &bin) &&
	       count_strangers(search, &bin, class + count) == 0)
		count++;
	return count;
}

/* The allocation that has the stacks is jemalloc's own. */
static struct error *add_stack(struct cache_search *search, uint64_t bins)
{
	struct memory_range range;
	struct bin bin;
	unsigned int class;

	if (!read_bin(search, bins, &bin) ||
	    !jemalloc_find_region(search->je, bin.stack, &range, &class))
		return NULL;
	return array_append(&search->je->stacks, range.start);
}

static struct error *add_cache(struct cache_search *search, uint64_t small, uint64_t large)
{
	struct jemalloc *je = search->je;

	if (je->cache_count == MOST_CACHES)
		return NULL;
	je->cache_count++;
	TRY(add_bins(search, small, je->layout.small_count, 0));
	TRY(add_bins(search, large, count_large(search, large), je->layout.small_count));
	return add_stack(search, small);
}

/* True if bins of all small classes are at address, in one of the forms. */
static bool has_bins(struct cache_search *search, uint64_t address)
{
	unsigned int small = search->je->layout.small_count;

	for (int i = 0; i < 2; i++) {
		search->falls = i == 0;
		if (count_bins(search, address, small) == small)
			return true;
	}
	return false;
}

/* A descriptor. */
struct descriptor {
	uint64_t next, small, large;
};

static bool is_descriptor(struct cache_search *search, uint64_t address, struct descriptor *ret)
{
	const unsigned int word = word_of(search);
	uint64_t previous;

	return address >= PAGE && address % word == 0 &&
	       view_word(&search->view, address, &ret->next) &&
	       view_word(&search->view, address + 2 * word, &ret->small) &&
	       view_word(&search->view, address + 3 * word, &ret->large) && ret->small >= PAGE &&
	       ret->small % word == 0 && ret->next >= PAGE &&
	       view_word(&search->view, ret->next + word, &previous) && previous == address &&
	       has_bins(search, ret->small);
}

/* Add the caches of the ring that the descriptor is in. */
static struct error *add_ring(struct cache_search *search, uint64_t first)
{
	struct descriptor descriptor;
	uint64_t address = first;

	do {
		uint64_t large;

		if (!is_descriptor(search, address, &descriptor))
			return NULL;
		large = search->falls ? descriptor.small +
						bin_bytes(search) * search->je->layout.small_count
				      : descriptor.large;
		TRY(add_cache(search, descriptor.small, large));
		TRY(progress_check(search->context->progress, 0));
		address = descriptor.next;
	} while (address != first && search->je->cache_count < MOST_CACHES);
	return NULL;
}

/* Bins of large classes behind those of small ones: at most so far, and none has strangers. */
static uint64_t find_large(struct cache_search *search, uint64_t end)
{
	for (uint64_t at = end; at < end + GAP_BYTES; at += word_of(search))
		if (count_large(search, at) > 0)
			return at;
	return end;
}

/* Find the next cache, in the layout of 5.0; false if there is none at address. */
static bool is_old_cache(struct cache_search *search, uint64_t address, uint64_t *ret_next)
{
	uint64_t bins = address + OLD_BINS;
	uint64_t end = bins + bin_bytes(search) * search->je->layout.small_count;

	return address <= UINT64_MAX - ARENA_BYTES && view_word(&search->view, end, ret_next) &&
	       *ret_next >= PAGE && has_bins(search, bins) && !search->falls;
}

static struct error *add_old_ring(struct cache_search *search, uint64_t first)
{
	uint64_t bytes = bin_bytes(search) * search->je->layout.small_count;
	uint64_t address = first, next;

	do {
		if (!is_old_cache(search, address, &next))
			return NULL;
		TRY(add_cache(search, address + OLD_BINS,
			      find_large(search, address + OLD_BINS + bytes)));
		TRY(progress_check(search->context->progress, 0));
		address = next;
	} while (address != first && search->je->cache_count < MOST_CACHES);
	return NULL;
}

/* Visit each word of the arena's structure until one leads to caches. */
static struct error *search_arena(struct cache_search *search, const struct jemalloc_arena *arena,
				  struct error *(*look)(struct cache_search *search, uint64_t word))
{
	const struct memory_range *base = jemalloc_find_base(search->je, arena->address);
	struct view words = { search->context->image };
	size_t before = search->je->cache_count;

	for (uint64_t at = arena->address;
	     base && at < base->end && at - arena->address < ARENA_BYTES &&
	     search->je->cache_count == before;
	     at += word_of(search)) {
		uint64_t word;

		if (view_word(&words, at, &word) && word >= PAGE && word % word_of(search) == 0)
			TRY(look(search, word));
	}
	return NULL;
}

/* Search the thread-local memory of a thread, on the side of its pointer where variables are. */
static struct error *search_thread(struct cache_search *search, uint64_t thread_pointer)
{
	uint64_t bytes = bin_bytes(search) * search->je->layout.small_count;
	bool are_above = search->context->image->arch->pthread.pointer != 0;
	uint64_t end = thread_pointer + (are_above ? TLS_BYTES : 0);

	for (uint64_t at = end - TLS_BYTES; at < end; at += word_of(search)) {
		if (!has_bins(search, at))
			continue;
		TRY(add_cache(search, at, find_large(search, at + bytes)));
		at += bytes;
	}
	return NULL;
}

/* True if a leaf of the tree is at address. */
static bool is_known_leaf(const struct jemalloc *je, uint64_t address)
{
	array_for_each(leaf, &je->leaves)
		if (leaf->start == address)
			return true;
	return false;
}

/*
 * Note the thread's cache of leaves (rtree_ctx): { the lowest address that the leaf is for, leaf }.
 * The former is a multiple of 4 MiB on i386, and may lie in a block; otherwise, they are too rare.
 */
static struct error *note_keys(struct cache_search *search, uint64_t thread_pointer)
{
	const struct jemalloc_geometry *geometry = &search->je->geometry;
	const uint64_t reach = UINT64_C(1) << (geometry->log_page + leaf_bits(geometry));
	const unsigned int word = geometry->word;
	uint64_t key, leaf;

	for (uint64_t at = thread_pointer - TLS_BYTES; at < thread_pointer; at += word)
		if (view_word(&search->view, at, &key) && key && key % reach == 0 &&
		    view_word(&search->view, at + word, &leaf) && is_known_leaf(search->je, leaf))
			TRY(array_append(&search->je->bins,
					 (struct memory_range){ at, at + word }));
	return NULL;
}

static struct error *search_arenas(struct cache_search *search,
				   struct error *(*look)(struct cache_search *search,
							 uint64_t word))
{
	array_for_each(arena, &search->je->arenas)
		if (arena->address)
			TRY(search_arena(search, arena, look));
	return NULL;
}

static struct error *find_caches(struct cache_search *search)
{
	const struct program *program = search->context->program;
	struct jemalloc *je = search->je;

	TRY(list_registers(search));
	TRY(search_arenas(search, add_ring));
	if (je->cache_count == 0)
		TRY(search_arenas(search, add_old_ring));
	if (je->cache_count == 0)
		list_for_each(thread, program->threads, program->thread_count)
			if (thread->thread_pointer > TLS_BYTES)
				TRY(search_thread(search, thread->thread_pointer & ~UINT64_C(7)));
	if (je->geometry.word == sizeof(uint32_t))
		list_for_each(thread, program->threads, program->thread_count)
			if (thread->thread_pointer > TLS_BYTES)
				TRY(note_keys(search, thread->thread_pointer & ~UINT64_C(3)));
	return NULL;
}

struct error *jemalloc_find_caches(struct jemalloc *je, const struct heap_context *context)
{
	struct cache_search search = { .je = je,
				       .context = context,
				       .view = { context->image },
				       .stacks = { context->image },
				       .registers.memory.account = context->account };
	struct error *error = find_caches(&search);

	array_release(&search.registers);
	if (error)
		return error;
	number_list_sort(&je->cached);
	number_list_sort(&je->stacks);
	return NULL;
}
