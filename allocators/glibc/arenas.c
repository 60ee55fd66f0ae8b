#include "allocators/glibc/arenas.h"

#include "analyzer/base/list.h"

#include <inttypes.h>
#include <string.h>

enum {
	SMALLEST_ARENA = 1068,
	NEAR = 16 << 10,	 /* how far mp_ may be from main_arena */
	PROGRESS_STEP = 1 << 20, /* bytes */
	MINIMUM_SELF_BINS = 32,	 /* empty or well linked, of 127 */
	RING_STEPS = 16,	 /* for each arena that there may be: rings are followed once */
};

enum { LAYOUTS = 5 };

/*
 * fastbins, top, bins, next, system_mem, sizeof, grain, caches. Those before 2.26 differ in what
 * stands between next and system_mem: next_free or nothing, and since 2.23 attached_threads.
 */
static const struct arena_layout wide_layouts[LAYOUTS] = {
	{ 16, 96, 112, 2160, 2184, 2200, 16, true }, /* 2.26: have_fastchunks is new */
	{ 0, 8, 24, 2072, 2096, 2112, 16, true },    /* 2.43: no fast bins any more */
	{ 8, 88, 104, 2152, 2168, 2184, 16, false }, /* 2.10 to 2.22 */
	{ 8, 88, 104, 2152, 2160, 2176, 16, false }, /* 2.10, without PER_THREAD */
	{ 8, 88, 104, 2152, 2176, 2192, 16, false }, /* 2.23 to 2.25 */
};

/* With words of 4 bytes. Before 2.26, chunks were multiples of 8. */
static const struct arena_layout narrow_layouts[LAYOUTS] = {
	{ 12, 56, 64, 1096, 1108, 1116, 16, true }, /* 2.26 */
	{ 0, 8, 16, 1048, 1060, 1068, 16, true },   /* 2.43 */
	{ 8, 48, 56, 1088, 1096, 1104, 8, false },  /* 2.10 to 2.22 */
	{ 8, 48, 56, 1088, 1092, 1100, 8, false },  /* 2.10, without PER_THREAD */
	{ 8, 48, 56, 1088, 1100, 1108, 8, false },  /* 2.23 to 2.25 */
};

static const struct arena_layout *layouts_for(unsigned int word)
{
	return word == 4 ? narrow_layouts : wide_layouts;
}

/* The dump has no room for more. */
static size_t most_arenas(const struct image *image)
{
	return image->size / SMALLEST_ARENA + 1;
}

struct error *glibc_add_arena(struct glibc_heap *heap, struct glibc_arena arena)
{
	TRY_MEMORY(LIST_GROW(heap->arenas, heap->arena_count));
	if (!glibc_knows_arena(heap, arena.address))
		TRY(address_map_add(&heap->arena_numbers, arena.address,
				    (uint32_t)heap->arena_count));
	if (heap->arena_count == 0) {
		heap->grain = arena.layout->grain;
		heap->caches = arena.layout->caches;
	}
	heap->arenas[heap->arena_count++] = arena;
	return NULL;
}

bool glibc_knows_arena(const struct glibc_heap *heap, uint64_t address)
{
	return address_map_find(&heap->arena_numbers, address) != NOT_IN_MAP;
}

/* True if the bin is empty, or its first and last members point back. */
static bool bin_fits(struct view *view, uint64_t bin)
{
	const uint64_t word = image_word_size(view->image), fd = 2 * word, bk = 3 * word;
	uint64_t first, last, back;

	return view_word(view, bin + fd, &first) && view_word(view, bin + bk, &last) &&
	       ((first == bin && last == bin) ||
		(view_word(view, first + bk, &back) && back == bin));
}

/*
 * True if enough of the bins fit, and none behind the last. If one fits there, the bins are the end
 * of something that begins further up, whose own bins look like a link, counts and sizes.
 */
