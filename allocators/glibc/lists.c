#include "allocators/glibc/lists.h"

#include "analyzer/base/list.h"
#include "analyzer/program/tls.h"

#include <inttypes.h>
#include <string.h>

enum {
	TCACHE_BINS = 76,
	SMALL_TCACHE_BINS = 64,	     /* one for each size; above: ranges */
	TLS_REACH = 1 << 20,	     /* bytes below its end in which TLS is searched */
	MAXIMUM_CACHED = UINT16_MAX, /* in one bin, by its counter */
	MOST_VOTES = 1 << 10,	     /* links of a list */
	MOST_FOLLOWED = 1 << 10,     /* all over a dump that does not fit */
	LEAST_KEYS = 3,		     /* that are equal */
};

/* tcache_perthread_struct: counters, then the bins' first entries. */
struct tcache_layout {
	uint64_t chunk_size[2]; /* with words of 8 bytes, and of 4 */
	unsigned int bins;
	unsigned int counter_size; /* bytes */
	bool counts;		   /* else: how many more may be added */
};

static const struct tcache_layout tcache_layouts[] = {
	{ { 0x290, 0x190 }, 64, 2, true },  /* 2.30 */
	{ { 0x300, 0x1d0 }, 76, 2, false }, /* 2.42 */
	{ { 0x250, 0x150 }, 64, 1, true },  /* 2.26 */
};

enum { TCACHE_LAYOUTS = COUNT_OF(tcache_layouts) };

/*
 * The layout of a cache whose chunk is of that size, or NULL. A cache that was made late may be in
 * a freed chunk that is 16 bytes larger, because 16 bytes are no chunk.
 */
static const struct tcache_layout *find_layout(uint64_t size, unsigned int word)
{
	/* A narrow chunk of 16 bytes is one. */
	const uint64_t rest = word == 4 ? 0 : 16;

	for (size_t i = 0; i < TCACHE_LAYOUTS; i++) {
		uint64_t usual = tcache_layouts[i].chunk_size[word == 4];

		if (size == usual || size == usual + rest)
			return &tcache_layouts[i];
	}
	return NULL;
}

bool glibc_has_cache_size(uint64_t size, unsigned int word)
{
	return find_layout(size, word) != NULL;
}

struct tcache {
	const struct tcache_layout *layout;
	uint64_t address;
	uint16_t counters[TCACHE_BINS];
	uint64_t entries[TCACHE_BINS];
};

/* True if the memory at the user's address may be cached in that bin. */
static bool fits_bin(const struct glibc_heap *heap, struct view *view, uint64_t user,
		     unsigned int bin, uint64_t wanted)
{
	uint64_t size;

	if (user % heap->grain != 0 || user < heap->header)
		return false;
	size = view_chunk_size(view, user - heap->header);
	if (bin < SMALL_TCACHE_BINS)
		return size == wanted;
	return size > glibc_bin_size(heap, SMALL_TCACHE_BINS - 1);
}

static bool read_fields(const struct image *image, struct tcache *tcache)
{
	const struct tcache_layout *layout = tcache->layout;
	uint8_t counters[TCACHE_BINS * sizeof(uint16_t)];
	size_t size = layout->bins * layout->counter_size;

	if (!image_read(image, tcache->address, counters, size) ||
	    !image_read_words(image, tcache->address + size, tcache->entries, layout->bins))
		return false;
	for (unsigned int i = 0; i < layout->bins; i++) {
		if (layout->counter_size == 1)
			tcache->counters[i] = counters[i];
		else
			memcpy(&tcache->counters[i], counters + 2 * i, 2);
	}
	return true;
}

/*
 * True if all counters agree with the entries, except one: a thread may have been changing it, or
 * its list may have had a block that was freed twice or overwritten.
 */
static bool fields_fit(const struct tcache *tcache)
{
	unsigned int odd = 0;

	for (unsigned int i = 0; i < tcache->layout->bins; i++)
		odd += tcache->entries[i] % 16 != 0 ||
		       (tcache->layout->counts &&
			(tcache->counters[i] != 0) != (tcache->entries[i] != 0));
	return odd <= 1;
}

