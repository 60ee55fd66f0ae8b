/*
 * GLib's slices, up to GLib 2.74: g_slice_alloc(), and so lists, GObjects, events and so on.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. The variable that
 * leads to all slabs begins with sizes that nothing else has in a row; threads lead to their
 * magazines by pthread_setspecific(). See gslice/gslice.h for the layouts.
 */
#include "allocators/gslice/gslice.h"

#include "analyzer/base/keep.h"
#include "analyzer/heap/sink.h"
#include "analyzer/program/module_words.h"

#include <inttypes.h>

enum {
	MINIMUM_PAGE = 128,  /* bytes: the first word of the variable, */
	MOST_PAGE = 1 << 16, /* and the most that the second is */
	LEAST_PAGE = 1 << 13,
	USUAL_BINS = 63,
	DESCRIPTOR = 0x900,   /* bytes of a struct pthread, in which its keys are */
	KEYS = 64,	      /* words of a block of more */
	FIRST_WITHOUT = 7600, /* libglib-2.0.so.0.7600.0 has no slices */
};

static const char SWITCH[] =
	"In a program started with G_SLICE=always-malloc, GLib has no slices, and all is counted";

static void gslice_close(struct heap *base)
{
	struct gslice_heap *heap = (struct gslice_heap *)base;

	arrays_release(&heap->sources, &heap->slabs, &heap->threads);
}

/* Offsets of the variable's fields: after sizes come three truth values and two numbers. */
struct source_layout {
	unsigned int word;
	unsigned int always_malloc, most_chunk, magazines, slab_mutex, slabs;
};

static const struct source_layout source_layouts[] = {
	{ 8, 16, 48, 64, 96, 104 },
	{ 4, 8, 28, 40, 60, 68 },
};

struct search {
	struct gslice_heap *heap;
	const struct source_layout *layout;
	bool off; /* a GLib that was told to keep no slices */
};

/*
 * True if an array of the variable is in the dump, each word being 0 or the address of a chunk or
 * slab.
 */
static bool is_array(struct gslice_heap *heap, uint64_t address, uint32_t bins)
{
	for (uint32_t i = 0; i < bins; i++) {
		uint64_t word;

		if (!view_word(&heap->view, address + (uint64_t)i * heap->word, &word) ||
		    word % heap->word != 0)
			return false;
	}
	return address != 0;
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct gslice_heap *heap = search->heap;
	const struct source_layout *layout = search->layout;
	struct gslice_source source = { where, .bytes = layout->slabs + layout->word };
	uint64_t most, most_chunk;
	uint32_t truths[3], lock;

	if (word != MINIMUM_PAGE || !view_word(&heap->view, where + heap->word, &most) ||
	    (most & (most - 1)) != 0 || most < LEAST_PAGE || most > MOST_PAGE ||
	    !view_read(&heap->view, where + layout->always_malloc, truths, sizeof(truths)) ||
	    truths[0] > 1 || truths[1] > 1 || truths[2] > 1 ||
	    !view_word(&heap->view, where + layout->most_chunk, &most_chunk) ||
	    !view_word(&heap->view, where + layout->magazines, &source.magazines) ||
	    !view_word(&heap->view, where + layout->slabs, &source.slabs) ||
	    !view_read(&heap->view, where + layout->slab_mutex, &lock, sizeof(lock)))
		return NULL;
	source.bins = (uint32_t)((most - gslice_info(heap)) / 8 / gslice_unit(heap));
	source.locked = lock != 0;
	if (most_chunk != (truths[0] || truths[1] ? 0 : (most - gslice_info(heap)) / 8))
		return NULL;
	search->off |= truths[0];
	if (truths[0] || !is_array(heap, source.magazines, source.bins) ||
	    !is_array(heap, source.slabs, source.bins))
		return NULL;
	return array_append(&heap->sources, source);
}

static struct error *find_sources(struct gslice_heap *heap, bool *ret_off)
{
	struct search search = { heap };

	for (size_t i = 0; i < COUNT_OF(source_layouts); i++)
		if (source_layouts[i].word == heap->word)
			search.layout = &source_layouts[i];
	list_for_each(module, heap->context.program->modules, heap->context.program->module_count)
		TRY(module_visit_words(heap->context.image, module, look, &search));
	*ret_off = search.off;
	return NULL;
}

/* True if a thread's magazines are at address: the addresses of two arrays that follow. */
static bool is_thread_memory(const struct gslice_heap *heap, struct view *view, uint64_t address,
			     uint32_t bins)
{
	uint64_t first, second;

	return address % heap->word == 0 && view_word(view, address, &first) &&
	       first == address + gslice_unit(heap) &&
	       view_word(view, address + heap->word, &second) &&
	       second == first + bins * gslice_unit(heap);
}