static bool bins_fit(struct view *view, uint64_t bins)
{
	const uint64_t size = 2 * image_word_size(view->image);
	unsigned int fit = 0;

	for (unsigned int i = 0; i < BINS; i++)
		fit += bin_fits(view, bins + i * size - size);
	return fit >= MINIMUM_SELF_BINS && !bin_fits(view, bins + BINS * size - size);
}

/*
 * True if the arena at address is not a main one: it is in anonymous memory, behind the heap_info
 * of a mapped heap, which begins at a multiple of 1 MiB or more.
 */
static bool heads_subheap(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);
	uint64_t distance = address % (1 << 20);

	return region && !region->mapping &&
	       (distance == 32 || distance == 48 || distance == 24 || distance == 16);
}

/* True if system_mem is at least that much, and at most max_system_mem. */
static bool sizes_fit(struct view *view, const struct arena_layout *layout, uint64_t address,
		      uint64_t least)
{
	uint64_t place = address + layout->system_memory, system, most;

	return view_word(view, place, &system) &&
	       view_word(view, place + image_word_size(view->image), &most) && system >= least &&
	       system <= most;
}

/* True if attached_threads precedes system_mem, as since 2.23. */
static bool has_attached(const struct arena_layout *layout, unsigned int word)
{
	return layout->system_memory - layout->next == 3 * (uint64_t)word;
}

/*
 * True if next_free, system_mem and max_system_mem are where the layout has them. Several layouts
 * differ in these only; the one with attached_threads is tried last.
 */
static bool is_of_version(struct view *view, const struct arena_layout *layout, uint64_t address)
{
	unsigned int word = image_word_size(view->image);
	uint64_t behind = address + layout->next + word, free_arena;

	if (has_attached(layout, word))
		return true;
	if (address + layout->system_memory != behind &&
	    (!view_word(view, behind, &free_arena) ||
	     (free_arena != 0 && !bins_fit(view, free_arena + layout->bins))))
		return false;
	return sizes_fit(view, layout, address, PAGE);
}

/* Check the first arena of the circular list that has memory in the same way. */
static bool ring_is_of_version(struct glibc_heap *heap, struct view *view,
			       const struct arena_layout *layout, uint64_t address)
{
	uint64_t place = address;

	while (!budget_is_spent(&heap->ring_steps)) {
		if (is_of_version(view, layout, place))
			return true;
		if (!view_word(view, place + layout->next, &place) || place == address ||
		    !budget_take(&heap->ring_steps))
			break;
	}
	return false;
}

const struct arena_layout *glibc_any_layout(unsigned int word)
{
	return layouts_for(word);
}

bool glibc_read_arena(struct view *view, uint64_t address, struct glibc_arena *ret)
{
	const struct arena_layout *layouts = layouts_for(image_word_size(view->image));

	for (size_t i = 0; i < LAYOUTS; i++) {
		struct glibc_arena arena = {
			.layout = &layouts[i],
			.address = address,
		};

		if (!bins_fit(view, address + layouts[i].bins) ||
		    !is_of_version(view, &layouts[i], address) ||
		    !view_word(view, address + layouts[i].top, &arena.top) ||
		    !view_word(view, address + layouts[i].system_memory, &arena.stated_size))
			continue;
		*ret = arena;
		return true;
	}
	return false;
}

static struct error *add_ring(struct glibc_heap *heap, struct view *view,
			      const struct arena_layout *layout, uint64_t first)
{
	uint64_t address = first;

	do {
		struct glibc_arena arena = {
			.layout = layout,
			.address = address,
			.main = !heads_subheap(view->image, address),
		};
		uint64_t mutex; /* and flags */

		if (!view_word(view, address, &mutex) ||
		    !view_word(view, address + layout->top, &arena.top) ||
		    !view_word(view, address + layout->system_memory, &arena.stated_size) ||
		    !view_word(view, address + layout->next, &address))
			break;
		arena.locked = (uint32_t)mutex != 0;
		TRY(glibc_add_arena(heap, arena));
	} while (address != first && heap->arena_count < most_arenas(view->image));
	return NULL;
}

