/*
 * Caches of freed objects, kept for reuse.
 *
 * Processors (internal/percpu_tcmalloc.h) have slabs in a row, of 1 << shift bytes each; a variable
 * of the module has the address of the first and, in its lower byte, the shift. A slab begins with
 * a header for each class: places of its objects in the slab, in words.
 *
 *	until 2023:  | current | end | begin | end |	of 2 bytes each
 *	later:       | current | end |			below the first object is a word with bit 0
 *
 * A thread (thread_cache.h) has caches where the system lacks restartable sequences: a list for
 * each class, of 24 or 32 bytes, and behind them links to the caches of other threads.
 *
 *	| first object | length | low water | longest | ...
 *
 * A transfer cache (transfer_cache_internals.h) has an array of objects of one class:
 *
 *	| used, capacity | array |   or   | used, capacity | low water | array |
 *
 * Those are variables of the module, or in metadata where processors share them.
 */
#include "allocators/google_tcmalloc/google_tcmalloc.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/view.h"

enum {
	LEAST_SHIFT_OF_SLAB = 12,
	MOST_SHIFT_OF_SLAB = 20,
	MOST_CPUS = 1 << 13,
	MISFITS_MOST = 4,
	MOST_THREADS = 1 << 13,
	THREAD_REST = 256,
	TRANSFER_MOST = 1 << 16,
	LIST_LEAST = 24,
	LIST_MOST = 32,
	HEADER_LEAST = 4,
	HEADER_MOST = 8,
	LOOKS_LEAST = 1 << 22,
	LOOKS_EACH = 8, /* word of the dump */
};

struct cache_search {
	struct google_tcmalloc *tc;
	const struct heap_context *context;
	struct view view, objects;
	ARRAY(uint64_t) threads; /* their caches */
	unsigned int list_bytes; /* of the lists there, once one is known */
	struct budget budget;	 /* objects in caches: no more than there can be */
	struct budget looks;	 /* at what may be a list, or an object of one */
	uint64_t slabs;
};

const struct cached_object *google_find_cached(const struct google_tcmalloc *tc, uint64_t address)
{
	const struct cached_object *object =
		LIST_LAST(tc->cached.items, tc->cached.count, address, address);

	return object && object->address == address ? object : NULL;
}

/* The class of the object that begins at address, or 0. */
static unsigned int class_of(struct cache_search *search, uint64_t address)
{
	const struct google_tcmalloc *tc = search->tc;
	const struct google_span *span =
		budget_take(&search->looks) ? google_find_span(tc, address) : NULL;

	return span && span->class > 0 && (address - span->start) % tc->classes[span->class] == 0
		       ? span->class
		       : 0;
}

static struct error *add_cached(struct cache_search *search, uint64_t address, uint32_t kind,
				uint32_t cpu)
{
	if (!budget_take(&search->budget))
		return NULL;
	return array_append(&search->tc->cached, (struct cached_object){ address, kind, cpu });
}

static struct error *add_range(void *data, uint64_t start, uint64_t end)
{
	struct google_tcmalloc *tc = data;

	return array_append(&tc->metadata, (struct memory_range){ start, end });
}

/* The huge pages around [start, end) have metadata. */
static struct error *add_metadata(struct cache_search *search, uint64_t start, uint64_t end)
{
	const struct google_tcmalloc *tc = search->tc;
	const struct memory_range *last =
		tc->metadata.count > 0 ? &tc->metadata.items[tc->metadata.count - 1] : NULL;
	size_t above;

	if (last && start >= last->start && end <= last->end)
		return NULL;
	start &= ~(uint64_t)(HUGE_PAGE - 1);
	end = (end + HUGE_PAGE - 1) & ~(uint64_t)(HUGE_PAGE - 1);
	above = LIST_ABOVE(tc->spans.items, tc->spans.count, start, end - 1);
	if (above > 0 && span_end(&tc->spans.items[above - 1]) > start)
		return NULL;
	return google_visit_memory(search->context->image, start, end, add_range, search->tc);
}

/* The slab of a processor. */
struct slab {
	uint64_t address;
	unsigned int shift, header_bytes;
	uint32_t cpu;
};

/* Read where the class's objects are in the slab; *ret_begin is 0 if a mark tells where they begin.
 */