/* Read the fields of what may be a thread's cache at address; false if it is none. */
static bool find_fields(const struct glibc_heap *heap, struct view *view, uint64_t address,
			struct tcache *ret)
{
	if (!heap->caches || address % ALIGNMENT != 0 || address < heap->header)
		return false;
	ret->layout = find_layout(view_chunk_size(view, address - heap->header), heap->word);
	ret->address = address;
	return ret->layout && read_fields(heap->context.image, ret) && fields_fit(ret);
}

bool glibc_looks_like_cache(const struct glibc_heap *heap, uint64_t user)
{
	struct view view = { heap->context.image };
	struct tcache tcache;

	if (!find_fields(heap, &view, user, &tcache))
		return false;
	for (unsigned int i = 0; i < tcache.layout->bins; i++)
		if (tcache.entries[i] != 0)
			return true;
	return false;
}

/* The main thread's cache is the first block of the heap. */
static bool is_first_in_page(const struct glibc_heap *heap, uint64_t user)
{
	return user % PAGE == heap->header;
}

/*
 * Read what may be a thread's cache at address: how many bins have members; -1: it is none, because
 * first members have the wrong size, or the fields do not fit. One may be wrong, if others or the
 * place vouch for the cache: malloc made it of the link of a block that was written to.
 */
static int read_tcache(const struct glibc_heap *heap, struct view *view, uint64_t address,
		       struct tcache *ret)
{
	int members = 0, wrong = 0;

	if (!find_fields(heap, view, address, ret))
		return -1;
	for (unsigned int i = 0; i < ret->layout->bins; i++) {
		if (ret->entries[i] == 0)
			continue;
		if (fits_bin(heap, view, ret->entries[i], i, glibc_bin_size(heap, i)))
			members++;
		else
			wrong++;
	}
	if (wrong > 1 || (wrong == 1 && members == 0 && !is_first_in_page(heap, address)))
		return -1;
	return members;
}

/* Static TLS is up to the thread pointer, or from there on. */
static bool tls_is_above(const struct glibc_heap *heap)
{
	return heap->context.image->arch->pthread.pointer != 0;
}

/* The variables of the module with the main arena, if it is known where the thread has them. */
static bool find_variables(const struct glibc_heap *heap, uint32_t thread, struct memory_range *ret)
{
	const struct program *program = heap->context.program;
	const struct module *libc = program_find_module(program, heap->home);

	list_for_each(module, program->tls_modules, program->tls_module_count) {
		if (module->module != libc)
			continue;
		ret->start = thread_variables(program, &program->threads[thread], module);
		ret->end = ret->start + module->size;
		return ret->start != 0 && ret->start % heap->word == 0 && module->size <= TLS_REACH;
	}
	return false;
}

/*
 * The memory of the variable tcache; if unknown, all memory next to the thread pointer that may
 * have it.
 */
static struct memory_range find_tls(const struct glibc_heap *heap, uint32_t thread)
{
	const struct program *program = heap->context.program;
	uint64_t pointer = program->threads[thread].thread_pointer & ~((uint64_t)heap->word - 1);
	const struct region *region = image_find(heap->context.image, pointer);
	struct memory_range tls;

	if (find_variables(heap, thread, &tls))
		return tls;
	tls = (struct memory_range){ pointer, pointer };
	if (!region)
		return tls;
	if (tls_is_above(heap))
		tls.end += region->end - pointer > TLS_REACH ? TLS_REACH : region->end - pointer;
	else
		tls.start -=
			pointer - region->start > TLS_REACH ? TLS_REACH : pointer - region->start;
	return tls;
}

