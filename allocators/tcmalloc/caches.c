/*
 * Caches of freed objects, kept for reuse.
 *
 * A thread's cache (thread_cache.h) has a list of four words for each size class, and links to
 *other caches behind these; a variable of the module leads to the first:
 *
 *	| first object | length | low water | longest | overages | size of the class | ...
 *
 * The central cache of a class (central_freelist.h) has batches of objects for threads to take:
 *
 *	| lock | class | Span empty | Span nonempty | 2 words | 64 x { first, last } | used | ...
 *
 * Those of all classes are in a row, at equal distances. They are known by their class, and by the
 * Spans, which are the heads of rings. Objects of a list are linked by their first words.
 */
#include "allocators/tcmalloc/tcmalloc.h"

#include "analyzer/base/budget.h"
#include "analyzer/heap/cycle.h"

enum {
	MOST_CACHES = 1 << 13,
	/* Words of a central cache, counted from its class. */
	CENTRAL_EMPTY = 1,
	CENTRAL_NONEMPTY = CENTRAL_EMPTY + SPAN_WORDS,
	CENTRAL_BATCHES = CENTRAL_NONEMPTY + SPAN_WORDS + 2,
	MOST_BATCHES = 64,
	CENTRAL_USED = CENTRAL_BATCHES + 2 * MOST_BATCHES,
	/* Bytes by which each is longer. */
	REST_LEAST = 16,
	REST_MOST = REST_LEAST + 256,
	CENTRALS_WANTED = 8,
	/* Metadata so near to each other are in memory for metadata. */
	METADATA_GAP = 128 << 10,
	/* They are cut from the start of chunks of this size. */
	METADATA_CHUNK = METADATA_GAP,
	POOL_WORDS = 4,	  /* of a PageHeapAllocator */
	TRACE_WORDS = 33, /* of the stack of a sampled allocation */
};

struct cache_search {
	struct tcmalloc *tc;
	const struct heap_context *context;
	struct view view, objects;
	struct budget budget;		   /* objects in lists: no more than there can be */
	ARRAY(struct memory_range) chunks; /* of metadata, the newest of each sort */
};

const struct cached_object *tcmalloc_find_cached(const struct tcmalloc *tc, uint64_t address)
{
	const struct cached_object *object =
		LIST_LAST(tc->cached.items, tc->cached.count, address, address);

	return object && object->address == address ? object : NULL;
}

/* True if an object of the class begins at address. */
static bool is_object(const struct tcmalloc *tc, uint64_t address, unsigned int class)
{
	const struct tcmalloc_span *span = tcmalloc_find_span(tc, address);

	return span && span_location(span) == SPAN_IN_USE && span_class(span) == class &&
	       (address - span->start) % tc->classes[class] == 0;
}

/* How a list of objects ends. */
struct list_end {
	bool is_whole;	/* after as many objects as it should */
	uint64_t twice; /* an object that it returns to, */
	uint64_t wrong; /* or one whose link leads elsewhere; 0: none */
};

/* If object is one of those from start on, leave out what repeats. */
static void cut_list(struct tcmalloc *tc, size_t start, uint64_t object, struct list_end *ret)
{
	const struct cached_object *objects = tc->cached.items + start;
	size_t count = tc->cached.count - start, i = 0;

	while (i < count && objects[i].address != object)
		i++;
	if (i < count)
		tc->cached.count =
			start + cycle_cut(objects, sizeof(*objects), count, object, &ret->twice);
}

/* Add the objects from first on, count at most, until last if that is not 0. */
static struct error *add_list(struct cache_search *search, uint64_t first, uint64_t count,
			      uint64_t last, unsigned int class, uint32_t cache,
			      struct list_end *ret)
{
	struct tcmalloc *tc = search->tc;
	struct cycle_search cycle = { .power = 1 };
	const size_t start = tc->cached.count;
	uint64_t object = first, i = 0, before = 0;

