/*
 * Chunks, and the runs of pages in them.
 *
 * The word of a page: flags, whether it is allocated and of a large allocation among them; the size
 * class; and, for the first page of a run, its size, or for any page of a small run, how many pages
 * of the run are before it. So one run leads to the next, up to the end of the chunk.
 */
#include "allocators/jemalloc4/jemalloc4.h"

#include "analyzer/base/sort.h"

enum {
	BIT_ALLOCATED = 1,
	BIT_LARGE = 2,
	CLASS_MASK = 0xff,
	RUN_HEADER = 16, /* of 3.6: before the bitmap */
	MOST_ARENA = 1 << 12,
	SAMPLE = 2000, /* runs that vote */
};

/* 4.5, 4.2 and before, 3.6 without and with profiling. */
static const struct chunk_form forms[] = {
	{ 21, 120, 8, 0, 96, 28, 1, 5, 0x10, true, true },
	{ 21, 112, 8, 0, 96, 28, 1, 5, 0x10, true, true },
	{ 21, 104, 8, 0, 96, 28, 1, 5, 0x10, true, true },
	{ 22, 48, 24, 16, 0, 12, 0, 4, 0x8, false, false },
	{ 22, 48, 32, 24, 0, 12, 0, 4, 0x8, false, false },
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static unsigned int page_count(const struct chunk_form *form)
{
	return 1U << (form->log_chunk - LOG_PAGE);
}

/* The pages of a chunk's header; computed as jemalloc does. */
static unsigned int find_bias(const struct chunk_form *form)
{
	unsigned int bias = 0, bytes;

	for (int i = 0; i < 3; i++) {
		bytes = form->map + (form->map_bytes + form->run_bytes) * (page_count(form) - bias);
		bias = (bytes + PAGE - 1) / PAGE;
	}
	return bias;
}

/* A chunk that is being read. */
struct chunk_reading {
	const struct chunk_form *form;
	struct view *view;
	uint64_t start;
	unsigned int bias, small_count;
};

static bool read_word(const struct chunk_reading *reading, unsigned int page, uint64_t *ret)
{
	const struct chunk_form *form = reading->form;

	return view_word(reading->view,
			 reading->start + form->map +
				 (uint64_t)form->map_bytes * (page - reading->bias) +
				 form->map_bits,
			 ret);
}

static uint64_t size_in(const struct chunk_form *form, uint64_t word)
{
	return word >> (LOG_PAGE + form->size_shift) << LOG_PAGE;
}

static unsigned int class_in(const struct chunk_form *form, uint64_t word)
{
	return word >> form->flag_bits & CLASS_MASK;
}

/* The pages of a small run: those that count up from the first. */
static unsigned int count_small(const struct chunk_reading *reading, unsigned int page,
				uint64_t word)
{
	const struct chunk_form *form = reading->form;
	unsigned int count = 0;

	if (class_in(form, word) >= reading->small_count)
		return 0;
	for (uint64_t next = word; page + count < page_count(form); count++) {
		if (count > 0 && !read_word(reading, page + count, &next))
			break;
		if ((next & (BIT_ALLOCATED | BIT_LARGE)) != BIT_ALLOCATED ||
		    class_in(form, next) != class_in(form, word) ||
		    size_in(form, next) >> LOG_PAGE != count)
			break;
	}
	return count;
}

/* The run that begins at the page; false: none can. */
static bool read_run(const struct chunk_reading *reading, unsigned int page, struct run *ret)
{
	const struct chunk_form *form = reading->form;
	uint64_t word, room = (uint64_t)(page_count(form) - page) * PAGE;

	if (!read_word(reading, page, &word))
		return false;
	*ret = (struct run){ .start = reading->start + (uint64_t)page * PAGE,
			     .bytes = size_in(form, word),
			     .kind = word & BIT_LARGE	  ? RUN_LARGE
				     : word & form->dirty ? RUN_DIRTY
							  : RUN_CLEAN,
			     .class = (uint16_t)class_in(form, word) };
	if ((word & (BIT_ALLOCATED | BIT_LARGE)) == BIT_ALLOCATED) {
		ret->kind = RUN_SMALL;
		ret->bytes = (uint64_t)count_small(reading, page, word) * PAGE;
		ret->header = form->run_bytes
				      ? reading->start + form->map +
						(uint64_t)form->map_bytes *
							(page_count(form) - reading->bias) +
						(uint64_t)form->run_bytes * (page - reading->bias)
				      : ret->start;
		ret->header += form->run_header;
	}
	return ret->bytes > 0 && ret->bytes <= room;
}

/* Whether runs follow each other up to the end of the chunk. */
static bool is_whole(const struct chunk_reading *reading)
{
	unsigned int page = reading->bias;
	struct run run;

	for (; page < page_count(reading->form); page += (unsigned int)(run.bytes / PAGE))
		if (!read_run(reading, page, &run))
			return false;
	return page == page_count(reading->form);
}

/* Whether an arena may be at address: it begins with its number. */
static bool may_be_arena(const struct image *image, uint64_t address, uint32_t *ret_index)
{
	return address >= PAGE && address % METADATA_UNIT == 0 &&
	       image_read_u32(image, address, ret_index) && *ret_index < MOST_ARENA &&
	       is_anonymous_memory(image, address);
}

/* The number of the arena in the list. */
static struct error *find_arena(struct jemalloc4_heap *heap, uint64_t address, uint32_t index,
				uint16_t *ret)
{
	for (size_t i = heap->arenas.count; i-- > 0;)
		if (heap->arenas.items[i].address == address) {
			*ret = (uint16_t)i;
			return NULL;
		}
	*ret = (uint16_t)heap->arenas.count;
	return array_append(&heap->arenas, (struct jemalloc_arena){ address, 0, index });
}

static bool may_be_chunk(const struct chunk_reading *reading, uint64_t *ret_arena)
{
	uint64_t words[3];

	if (!view_read(reading->view, reading->start, words, sizeof(words)))
		return false;
	*ret_arena = words[0];
	return !reading->form->has_self ||
	       (words[1] == reading->start && words[2] == UINT64_C(1) << reading->form->log_chunk);
}

static bool is_known(const struct jemalloc4_heap *heap, uint64_t arena)
{
	for (size_t i = heap->arenas.count; i-- > 0;)
		if (heap->arenas.items[i].address == arena)
			return true;
	return false;
}

/* Add the chunk that may be there. One of a known arena need not be whole: it may be damaged. */
static struct error *look(struct jemalloc4_heap *heap, struct chunk_reading *reading)
{
	uint64_t arena;
	uint32_t index;
	struct chunk chunk = { .start = reading->start };
	struct run run;

	if (!may_be_chunk(reading, &arena) || !may_be_arena(heap->context.image, arena, &index) ||
	    heap->arenas.count == MOST_ARENA || !read_run(reading, reading->bias, &run) ||
	    (!is_known(heap, arena) && !is_whole(reading)))
		return NULL;
	TRY(find_arena(heap, arena, index, &chunk.arena));
	return array_append(&heap->chunks, chunk);
}

static struct error *try_form(struct jemalloc4_heap *heap, const struct chunk_form *form)
{
	const struct image *image = heap->context.image;
	struct view view = { image };
	uint64_t bytes = UINT64_C(1) << form->log_chunk, next = 0;
	struct jemalloc_layout *classes = &heap->layout;
	struct chunk_reading reading = { .form = form, .view = &view, .bias = find_bias(form) };

	jemalloc_set_classes(classes, 3, LOG_PAGE, 8);
	reading.small_count = classes->small_count;
	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		uint64_t at = (region->start + bytes - 1) & -bytes;

		if (at < next)
			at = next;
		if (!region->bytes || !(region->rights & RIGHT_WRITE) || region->mapping)
			continue;
		while (at >= region->start && at < region->end) {
			uint64_t data = image_next_data(image, at);

			/* No head of a chunk is in a hole of the dump. */
			if (data > at) {
				at = (data + bytes - 1) & -bytes;
				continue;
			}
			reading.start = at;
			TRY(look(heap, &reading));
			at = next = at + bytes;
		}
	}
	return NULL;
}

