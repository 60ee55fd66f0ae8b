#include "analyzer/account/dangling.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/sort.h"
#include "analyzer/classify/reference_judge.h"
#include "analyzer/kinds/nameless.h"

#include <inttypes.h>
#include <string.h>

struct search {
	struct analysis *analysis;
	const struct allocation_index *index;
	const struct bitmap *used;
	struct reference_judge judge;
	struct danglings *danglings;
};

static bool is_freed(const struct search *search, allocation_id id)
{
	return id != NO_ALLOCATION && !bitmap_get(search->used, id);
}

/* True if it is the end of what is in use right before: some allocators keep nothing in between. */
static bool is_end(const struct search *search, uint64_t word)
{
	allocation_id before = allocation_find(search->index, word - 1);

	return before != NO_ALLOCATION && bitmap_get(search->used, before) &&
	       word - allocation_start(search->index, before) ==
		       allocation_size(search->index, before);
}

static struct error *count(struct search *search, struct dangling row, allocation_id owner,
			   allocation_id freed, uint64_t word)
{
	struct danglings *danglings = search->danglings;
	struct dangling *found = table_obtain(danglings, hash_add(row.kind, row.offset), one,
					      one->kind == row.kind && one->offset == row.offset &&
						      one->is_static == row.is_static,
					      row);

	TRY_MEMORY(found);
	if (found->references == 0) {
		found->example =
			row.is_static ? row.offset : allocation_start(search->index, owner);
		found->freed = allocation_start(search->index, freed);
	}
	found->owners += found->references == 0 || row.is_static || found->last != owner;
	found->last = owner;
	found->references++;
	found->to_starts += word == allocation_start(search->index, freed);
	danglings->references++;
	return NULL;
}

/* The offset at which a word of an owner counts: elements of arrays count together. */
static uint64_t offset_of_row(const struct search *search, kind_key kind, uint64_t offset)
{
	const struct typing *typing = analysis_typing(search->analysis);
	uint64_t size = kind_is_array(kind)
				? type_get(typing_types(typing), kind_type_of(kind).type)->size
				: 0;

	return size ? offset % size : offset;
}

static kind_key kind_of_owner(const struct search *search, allocation_id owner)
{
	const struct analysis *analysis = search->analysis;

	return kind_with_size(
		kind_typed(analysis, analysis_patterns(analysis), analysis_typing(analysis), owner),
		allocation_size(search->index, owner));
}

/* Count the words of the owner, some of which lead to what was freed. */
static struct error *count_owner(struct search *search, allocation_id owner)
{
	struct reader *reader = &search->judge.reader;
	kind_key kind = kind_of_owner(search, owner);
	uint64_t word;

	/* A library's or runtime's own, as malloc's lists of what a thread has freed. */
	if (kind_has_pattern(kind) &&
	    (pattern_is_reserve(kind_pattern(kind)) || pattern_holds_stale(kind_pattern(kind))))
		return NULL;
	reference_judge_set_source(&search->judge, owner);
	for (uint64_t at = search->judge.source.start;
	     search->judge.source.end - at >= reader->word; at += reader->word) {
		uint64_t offset = at - search->judge.source.start;
		allocation_id target;

		if (!reader_word(reader, at, &word) || !heap_bounds_hold(&reader->bounds, word))
			continue;
		target = allocation_find(search->index, word);
		if (!is_freed(search, target) || is_end(search, word) ||
		    reference_judge_taint(&search->judge, offset))
			continue;
		TRY(count(search,
			  (struct dangling){ .kind = kind,
					     .offset = offset_of_row(search, kind, offset) },
			  owner, target, word));
	}
	return NULL;
}

static bool leads_to_freed(const struct search *search, allocation_id owner)
{
	struct edges edges = graph_outgoing(analysis_graph(search->analysis), owner);

	for (size_t i = 0; i < edges.count; i++)
		if (is_freed(search, edges.targets[i]))
			return true;
	return false;
}

static struct error *count_owners(struct search *search, const struct bitmap *owners)
{
	struct progress *progress = analysis_progress(search->analysis);
	uint64_t reported = 0;

	progress_begin(progress, "finding dangling references", owners->count);
	bitmap_for_each(id, owners) {
		if (leads_to_freed(search, (allocation_id)id))
			TRY(count_owner(search, (allocation_id)id));
		TRY(progress_check_at(progress, id, &reported));
	}
	return NULL;
}

struct static_search {
	struct search *search;
	struct error *error;
};