/* Add the magazines that one of the words from address on leads to. */
static struct error *search_keys(struct gslice_heap *heap, uint64_t address, uint64_t words,
				 uint32_t bins, bool *ret_found)
{
	struct view far = { heap->context.image };
	uint64_t word;

	for (uint64_t i = 0; i < words && view_word(&heap->view, address + i * heap->word, &word);
	     i++) {
		if (word < PAGE || !is_thread_memory(heap, &far, word, bins))
			continue;
		*ret_found = true;
		TRY(array_append(&heap->threads, word));
	}
	return NULL;
}

/*
 * Search the values of pthread_setspecific(), which are in struct pthread or in blocks that it
 * points to.
 */
static struct error *search_thread(struct gslice_heap *heap, uint64_t descriptor, uint32_t bins)
{
	const struct image *image = heap->context.image;
	struct view near = { image };
	bool found = false;
	uint64_t word;

	TRY(search_keys(heap, descriptor, DESCRIPTOR / heap->word, bins, &found));
	for (uint64_t i = 0; i < DESCRIPTOR && !found; i += heap->word)
		if (view_word(&near, descriptor + i, &word) && word % heap->word == 0 &&
		    is_anonymous_memory(image, word))
			TRY(search_keys(heap, word, KEYS, bins, &found));
	return NULL;
}

static struct error *find_threads(struct gslice_heap *heap, uint32_t bins)
{
	const struct program *program = heap->context.program;

	list_for_each(thread, program->threads, program->thread_count)
		if (thread->thread_pointer)
			TRY(search_thread(heap, thread_descriptor(program, thread->thread_pointer),
					  bins));
	/* A thread without slices leads to other threads, and so to theirs. */
	number_list_sort(&heap->threads);
	return NULL;
}

/* The part of a module's path behind the name, where its version is; or NULL. */
static bool has_slices(const struct module *module)
{
	static const char name[] = "libglib-2.0.so.0";
	const char *version = strstr(module->path, name);

	version = version ? version + sizeof(name) - 1 : NULL;
	return version && (*version != '.' || strtoul(version + 1, NULL, 10) < FIRST_WITHOUT);
}

static bool is_in_core(const struct image *image, const struct module *module)
{
	size_t first = LIST_ABOVE(image->regions, image->region_count, end, module->start);

	for (size_t i = first; i < image->region_count && image->regions[i].start < module->end;
	     i++)
		if (image->regions[i].bytes && (image->regions[i].rights & RIGHT_WRITE))
			return true;
	return false;
}

/* A GLib that has slices, which were not found: threads have magazines, or its data is absent. */
static struct error *report_unread(struct gslice_heap *heap)
{
	const struct program *program = heap->context.program;

	list_for_each(module, program->modules, program->module_count) {
		if (!has_slices(module))
			continue;
		TRY(find_threads(heap, USUAL_BINS));
		if (heap->threads.count > 0 || !is_in_core(heap->context.image, module))
			findings_add(
				heap->context.findings, FINDING_INCOMPLETE,
				"GLib is loaded (%s), and its slices could not be read: what is in them is not counted. %s",
				module->path, SWITCH);
		return NULL;
	}
	return NULL;
}

DEFINE_COMPARE(compare_slabs, struct gslice_slab, ASCENDING(page))

struct gslice_slab *gslice_find_slab(const struct gslice_heap *heap, uint64_t address)
{
	struct gslice_slab *slab = LIST_LAST(heap->slabs.items, heap->slabs.count, page, address);

	return slab && address - slab->page < gslice_page_bytes(heap, slab->bin) ? slab : NULL;
}

/* Words at the end of a slab: its free chunks, its count of used ones, and its neighbours. */
enum { INFO_CHUNKS, INFO_USED, INFO_NEXT, INFO_PREVIOUS };

static bool read_info(struct gslice_heap *heap, uint64_t info, unsigned int number, uint64_t *ret)
{
	return view_word(&heap->view, info + (uint64_t)number * heap->word, ret);
}

/*
 * Add the slabs from info on until the ring returns to its head or is broken, which may be left in
 * *ret_broken.
 */