struct error *jemalloc4_find_chunks(struct jemalloc4_heap *heap, bool *ret)
{
	*ret = false;
	for (size_t i = 0; i < FORMS && !*ret; i++) {
		TRY(try_form(heap, &forms[i]));
		*ret = heap->chunks.count > 0;
		if (!*ret)
			continue;
		heap->form = &forms[i];
		heap->bias = find_bias(heap->form);
	}
	return NULL;
}

/* Which classes runs have regions of: in 3.6, less than a page. */
static void set_classes(struct jemalloc4_heap *heap, unsigned int log_quantum)
{
	struct jemalloc_layout *layout = &heap->layout;

	jemalloc_set_classes(layout, log_quantum, LOG_PAGE, 8);
	while (!heap->form->run_bytes && layout->classes[layout->small_count - 1] >= PAGE)
		layout->small_count--;
}

static uint64_t tree_bytes(uint64_t count)
{
	uint64_t words = 0;

	do {
		count = (count + 63) / 64;
		words += count;
	} while (count > 1);
	return 8 * words;
}

struct regions jemalloc4_regions(const struct jemalloc4_heap *heap, const struct run *run)
{
	struct regions regions = { run->start, heap->layout.classes[run->class], 0 };

	regions.count = run->bytes / regions.bytes;
	if (regions.count > REGIONS_MOST)
		regions.count = REGIONS_MOST;
	if (heap->form->run_bytes)
		return regions;
	while (regions.count > 0 &&
	       RUN_HEADER + tree_bytes(regions.count) > run->bytes - regions.count * regions.bytes)
		regions.count--;
	regions.first = run_end(run) - regions.count * regions.bytes;
	return regions;
}

