#include "analyzer/account/contents.h"
#include "analyzer/base/list.h"
#include "analyzer/classify/reader.h"
#include "analyzer/heap/debug_header.h"
#include "analyzer/program/structure.h"
#include "analyzer/slim/parts.h"

#include <inttypes.h>
#include <string.h>

/* Most words of 4 bytes are larger than a length or a count. */
enum { MOST_NARROW = 1 << 28 };

/* Split the mapped memory at the widest gap. */
static void find_bounds(struct slim_rules *rules)
{
	const struct memory_range *ranges = rules->mapped.items;
	size_t count = rules->mapped.count, split = 0;
	uint64_t widest = 0;

	if (count == 0)
		return;
	for (size_t i = 1; i < count; i++)
		if (ranges[i].start - ranges[i - 1].end > widest) {
			widest = ranges[i].start - ranges[i - 1].end;
			split = i;
		}
	rules->bounds[1] = (struct memory_range){ ranges[split].start, ranges[count - 1].end };
	rules->bounds[0] =
		split == 0 ? rules->bounds[1]
			   : (struct memory_range){ ranges[0].start, ranges[split - 1].end };
}

/* Both bounds have their ends. */
static struct word_filter filter_for(const struct memory_range bounds[2])
{
	struct heap_bounds both = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		both.start[i] = bounds[i].start;
		both.size[i] = range_size(bounds[i]) + 1;
	}
	return word_filter_for(both, sizeof(uint64_t));
}

/* The largest range all of whose words are addresses; empty if there is none. */
static void find_largest(struct slim_rules *rules)
{
	list_for_each(range, rules->mapped.items, rules->mapped.count)
		if (range->start >= PAGE && image_may_address(rules->image, range->end) &&
		    range_size(*range) > range_size(rules->largest))
			rules->largest = *range;
}

static struct error *find_mapped(struct slim_rules *rules)
{
	struct range_list *list = &rules->mapped;

	/* Addresses that were reserved and never used would let large numbers pass. */
	list_for_each(region, rules->image->regions, rules->image->region_count) {
		if (region->bytes || region->mapping)
			TRY(array_append(list,
					 (struct memory_range){ region->start, region->end }));
	}
	list->count = memory_ranges_join(list->items, list->count);
	find_bounds(rules);
	find_largest(rules);
	rules->filter = filter_for(rules->bounds);
	return NULL;
}

static struct error *keep_range(void *data, uint64_t start, uint64_t size)
{
	struct slim_rules *rules = data;

	if (size == 0 || size > UINT64_MAX - start)
		return NULL;
	return array_append(&rules->structure, (struct memory_range){ start, start + size });
}

/* Only a hash may stay of what no module has. */
static struct error *take_name(void *data, uint64_t start, uint64_t size)
{
	struct slim_rules *rules = data;

	if (size == 0 || size > UINT64_MAX - start)
		return NULL;
	return array_append(program_find_module(rules->program, start) ? &rules->structure
								       : &rules->names,
			    (struct memory_range){ start, start + size });
}

/* Placeholders of a slim core are not kept as contents of another. */
static struct error *keep_contents(void *data, uint64_t start, uint64_t size)
{
	struct slim_rules *rules = data;

	if (size == 0 || size > UINT64_MAX - start ||
	    !image_has_contents(rules->image, start, size))
		return NULL;
	return array_append(&rules->contents, (struct memory_range){ start, start + size });
}

/* The head of what follows a block with a nested heap is in no region. */
static struct error *find_outer_heads(struct slim_rules *rules)
{
	const struct outer_block *block;

	for (size_t i = 0; (block = heaps_outer_block(rules->heaps, i)); i++) {
		uint64_t start = block->end - (uint64_t)LEAST_OF_HEAD * rules->word, word;

		if (!heaps_arena_allocator(rules->heaps, block->arena)->extent)
			continue;
		for (; start < block->end; start += rules->word)
			if (image_read_word(rules->image, start, &word) &&
			    slim_is_size(rules, word))
				TRY(keep_range(rules, start, rules->word));
	}
	return NULL;
}

static struct error *find_structure(struct slim_rules *rules, struct analysis *analysis,
				    bool strings)
{
	const struct structure_visitor visitor = { rules, keep_range,
						   rules->hash_names ? take_name : keep_range,
						   strings ? keep_contents : NULL };
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	struct range_list *list = &rules->structure;

	TRY(program_visit_structure(rules->program, keep_range, rules));
	TRY(find_outer_heads(rules));
	for (size_t i = 0; i < heaps_count(rules->heaps); i++) {
		const struct heap *heap = heaps_heap(rules->heaps, i);

		if (heap->allocator->visit_structure)
			TRY(heap->allocator->visit_structure(heap, keep_range, rules));
	}
	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		const struct runtime *kind = runtime_at(runtimes, i);
		struct object_space *space = runtimes_space(runtimes, kind);

		/* A program may link an interpreter, and never start it. */
		if (space && kind->visit_structure)
			TRY(kind->visit_structure(space, &visitor));
	}
	TRY(slim_names_prepare(rules));
	list->count = memory_ranges_join(list->items, list->count);
	return NULL;
}

