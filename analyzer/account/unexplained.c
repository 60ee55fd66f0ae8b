#include "analyzer/account/unexplained.h"

#include "analyzer/account/bill_parts.h"
#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"

#include <elf.h>
#include <string.h>

enum {
	SAMPLES = 1024, /* pages */
	PAGE_WORDS = PAGE / sizeof(uint64_t),
	LEAST_ADDRESSES = 16, /* words of such a page of objects */
	LEAST_SAMPLES = 16,   /* of unknown memory */
	LARGE_BLOCK = 256 << 10,
	MESSAGE = 400,
	LEAST_LARGE = 8, /* blocks of objects: fewer are tables of a program */
};

/* Less is no heap worth a word: caches, tables, buffers of libraries. */
#define LEAST_BYTES (UINT64_C(4) << 20)

struct sampling {
	const struct image *image;
	const struct allocation_index *index;
	const struct unknowns *unknowns;
	ARRAY(struct memory_range) memory; /* private, writable and in the core, by address */
	uint64_t bytes, step;		   /* in it, and from sample to sample */
	/* Pages that were looked at and are not all zeros. */
	uint64_t used, unknown, objects;
	uint64_t nested;     /* and are objects in large blocks of a heap */
	size_t large_blocks; /* that these are in */
	allocation_id last_large;
};

/* True if only the process may write to it: no shared memory, and no file except modules. */
static bool is_private(const struct program *program, const struct region *region)
{
	return region->bytes && (region->rights & RIGHT_WRITE) &&
	       !(region->rights & RIGHT_EXECUTE) &&
	       (!region->mapping || program_find_module(program, region->start));
}

/* The parts of the region that are in no hole of the core. */
static struct error *add_region(struct sampling *sampling, const struct region *region)
{
	uint64_t at = image_next_data(sampling->image, region->start), hole;

	for (; at < region->end; at = image_next_data(sampling->image, hole)) {
		hole = image_next_hole(sampling->image, at);
		if (hole <= at || hole > region->end)
			hole = region->end;
		TRY(array_append(&sampling->memory, (struct memory_range){ at, hole }));
		sampling->bytes += hole - at;
	}
	return NULL;
}

static bool is_unknown(const struct sampling *sampling, uint64_t address)
{
	const struct unknowns *unknowns = sampling->unknowns;
	size_t number = LIST_ABOVE(unknowns->items, unknowns->count, end, address);

	return number < unknowns->count && unknowns->items[number].start <= address;
}

/* The large block that address is in, or NO_ALLOCATION. */
static allocation_id find_large(const struct sampling *sampling, uint64_t address)
{
	allocation_id id = allocation_find(sampling->index, address);

	return id != NO_ALLOCATION && allocation_size(sampling->index, id) >= LARGE_BLOCK &&
			       bitmap_get(allocation_used(sampling->index), id)
		       ? id
		       : NO_ALLOCATION;
}

/*
 * True if it is the address of an object: in unknown memory, or inside of another large block.
 * Tables refer to small blocks, or to themselves.
 */
static bool is_object(const struct sampling *sampling, allocation_id own, uint64_t address)
{
	allocation_id large;

	if (is_unknown(sampling, address))
		return true;
	large = own == NO_ALLOCATION ? NO_ALLOCATION : find_large(sampling, address);
	return large != NO_ALLOCATION && large != own &&
	       allocation_start(sampling->index, large) != address;
}

/* An address may have a tag above it, or be a half of a word. */
static bool refers_to_object(const struct sampling *sampling, allocation_id own, uint64_t word)
{
	static const uint64_t ADDRESS = (UINT64_C(1) << 47) - 1;

	return word &&
	       (is_object(sampling, own, word & ADDRESS) ||
		is_unknown(sampling, word & UINT32_MAX) || is_unknown(sampling, word >> 32));
}

static bool is_of_objects(const struct sampling *sampling, allocation_id own,
			  const uint64_t words[static PAGE_WORDS])
{
	unsigned int addresses = 0;

	for (size_t i = 0; i < PAGE_WORDS && addresses < LEAST_ADDRESSES; i++)
		addresses += refers_to_object(sampling, own, words[i]);
	return addresses == LEAST_ADDRESSES;
}

static void look_at_page(struct sampling *sampling, uint64_t address)
{
	uint64_t words[PAGE_WORDS];
	bool unknown = is_unknown(sampling, address);
	allocation_id large = unknown ? NO_ALLOCATION : find_large(sampling, address);

	if (!image_read(sampling->image, page_below(address), words, sizeof(words)) ||
	    bytes_are_zero((const uint8_t *)words, sizeof(words)))
		return;
	sampling->used++;
	sampling->unknown += unknown;
	if ((!unknown && large == NO_ALLOCATION) || !is_of_objects(sampling, large, words))
		return;
	sampling->objects += unknown;
	sampling->nested += !unknown;
	sampling->large_blocks += !unknown && large != sampling->last_large;
	sampling->last_large = large;
}