	*ret = (struct list_end){ 0 };
	for (; object && i < count && budget_take(&search->budget); i++) {
		if (cycle_closes(&cycle, object))
			break;
		if (!is_object(tc, object, class)) {
			ret->wrong = before;
			return NULL;
		}
		TRY(array_append(&tc->cached, (struct cached_object){ object, cache }));
		ret->is_whole = object == last;
		if (ret->is_whole)
			return NULL;
		before = object;
		if (!view_word(&search->objects, object, &object))
			return NULL;
	}
	ret->is_whole = !last && !object && i == count;
	if (object)
		cut_list(tc, start, object, ret);
	return NULL;
}

static void note_end(struct tcmalloc *tc, const struct list_end *end, uint64_t list)
{
	if (end->twice)
		heap_damage_note(&tc->lists.twice, end->twice);
	else if (end->wrong)
		heap_damage_note(&tc->lists.links, end->wrong);
	else if (!end->is_whole)
		heap_damage_note(&tc->lengths, list);
}

/* True if a thread's cache is at address: its lists have the sizes of all classes. */
static bool is_cache(struct cache_search *search, uint64_t address)
{
	const struct tcmalloc *tc = search->tc;
	uint32_t size;

	if (address < PAGE || address % tc->word != 0 || address >> ADDRESS_BITS)
		return false;
	for (unsigned int i = tc->class_count - 1; i > 0; i--)
		if (!view_read(&search->view, address + list_bytes(tc) * i + 3 * tc->word, &size,
			       sizeof(size)) ||
		    size != tc->classes[i])
			return false;
	return true;
}

static bool is_known(const struct tcmalloc *tc, uint64_t address)
{
	array_for_each(cache, &tc->caches)
		if (cache->address == address)
			return true;
	return false;
}

/* A word behind the lists is what pthread_self() returned. */
static uint32_t find_thread(struct cache_search *search, uint64_t cache)
{
	const struct program *program = search->context->program;
	const uint64_t rest = cache + lists_bytes(search->tc);
	uint64_t word;

	for (uint64_t at = rest; at < rest + CACHE_REST; at += search->tc->word)
		list_for_each(thread, program->threads, program->thread_count)
			if (view_word(&search->view, at, &word) && word &&
			    word == thread_descriptor(program, thread->thread_pointer))
				return thread->id;
	return 0;
}

/* Note the cache at word if there is one. */
static struct error *look_for_cache(struct cache_search *search, uint64_t word)
{
	struct tcmalloc *tc = search->tc;

	if (tc->caches.count == MOST_CACHES || !is_cache(search, word) || is_known(tc, word))
		return NULL;
	return array_append(&tc->caches,
			    (struct tcmalloc_cache){ word, find_thread(search, word) });
}

/* True if a Span at address is the head of a circular list of Spans. */
static bool is_ring(struct cache_search *search, uint64_t address)
{
	struct span_words head, next;

	return read_span_words(&search->view, address, &head) && head.next && head.previous &&
	       read_span_words(&search->objects, head.next, &next) && next.previous == address;
}

static bool is_central(struct cache_search *search, uint64_t address, uint64_t class)
{
	const unsigned int size = search->tc->word;
	uint64_t word;

	return view_word(&search->view, address, &word) && word == class &&
	       is_ring(search, address + CENTRAL_EMPTY * size) &&
	       is_ring(search, address + CENTRAL_NONEMPTY * size);
}

/* Note the central caches if that of class 1 is at address. */
static void look_for_central(struct cache_search *search, uint64_t address)
{
	struct tcmalloc *tc = search->tc;

	if (tc->central.start || !is_central(search, address, 1))
		return;
	for (uint64_t rest = REST_LEAST; rest <= REST_MOST; rest += tc->word) {
		const uint64_t stride = CENTRAL_USED * (uint64_t)tc->word + rest;
		uint64_t class = 2;

		while (class < tc->class_count &&
		       is_central(search, address + (class - 1) * stride, class))
			class ++;
		if (class < tc->class_count)
			continue;
		tc->central.start = address;
		tc->central.end = address + (class - 1) * stride;
		return;
	}
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct cache_search *search = data;

	if (word == 1)
		look_for_central(search, where);
	return look_for_cache(search, word);
}

