#include "allocators/boehm/bookkeeping.h"

#include "allocators/boehm/blocks.h"
#include "allocators/boehm/calibrate.h"
#include "allocators/boehm/data.h"
#include "allocators/boehm/internals.h"
#include "allocators/boehm/lists.h"
#include "allocators/boehm/marking.h"
#include "analyzer/base/array.h"

enum {
	MOST_SECTIONS = 1 << 16,
	SMALLEST_SECTION = 1 << 16, /* only parts of others are smaller */
	KIND_RECLAIM = 8,	    /* ok_reclaim_list, in GC_obj_kinds */

	HEADER_BLOCK = 16, /* of hblkhdr */
	HEADER_KINDS = 24, /* the kind, and the flags */
	HEADER_SIZE = 32,
};

static struct error *append_range(struct range_list *ranges, uint64_t start, uint64_t end)
{
	size_t count = ranges->list.count;
	struct memory_range *last = count > 0 ? &ranges->list.items[count - 1] : NULL;

	/* Much of it comes in a row. */
	if (last && last->start <= start && start <= last->end) {
		if (end > last->end)
			last->end = end;
		return NULL;
	}
	return array_append(&ranges->list, (struct memory_range){ start, end });
}

/*
 * The pages that something of the collector's own is on: it gets its scratch memory from the system
 * by pages, and uses it for nothing else.
 */
static struct error *append_pages(struct range_list *ranges, uint64_t start, uint64_t size)
{
	return append_range(ranges, page_below(start), page_above(start + size));
}

/*
 * Whether what was a header is at address: it keeps what it had, but for the link in its first
 * word.
 */
static bool is_spare(const struct collector *collector, struct view *view, uint64_t address)
{
	uint64_t block, kinds, size;
	size_t hint = 0;

	return address % GRANULE == 0 && view_word(view, address + HEADER_BLOCK, &block) &&
	       block % block_bytes(collector) == 0 &&
	       view_word(view, address + HEADER_KINDS, &kinds) &&
	       (kinds & UINT8_MAX) < MOST_KINDS && (kinds >> 8 & UINT8_MAX) <= FLAGS_KNOWN &&
	       view_word(view, address + HEADER_SIZE, &size) && size % GRANULE == 0 &&
	       size >> 47 == 0 && !boehm_find_block(collector, address, &hint);
}

/* Note the headers on the list that begins at address, if all are. */
static struct error *read_spares(struct collector *collector, struct view *view, uint64_t address,
				 uint64_t most)
{
	size_t before = collector->spares.count;

	while (address && collector->spares.count - before < most) {
		struct error *error;

		if (!is_spare(collector, view, address)) {
			collector->spares.count = before;
			return NULL;
		}
		error = array_append(&collector->spares, address);
		if (error || !view_word(view, address, &address))
			return error;
	}
	return NULL;
}

/* GC_arrays begins with single variables; one is GC_hdr_free_list. */
struct error *boehm_find_spares(struct collector *collector, const struct heap_context *context)
{
	struct view view = { context->image };
	uint64_t most = image_size(context->image) / boehm_header_size(collector);
	struct error *error = NULL;

	for (uint64_t i = 0; i < ARRAYS_HEAD && collector->freelists && !error; i += 8) {
		uint64_t word;

		if (view_word(&view, collector->freelists - ARRAYS_HEAD + i, &word) && word >= PAGE)
			error = read_spares(collector, &view, word, most);
	}
	return error;
}

static struct error *append_scratch(const struct collector *collector, struct range_list *ranges)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
	const uint64_t *indexes = collector->indexes.items;
	const uint64_t *spares = collector->spares.items;
	uint64_t header = boehm_header_size(collector);
	struct error *error = NULL;

	for (size_t i = 0; i < collector->indexes.count && !error; i++)
		error = append_pages(ranges, indexes[i], index_size(&collector->geometry));
	if (collector->nils && !error)
		error = append_pages(ranges, collector->nils, index_size(&collector->geometry));
	for (size_t i = 0; i < collector->blocks.count && !error; i++)
		error = append_pages(ranges, blocks[i].header, header);
	for (size_t i = 0; i < collector->spares.count && !error; i++)
		error = append_pages(ranges, spares[i], header);
	return error;
}

struct error *boehm_add_owned(const struct collector *collector, struct range_list *ranges)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
	struct error *error = append_scratch(collector, ranges);

	for (size_t i = 0; i < collector->blocks.count && !error; i++)
		error = append_range(ranges, blocks[i].start, block_end(collector, &blocks[i]));
	return error;
}

/* Claim the heads of the lists, and size_map. */
static struct error *claim_arrays(const struct collector *collector, struct block_sink *sink)
{
	uint64_t end = collector->size_map + 8 * (largest_small(collector) + 1);

	if (!collector->freelists)
		return NULL;
	return block_sink_claim(sink, collector->freelists, end);
}