/* True if the circular list of arenas leads from the one at address back to it. */
static bool ring_closes(struct glibc_heap *heap, struct view *view,
			const struct arena_layout *layout, uint64_t address)
{
	struct cycle_search search = { .mark = address, .power = 1 };
	uint64_t place = address;

	while (view_word(view, place + layout->next, &place) && place % heap->word == 0 &&
	       budget_take(&heap->ring_steps))
		if (place == address || cycle_closes(&search, place))
			return place == address;
	return false;
}

/*
 * True if the words behind the list's link are counts. With words of 4 bytes, bins in use may look
 * like the last bins and a circular list.
 */
static bool counts_fit(struct view *view, const struct arena_layout *layout, uint64_t address)
{
	enum { MOST_THREADS = 1 << 16 };
	unsigned int word = image_word_size(view->image);
	uint64_t attached;

	return word == 8 || !has_attached(layout, word) ||
	       (view_word(view, address + layout->next + 2 * word, &attached) &&
		attached < MOST_THREADS && sizes_fit(view, layout, address, 0));
}

/* Add the arenas if the last bin of a main one ends at end. */
static struct error *try_bins(struct glibc_heap *heap, uint64_t end)
{
	const struct arena_layout *layouts = layouts_for(heap->word);
	struct view view = { heap->context.image };
	uint64_t bins = end - BINS * heap->header;

	for (size_t i = 0; i < LAYOUTS; i++) {
		uint64_t address = bins - layouts[i].bins;

		if (!glibc_knows_arena(heap, address) && bins_fit(&view, bins) &&
		    counts_fit(&view, &layouts[i], address) &&
		    ring_closes(heap, &view, &layouts[i], address) &&
		    ring_is_of_version(heap, &view, &layouts[i], address))
			return add_ring(heap, &view, &layouts[i], address);
	}
	return NULL;
}

/*
 * True if malloc was never called by the libc whose main arena has its field next at address: it
 * points at the arena, everything before it is still zero, and one thread is attached, in versions
 * that count these.
 */
static bool is_unused(struct view *view, uint64_t address, uint64_t next)
{
	const unsigned int size = image_word_size(view->image);
	const struct arena_layout *layouts = layouts_for(size);

	for (size_t i = 0; i < LAYOUTS; i++) {
		uint64_t word, attached;
		bool zero = true;

		if (next != address - layouts[i].next || !view_word(view, address + size, &word) ||
		    word != 0 || /* next_free */
		    !view_word(view, address + 2 * size, &attached) ||
		    attached != (has_attached(&layouts[i], size) ? 1 : 0))
			continue;
		for (uint64_t j = next; j < address && zero; j += size)
			zero = view_word(view, j, &word) && word == 0;
		if (zero)
			return true;
	}
	return false;
}

/* The word at address is that of an address just below. */
static struct error *look(struct glibc_heap *heap, uint64_t address, const uint8_t *bytes)
{
	struct view view = { heap->context.image };
	const unsigned int size = heap->word;
	const uint64_t below = address - heap->header;
	uint64_t words[4];

	for (size_t i = 0; i < 4; i++)
		words[i] = load_word(bytes + i * size, size);
	/* Nothing else points just below itself. */
	if (words[0] == below && words[1] == below && !(words[2] == address && words[3] == address))
		TRY(try_bins(heap, address + heap->header));
	if (is_unused(&view, address, words[0]))
		heap->home = address;
	return NULL;
}

static struct error *scan_region(struct glibc_heap *heap, const struct region *region)
{
	const unsigned int size = heap->word;
	const uint64_t farthest = layouts_for(size)->next, end = region->end - 4 * size + 1;
	uint64_t address = region->start;

	while (address < end) {
		uint64_t data = image_next_data(heap->context.image, address), stop;
		const uint8_t *bytes;

		/* Skip whole steps, so that words stay aligned to the region's start. */
		address += (data - address) / PROGRESS_STEP * PROGRESS_STEP;
		if (address >= end)
			break;
		stop = end - address > PROGRESS_STEP ? address + PROGRESS_STEP : end;
		bytes = region->bytes + (address - region->start);
		TRY(progress_check(heap->context.progress, 0));
		for (; address < stop; address += size, bytes += size)
			if (address - load_word(bytes, size) <= farthest)
				TRY(look(heap, address, bytes));
	}
	return NULL;
}