static struct error *add_ring(struct gslice_heap *heap, uint32_t source, uint32_t bin,
			      uint64_t info, bool forth, uint64_t *ret_broken)
{
	const uint64_t bytes = gslice_page_bytes(heap, bin), head = info;
	uint64_t used, next, back, most = image_held_bytes(heap->context.image) / bytes;

	*ret_broken = 0;
	do {
		struct gslice_slab slab = { info + gslice_info(heap) - bytes, bin, source };

		*ret_broken = info;
		if (slab.page % bytes != 0 || most-- == 0 ||
		    !read_info(heap, info, INFO_USED, &used) ||
		    !read_info(heap, info, forth ? INFO_NEXT : INFO_PREVIOUS, &next))
			return NULL;
		slab.used = (uint32_t)used;
		TRY(array_append(&heap->slabs, slab));
		if (!read_info(heap, next, forth ? INFO_PREVIOUS : INFO_NEXT, &back) ||
		    back != info)
			return NULL;
		info = next;
	} while (info != head);
	*ret_broken = 0;
	return NULL;
}

/* A broken ring is followed from either side. */
static struct error *add_slabs(struct gslice_heap *heap, uint32_t number)
{
	const struct gslice_source *source = &heap->sources.items[number];

	for (uint32_t bin = 0; bin < source->bins; bin++) {
		uint64_t info = 0, broken;

		if (!view_word(&heap->view, source->slabs + (uint64_t)bin * heap->word, &info) ||
		    !info)
			continue;
		TRY(add_ring(heap, number, bin, info, true, &broken));
		if (!broken)
			continue;
		heap_damage_note(&heap->rings, broken);
		TRY(add_ring(heap, number, bin, info, false, &broken));
	}
	return NULL;
}

/* Sort slabs, and leave out those that are there already. */
static void keep_apart(struct gslice_heap *heap)
{
	array_sort(&heap->slabs, compare_slabs);
	array_keep(&heap->slabs, slab, last,
		   !last || slab->page >= last->page + gslice_page_bytes(heap, last->bin));
}

/* The lists of one bin, and which bits of slabs their members set. */
struct lists {
	struct gslice_heap *heap;
	uint32_t source, bin;
	bool magazine, cached;
};

/* The chunk's slab, and its number there; NULL: none is there. */
static struct gslice_slab *find_chunk(const struct lists *lists, uint64_t chunk,
				      uint32_t *ret_number)
{
	const struct gslice_heap *heap = lists->heap;
	const uint64_t bytes = gslice_chunk_bytes(heap, lists->bin);
	struct gslice_slab *slab = gslice_find_slab(heap, chunk);
	uint64_t offset = slab ? chunk - slab->page : 0;

	if (!slab || slab->bin != lists->bin || slab->source != lists->source ||
	    offset % gslice_unit(heap) != 0)
		return NULL;
	if (!slab->has_color) {
		uint64_t padding = gslice_padding(heap, slab->bin);

		if (offset % bytes >= (padding ? padding : 1))
			return NULL;
		slab->color = (uint32_t)(offset % bytes);
		slab->has_color = true;
	}
	*ret_number = (uint32_t)((offset - slab->color) / bytes);
	return offset >= slab->color && (offset - slab->color) % bytes == 0 &&
			       *ret_number < gslice_chunk_count(heap, slab->bin)
		       ? slab
		       : NULL;
}

/* Set the bits of the chunk; false, with a note, if it is none or is on a list already. */
static bool mark(const struct lists *lists, uint64_t chunk, uint64_t last)
{
	uint32_t number, bit;
	struct gslice_slab *slab = find_chunk(lists, chunk, &number);

	if (!slab) {
		/* One that was written to may have two wrong links. */
		if (lists->heap->blamed != last)
			heap_damage_note(&lists->heap->lists.links, last);
		lists->heap->blamed = last;
		return false;
	}
	bit = UINT32_C(1) << number;
	if ((slab->free | slab->magazine) & bit) {
		heap_damage_note(&lists->heap->lists.twice, chunk);
		return false;
	}
	*(lists->magazine ? &slab->magazine : &slab->free) |= bit;
	slab->cached |= lists->cached ? bit : 0;
	return true;
}

/* Mark a list; last is what leads to it. */
static void mark_list(const struct lists *lists, uint64_t chunk, uint64_t last)
{
	struct view view = { lists->heap->context.image };

	for (; chunk && mark(lists, chunk, last); last = chunk)
		if (!view_word(&view, chunk, &chunk))
			return;
}

/* Mark a magazine; the second words of its first special members are no lists. */
static void mark_magazine(const struct lists *lists, uint64_t chunk, uint64_t last,
			  unsigned int special)
{
	struct view view = { lists->heap->context.image };
	uint64_t list;

	for (unsigned int i = 0; chunk && mark(lists, chunk, last); i++) {
		if (i >= special && view_word(&view, chunk + lists->heap->word, &list) && list)
			mark_list(lists, list, chunk);
		last = chunk;
		if (!view_word(&view, chunk, &chunk))
			return;
	}
}