/* Claim the lists of blocks to be swept, of each kind. */
static struct error *claim_reclaim_lists(const struct collector *collector,
					 const struct image *image, struct block_sink *sink)
{
	uint64_t size = 8 * list_heads(collector);
	struct error *error = NULL;

	for (size_t kind = 0; collector->kinds && kind < collector->kind_count && !error; kind++) {
		uint64_t entry = collector->kinds + kind * collector->kind_size;
		uint64_t list;

		if (image_read_u64(image, entry + KIND_RECLAIM, &list) && list)
			error = block_sink_claim(sink, list, list + size);
	}
	return error;
}

struct sections {
	const struct collector *collector;
	struct view view;
	struct block_sink *sink;
	ARRAY(uint64_t) starts; /* of those that were found */
	size_t hint;
};

/*
 * Whether { start, size } stands at address for a section: a stretch of whole blocks that the
 * collector got from the system at once. A program may note a large object in the same way: that is
 * left alone.
 */
static bool is_section(struct sections *sections, uint64_t address)
{
	const struct collector *collector = sections->collector;
	const struct boehm_block *block;
	uint64_t start, size;

	if (!view_word(&sections->view, address, &start) || start == 0 || start % PAGE != 0 ||
	    !view_word(&sections->view, address + 8, &size) || size == 0 || size % PAGE != 0 ||
	    size > collector->size + collector->unmapped)
		return false;
	block = boehm_find_block(collector, start, &sections->hint);
	if (!block || block->start != start ||
	    (!is_free(block) && block_end(collector, block) == start + size))
		return false;
	block = boehm_find_block(collector, start + size - 1, &sections->hint);
	return block && block_end(collector, block) == start + size;
}

/* Claim what lists sections, at the word or where it points to. */
static struct error *claim_sections(void *data, uint64_t where, uint64_t word)
{
	struct sections *sections = data;
	uint64_t address = where, end, start, size;
	struct error *error;

	if (word % 8 != 0)
		return NULL;
	if (!is_section(sections, where))
		address = word;
	if (!view_word(&sections->view, address + 8, &size) || size < SMALLEST_SECTION)
		return NULL;
	for (end = address;
	     end - address < UINT64_C(16) * MOST_SECTIONS && is_section(sections, end); end += 16) {
		if (!view_word(&sections->view, end, &start))
			break;
		error = array_append(&sections->starts, start);
		if (error)
			return error;
	}
	return end > address ? block_sink_claim(sections->sink, address, end) : NULL;
}

/*
 * The collector also notes where the section lies that it got last. That is no reference to the
 * object there; but a table of its own may lie there, too.
 */
static struct error *claim_notes(struct sections *sections)
{
	const uint64_t *starts = sections->starts.items;
	uint64_t end = sections->collector->freelists;

	for (uint64_t i = 8; i <= ARRAYS_HEAD && end; i += 8) {
		struct error *error;
		uint64_t word;
		size_t j = 0;

		if (!view_word(&sections->view, end - i, &word) || word == 0)
			continue;
		while (j < sections->starts.count && starts[j] != word)
			j++;
		if (j == sections->starts.count ||
		    boehm_internal(sections->collector, sections->view.image, word) !=
			    INTERNAL_NONE)
			continue;
		error = block_sink_claim(sections->sink, end - i, end - i + 8);
		if (error)
			return error;
	}
	return NULL;
}

static struct error *claim_section_lists(const struct collector *collector,
					 const struct heap_context *context,
					 struct block_sink *sink)
{
	struct sections sections = {
		.collector = collector,
		.view = { context->image },
		.sink = sink,
		.starts = { .memory.account = context->account },
	};
	struct error *error =
		boehm_visit_own_data(collector, context->image, claim_sections, &sections);

	if (!error)
		error = claim_notes(&sections);
	array_release(&sections.starts);
	return error;
}

/* The pages of headers and indexes. */
static struct error *claim_scratch(const struct collector *collector,
				   struct memory_account *account, struct block_sink *sink)
{
	struct range_list scratch = { .list.memory.account = account };
	struct error *error = append_scratch(collector, &scratch);

	for (size_t i = 0; i < scratch.list.count && !error; i++)
		error = block_sink_claim(sink, scratch.list.items[i].start,
					 scratch.list.items[i].end);
	array_release(&scratch.list);
	return error;
}

struct error *boehm_claim_bookkeeping(const struct collector *collector,
				      const struct heap_context *context, struct block_sink *sink)
{
	struct error *error = claim_scratch(collector, context->account, sink);

	if (!error)
		error = claim_arrays(collector, sink);
	if (!error)
		error = claim_reclaim_lists(collector, context->image, sink);
	if (!error)
		error = claim_section_lists(collector, context, sink);
	if (!error)
		error = boehm_claim_marking(collector, context, sink);
	return error;
}