/* main_arena has initial values, so it is in a mapping of a file. */
static struct error *find_main_arenas(struct glibc_heap *heap, bool mapped)
{
	const struct image *image = heap->context.image;

	heap->ring_steps.left = RING_STEPS * most_arenas(image);
	list_for_each(region, image->regions, image->region_count) {
		if (region->bytes && (region->rights & RIGHT_WRITE) &&
		    (region->mapping != NULL) == mapped)
			TRY(scan_region(heap, region));
	}
	return NULL;
}

/*
 * malloc's own count of mmapped chunks, from what stands before address: n_mmaps, n_mmaps_max,
 * max_n_mmaps and no_dyn_threshold (ints), shift bytes of other fields, then mmapped_mem and
 * max_mmapped_mem. Sizes are multiples of unit: of pages or, from 2.43 on, where each realloc() of
 * a mapping adds 16 bytes too many, of these.
 */
static bool read_counts(struct view *view, uint64_t address, uint64_t shift, uint64_t unit,
			struct glibc_parameters *ret, bool *ret_may_map)
{
	unsigned int word = image_word_size(view->image);
	uint32_t counts[3];
	uint64_t size, most;

	if (!image_read(view->image, address - 2 * word - 16 - shift, counts, sizeof(counts)) ||
	    !view_word(view, address - 2 * word, &size) || !view_word(view, address - word, &most))
		return false;
	/* Sizes are 0 just where the counts are. */
	if (counts[0] > counts[1] || counts[0] > counts[2] || size > most || size % unit != 0 ||
	    most % unit != 0 || (counts[0] == 0) != (size == 0) || (counts[2] == 0) != (most == 0))
		return false;
	ret->mapped_count = counts[0];
	ret->mapped_size = size;
	*ret_may_map = counts[1] > 0;
	return true;
}

/*
 * Read the counts of versions before 2.24, which have max_total_mem, always 0, before sbrk_base;
 * before 2.15, pagesize follows no_dyn_threshold.
 */
static bool read_old_counts(struct view *view, uint64_t address, struct glibc_parameters *ret,
			    bool *ret_may_map)
{
	unsigned int word = image_word_size(view->image);
	uint64_t total;

	return view_word(view, address - word, &total) && total == 0 &&
	       (read_counts(view, address - word, 0, PAGE, ret, ret_may_map) ||
		read_counts(view, address - word, word, PAGE, ret, ret_may_map));
}

/*
 * True if mp_.sbrk_base is at address, and a first chunk is at its value. If no chunk may be
 * mmapped, the word may as well be another heap address behind zeros.
 */
static bool is_sbrk_base(const struct glibc_heap *heap, struct view *near, struct view *far,
			 uint64_t address, uint64_t unit, struct glibc_parameters *ret,
			 bool *ret_may_map)
{
	unsigned int word = heap->word;
	uint64_t base, size;

	if (!view_word(near, address, &base) || base < PAGE)
		return false;
	base = glibc_chunk_above(heap, base);
	if (!view_word(far, base + word, &size) || !(size & PREV_INUSE) ||
	    (size & (IS_MMAPPED | NON_MAIN_ARENA)) || header_size(size) < glibc_fence(word) ||
	    !image_find(heap->context.image, base + header_size(size) - 1))
		return false;
	*ret = (struct glibc_parameters){ .base = base, .place = address };
	return (word == 8 && read_counts(near, address, 4, unit, ret, ret_may_map)) ||
	       read_counts(near, address, 0, unit, ret, ret_may_map) ||
	       (!heap->caches && read_old_counts(near, address, ret, ret_may_map));
}