static bool read_header(struct cache_search *search, const struct slab *slab, unsigned int class,
			unsigned int *ret_begin, unsigned int *ret_current)
{
	uint16_t header[4] = { 0 };
	unsigned int most = (1U << slab->shift) / WORD;

	if (!budget_take(&search->looks) ||
	    !view_read(&search->view, slab->address + (uint64_t) class * slab->header_bytes, header,
		       slab->header_bytes))
		return false;
	*ret_current = header[0];
	*ret_begin = header[2];
	if (slab->header_bytes == HEADER_MOST && header[2] == UINT16_MAX) {
		*ret_begin = *ret_current; /* a thread empties the slab */
		return true;
	}
	return header[0] <= header[1] && header[1] <= most && header[2] <= header[0] &&
	       (slab->header_bytes == HEADER_LEAST || header[3] == header[1]);
}

/* Add the class's objects in the slab, and count them. False in *ret: they are not of that class.
 */
static struct error *read_slab_class(struct cache_search *search, const struct slab *slab,
				     unsigned int class, uint64_t *ret_count, bool *ret)
{
	unsigned int begin, current;
	uint64_t object = 0;

	*ret = read_header(search, slab, class, &begin, &current);
	for (unsigned int i = current; *ret && i > begin; i--) {
		*ret = view_word(&search->objects, slab->address + (i - 1) * (uint64_t)WORD,
				 &object);
		if (slab->header_bytes == HEADER_LEAST && (object & 1))
			return NULL;
		*ret &= class_of(search, object) == class;
		if (!*ret)
			break;
		TRY(add_cached(search, object, CACHE_CPU, slab->cpu));
		++*ret_count;
	}
	return NULL;
}

static struct error *read_slab(struct cache_search *search, const struct slab *slab,
			       uint64_t *ret_count, bool *ret)
{
	*ret = true;
	for (unsigned int class = 1; class < search->tc->class_count && *ret; class ++)
		TRY(read_slab_class(search, slab, class, ret_count, ret));
	return NULL;
}

/*
 * Add what is in the slabs of all processors, behind which is other metadata. *ret_count stays 0 if
 * there are none.
 */
static struct error *read_slabs(struct cache_search *search, struct slab slab, uint64_t *ret_count)
{
	struct google_tcmalloc *tc = search->tc;
	const uint64_t first = slab.address;
	uint64_t end = first;
	unsigned int misfits = 0;

	*ret_count = 0;
	for (slab.cpu = 0; misfits < MISFITS_MOST && slab.cpu < MOST_CPUS; slab.cpu++) {
		size_t before = tc->cached.count;
		uint64_t count = 0;
		bool fits;

		slab.address = first + ((uint64_t)slab.cpu << slab.shift);
		if (!is_anonymous_memory(search->context->image, slab.address))
			break;
		TRY(read_slab(search, &slab, &count, &fits));
		misfits = fits ? 0 : misfits + 1;
		if (fits)
			*ret_count += count;
		else
			tc->cached.count = before;
		if (fits && count > 0)
			end = slab.address + (UINT64_C(1) << slab.shift);
		if (!fits && *ret_count == 0)
			return NULL;
	}
	return *ret_count > 0 ? add_metadata(search, first, end) : NULL;
}

static struct error *look_for_slabs(struct cache_search *search, uint64_t word)
{
	struct slab slab = { .shift = word & UINT8_MAX };
	uint64_t count = 0;

	slab.address = word - slab.shift;
	if (search->slabs || slab.shift < LEAST_SHIFT_OF_SLAB || slab.shift > MOST_SHIFT_OF_SLAB ||
	    slab.address % PAGE != 0 || slab.address >> ADDRESS_BITS ||
	    !is_anonymous_memory(search->context->image, slab.address))
		return NULL;
	for (slab.header_bytes = HEADER_LEAST; slab.header_bytes <= HEADER_MOST && count == 0;
	     slab.header_bytes *= 2)
		TRY(read_slabs(search, slab, &count));
	if (count > 0)
		search->slabs = slab.address;
	return NULL;
}