/* True if the word at place points at a thread's cache: *ret. */
static bool leads_to_tcache(const struct glibc_heap *heap, struct view *near, struct view *far,
			    uint64_t place, uint64_t *ret)
{
	struct tcache tcache;

	return view_word(near, place, ret) && *ret >= PAGE && *ret % 16 == 0 &&
	       read_tcache(heap, far, *ret, &tcache) >= 0;
}

/*
 * The distance of libc's variable tcache from the thread pointer, the same for all threads; 0: not
 * known. It is found in the thread with the least memory there: above the stacks of others, TLS
 * looks like frames, which may be full of pointers.
 */
static uint64_t find_tcache_offset(const struct glibc_heap *heap)
{
	size_t threads = heap->context.program->thread_count;
	struct view near = { heap->context.image }, far = near;
	struct memory_range least = { 0 };
	uint64_t offset = 0;

	for (uint32_t i = 0; i < threads && threads > 1; i++) {
		struct memory_range tls = find_tls(heap, i);

		if (tls.start < tls.end &&
		    (least.end == 0 || tls.end - tls.start < least.end - least.start))
			least = tls;
	}
	for (uint64_t i = least.start; i < least.end; i += heap->word) {
		uint64_t tcache;

		if (!leads_to_tcache(heap, &near, &far, i, &tcache))
			continue;
		if (offset)
			return 0;
		offset = tls_is_above(heap) ? i - least.start : least.end - i;
	}
	return offset;
}

static struct error *add_tcache(struct glibc_heap *heap, uint32_t thread, uint64_t tcache)
{
	TRY(array_append(&heap->thread_caches, (struct thread_cache){ tcache, thread }));
	return array_append(&heap->tcaches, tcache);
}

/* Find the thread's caches that words in its static TLS point at: libc's variable tcache is there.
 */
static struct error *find_tcaches(struct glibc_heap *heap)
{
	size_t threads = heap->context.program->thread_count;
	uint64_t offset = find_tcache_offset(heap);
	struct view near = { heap->context.image }, far = near;

	for (uint32_t i = 0; i < threads; i++) {
		struct memory_range tls = find_tls(heap, i);
		uint64_t tcache;

		if (offset && tls.end - tls.start >= offset &&
		    leads_to_tcache(heap, &near, &far,
				    tls_is_above(heap) ? tls.start + offset : tls.end - offset,
				    &tcache)) {
			TRY(add_tcache(heap, i, tcache));
			continue;
		}
		for (uint64_t j = tls.start; j < tls.end; j += heap->word)
			if (leads_to_tcache(heap, &near, &far, j, &tcache))
				TRY(add_tcache(heap, i, tcache));
	}
	number_list_sort(&heap->tcaches);
	return NULL;
}

/* How well a list reads with mangled links, or with plain ones. */
struct reading {
	unsigned int length; /* chunks of the right size, from the first on */
	unsigned int links;  /* that lead to such a chunk, or to the end */
	bool ends;
};

/*
 * Read at most so many chunks of the list that begins with the memory at user. A link names an
 * address that many bytes below the memory: in a fast bin, that of the chunk.
 */
static struct reading read_list(const struct glibc_heap *heap, struct view *view, uint64_t user,
				unsigned int bin, uint64_t above, unsigned int most)
{
	uint64_t size = above ? glibc_fast_size(heap, bin) : glibc_bin_size(heap, bin);
	struct reading reading = { 0 };
	uint64_t link;

	while (reading.length < most && fits_bin(heap, view, user, bin, size)) {
		if (reading.length++ > 0)
			reading.links++;
		if (!view_word(view, user, &link))
			break;
		link = glibc_demangle(heap, user, link);
		reading.ends = link == 0;
		if (reading.ends) {
			reading.links++;
			break;
		}
		user = link + above;
	}
	return reading;
}

/* How many links fit, mangled or not. */
struct votes {
	unsigned int mangled, plain;
};

static void vote(struct glibc_heap *heap, struct view *view, struct votes *votes, uint64_t user,
		 unsigned int bin, uint64_t above)
{
	heap->mangled = true;
	votes->mangled += read_list(heap, view, user, bin, above, MOST_VOTES).links;
	heap->mangled = false;
	votes->plain += read_list(heap, view, user, bin, above, MOST_VOTES).links;
}