/* mp_ is in the same data section as main_arena. */
static struct glibc_parameters find_parameters(struct glibc_heap *heap,
					       const struct glibc_arena *arena)
{
	const struct image *image = heap->context.image;
	const struct region *home = image_find(image, arena->address);
	const struct region *top = image_find(image, arena->top);
	struct view near = { image }, far = { image };
	struct glibc_parameters best = { 0 }, found;
	const uint64_t unit = arena->layout->fastbins ? PAGE : ALIGNMENT;

	for (uint64_t i = arena->address - NEAR; i < arena->address + NEAR; i += heap->word) {
		const struct region *region;
		uint64_t base;
		bool may_map;

		if (i < home->start || i >= home->end ||
		    (i >= arena->address && i < arena->address + arena->layout->size) ||
		    !view_word(&near, i, &base) || base < PAGE)
			continue;
		region = image_find(image, base);
		if (!region || !(region->rights & RIGHT_WRITE) ||
		    program_find_stack(heap->context.program, base) ||
		    !is_sbrk_base(heap, &near, &far, i, unit, &found, &may_map))
			continue;
		/* The best one leads to the region of top. */
		found.is_of_top = region == top && found.base <= arena->top;
		if (found.is_of_top && may_map)
			return found;
		if (!best.base || (found.is_of_top && (!best.is_of_top || found.base < best.base)))
			best = found;
	}
	return best;
}

/* The main heap begins where mp_ says, else with the mapping of top. */
static struct error *add_parameters(struct glibc_heap *heap, const struct glibc_arena *arena)
{
	const struct region *top = image_find(heap->context.image, arena->top);
	struct glibc_parameters parameters = find_parameters(heap, arena);

	if (!parameters.base && arena->stated_size && top && (top->rights & RIGHT_WRITE) &&
	    !top->mapping)
		parameters.base = glibc_chunk_above(heap, top->start);
	parameters.arena = (size_t)(arena - heap->arenas);
	return LIST_APPEND(heap->parameters, heap->parameters_count, parameters);
}

/* How many arenas have their address at the start of the heap of their top. */
static size_t count_owners(struct glibc_heap *heap, uint64_t alignment)
{
	struct view view = { heap->context.image };
	size_t count = 0;

	list_for_each(arena, heap->arenas, heap->arena_count) {
		uint64_t owner;

		if (!arena->main && view_word(&view, arena->top & ~(alignment - 1), &owner) &&
		    owner == arena->address)
			count++;
	}
	return count;
}

/* The distance of heaps: 64 MiB, or four huge pages. */
static uint64_t subheap_alignment(struct glibc_heap *heap)
{
	static const uint64_t sizes[] = {
		UINT64_C(64) << 20, UINT64_C(8) << 20, UINT64_C(4) << 30,
		UINT64_C(2) << 30,  UINT64_C(1) << 20, UINT64_C(128) << 20,
	};
	/* Sizes of mapped heaps on 32-bit machines: 1 MiB, or four huge pages of 2 or 4 MiB. */
	static const uint64_t narrow[] = { 1 << 20, 8 << 20, 16 << 20 };
	const uint64_t *list = heap->word == 4 ? narrow : sizes;
	size_t count_of_sizes = heap->word == 4 ? 3 : COUNT_OF(sizes);
	uint64_t best = list[0];
	size_t most = 0;

	for (size_t i = 0; i < count_of_sizes; i++) {
		size_t count = count_owners(heap, list[i]);

		if (count > most) {
			most = count;
			best = list[i];
		}
	}
	return best;
}

/*
 * The heap of that arena at start, if there is one. Its head is { ar_ptr, prev, size,
 * mprotect_size, ... }; the arena itself follows in the first, and tells how long the head is.
 */