/* A list in the cache of a thread. */
static bool read_list(struct cache_search *search, uint64_t cache, unsigned int bytes,
		      unsigned int class, uint64_t *ret_first, uint32_t *ret_length)
{
	uint64_t list = cache + (uint64_t) class * bytes;
	uint32_t numbers[3];

	if (!budget_take(&search->looks) || !view_word(&search->view, list, ret_first) ||
	    !view_read(&search->view, list + WORD, numbers, sizeof(numbers)))
		return false;
	*ret_length = numbers[0];
	return numbers[1] <= numbers[0] && numbers[2] > 0 && numbers[2] <= TRANSFER_MOST &&
	       (*ret_first == 0) == (numbers[0] == 0) &&
	       (*ret_first == 0 || class_of(search, *ret_first) == class);
}

static bool is_thread_cache(struct cache_search *search, uint64_t address, unsigned int bytes)
{
	uint64_t first, filled = 0;
	uint32_t length;

	if (address < PAGE || address % WORD != 0 || address >> ADDRESS_BITS)
		return false;
	for (unsigned int class = 1; class < search->tc->class_count; class ++) {
		if (search->tc->classes[class] == 0)
			continue;
		if (!read_list(search, address, bytes, class, &first, &length))
			return false;
		filled += first != 0;
	}
	return filled > 0;
}

/* The objects of the list at address, whose first word leads to the next. */
static struct error *add_list(struct cache_search *search, uint64_t list, uint64_t object,
			      uint32_t length, unsigned int class)
{
	for (uint32_t i = 0; i < length; i++) {
		if (class_of(search, object) != class) {
			heap_damage_note(&search->tc->lengths, list);
			return NULL;
		}
		TRY(add_cached(search, object, CACHE_THREAD, 0));
		if (budget_is_spent(&search->budget) ||
		    !view_word(&search->objects, object, &object))
			return NULL;
	}
	return NULL;
}

static struct error *add_thread_cache(struct cache_search *search, uint64_t address)
{
	struct google_tcmalloc *tc = search->tc;

	array_for_each(known, &search->threads)
		if (*known == address)
			return NULL;
	TRY(array_append(&search->threads, address));
	for (unsigned int class = 1; class < tc->class_count; class ++) {
		uint64_t first;
		uint32_t length;

		if (tc->classes[class] > 0 &&
		    read_list(search, address, search->list_bytes, class, &first, &length))
			TRY(add_list(search, address + (uint64_t) class * search->list_bytes, first,
				     length, class));
	}
	return add_metadata(search, address,
			    address + (uint64_t)tc->class_count * search->list_bytes + THREAD_REST);
}

static struct error *look_for_thread(struct cache_search *search, uint64_t word)
{
	unsigned int least = search->list_bytes ? search->list_bytes : LIST_LEAST;
	unsigned int most = search->list_bytes ? search->list_bytes : LIST_MOST;

	if (search->threads.count == MOST_THREADS ||
	    !is_anonymous_memory(search->context->image, word))
		return NULL;
	for (unsigned int bytes = least; bytes <= most; bytes += WORD)
		if (is_thread_cache(search, word, bytes)) {
			search->list_bytes = bytes;
			return add_thread_cache(search, word);
		}
	return NULL;
}

/* Caches lead to others by words behind their lists, which may be of more classes than are used. */
static struct error *follow_threads(struct cache_search *search)
{
	for (size_t i = 0; i < search->threads.count; i++) {
		uint64_t rest = search->threads.items[i] +
				(uint64_t)search->tc->class_count * search->list_bytes;
		uint64_t end = search->threads.items[i] + (uint64_t)MOST_CLASSES * LIST_MOST, word;

		for (uint64_t at = rest; at < end; at += WORD)
			if (view_word(&search->objects, at, &word) && word)
				TRY(look_for_thread(search, word));
	}
	return NULL;
}

/* The number of objects in the array, if the word at where leads to that of a transfer cache. */
static uint32_t transfer_count(struct cache_search *search, uint64_t where, uint64_t array)
{
	for (unsigned int back = 1; back <= 2; back++) {
		uint32_t counts[2];
		uint64_t object;
		unsigned int class;

		if (!view_read(&search->view, where - back * (uint64_t)WORD, counts,
			       sizeof(counts)) ||
		    counts[0] == 0 || counts[0] > counts[1] || counts[1] > TRANSFER_MOST ||
		    !view_word(&search->objects, array, &object))
			continue;
		class = class_of(search, object);
		for (uint32_t i = 0; class > 0 && i < counts[0]; i++)
			if (!view_word(&search->objects, array + i * (uint64_t)WORD, &object) ||
			    class_of(search, object) != class)
				class = 0;
		if (class > 0)
			return counts[0];
	}
	return 0;
}

