#include "analyzer/account/hidden.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/program/module_words.h"
#include "analyzer/program/symbols.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

enum {
	WORD = 8,
	BLOCK = 0x10, /* where a large block of malloc begins in its page */
	MOST_HOLES = 256,
	MOST_GUARD = 1 << 16,
	MOST_BYTES = 64 << 20, /* of heaps */
};

/* The largest distance of a mapping below other memory. */
#define REACH (UINT64_C(1) << 30)

/* Words that lead into one hole. */
struct hole {
	uint64_t start, end;
	uint64_t first;	 /* the first word's value */
	uint64_t place;	 /* and where that stands */
	bool is_guarded; /* by pages on both sides */
	bool is_static;	 /* some are variables of modules */
	bool differs;	 /* they stand for several offsets in pages */
};

enum reading { READING_MODULES, READING_STACKS, READING_HEAPS };

struct search {
	const struct image *image;
	const struct program *program;
	uint64_t lowest;  /* where the system maps memory */
	uint64_t upwards; /* where it does so upwards: below the program; or 0 */
	enum reading reading;
	ARRAY(struct hole) holes;
};

/* A few pages that nobody may access; gdb says of such that they can be read, and writes zeros. */
static bool is_guard(const struct region *region)
{
	uint64_t size = region->end - region->start;

	return !region->mapping && size <= MOST_GUARD &&
	       (region->rights == 0 || (region->rights == RIGHT_READ && region->bytes &&
					bytes_are_zero(region->bytes, size)));
}

/* True if variables of below's module are missing at address. Another finding reports those. */
static bool is_of_module(const struct search *search, uint64_t below, uint64_t address)
{
	const struct module *module = program_find_module(search->program, below);
	struct module_headers headers;

	if (!module || !module_headers_read(search->image, module->start, &headers))
		return false;
	for (size_t i = 0; i < headers.count; i++) {
		const Elf64_Phdr *segment = &headers.segments[i];

		if (segment->p_type == PT_LOAD &&
		    address - headers.bias < page_above(segment->p_vaddr + segment->p_memsz))
			return true;
	}
	return false;
}

/* A mapping is next to others: to those above it or, if made upwards, to those below it. */
static bool is_near_mappings(const struct search *search, const struct hole *hole, uint64_t address)
{
	return hole->end - address < REACH ||
	       (address < search->upwards && address - hole->start < REACH);
}

/* Find a hole: a gap between two regions, or writable memory without contents. */
static bool find_hole(const struct search *search, uint64_t address, struct hole *ret)
{
	const struct image *image = search->image;
	size_t above = LIST_ABOVE(image->regions, image->region_count, end, address);
	const struct region *region = image->regions + above, *below = region - 1;

	if (above == 0 || above + 1 >= image->region_count)
		return false;
	*ret = (struct hole){ .start = below->end, .end = region->start };
	if (region->start <= address) {
		*ret = (struct hole){ .start = region->start, .end = region->end };
		if (region->origin != REGION_ABSENT || !(region->rights & RIGHT_WRITE) ||
		    region->mapping || program_find_module(search->program, address))
			return false;
		region++;
	} else if (!image->origin.by_debugger) {
		/* Others write down each mapping, if only that it is there. */
		return false;
	}
	ret->is_guarded = is_guard(below) && below->end == ret->start && is_guard(region) &&
			  region->start == ret->end;
	/* An end of the memory below is no address in the hole. */
	return is_near_mappings(search, ret, address) &&
	       (ret->is_guarded ||
		(address > ret->start && !is_of_module(search, ret->start - 1, address)));
}

/* Below the main stack is what once was its own. */
static bool is_below_main_stack(const struct search *search, const struct hole *hole)
{
	const struct stack *stack = program_find_stack(search->program, hole->end);

	return stack && stack->kind == STACK_MAIN;
}

/*
 * True if the control block of a thread that ended may have been there: at the upper end of one of
 * several adjacent stacks of 8 MB in the hole.
 */
static bool may_be_thread(const struct search *search, const struct hole *hole, uint64_t address)
{
	enum { STACK = (8 << 20) + PAGE, BLOCK_REACH = 4 * PAGE, BLOCK_ALIGNMENT = 64 };
	uint64_t below_end = address < search->upwards ? STACK - (address - hole->start) % STACK
						       : (hole->end - address) % STACK;

	return address % BLOCK_ALIGNMENT == 0 && below_end < BLOCK_REACH &&
	       hole->end - hole->start >= STACK;
}

static bool may_lead_on(const struct search *search, uint64_t word)
{
	return word >= search->lowest && !(word >> 47) && word % WORD == 0 && word % PAGE != BLOCK;
}

static struct error *add_word(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct hole hole;

	if (!may_lead_on(search, word) || !find_hole(search, word, &hole))
		return NULL;
	/* Much in a heap was left behind. */
	if (!hole.is_guarded &&
	    (search->reading == READING_HEAPS || is_below_main_stack(search, &hole) ||
	     may_be_thread(search, &hole, word)))
		return NULL;
	hole.first = word;
	hole.place = where;
	hole.is_static = search->reading == READING_MODULES;
	array_for_each(known, &search->holes) {
		if (known->start != hole.start)
			continue;
		known->is_static |= hole.is_static;
		known->differs |= known->first % PAGE != word % PAGE;
		return NULL;
	}
	return search->holes.count < MOST_HOLES ? array_append(&search->holes, hole) : NULL;
}