static bool read_subheap(struct glibc_heap *heap, struct view *view, uint64_t start, uint64_t most,
			 size_t number, struct glibc_subheap *ret)
{
	const struct glibc_arena *arena = &heap->arenas[number];
	uint64_t previous, size, end, first;

	const unsigned int word = heap->word;

	if (!view_word(view, start + word, &previous) ||
	    !view_word(view, start + 2 * word, &size) || size % PAGE != 0 || size == 0 ||
	    size > most || previous % PAGE != 0)
		return false;
	if (arena->address - start < PAGE)
		first = arena->address + arena->layout->size;
	else if (word == 8 && view_word(view, start + 48 + 8, &end) && (end & PREV_INUSE) &&
		 header_size(end) >= glibc_fence(word))
		first = start + 48;
	else
		first = start + glibc_heap_head(word, heap->grain);
	*ret = (struct glibc_subheap){
		.start = start,
		.end = start + size,
		.limit = start + most,
		.first = glibc_chunk_above(heap, first),
		.arena = number,
	};
	return true;
}

/* Find the number of the arena at address; false if there is none, or only a main one. */
static bool find_arena(const struct glibc_heap *heap, uint64_t address, size_t *ret)
{
	uint32_t number = address_map_find(&heap->arena_numbers, address);

	if (number == NOT_IN_MAP || heap->arenas[number].main)
		return false;
	*ret = number;
	return true;
}

/* Heaps are found by their possible addresses, not by their chain, which damage could break. */
static struct error *find_subheaps(struct glibc_heap *heap)
{
	const struct image *image = heap->context.image;
	uint64_t alignment = subheap_alignment(heap), end = 0;
	struct view view = { image };

	list_for_each(region, image->regions, image->region_count) {
		uint64_t start = (region->start + alignment - 1) & ~(alignment - 1);

		if (!(region->rights & RIGHT_WRITE) || !region->bytes || region->mapping)
			continue;
		for (; start >= region->start && start < region->end; start += alignment) {
			struct glibc_subheap subheap;
			uint64_t owner;
			size_t number;
			uint64_t data = image_next_data(image, start);

			if (data - start >= alignment) {
				start = (data - 1) & ~(alignment - 1);
				continue;
			}
			if (start < end || !view_word(&view, start, &owner) ||
			    !find_arena(heap, owner, &number) ||
			    !read_subheap(heap, &view, start, alignment, number, &subheap))
				continue;
			TRY(LIST_APPEND(heap->subheaps, heap->subheap_count, subheap));
			end = subheap.end;
		}
	}
	return NULL;
}

/* An arena whose heap was not found cannot be walked. */
static struct error *check_subheaps(struct glibc_heap *heap)
{
	_cleanup_(free) bool *found = calloc(heap->arena_count + 1, 1);

	TRY_MEMORY(found);
	for (size_t i = 0; i < heap->subheap_count; i++)
		found[heap->subheaps[i].arena] = true;
	for (size_t i = 0; i < heap->arena_count; i++)
		if (!found[i] && !heap->arenas[i].main)
			findings_add(heap->context.findings, FINDING_INCOMPLETE,
				     "the heap of the arena at %#" PRIx64
				     " is not understood: its allocations are not counted",
				     heap->arenas[i].address);
	return NULL;
}

/* The addresses for glibc_stale_links(). */
static struct error *list_addresses(struct glibc_heap *heap)
{
	struct number_list *list = &heap->arena_addresses;

	for (size_t i = 0; i < heap->arena_count; i++)
		TRY(array_append(list, heap->arenas[i].address));
	if (list->count == 0)
		return NULL;
	number_list_sort(list);
	heap->lowest_arena = list->items[0];
	heap->end_of_arenas = list->items[list->count - 1] + heap->arenas[0].layout->size;
	return NULL;
}

struct error *glibc_find_arenas(struct glibc_heap *heap)
{
	TRY(find_main_arenas(heap, true));
	if (heap->arena_count == 0 && !heap->home)
		TRY(find_main_arenas(heap, false));
	for (size_t i = 0; i < heap->arena_count; i++)
		if (heap->arenas[i].main)
			TRY(add_parameters(heap, &heap->arenas[i]));
	if (heap->parameters_count > 0)
		heap->home = heap->arenas[0].address;
	return NULL;
}

struct error *glibc_complete_arenas(struct glibc_heap *heap)
{
	TRY(heap->arena_count > 0 ? find_subheaps(heap) : NULL);
	TRY(list_addresses(heap));
	return check_subheaps(heap);
}