/* Decide by the lists themselves whether links are mangled. */
static void decide_mangling(struct glibc_heap *heap)
{
	struct view view = { heap->context.image };
	struct votes votes = { 0 };

	for (size_t i = 0; i < heap->tcaches.count; i++) {
		struct tcache tcache;

		if (read_tcache(heap, &view, heap->tcaches.items[i], &tcache) < 0)
			continue;
		for (unsigned int j = 0; j < tcache.layout->bins; j++) {
			uint64_t entry = tcache.entries[j];

			if (entry != 0)
				vote(heap, &view, &votes, entry, j, 0);
		}
	}
	list_for_each(arena, heap->arenas, heap->arena_count) {
		for (unsigned int j = 0; j < glibc_fastbins(heap) && arena->layout->fastbins; j++) {
			uint64_t chunk;

			if (!view_word(&view, glibc_fastbin(heap, arena, j), &chunk) || chunk == 0)
				continue;
			vote(heap, &view, &votes, chunk + heap->header, j, heap->header);
		}
	}
	/* Without any list, either is right. */
	heap->mangled = votes.mangled >= votes.plain;
	heap->mangling_known = votes.mangled != votes.plain;
}

struct error *glibc_note_broken(struct glibc_heap *heap, struct glibc_broken_list list,
				uint64_t next)
{
	const struct view view = { heap->context.image };

	/* Missing memory is reported anyway. */
	if (heap->broken_count >= MAXIMUM_FINDINGS || view_is_absent(&view, next))
		return NULL;
	return LIST_APPEND(heap->broken, heap->broken_count, list);
}

static struct error *note_cache(struct glibc_heap *heap, const struct tcache *tcache,
				unsigned int bin, uint64_t user, uint64_t next)
{
	heap->cache_damaged = true;
	return glibc_note_broken(
		heap,
		(struct glibc_broken_list){ "thread cache", glibc_bin_size(heap, bin),
					    tcache->address, user, FAULT_LINK, next },
		next);
}

/* Note the block, which the list from first on returns to at last. More may have followed. */
static struct error *note_cycle(struct glibc_heap *heap, struct number_list *list, size_t first,
				uint64_t chunk, struct glibc_broken_list broken)
{
	*(list == &heap->cached ? &heap->cache_damaged : &heap->fast_damaged) = true;
	broken.fault = FAULT_TWICE;
	list->count = first + cycle_cut(list->items + first, sizeof(*list->items),
					list->count - first, chunk, &broken.user);
	broken.user += heap->header;
	return glibc_note_broken(heap, broken, broken.user);
}

/* True if the bin has a block but a count of 0. A thread that adds a block ends the list first. */
static bool is_left_over(const struct glibc_heap *heap, struct view *view,
			 const struct tcache *tcache, unsigned int bin)
{
	uint64_t user = tcache->entries[bin], link;

	return tcache->layout->counts && user != 0 && tcache->counters[bin] == 0 &&
	       view_word(view, user, &link) && glibc_demangle(heap, user, link) != 0;
}