static struct error *read_cache(struct cache_search *search, uint32_t number)
{
	struct tcmalloc *tc = search->tc;
	uint64_t address = tc->caches.items[number].address;

	for (unsigned int i = 1; i < tc->class_count; i++) {
		uint64_t list = address + list_bytes(tc) * i, first;
		uint32_t length = 0;
		struct list_end end;

		if (!view_word(&search->view, list, &first) ||
		    !view_read(&search->view, list + tc->word, &length, tc->word / 2))
			continue;
		TRY(add_list(search, first, length, 0, i, number, &end));
		note_end(tc, &end, list);
	}
	return progress_check(search->context->progress, 0);
}

/*
 * The batches of a class. A thread that adds one counts it first: until then, the last one has
 * addresses of old, of objects that may be in use again.
 */
static struct error *read_central(struct cache_search *search, uint64_t address, unsigned int class)
{
	struct tcmalloc *tc = search->tc;
	const uint64_t place = address + CENTRAL_USED * (uint64_t)tc->word;
	uint32_t used;

	if (!view_read(&search->view, place, &used, sizeof(used)) || used > MOST_BATCHES) {
		heap_damage_note(&tc->lengths, place);
		return NULL;
	}
	for (uint32_t i = 0; i < used; i++) {
		uint64_t batch = address + (CENTRAL_BATCHES + 2 * (uint64_t)i) * tc->word;
		uint64_t first, last;
		size_t before = tc->cached.count;
		struct list_end end = { 0 };

		if (view_word(&search->view, batch, &first) &&
		    view_word(&search->view, batch + tc->word, &last))
			TRY(add_list(search, first, MOST_OBJECTS, last, class, TRANSFER_CACHE,
				     &end));
		note_end(tc, &end, batch);
		if (!end.is_whole && i == used - 1)
			tc->cached.count = before;
	}
	return NULL;
}

static struct error *read_centrals(struct cache_search *search)
{
	const struct tcmalloc *tc = search->tc;
	uint64_t stride = (tc->central.end - tc->central.start) / (tc->class_count - 1);

	for (unsigned int i = 1; tc->central.start && i < tc->class_count; i++)
		TRY(read_central(search, tc->central.start + (i - 1) * stride, i));
	return NULL;
}

/* Follow the links from cache to cache. */
static struct error *follow_caches(struct cache_search *search)
{
	struct tcmalloc *tc = search->tc;

	for (uint32_t i = 0; i < tc->caches.count; i++) {
		uint64_t rest = tc->caches.items[i].address + lists_bytes(tc), word;

		for (uint64_t at = rest; at < rest + CACHE_REST; at += tc->word)
			if (view_word(&search->objects, at, &word))
				TRY(look_for_cache(search, word));
		TRY(read_cache(search, i));
	}
	return NULL;
}

/* Join metadata that are near each other, but for spans between them. */
static void join_metadata(struct tcmalloc *tc)
{
	struct memory_range *ranges = tc->metadata.items;
	size_t count = memory_ranges_join(ranges, tc->metadata.count), kept = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t end = kept > 0 ? ranges[kept - 1].end : 0;
		size_t span = LIST_ABOVE(tc->spans.items, tc->spans.count, start, end);

		if (kept > 0 && ranges[i].start - end < METADATA_GAP &&
		    (span == tc->spans.count || tc->spans.items[span].start >= ranges[i].start))
			ranges[kept - 1].end = ranges[i].end;
		else
			ranges[kept++] = ranges[i];
	}
	tc->metadata.count = kept;
}

/* True if [start, end) has known metadata and no span. */
static bool has_metadata(const struct tcmalloc *tc, uint64_t start, uint64_t end)
{
	size_t range = LIST_ABOVE(tc->metadata.items, tc->metadata.count, end, start);
	size_t span = LIST_ABOVE(tc->spans.items, tc->spans.count, start, end - 1);

	return range < tc->metadata.count && tc->metadata.items[range].start < end &&
	       (span == 0 || span_end(&tc->spans.items[span - 1]) <= start);
}