/* True for a length, a count, or two of them in one word; what is random is hardly ever such. */
static bool is_number(const struct slim_rules *rules, uint64_t word)
{
	if (rules->word < sizeof(word))
		return word <= MOST_NARROW;
	return word <= UINT32_MAX || ((uint32_t)word <= UINT16_MAX && word >> 32 <= UINT16_MAX);
}

/* Keep those of the first words from address on that the bits say, if they may be numbers. */
static struct error *keep_numbers(struct slim_rules *rules, uint64_t address, unsigned int words,
				  unsigned int halves)
{
	for (unsigned int i = 0; (words | halves) >> i; i++) {
		uint64_t place = address + (uint64_t)i * rules->word, word;

		if (!((words | halves) >> i & 1) || !image_read_word(rules->image, place, &word))
			continue;
		if (words >> i & 1 && is_number(rules, word))
			TRY(keep_range(rules, place, rules->word));
		else if (halves >> i & 1)
			TRY(keep_range(rules, place, sizeof(uint32_t)));
	}
	return NULL;
}

/* Keep what a debugging allocator notes before an object: place, size, and a mark. */
static struct error *keep_debug_header(struct slim_rules *rules, uint64_t start)
{
	struct debug_header header;

	return debug_header_read(rules->image, start, &header)
		       ? keep_range(rules, start, header.object - start)
		       : NULL;
}

/* True if blocks of a heap may have such. */
static bool has_debug_headers(const struct slim_rules *rules)
{
	for (size_t i = 0; i < heaps_count(rules->heaps); i++)
		if (heaps_heap(rules->heaps, i)->allocator->read_debug_header)
			return true;
	return false;
}

/* Keep what makes containers of C++ and objects of the C library what they are. */
static struct error *find_numbers(struct slim_rules *rules, struct analysis *analysis)
{
	struct progress *progress = analysis_progress(analysis);
	_cleanup_(patterns_destroy) struct patterns *patterns = NULL;
	const bool debugged = has_debug_headers(rules);
	struct reader reader;
	uint64_t told = 0;

	TRY(analysis_need(analysis, STAGE_ROOTS));
	TRY(analysis_need(analysis, STAGE_OBJECTS));
	TRY(analysis_find_numbered(analysis, &patterns));
	patterns_init_reader(patterns, &reader);
	for (size_t id = 0; id < allocation_count(rules->index); id++) {
		pattern_number number = patterns_of(patterns, (allocation_id)id);
		struct pattern_numbers numbers;
		struct pattern_facts facts;

		TRY(progress_check_at(progress, id, &told));
		if (debugged)
			TRY(keep_debug_header(rules,
					      allocation_start(rules->index, (allocation_id)id)));
		if (number == NO_PATTERN)
			continue;
		numbers = pattern_numbers(number);
		TRY(keep_numbers(rules, allocation_start(rules->index, (allocation_id)id),
				 numbers.own, numbers.own_halves));
		if ((numbers.owner || numbers.owner_halves) &&
		    patterns_tell(patterns, &reader, (allocation_id)id, &facts) && facts.owner)
			TRY(keep_numbers(rules, facts.owner, numbers.owner, numbers.owner_halves));
	}
	return NULL;
}

/* Answers would be wrong without what such allocators and languages write. */
static struct error *check_supported(const struct slim_rules *rules, struct analysis *analysis)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);

	for (size_t i = 0; i < heap_region_count(rules->index); i++) {
		const struct allocator *allocator =
			heaps_arena_allocator(rules->heaps, heap_region(rules->index, i)->arena);

		if (!allocator->visit_structure)
			return error_create(
				ERROR_NOT_SUPPORTED,
				"a slim core cannot have a heap of %s yet: which of its words are no contents is not known",
				allocator->name);
	}
	for (size_t i = 0; i < runtime_count(runtimes); i++)
		if (!runtime_at(runtimes, i)->visit_structure)
			return error_create(
				ERROR_NOT_SUPPORTED,
				"a slim core cannot have the objects of %s yet: which of their words are no contents is not known",
				runtime_at(runtimes, i)->name);
	return NULL;
}

/* True if any word of so many equal letters is an address, also if they take two bytes each. */
static bool letter_misleads(const struct slim_rules *rules, uint8_t letter)
{
	uint64_t text = 0, wide = 0;

	for (unsigned int i = 0; i < sizeof(text); i++) {
		text = text << 8 | letter;
		if (i % 2 == 0)
			wide = wide << 16 | letter;
		if (slim_is_address(rules, text) || slim_is_address(rules, wide))
			return true;
	}
	return false;
}