static struct error *collect_tcache_bin(struct glibc_heap *heap, struct view *view,
					const struct tcache *tcache, unsigned int bin)
{
	const size_t first = heap->cached.count;
	struct cycle_search search = { .power = 1 };
	uint64_t user = tcache->entries[bin], last = tcache->address, key = 0;
	uint64_t size = glibc_bin_size(heap, bin);
	unsigned int length = 0;

	if (is_left_over(heap, view, tcache, bin))
		return glibc_note_broken(heap,
					 (struct glibc_broken_list){ "thread cache", size,
								     tcache->address, user,
								     FAULT_LEFT_OVER },
					 user);
	while (user != 0) {
		uint64_t link;

		if (cycle_closes(&search, user))
			return note_cycle(heap, &heap->cached, first, user - heap->header,
					  (struct glibc_broken_list){ "thread cache", size,
								      tcache->address });
		if (length > MAXIMUM_CACHED || !fits_bin(heap, view, user, bin, size) ||
		    !view_word(view, user, &link))
			return note_cache(heap, tcache, bin, last, user);
		TRY(array_append(&heap->cached, user - heap->header));
		if (view_word(view, user + heap->word, &key) && key != 0)
			heap->tcache_key = key;
		length++;
		last = user;
		user = glibc_demangle(heap, user, link);
	}
	/* A thread in the middle of a change may not have counted yet. */
	if (tcache->layout->counts && length != tcache->counters[bin] &&
	    length + 1 != tcache->counters[bin] && length != tcache->counters[bin] + 1U)
		return note_cache(heap, tcache, bin, last, 0);
	return NULL;
}

/*
 * The key that each block has in its second word, if most of those from first on have it: up to
 * 2.33 the address of the cache, then a random number. 0: before 2.29, there is none.
 */
static uint64_t find_key(const struct glibc_heap *heap, struct view *view,
			 const struct tcache *tcache, size_t first)
{
	uint64_t key, likely = 0, more = 0, count = 0;

	for (size_t i = first; i < heap->cached.count; i++) {
		if (!view_word(view, heap->cached.items[i] + heap->header + heap->word, &key))
			continue;
		if (key == tcache->address)
			return key;
		if (more == 0)
			likely = key;
		more += key == likely ? 1 : -UINT64_C(1);
	}
	for (size_t i = first; i < heap->cached.count; i++)
		count += view_word(view, heap->cached.items[i] + heap->header + heap->word, &key) &&
			 key == likely;
	return tcache->layout->counter_size == 2 && count >= LEAST_KEYS &&
			       count > (heap->cached.count - first) / 2
		       ? likely
		       : 0;
}

/* Note the cached blocks from first on without the key. */
static struct error *check_keys(struct glibc_heap *heap, struct view *view,
				const struct tcache *tcache, size_t first)
{
	uint64_t key, usual = find_key(heap, view, tcache, first);

	if (usual)
		heap->tcache_key = usual;
	for (size_t i = first; i < heap->cached.count && usual; i++) {
		uint64_t user = heap->cached.items[i] + heap->header;
		struct glibc_broken_list list = { "thread cache", 0, tcache->address, user,
						  FAULT_KEY };

		if (view_word(view, user + heap->word, &key) && key != usual &&
		    !glibc_is_blamed(heap, user))
			TRY(glibc_note_broken(heap, list, user));
	}
	return NULL;
}

static struct error *collect_tcache(struct glibc_heap *heap, const struct tcache *tcache)
{
	struct view view = { heap->context.image };
	const size_t first = heap->cached.count;

	for (unsigned int i = 0; i < tcache->layout->bins; i++)
		TRY(collect_tcache_bin(heap, &view, tcache, i));
	return check_keys(heap, &view, tcache, first);
}

static struct error *collect_fastbin(struct glibc_heap *heap, struct glibc_arena *arena,
				     unsigned int bin)
{
	struct view view = { heap->context.image };
	struct cycle_search search = { .power = 1 };
	uint64_t size = glibc_fast_size(heap, bin), chunk, last = arena->address;
	const size_t first = heap->fast.count;

	if (!view_word(&view, glibc_fastbin(heap, arena, bin), &chunk))
		return NULL;
	while (chunk != 0) {
		uint64_t link;

		/* All of a narrow process fits. */
		if (search.steps == MOST_FOLLOWED && heap->word == 8 &&
		    !image_fits(heap->context.image)) {
			heap->fast.count -= search.steps;
			heap->fast_put_off = true;
			arena->put_off |= 1U << bin;
			return NULL;
		}
		if (cycle_closes(&search, chunk))
			return note_cycle(
				heap, &heap->fast, first, chunk,
				(struct glibc_broken_list){ "fast bin", size, arena->address });
		if (!glibc_may_be_chunk(heap, chunk) || view_chunk_size(&view, chunk) != size ||
		    !view_word(&view, chunk + heap->header, &link)) {
			heap->fast_damaged = true;
			return glibc_note_broken(
				heap,
				(struct glibc_broken_list){ "fast bin", size, arena->address, last,
							    FAULT_LINK, chunk + heap->header },
				chunk);
		}
		TRY(array_append(&heap->fast, chunk));
		last = chunk + heap->header;
		chunk = glibc_demangle(heap, chunk + heap->header, link);
	}
	return NULL;
}