/* The word behind the number-th link of a magazine in the depot. */
static uint64_t special_word(struct gslice_heap *heap, uint64_t chunk, unsigned int number)
{
	uint64_t word = 0;

	while (number-- > 0)
		if (!view_word(&heap->view, chunk, &chunk))
			return 0;
	view_word(&heap->view, chunk + heap->word, &word);
	return word;
}

static void mark_depot(const struct lists *lists, uint64_t head)
{
	enum { SPECIAL = 4, NEXT = 2 };
	struct gslice_heap *heap = lists->heap;
	uint64_t magazine = head, damage = heap->lists.links.count + heap->lists.twice.count;

	do {
		mark_magazine(lists, magazine, magazine, SPECIAL);
		magazine = special_word(heap, magazine, NEXT);
		/* It ends: each has chunks that no other has. */
	} while (magazine && magazine != head &&
		 heap->lists.links.count + heap->lists.twice.count == damage);
}

static void mark_bin(struct gslice_heap *heap, uint32_t source, uint32_t bin)
{
	const uint64_t magazine = bin * gslice_unit(heap);
	const uint64_t arrays = heap->sources.items[source].bins * gslice_unit(heap);
	struct lists lists = { heap, source, bin, true, true };
	uint64_t place, word;

	array_for_each(thread, &heap->threads) {
		for (unsigned int i = 0; i < 2; i++) {
			place = *thread + gslice_unit(heap) + i * arrays + magazine;
			if (view_word(&heap->view, place, &word))
				mark_magazine(&lists, word, place, 0);
		}
	}
	lists.cached = false;
	place = heap->sources.items[source].magazines + (uint64_t)bin * heap->word;
	if (view_word(&heap->view, place, &word) && word)
		mark_depot(&lists, word);
}

static void mark_slab(struct gslice_heap *heap, struct gslice_slab *slab)
{
	const struct lists lists = { heap, slab->source, slab->bin };
	uint64_t info = slab->page + gslice_room(heap, slab->bin), chunk;
	uint64_t links = heap->lists.links.count + heap->lists.twice.count;

	if (!read_info(heap, info, INFO_CHUNKS, &chunk))
		return;
	mark_list(&lists, chunk, info);
	if (!heap->sources.items[slab->source].locked &&
	    heap->lists.links.count + heap->lists.twice.count == links &&
	    slab->used + (uint64_t)bits_count(slab->free) != gslice_chunk_count(heap, slab->bin))
		heap_damage_note(&heap->counts, slab->page);
}

static struct error *read_lists(struct gslice_heap *heap)
{
	for (uint32_t i = 0; i < heap->sources.count; i++)
		TRY(add_slabs(heap, i));
	keep_apart(heap);
	array_for_each(slab, &heap->slabs)
		mark_slab(heap, slab);
	for (uint32_t i = 0; i < heap->sources.count; i++) {
		heap->threads.count = 0;
		TRY(find_threads(heap, heap->sources.items[i].bins));
		for (uint32_t bin = 0; bin < heap->sources.items[i].bins; bin++)
			mark_bin(heap, i, bin);
	}
	return gslice_find_colors(heap);
}

static struct error *gslice_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct gslice_heap *heap = (struct gslice_heap *)base;
	bool off;

	heap->context = *context;
	heap->word = image_word_size(context->image);
	heap->view.image = context->image;
	arrays_use(context->account, &heap->sources, &heap->slabs, &heap->threads);
	TRY(find_sources(heap, &off));
	if (heap->sources.count == 0)
		return off ? NULL : report_unread(heap);
	TRY(read_lists(heap));
	*ret = true;
	return NULL;
}

static struct error *add_chunks(struct gslice_heap *heap, const struct gslice_slab *slab,
				arena_number arena, struct block_sink *sink)
{
	const uint64_t bytes = gslice_chunk_bytes(heap, slab->bin);
	const uint64_t info = slab->page + gslice_room(heap, slab->bin);

	TRY(block_sink_claim(sink, info, info + gslice_info(heap) - gslice_unit(heap)));
	TRY(block_sink_region(sink, slab->page, info, arena));
	for (uint32_t i = 0; i < gslice_chunk_count(heap, slab->bin); i++) {
		struct block block = { slab->page + slab->color + i * bytes, bytes, BLOCK_USED };

		if (slab->cached >> i & 1)
			block.state = BLOCK_CACHED;
		else if ((slab->free | slab->magazine) >> i & 1)
			block.state = BLOCK_FREE;
		TRY(block_sink_add(sink, block));
	}
	return NULL;
}

