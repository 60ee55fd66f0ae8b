#include "analyzer/query/extension_candidates.h"

#include "analyzer/base/sort.h"

#include <stdlib.h>

struct error *candidate_source_init(struct candidate_source *source,
				    struct reference_choice *choice,
				    const struct extension_rules *rules)
{
	struct analysis *analysis = choice->analysis;

	*source = (struct candidate_source){
		.analysis = analysis,
		.choice = choice,
		.bounds = allocation_bounds(analysis_index(analysis)),
	};
	for (size_t i = 0; i < rules->count; i++) {
		enum arrow arrow = rules->list[i].arrow;

		if (arrow == ARROW_FROM)
			TRY(reference_choice_incoming(choice, &source->incoming));
		else
			TRY(reference_choice_outgoing(choice, &source->outgoing));
		if (arrow == ARROW_TO_LEAKED) {
			TRY(analysis_need(analysis, STAGE_REACHABILITY));
			source->leaked = analysis_leaked(analysis);
		}
	}
	return NULL;
}

/* One search: the rule, the allocation, and where what is found goes. */
struct search {
	struct candidate_source *source;
	const struct extension_rule *rule;
	allocation_id from;
	struct id_stack *ids;
};

static bool is_wanted(const struct search *search, allocation_id id)
{
	const struct candidate_source *source = search->source;

	if (bitmap_get(source->unwanted, id))
		return false;
	return search->rule->arrow != ARROW_TO_LEAKED || bitmap_get(source->leaked, id);
}

/*
 * True if the word at `at` in source refers to that offset of target, or to any, and the reference
 * counts.
 */
static bool refers(const struct search *search, allocation_id source, uint64_t at, uint64_t word,
		   allocation_id target, bool has_offset, uint64_t offset)
{
	const struct allocation_index *index = analysis_index(search->source->analysis);
	uint64_t distance = word - allocation_start(index, target);

	return (has_offset ? distance == offset : distance < allocation_size(index, target)) &&
	       reference_choice_takes(search->source->choice, source, at, target);
}

/* True if an aligned word of source refers to that offset of target. */
static bool scan_for(const struct search *search, allocation_id source, allocation_id target,
		     uint64_t offset)
{
	struct word_scan scan = word_scan_of(search->source->analysis, source);
	uint64_t at, word;

	while (word_scan_next(&scan, &at, &word)) {
		search->source->work++;
		if (refers(search, source, at, word, target, true, offset))
			return true;
	}
	return false;
}

/*
 * True if the reference is also an edge of the graph, which leaves out stale links of an allocator
 * in the first words of a block.
 */
static bool is_edge(const struct search *search, struct edges edges, uint64_t at,
		    allocation_id target)
{
	enum { FIRST_WORDS = 4 };

	if (at >= FIRST_WORDS * image_word_size(analysis_image(search->source->analysis)))
		return true;
	for (size_t i = 0; i < edges.count; i++)
		if (edges.targets[i] == target)
			return true;
	return false;
}

/* Bring in the target of that word. */
static struct error *follow_word(const struct search *search, struct edges edges, uint64_t at,
				 uint64_t word)
{
	const struct extension_rule *rule = search->rule;
	const struct allocation_index *index = analysis_index(search->source->analysis);
	allocation_id target;

	if (!heap_bounds_hold(&search->source->bounds, word))
		return NULL;
	target = allocation_find(index, word);
	if (target == NO_ALLOCATION || target == search->from || !is_wanted(search, target) ||
	    !refers(search, search->from, at, word, target, rule->has_extension_offset,
		    rule->extension_offset))
		return NULL;
	return is_edge(search, edges, at, target) ? array_append(search->ids, target) : NULL;
}

/* `->B@10`: what any word refers to, at the offset. */
static struct error *follow_words(const struct search *search, struct edges edges)
{
	struct word_scan scan = word_scan_of(search->source->analysis, search->from);
	uint64_t at, word;

	while (word_scan_next(&scan, &at, &word)) {
		search->source->work++;
		TRY(follow_word(search, edges, at, word));
	}
	return NULL;
}

static struct error *find_targets(const struct search *search)
{
	const struct extension_rule *rule = search->rule;
	struct edges edges = graph_outgoing(search->source->outgoing, search->from);
	uint64_t word;

	search->source->work += edges.count;
	if (edges.count == 0)
		return NULL;
	if (rule->has_member_offset)
		return word_of_allocation(search->source->analysis, search->from,
					  rule->member_offset, &word)
			       ? follow_word(search, edges, rule->member_offset, word)
			       : NULL;
	if (rule->has_extension_offset)
		return follow_words(search, edges);
	for (size_t i = 0; i < edges.count; i++)
		if (is_wanted(search, edges.targets[i]))
			TRY(array_append(search->ids, edges.targets[i]));
	return NULL;
}

/* True if it refers to the allocation at the rule's offsets. */
static bool is_referrer(const struct search *search, allocation_id id)
{
	const struct extension_rule *rule = search->rule;
	uint64_t word;

	if (rule->has_extension_offset)
		return word_of_allocation(search->source->analysis, id, rule->extension_offset,
					  &word) &&
		       refers(search, id, rule->extension_offset, word, search->from,
			      rule->has_member_offset, rule->member_offset);
	if (rule->has_member_offset)
		return scan_for(search, id, search->from, rule->member_offset);
	return true;
}

/* Referrers may be many, and large. */
static struct error *find_referrers(const struct search *search)
{
	const struct progress *progress = analysis_progress(search->source->analysis);
	struct edges edges = graph_outgoing(search->source->incoming, search->from);

	search->source->work += edges.count;
	for (size_t i = 0; i < edges.count; i++) {
		if (!is_wanted(search, edges.targets[i]))
			continue;
		if (is_referrer(search, edges.targets[i]))
			TRY(array_append(search->ids, edges.targets[i]));
		TRY(progress_glance(progress));
	}
	return NULL;
}

static int compare_down(const void *a, const void *b)
{
	allocation_id left = *(const allocation_id *)a;
	allocation_id right = *(const allocation_id *)b;

	return (left < right) - (left > right);
}

/* Few are sorted where they are. */
static void sort_down(allocation_id *ids, size_t count)
{
	enum { FEW = 16 };

	if (count > FEW) {
		SORT(ids, count, compare_down);
		return;
	}
	for (size_t i = 1; i < count; i++) {
		allocation_id id = ids[i];
		size_t place = i;

		for (; place > 0 && ids[place - 1] < id; place--)
			ids[place] = ids[place - 1];
		ids[place] = id;
	}
}

/* Sort those from first on, and leave each of them only once. */
static void put_in_order(struct id_stack *ids, size_t first)
{
	allocation_id *items = ids->items;
	size_t left = first;

	if (ids->count - first < 2)
		return;
	sort_down(items + first, ids->count - first);
	for (size_t i = first; i < ids->count; i++)
		if (left == first || items[left - 1] != items[i])
			items[left++] = items[i];
	ids->count = left;
}

struct error *candidates_find(struct candidate_source *source, const struct extension_rule *rule,
			      allocation_id from, struct id_stack *ids)
{
	const struct search search = { source, rule, from, ids };
	size_t first = ids->count;

	TRY(rule->arrow == ARROW_FROM ? find_referrers(&search) : find_targets(&search));
	put_in_order(ids, first);
	return NULL;
}