/* Few words lead anywhere: check that before anything else. */
static struct error *search_bytes(struct search *search, uint64_t at, const uint8_t *bytes,
				  uint64_t size)
{
	for (uint64_t i = 0; size - i >= WORD; i += WORD) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (may_lead_on(search, word))
			TRY(add_word(search, at + i, word));
	}
	return NULL;
}

static struct error *search_range(struct search *search, uint64_t start, uint64_t end)
{
	for (uint64_t at = (start + WORD - 1) / WORD * WORD; at < end;) {
		uint64_t size = PAGE - at % PAGE, there;
		const uint8_t *bytes;

		if (at % PAGE == 0)
			at = image_next_data(search->image, at) / PAGE * PAGE;
		if (at >= end)
			break;
		size = size < end - at ? size : end - at;
		bytes = image_bytes(search->image, at, &there);
		if (bytes)
			TRY(search_bytes(search, at, bytes, MIN(there, size)));
		at += size;
	}
	return NULL;
}

/* The lowest parts of large heaps will do. */
static struct error *search_heaps(struct search *search, const struct allocation_index *index)
{
	uint64_t left = MOST_BYTES;

	for (size_t i = 0; i < heap_claim_count(index) && left > 0; i++) {
		struct memory_range claim = heap_claim(index, i);
		uint64_t size = claim.end - claim.start;

		size = size < left ? size : left;
		left -= size;
		TRY(search_range(search, claim.start, claim.start + size));
	}
	return NULL;
}

static struct error *search_all(struct search *search, const struct allocation_index *index)
{
	const struct program *program = search->program;

	list_for_each(module, program->modules, program->module_count)
		TRY(module_visit_words(search->image, module, add_word, search));
	search->reading = READING_STACKS;
	list_for_each(stack, program->stacks, program->stack_count)
		TRY(search_range(search, stack->live, stack->live_end));
	search->reading = READING_HEAPS;
	return search_heaps(search, index);
}

/* Memory is mapped around the libraries; the program and its heap may lie elsewhere. */
static uint64_t lowest_mapped(const struct program *program)
{
	uint64_t entry = image_auxiliary(program->image, AT_ENTRY, 0), lowest = UINT64_MAX;

	list_for_each(module, program->modules, program->module_count)
		if (entry - module->start >= module->end - module->start && module->start < lowest)
			lowest = module->start;
	return lowest == UINT64_MAX || lowest < REACH ? lowest : lowest - REACH;
}

/*
 * The end of memory that is mapped upwards: if libraries are below the program, mappings follow
 * them.
 */
static uint64_t end_of_upwards(const struct program *program)
{
	const struct module *main = program_main_module(program);

	return main && main != &program->modules[0] ? main->start : 0;
}

/*
 * True if the module whose variable points there calls a function that can also keep memory out of
 * cores.
 */
static bool may_hide(const struct search *search, const struct hole *hole)
{
	static const char *const names[] = { "madvise", NULL };
	const struct module *module = program_find_module(search->program, hole->place);

	return module && !module_is_libc(module) && module_needs(module, names);
}

static void report(struct analysis *analysis, const struct search *search, const struct hole *hole)
{
	const struct module *module = program_find_module(search->program, hole->place);
	char text[400];

	snprintf(
		text, sizeof(text),
		"%s%.80s refers to %#" PRIx64
		", where the core has no memory: if it is not a pointer to what was unmapped, memory is missing that the program keeps out of cores (MADV_DONTDUMP), or that is in shared huge pages, and what only that refers to looks leaked",
		module ? "static data of " : "a stack", module ? module_name(module) : "",
		hole->first);
	analysis_doubt(analysis, text);
}

static bool is_hidden(const struct search *search, const struct hole *hole)
{
	return hole->is_guarded || (hole->is_static && (hole->differs || may_hide(search, hole)));
}

static void judge(struct analysis *analysis, const struct search *search)
{
	array_for_each(hole, &search->holes) {
		if (is_hidden(search, hole)) {
			report(analysis, search, hole);
			return;
		}
	}
}

struct error *hidden_note(struct analysis *analysis)
{
	struct search search = { .holes.memory.account = analysis_account(analysis) };
	struct error *error;

	TRY(analysis_need(analysis, STAGE_REACHABILITY));
	search.image = analysis_image(analysis);
	search.program = analysis_program(analysis);
	if (!bitmap_weight(analysis_leaked(analysis)) || image_word_size(search.image) != WORD)
		return NULL;
	search.lowest = lowest_mapped(search.program);
	search.upwards = end_of_upwards(search.program);
	error = search_all(&search, analysis_index(analysis));
	if (!error)
		judge(analysis, &search);
	array_release(&search.holes);
	return error;
}