/* The bitmap of a small run: set bits are free regions; false: it contradicts their number. */
static bool read_bitmap(struct view *view, const struct regions *regions, const struct run *run,
			uint64_t ret[BITMAP_WORDS])
{
	uint32_t stated;
	bool beyond;

	return view_read(view, run->header, &stated, sizeof(stated)) &&
	       view_read(view, run->header + sizeof(stated), ret, (regions->count + 63) / 64 * 8) &&
	       jemalloc_count_bits(ret, regions->count, &beyond) == stated && !beyond;
}

/* How many of a sample of runs fit the classes. */
static size_t count_fits(const struct jemalloc4_heap *heap)
{
	struct view view = { heap->context.image };
	uint64_t words[BITMAP_WORDS];
	size_t fits = 0, step = heap->runs.count / SAMPLE + 1;

	for (size_t i = 0; i < heap->runs.count; i += step) {
		const struct run *run = &heap->runs.items[i];
		struct regions regions;

		if (run->kind != RUN_SMALL || run->class >= heap->layout.small_count)
			continue;
		regions = jemalloc4_regions(heap, run);
		fits += (!heap->form->run_bytes || run->bytes % regions.bytes == 0) &&
			read_bitmap(&view, &regions, run, words);
	}
	return fits;
}

static struct error *read_chunk(struct jemalloc4_heap *heap, struct view *view, struct chunk *chunk)
{
	struct chunk_reading reading = { heap->form, view, chunk->start, heap->bias,
					 heap->layout.small_count };
	unsigned int page = heap->bias;

	while (page < page_count(heap->form)) {
		struct run run;

		if (!read_run(&reading, page, &run)) {
			heap_damage_note(&heap->chunks_cut, chunk->start + (uint64_t)page * PAGE);
			break;
		}
		run.arena = chunk->arena;
		TRY(array_append(&heap->runs, run));
		page += (unsigned int)(run.bytes / PAGE);
	}
	chunk->end = chunk->start + (uint64_t)page * PAGE;
	return progress_check(heap->context.progress, 0);
}

struct error *jemalloc4_read_runs(struct jemalloc4_heap *heap)
{
	struct view view = { heap->context.image };
	size_t usual;