/* Look at pages so far from each other that these are SAMPLES. */
static void look_at_pages(struct sampling *sampling)
{
	uint64_t at = 0;

	array_for_each(range, &sampling->memory) {
		uint64_t size = range->end - range->start;

		for (; at < size; at += sampling->step)
			look_at_page(sampling, range->start + at);
		at -= size;
	}
}

static bool is_large(const struct sampling *sampling, uint64_t pages)
{
	return pages >= LEAST_SAMPLES && pages * sampling->step >= LEAST_BYTES;
}

static const char *program_name(const struct analysis *analysis)
{
	uint64_t entry = image_auxiliary(analysis_image(analysis), AT_ENTRY, 0);
	const struct module *module = program_find_module(analysis_program(analysis), entry);

	return module ? module_name(module) : "the program";
}

/* An overview and a gate of one session say it once. */
static bool was_added(const struct analysis *analysis, const char *text)
{
	const struct findings *findings = analysis_findings(analysis);

	for (size_t i = 0; i < findings->count; i++)
		if (strcmp(findings->list[i].message, text) == 0)
			return true;
	return false;
}

static void add(struct analysis *analysis, bool incomplete, const char *text)
{
	if (was_added(analysis, text))
		return;
	if (incomplete)
		analysis_doubt(analysis, text);
	else
		analysis_note(analysis, text);
}

/* Objects that outweigh all that is known are a heap; else it is the program's data. */
static void report_unknown(struct analysis *analysis, const struct sampling *sampling)
{
	const struct allocation_index *index = analysis_index(analysis);
	bool is_heap = is_large(sampling, sampling->objects) &&
		       sampling->objects > sampling->used - sampling->unknown;
	char known[NUMBER_SIZE], all[NUMBER_SIZE], unknown[NUMBER_SIZE], text[MESSAGE];
	uint64_t bytes = 0;

	bitmap_for_each(id, allocation_used(index))
		bytes += allocation_size(index, (allocation_id)id);
	snprintf(
		text, sizeof(text),
		"heaps that heapcore knows have %s of about %s of private memory; %s are anonymous memory of %.80s%s",
		in_largest_unit(bytes, known),
		in_largest_unit(sampling->used * sampling->step, all),
		in_largest_unit(sampling->unknown * sampling->step, unknown),
		program_name(analysis),
		is_heap ? ", full of addresses of each other like the heap of an unknown runtime or allocator: what leaked there is not counted"
			: ", and keep what they refer to");
	add(analysis, is_heap, text);
}

static void report_nested(struct analysis *analysis, const struct sampling *sampling)
{
	char all[NUMBER_SIZE], nested[NUMBER_SIZE], text[MESSAGE];

	snprintf(
		text, sizeof(text),
		"%s of about %s of private memory of %.80s are large blocks full of addresses of each other, like the heap of an unknown runtime: what leaked there is not counted",
		in_largest_unit(sampling->nested * sampling->step, nested),
		in_largest_unit(sampling->used * sampling->step, all), program_name(analysis));
	add(analysis, true, text);
}

static void report(struct analysis *analysis, const struct sampling *sampling)
{
	if (is_large(sampling, sampling->unknown) && sampling->unknown > sampling->used / 2)
		report_unknown(analysis, sampling);
	if (is_large(sampling, sampling->nested) && sampling->nested > sampling->used / 3 &&
	    sampling->large_blocks >= LEAST_LARGE)
		report_nested(analysis, sampling);
}

static struct error *take_samples(struct analysis *analysis, struct sampling *sampling)
{
	const struct image *image = sampling->image;

	for (size_t i = 0; i < image->region_count; i++)
		if (is_private(analysis_program(analysis), &image->regions[i]))
			TRY(add_region(sampling, &image->regions[i]));
	sampling->step = page_above(sampling->bytes / SAMPLES + 1);
	look_at_pages(sampling);
	return NULL;
}

struct error *unexplained_note(struct analysis *analysis)
{
	struct unknowns unknowns = { .memory.account = analysis_account(analysis) };
	struct sampling sampling = {
		.image = analysis_image(analysis),
		.index = analysis_index(analysis),
		.unknowns = &unknowns,
		.last_large = NO_ALLOCATION,
		.memory.memory.account = analysis_account(analysis),
	};
	struct error *error = bill_find_unknowns(analysis, &unknowns);

	if (!error)
		error = take_samples(analysis, &sampling);
	if (!error)
		report(analysis, &sampling);
	arrays_release(&sampling.memory, &unknowns);
	return error;
}