static struct error *collect_fastbins(struct glibc_heap *heap)
{
	list_for_each(arena, heap->arenas, heap->arena_count) {
		for (unsigned int j = 0; j < glibc_fastbins(heap) && arena->layout->fastbins; j++)
			TRY(collect_fastbin(heap, arena, j));
	}
	return NULL;
}

static struct error *note_repeat(struct glibc_heap *heap, uint64_t chunk, const char *where)
{
	struct glibc_broken_list list = { where, 0, 0, chunk + heap->header, FAULT_TWICE };

	return glibc_is_blamed(heap, list.user) ? NULL : glibc_note_broken(heap, list, list.user);
}

/* Note the chunks that several lists have. Within each, there are no repeats. */
static struct error *note_repeats(struct glibc_heap *heap)
{
	struct number_list *cached = &heap->cached, *fast = &heap->fast;

	for (size_t i = 0; i < heap->arena_count; i++)
		if (heap->arenas[i].locked)
			return NULL;
	SORT(cached->items, cached->count, compare_u64);
	for (size_t i = 1; i < cached->count; i++)
		if (cached->items[i] == cached->items[i - 1])
			TRY(note_repeat(heap, cached->items[i], "two lists of thread caches"));
	for (size_t i = 0; i < fast->count; i++)
		if (number_list_has(cached, fast->items[i]))
			TRY(note_repeat(heap, fast->items[i], "a thread cache and in a fast bin"));
	return NULL;
}

struct error *glibc_collect_lists(struct glibc_heap *heap)
{
	struct view view = { heap->context.image };
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(heap->context.image);

	TRY(find_tcaches(heap));
	decide_mangling(heap);
	for (size_t i = 0; i < heap->tcaches.count; i++) {
		struct tcache tcache;

		if (read_tcache(heap, &view, heap->tcaches.items[i], &tcache) >= 0)
			TRY(collect_tcache(heap, &tcache));
	}
	TRY(collect_fastbins(heap));
	TRY(note_repeats(heap));
	number_list_sort(&heap->cached);
	number_list_sort(&heap->fast);
	return NULL;
}

/* Settling, block by block. */
struct settling {
	struct glibc_heap *heap;
	struct block_sink *sink;
	struct view view, target;
	struct error *error;
};

/* True if each list of the cache holds what its counter says. */
static bool lists_fit(struct glibc_heap *heap, struct view *view, const struct tcache *tcache)
{
	for (unsigned int i = 0; i < tcache->layout->bins; i++) {
		struct reading reading;

		if (tcache->entries[i] == 0)
			continue;
		reading = read_list(heap, view, tcache->entries[i], i, 0, MAXIMUM_CACHED);
		if (!reading.ends ||
		    (tcache->layout->counts && reading.length != tcache->counters[i]))
			return false;
	}
	return true;
}

/* Like lists_fit(), if it is still unknown whether links are mangled. */
static bool lists_fit_either_way(struct glibc_heap *heap, struct view *view,
				 const struct tcache *tcache)
{
	if (lists_fit(heap, view, tcache))
		return true;
	if (heap->mangling_known)
		return false;
	heap->mangled = !heap->mangled;
	if (lists_fit(heap, view, tcache))
		return true;
	heap->mangled = !heap->mangled;
	return false;
}