static struct error *look_for_transfer(struct cache_search *search, uint64_t where, uint64_t word)
{
	uint32_t count;
	uint64_t object;

	if (word % WORD != 0 || !is_anonymous_memory(search->context->image, word))
		return NULL;
	count = transfer_count(search, where, word);
	for (uint32_t i = 0; i < count; i++)
		if (view_word(&search->objects, word + i * (uint64_t)WORD, &object))
			TRY(add_cached(search, object, CACHE_TRANSFER, 0));
	return count > 0 ? add_metadata(search, word, word + count * (uint64_t)WORD) : NULL;
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct cache_search *search = data;

	if (word < PAGE || word >> ADDRESS_BITS)
		return NULL;
	TRY(look_for_slabs(search, word));
	TRY(look_for_transfer(search, where, word));
	return look_for_thread(search, word);
}

static struct error *add_sample(struct cache_search *search, const struct google_span *span)
{
	struct google_sample sample;

	if (!google_read_sample(search->tc, &search->objects, span, &sample))
		return NULL;
	TRY(add_metadata(search, span->sample, sample.calls));
	return sample.proxy && class_of(search, sample.proxy) > 0
		       ? add_cached(search, sample.proxy, CACHE_PROXY, 0)
		       : NULL;
}

/* GiB with metadata and without spans have nothing else. */
static struct error *widen_metadata(struct cache_search *search)
{
	struct google_tcmalloc *tc = search->tc;
	uint64_t last = 0;
	size_t count;

	tc->metadata.count = memory_ranges_join(tc->metadata.items, tc->metadata.count);
	count = tc->metadata.count;
	for (size_t i = 0; i < count; i++) {
		uint64_t start = reserved_start(tc->metadata.items[i].start);
		size_t above =
			LIST_ABOVE(tc->spans.items, tc->spans.count, start, start + RESERVED - 1);

		if (start != last && (above == 0 || span_end(&tc->spans.items[above - 1]) <= start))
			TRY(google_visit_memory(search->context->image, start, start + RESERVED,
						add_range, tc));
		last = start;
	}
	return NULL;
}

static struct error *find_metadata(struct cache_search *search)
{
	struct google_tcmalloc *tc = search->tc;

	array_for_each(leaf, &tc->leaves)
		TRY(add_metadata(search, leaf->start, leaf->end));
	array_for_each(span, &tc->spans) {
		TRY(add_metadata(search, span->metadata,
				 span->metadata + tc->links + tc->layout->size));
		TRY(add_sample(search, span));
	}
	TRY(widen_metadata(search));
	tc->metadata.count = memory_ranges_join(tc->metadata.items, tc->metadata.count);
	return NULL;
}

DEFINE_COMPARE(compare_cached, struct cached_object, ASCENDING(address), ASCENDING(kind))

static struct error *find_shared(void *data, uint64_t where, uint64_t word)
{
	struct cache_search *search = data;

	return word < PAGE || word >> ADDRESS_BITS ? NULL : look_for_transfer(search, where, word);
}

static struct error *find_all(struct cache_search *search)
{
	struct google_tcmalloc *tc = search->tc;
	const struct image *image = search->context->image;
	size_t count;

	TRY(module_visit_words(image, tc->module, look, search));
	TRY(follow_threads(search));
	TRY(find_metadata(search));
	count = tc->metadata.count;
	for (size_t i = 0; i < count; i++)
		TRY(data_visit_words(image, tc->metadata.items[i].start, tc->metadata.items[i].end,
				     find_shared, search));
	tc->metadata.count = memory_ranges_join(tc->metadata.items, tc->metadata.count);
	tc->has_caches = search->slabs || search->threads.count > 0;
	array_sort(&tc->cached, compare_cached);
	return NULL;
}

struct error *google_find_caches(struct google_tcmalloc *tc, const struct heap_context *context)
{
	const uint64_t words = image_held_bytes(context->image) / WORD;
	struct cache_search search = {
		.tc = tc,
		.context = context,
		.view = { context->image },
		.objects = { context->image },
		/* A word of the dump leads to each. */
		.budget = { words },
		.looks = { LOOKS_LEAST + words * LOOKS_EACH },
	};
	struct error *error;

	search.threads.memory.account = context->account;
	error = find_all(&search);
	array_release(&search.threads);
	return error;
}