static bool half_misleads(const struct slim_rules *rules, uint64_t half)
{
	return slim_is_address(rules, half) || slim_is_address(rules, half << 32) ||
	       slim_is_address(rules, half << 32 | half);
}

/* One of a few is no address in any process. */
static void choose_placeholders(struct slim_rules *rules)
{
	static const uint32_t halves[] = { 0xb5b5b5b5, 0xb6b6b6b6, 0xc7c7c7c7, 0xd8d8d8d8,
					   0x01010101 };
	/* Programs that are not moved have three letters, but no three digits, as an address. */
	static const char letters[] = "xeaotn0";

	rules->half = halves[0];
	for (size_t i = 1; i < COUNT_OF(halves) && half_misleads(rules, rules->half); i++)
		rules->half = halves[i];
	rules->letter = (uint8_t)letters[0];
	for (size_t i = 1; letters[i] && letter_misleads(rules, rules->letter); i++)
		rules->letter = (uint8_t)letters[i];
}

/* The bytes of the allocation's text, with what ends it; 0 if it is no string. */
static uint64_t text_size(const struct slim_rules *rules, const struct patterns *patterns,
			  struct reader *reader, allocation_id id)
{
	uint64_t start = allocation_start(rules->index, id), known = 0;
	uint64_t size = allocation_size(rules->index, id);
	const uint8_t *bytes = image_bytes(rules->image, start, &known);
	struct pattern_facts facts;

	if (!bytes || patterns_of(patterns, id) == NO_PATTERN)
		return 0;
	size = MIN(size, known);
	if (pattern_is_text(patterns_of(patterns, id)))
		return MIN(contents_text(bytes, size) + 1, size);
	if (!patterns_tell(patterns, reader, id, &facts) || !facts.is_measured || !facts.unit ||
	    strcmp(facts.unit, "characters") != 0)
		return 0;
	return MIN(facts.live_end, size);
}

static struct error *find_strings(struct slim_rules *rules, struct analysis *analysis)
{
	const struct patterns *patterns;
	struct progress *progress = analysis_progress(analysis);
	struct reader reader;
	uint64_t told = 0;

	TRY(analysis_need(analysis, STAGE_OWNERS));
	patterns = analysis_owners(analysis);
	patterns_init_reader(patterns, &reader);
	for (size_t id = 0; id < allocation_count(rules->index); id++) {
		TRY(progress_check_at(progress, id, &told));
		TRY(keep_contents(rules, allocation_start(rules->index, (allocation_id)id),
				  text_size(rules, patterns, &reader, (allocation_id)id)));
	}
	return NULL;
}

static struct error *find_contents(struct slim_rules *rules, struct analysis *analysis,
				   const struct slim_options *options)
{
	struct range_list *list = &rules->contents;

	if (options->whole)
		bitmap_for_each(id, options->whole)
			TRY(keep_contents(rules, allocation_start(rules->index, (allocation_id)id),
					  allocation_size(rules->index, (allocation_id)id)));
	if (options->strings)
		TRY(find_strings(rules, analysis));
	list->count = memory_ranges_join(list->items, list->count);
	return NULL;
}

struct error *slim_rules_init(struct slim_rules *rules, struct analysis *analysis,
			      const struct slim_options *options)
{
	*rules = (struct slim_rules){ 0 };
	TRY(analysis_need(analysis, STAGE_FIBERS));
	rules->image = analysis_image(analysis);
	rules->program = analysis_program(analysis);
	rules->heaps = analysis_heaps(analysis);
	rules->index = analysis_index(analysis);
	rules->hash_names = options->hash_names;
	rules->word = image_word_size(rules->image);
	rules->ignored_bits = rules->program->ignored_bits;
	rules->has_signatures = rules->program->code_signature != 0;
	arrays_use(analysis_account(analysis), &rules->mapped, &rules->structure, &rules->names,
		   &rules->contents);
	TRY(check_supported(rules, analysis));
	TRY(heaps_wake(rules->heaps));
	TRY(find_mapped(rules));
	TRY(find_numbers(rules, analysis));
	TRY(find_structure(rules, analysis, options->strings));
	TRY(find_contents(rules, analysis, options));
	choose_placeholders(rules);
	return NULL;
}

void slim_rules_deinit(struct slim_rules *rules)
{
	arrays_release(&rules->mapped, &rules->structure, &rules->names, &rules->contents);
}

bool slim_is_mapped(const struct slim_rules *rules, uint64_t word)
{
	const struct memory_range *range;

	if (word < PAGE || !image_may_address(rules->image, word))
		return false;
	range = LIST_LAST(rules->mapped.items, rules->mapped.count, start, word);
	/* The end of something is an address, too. */
	return range && word <= range->end;
}

bool slim_is_signed(const struct slim_rules *rules, uint64_t word)
{
	return program_unsigned(rules->program, word) != word;
}