/*
 * Claim the newest chunk of a PageHeapAllocator (page_heap_allocator.h) if one is at where: { rest
 * of the chunk, size of that, free metadata or 0, how many are in use }.
 */
static struct error *look_for_chunk(void *data, uint64_t where, uint64_t word)
{
	struct cache_search *search = data;
	const struct image *image = search->context->image;
	const unsigned int size = search->tc->word;
	uint64_t left, in_use, start, end;

	if (word >> ADDRESS_BITS || word < METADATA_CHUNK ||
	    !view_word(&search->view, where + size, &left) || left == 0 || left >= METADATA_CHUNK ||
	    !view_word(&search->view, where + 3 * size, &in_use) || in_use == 0 || in_use >> 32)
		return NULL;
	end = word + left;
	start = end - METADATA_CHUNK;
	if (end % PAGE != 0 || !has_metadata(search->tc, start, word) ||
	    !has_metadata(search->tc, start, end) || !is_anonymous_memory(image, start) ||
	    image_find(image, start) != image_find(image, word))
		return NULL;
	TRY(array_append(&search->tc->pools,
			 (struct memory_range){ where, where + POOL_WORDS * (uint64_t)size }));
	return array_append(&search->chunks, (struct memory_range){ start, end });
}

/* Traces may hold what was taken for a return address. */
static struct error *add_metadata(struct tcmalloc *tc, const struct tcmalloc_span *span)
{
	TRY(array_append(&tc->metadata,
			 (struct memory_range){ span->metadata, span->metadata + span_bytes(tc) }));
	if (!span_is_sampled(span) || span_location(span) != SPAN_IN_USE ||
	    tcmalloc_find_span(tc, span->objects) || span->objects >> ADDRESS_BITS)
		return NULL;
	return array_append(
		&tc->metadata,
		(struct memory_range){ span->objects,
				       span->objects + TRACE_WORDS * (uint64_t)tc->word });
}

static struct error *find_metadata(struct cache_search *search)
{
	struct tcmalloc *tc = search->tc;

	array_for_each(span, &tc->spans)
		TRY(add_metadata(tc, span));
	array_for_each(cache, &tc->caches)
		TRY(array_append(
			&tc->metadata,
			(struct memory_range){ cache->address,
					       cache->address + lists_bytes(tc) + CACHE_REST }));
	array_for_each(leaf, &tc->leaves)
		TRY(array_append(&tc->metadata, *leaf));
	join_metadata(tc);
	TRY(module_visit_words(search->context->image, tc->module, look_for_chunk, search));
	array_for_each(chunk, &search->chunks)
		TRY(array_append(&tc->metadata, *chunk));
	tc->metadata.count = memory_ranges_join(tc->metadata.items, tc->metadata.count);
	return NULL;
}

DEFINE_COMPARE(compare_cached, struct cached_object, ASCENDING(address), ASCENDING(cache))

/* Objects that two threads have. A batch that is just being added may have old ones. */
static void note_repeats(struct tcmalloc *tc)
{
	const struct cached_object *cached = tc->cached.items;

	for (size_t i = 1; i < tc->cached.count; i++)
		if (cached[i].address == cached[i - 1].address && cached[i].cache != TRANSFER_CACHE)
			heap_damage_note(&tc->lists.twice, cached[i].address);
}

static struct error *find_all(struct cache_search *search)
{
	struct tcmalloc *tc = search->tc;

	TRY(module_visit_words(search->context->image, tc->module, look, search));
	TRY(follow_caches(search));
	TRY(read_centrals(search));
	array_sort(&tc->cached, compare_cached);
	note_repeats(tc);
	return find_metadata(search);
}

struct error *tcmalloc_find_caches(struct tcmalloc *tc, const struct heap_context *context)
{
	struct cache_search search = {
		.tc = tc,
		.context = context,
		.view = { context->image },
		.objects = { context->image },
		.budget = { tc->bytes / ALIGNMENT },
	};
	struct error *error;

	search.chunks.memory.account = context->account;
	error = find_all(&search);
	array_release(&search.chunks);
	return error;
}