/* A cache of a thread whose TLS was not seen. */
static void settle_tcache(struct settling *settling, uint64_t address)
{
	struct glibc_heap *heap = settling->heap;
	size_t before = heap->cached.count;
	struct tcache tcache;
	struct block block;

	if (!block_sink_find(settling->sink, address, &block) || block.state != BLOCK_USED ||
	    read_tcache(heap, &settling->view, address, &tcache) <= 0 ||
	    number_list_has(&heap->tcaches, address) ||
	    !lists_fit_either_way(heap, &settling->view, &tcache))
		return;
	heap->mangling_known = true;
	settling->error = collect_tcache(heap, &tcache);
	for (size_t i = before; i < heap->cached.count; i++)
		block_sink_restate(settling->sink, heap->cached.items[i] + heap->header,
				   BLOCK_CACHED);
}

/* True if the block is a member of a fast bin whose list is broken. */
static bool is_lost_fast(struct settling *settling, struct block block)
{
	const struct glibc_heap *heap = settling->heap;
	uint64_t link, target, size = block.size + heap->overhead;

	if (size > glibc_largest_fast(heap) || !view_word(&settling->view, block.start, &link))
		return false;
	target = glibc_demangle(heap, block.start, link);
	if (target == 0)
		return heap->mangled;
	return glibc_may_be_chunk(heap, target) &&
	       view_chunk_size(&settling->target, target) == size;
}

static bool settle_block(void *data, struct block block)
{
	struct settling *settling = data;
	struct glibc_heap *heap = settling->heap;
	uint64_t key;

	if (heap->cache_damaged && heap->tcache_key &&
	    view_word(&settling->view, block.start + heap->word, &key) && key == heap->tcache_key)
		block_sink_restate(settling->sink, block.start, BLOCK_CACHED);
	else if (heap->fast_damaged && is_lost_fast(settling, block) &&
		 block_sink_restate(settling->sink, block.start, BLOCK_FREE))
		settling->error = array_append(&heap->fast, block.start - heap->header);
	return !settling->error;
}

struct error *glibc_settle_lists(struct glibc_heap *heap, struct block_sink *sink)
{
	struct settling settling = {
		.heap = heap,
		.sink = sink,
		.view = { heap->context.image },
		.target = { heap->context.image },
	};

	for (size_t i = 0; i < heap->suspects.count && !settling.error; i++)
		settle_tcache(&settling, heap->suspects.items[i]);
	if (!settling.error && (heap->cache_damaged || heap->fast_damaged))
		block_sink_visit_used(sink, heap->first_block, settle_block, &settling);
	number_list_sort(&heap->fast);
	return settling.error;
}

/* True if a list of the cache holds the memory at user. */
static bool cache_holds(const struct glibc_heap *heap, uint64_t address, uint64_t user)
{
	struct view view = { heap->context.image };
	struct tcache tcache;

	if (read_tcache(heap, &view, address, &tcache) < 0)
		return false;
	for (unsigned int i = 0; i < tcache.layout->bins; i++) {
		uint64_t at = tcache.entries[i], link;

		for (unsigned int j = 0; at != 0 && j < MAXIMUM_CACHED; j++) {
			if (at == user)
				return true;
			if (!view_word(&view, at, &link))
				break;
			at = glibc_demangle(heap, at, link);
		}
	}
	return false;
}

bool glibc_find_cache(const struct glibc_heap *heap, uint64_t user, uint64_t *ret_tcache,
		      uint32_t *ret_thread)
{
	for (size_t i = 0; i < heap->tcaches.count; i++) {
		uint64_t tcache = heap->tcaches.items[i];

		if (!cache_holds(heap, tcache, user))
			continue;
		*ret_tcache = tcache;
		*ret_thread = NO_THREAD;
		for (size_t j = 0; j < heap->thread_caches.count; j++)
			if (heap->thread_caches.items[j].tcache == tcache)
				*ret_thread = heap->thread_caches.items[j].thread;
		return true;
	}
	return false;
}