	set_classes(heap, 3);
	array_for_each(chunk, &heap->chunks)
		TRY(read_chunk(heap, &view, chunk));
	usual = count_fits(heap);
	set_classes(heap, 4);
	if (count_fits(heap) < usual)
		set_classes(heap, 3);
	return NULL;
}

const struct run *jemalloc4_find_run(const struct jemalloc4_heap *heap, uint64_t address)
{
	const struct run *runs = heap->runs.items;
	size_t above = LIST_ABOVE(runs, heap->runs.count, start, address);

	return above > 0 && address < run_end(&runs[above - 1]) ? &runs[above - 1] : NULL;
}

bool jemalloc4_find_region(const struct jemalloc4_heap *heap, uint64_t address,
			   struct memory_range *ret)
{
	const struct run *run = jemalloc4_find_run(heap, address);
	struct regions regions;

	if (!run || (run->kind != RUN_LARGE && run->kind != RUN_SMALL && run->kind != RUN_HUGE))
		return false;
	*ret = (struct memory_range){ run->start, run_end(run) };
	if (run->kind != RUN_SMALL || run->class >= heap->layout.small_count)
		return run->kind != RUN_SMALL;
	regions = jemalloc4_regions(heap, run);
	if (address < regions.first || (address - regions.first) / regions.bytes >= regions.count)
		return false;
	ret->start = address - (address - regions.first) % regions.bytes;
	ret->end = ret->start + regions.bytes;
	return true;
}

static struct error *add_region(struct jemalloc4_heap *heap, struct block_sink *sink,
				struct block block)
{
	if (block.state == BLOCK_USED && jemalloc_has_address(&heap->own, block.start))
		return NULL;
	if (block.state == BLOCK_USED && jemalloc_has_address(&heap->cached, block.start))
		block.state = BLOCK_CACHED;
	return block_sink_add(sink, block);
}

static struct error *add_small(struct jemalloc4_heap *heap, struct view *view,
			       struct block_sink *sink, const struct run *run)
{
	uint64_t words[BITMAP_WORDS] = { 0 };
	struct regions regions;

	if (run->class >= heap->layout.small_count)
		return NULL;
	regions = jemalloc4_regions(heap, run);
	if (!read_bitmap(view, &regions, run, words))
		heap_damage_note(&heap->bitmaps, run->start);
	for (uint64_t i = 0; i < regions.count; i++)
		TRY(add_region(
			heap, sink,
			(struct block){ regions.first + i * regions.bytes, regions.bytes,
					words[i / 64] >> i % 64 & 1 ? BLOCK_FREE : BLOCK_USED }));
	return NULL;
}

/* Runs of an arena in a row are one region. */
static uint64_t find_region_end(const struct jemalloc4_heap *heap, size_t first)
{
	const struct run *runs = heap->runs.items;
	uint64_t end = run_end(&runs[first]);

	for (size_t i = first + 1;
	     i < heap->runs.count && runs[i].start == end && runs[i].arena == runs[first].arena;
	     i++)
		end = run_end(&runs[i]);
	return end;
}

struct error *jemalloc4_add_blocks(struct jemalloc4_heap *heap, arena_number first,
				   struct block_sink *sink)
{
	struct view view = { heap->context.image };
	uint64_t end = 0;

	for (size_t i = 0; i < heap->runs.count; i++) {
		const struct run *run = &heap->runs.items[i];
		bool is_used = run->kind == RUN_LARGE || run->kind == RUN_HUGE;

		if (run->start >= end) {
			end = find_region_end(heap, i);
			TRY(block_sink_region(sink, run->start, end, first + run->arena));
			TRY(progress_check(heap->context.progress, end - run->start));
		}
		heap->arenas.items[run->arena].bytes += run->bytes;
		if (run->kind == RUN_SMALL)
			TRY(add_small(heap, &view, sink, run));
		else
			TRY(add_region(heap, sink,
				       (struct block){ run->start, run->bytes,
						       is_used ? BLOCK_USED : BLOCK_FREE }));
	}
	return NULL;
}