static bool count_static(void *data, const struct anchor *anchor)
{
	struct static_search *statics = data;
	struct search *search = statics->search;
	struct dangling row = { .is_static = true, .offset = anchor->address };
	struct symbol symbol;
	uint64_t word;

	if (anchor->kind != ROOT_STATIC)
		return false;
	if (!image_read_word(analysis_image(search->analysis), anchor->address, &word))
		return true;
	if (is_end(search, word))
		return true;
	if (debug_symbol(analysis_debug(search->analysis), anchor->address, &symbol))
		row.offset = symbol.start;
	statics->error = count(search, row, NO_ALLOCATION, anchor->target, word);
	return !statics->error;
}

static struct error *count_statics(struct search *search)
{
	struct static_search statics = { search, NULL };
	_cleanup_(bitmap_deinit) struct bitmap freed = { 0 };

	TRY(bitmap_init(&freed, search->used->count, analysis_account(search->analysis)));
	bitmap_fill(&freed);
	bitmap_minus(&freed, search->used);
	roots_visit(analysis_roots(search->analysis), &freed, count_static, &statics);
	return statics.error;
}

/* Numbers and texts look like addresses by chance, but rarely like one where a block begins. */
static void leave_out_doubtful(struct danglings *danglings)
{
	size_t kept = 0;

	array_for_each(row, danglings) {
		if (row->to_starts > 0) {
			danglings->items[kept++] = *row;
			continue;
		}
		danglings->doubtful++;
		danglings->references -= row->references;
	}
	danglings->count = kept;
}

DEFINE_COMPARE(compare_danglings, struct dangling, DESCENDING(references), ASCENDING(kind),
	       ASCENDING(offset))

static bool is_equal(const struct bitmap *a, const struct bitmap *b)
{
	return memcmp(a->words, b->words, bitmap_word_count(a) * sizeof(*a->words)) == 0;
}

struct error *dangling_find(struct analysis *analysis, const struct bitmap *owners,
			    struct danglings *ret)
{
	struct search search = { .analysis = analysis, .danglings = ret };

	TRY(analysis_need(analysis, STAGE_OWNERS));
	TRY(kind_need_types(analysis, owners));
	search.index = analysis_index(analysis);
	search.used = allocation_used(search.index);
	ret->memory.account = analysis_account(analysis);
	reference_judge_init(&search.judge, analysis_patterns(analysis));
	TRY(count_owners(&search, owners));
	if (is_equal(owners, search.used))
		TRY(count_statics(&search));
	leave_out_doubtful(ret);
	array_sort(ret, compare_danglings);
	return NULL;
}

/* The first word of the range that is the wanted one; what the core lacks is skipped. */
static bool find_word(const struct image *image, struct memory_range range, uint64_t wanted,
		      uint64_t *ret_place)
{
	const unsigned int step = image_word_size(image);

	for (uint64_t at = range.start; at < range.end;) {
		const struct region *region = image_find(image, at);
		uint64_t end = region && region->end < range.end ? region->end : range.end;

		for (; region && region->bytes && end - at >= step; at += step) {
			if (load_word(region->bytes + (at - region->start), step) != wanted)
				continue;
			*ret_place = at;
			return true;
		}
		at = end;
	}
	return false;
}

struct error *dangling_find_freed_holder(struct analysis *analysis, allocation_id id,
					 struct freed_holder *ret, bool *ret_found)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *used = allocation_used(index);
	struct progress *progress = analysis_progress(analysis);
	uint64_t address = allocation_start(index, id);

	progress_begin(progress, "reading freed memory", 0);
	for (allocation_id block = 0; block < used->count; block++) {
		uint64_t start = allocation_start(index, block);
		struct memory_range range = { start, start + allocation_size(index, block) };

		if (bitmap_get(used, block))
			continue;
		TRY(progress_check(progress, range.end - range.start));
		if (find_word(analysis_image(analysis), range, address, &ret->place)) {
			ret->block = block;
			*ret_found = true;
			return NULL;
		}
	}
	return NULL;
}

char *dangling_name(const struct analysis *analysis, const struct dangling *dangling)
{
	_cleanup_(free) char *name = NULL, *word = NULL;
	const char *field;
	char *text;
	int length;

	if (dangling->is_static)
		return nameless_static(analysis, dangling->offset);
	word = kind_word_text(analysis_typing(analysis), dangling->kind, dangling->offset);
	if (!word)
		return NULL;
	if (kind_tag(dangling->kind) == BY_SIZE) {
		length = asprintf(&text, "%s of size 0x%" PRIx64, word, kind_size(dangling->kind));
		return length < 0 ? NULL : text;
	}
	name = kind_text(analysis, dangling->kind);
	field = runtimes_field_name(analysis_runtimes(analysis),
				    allocation_find(analysis_index(analysis), dangling->example),
				    dangling->offset);
	length = name ? asprintf(&text, field ? "%s@%s" : "%s%s", name, field ? field : word) : -1;
	return length < 0 ? NULL : text;
}