static void report(const struct gslice_heap *heap)
{
	struct findings *findings = heap->context.findings;

	heap_list_damage_report(&heap->lists, findings, "gslice", "slices");
	heap_damage_report(&heap->counts, findings, "gslice",
			   "slabs whose list contradicts their count of slices in use",
			   "their slices count as the lists say");
	heap_damage_report(&heap->rings, findings, "gslice",
			   "slabs whose neighbours do not name them",
			   "slabs that are not found count as blocks of malloc");
	if (heap->lists.links.count + heap->lists.twice.count + heap->counts.count +
		    heap->rings.count >
	    0)
		findings_add(findings, FINDING_NOTE, "%s", SWITCH);
}

static const struct arena_kind gslice_arena_kinds[] = {
	{ .name = "slices", .group = "GLib's slices" },
	{ NULL },
};

static struct error *gslice_walk(struct heap *base, struct block_sink *sink)
{
	struct gslice_heap *heap = (struct gslice_heap *)base;

	block_sink_align(sink, (unsigned int)gslice_unit(heap));
	array_for_each(source, &heap->sources)
		TRY(array_append(&base->arenas,
				 (struct arena){ gslice_arena_kinds, source->address }));
	array_for_each(slab, &heap->slabs) {
		TRY(add_chunks(heap, slab, base->first_arena + slab->source, sink));
		base->arenas.items[slab->source].size +=
			gslice_page_bytes(heap, slab->bin) - gslice_unit(heap);
	}
	report(heap);
	return NULL;
}

enum { FREE_SLAB, FREE_MAGAZINE };

static const struct free_kind gslice_free_kinds[] = {
	[FREE_SLAB] = { "slab list" },
	[FREE_MAGAZINE] = { "magazine" },
	{ NULL },
};

static unsigned int gslice_free_kind(const struct heap *base, size_t number, allocation_id id,
				     struct block block)
{
	const struct gslice_heap *heap = (const struct gslice_heap *)base;
	const struct gslice_slab *slab = gslice_find_slab(heap, block.start);
	uint64_t chunk;

	if (!slab)
		return FREE_SLAB;
	chunk = (block.start - slab->page - slab->color) / gslice_chunk_bytes(heap, slab->bin);
	return slab->magazine >> chunk & 1 ? FREE_MAGAZINE : FREE_SLAB;
}

static bool gslice_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return size - wanted < 2 * sizeof(uint64_t);
}

static struct error *gslice_visit_units(const struct heap *base, unit_visit visit, void *data)
{
	static const struct unit_kind kind = { .name = "slab", .given_back = true };
	const struct gslice_heap *heap = (const struct gslice_heap *)base;

	array_for_each(slab, &heap->slabs) {
		struct heap_unit unit = { &kind, slab->page,
					  slab->page + gslice_room(heap, slab->bin),
					  gslice_chunk_bytes(heap, slab->bin) };

		TRY(visit(data, base->allocator, &unit));
	}
	return NULL;
}

/* The variable's numbers, and how many chunks of each slab are in use. */
static struct error *gslice_visit_structure(const struct heap *base, program_range_visitor *visit,
					    void *data)
{
	const struct gslice_heap *heap = (const struct gslice_heap *)base;

	array_for_each(source, &heap->sources)
		TRY(visit(data, source->address, source->bytes));
	array_for_each(slab, &heap->slabs)
		TRY(visit(data,
			  slab->page + gslice_room(heap, slab->bin) +
				  INFO_USED * (uint64_t)heap->word,
			  heap->word));
	return NULL;
}

static bool gslice_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct gslice_heap *heap = (const struct gslice_heap *)base;
	const struct gslice_slab *slab = gslice_find_slab(heap, address);

	if (slab)
		snprintf(ret, size,
			 "in GLib's slab at %#" PRIx64 ", of slices of %" PRIu64 " bytes",
			 slab->page, gslice_chunk_bytes(heap, slab->bin));
	return slab != NULL;
}

const struct allocator allocator_gslice = {
	.name = "gslice",
	.summary = "slices of GLib up to 2.74",
	.narrow = true,
	.alignment = 16,
	.heap_size = sizeof(struct gslice_heap),
	FILL_SLOTS(gslice, open, walk, close, arena_kinds, free_kinds, free_kind, size_fits,
		   visit_units, tell, visit_structure),
};
