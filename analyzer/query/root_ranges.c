/*
 * The set of roots: the ranges of memory from which allocations are reached. Registers are roots,
 * too, but no ranges.
 */

#include "analyzer/query/ranges.h"
#include "analyzer/query/thread_value.h"

/* What each root range refers to, counted when the first row is written. */
struct root_counts {
	bool tried, known;
	struct analysis *analysis;
	size_t current;	   /* the range that is being counted */
	uint32_t *last;	   /* by allocation: 1 more than the range seen last */
	uint64_t counts[]; /* used allocations, by range */
};

static const char *group_of(const struct analysis *analysis, const struct root_range *root)
{
	const struct region *region = image_find(analysis_image(analysis), root->start);

	if (root->kind == ROOT_STACK)
		return "Stack roots";
	if (root->is_code)
		return "Static roots in code that the program made";
	if (program_find_module(analysis_program(analysis), root->start))
		return "Static roots in modules";
	return region && region->mapping ? "Static roots in other mapped files"
					 : "Static roots in anonymous memory";
}

static struct error *collect(struct analysis *analysis, const struct set_arguments *arguments,
			     struct ranges *ret)
{
	const struct roots *roots = analysis_roots(analysis);
	size_t count = root_range_count(roots);
	struct root_counts *counts = calloc(1, sizeof(*counts) + count * sizeof(*counts->counts));
	struct error *error = NULL;

	if (!counts)
		return &error_no_memory;
	counts->analysis = analysis;
	ret->details = counts;
	for (size_t i = 0; !error && i < count; i++) {
		struct root_range root = root_range(roots, i);

		error = ranges_add(ret, (struct range){ .start = root.start,
							.size = root.end - root.start,
							.group = group_of(analysis, &root),
							.number = i });
	}
	return error;
}

static size_t find_range(const struct roots *roots, uint64_t address)
{
	size_t low = 0, high = root_range_count(roots);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (root_range(roots, middle).end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Anchors of a kind come by address, so those of a range in a row. */
static bool count_anchor(void *data, const struct anchor *anchor)
{
	struct root_counts *counts = data;
	const struct roots *roots = analysis_roots(counts->analysis);

	if (atomic_load_explicit(&analysis_progress(counts->analysis)->interrupted,
				 memory_order_relaxed))
		return false;
	if (anchor->kind > ROOT_STACK || anchor->address == 0)
		return true;
	if (anchor->address >= root_range(roots, counts->current).end ||
	    anchor->address < root_range(roots, counts->current).start)
		counts->current = find_range(roots, anchor->address);
	if (counts->current == root_range_count(roots)) {
		counts->current = 0;
		return true;
	}
	if (counts->last[anchor->target] == counts->current + 1)
		return true;
	counts->last[anchor->target] = (uint32_t)counts->current + 1;
	counts->counts[counts->current]++;
	return true;
}

/* Without memory for that, nothing is reported. */
static void count_targets(const struct analysis *analysis, struct root_counts *counts)
{
	const struct allocation_index *index = analysis_index(analysis);

	counts->tried = true;
	counts->last = calloc(allocation_count(index) + 1, sizeof(*counts->last));
	if (!counts->last)
		return;
	if (root_range_count(analysis_roots(analysis)) > 0)
		roots_visit(analysis_roots(analysis), allocation_used(index), count_anchor, counts);
	counts->known = true;
	free(counts->last);
	counts->last = NULL;
}

static const char *kind_name(const struct root_range *root)
{
	if (root->kind == ROOT_STACK)
		return "stack";
	if (root->is_code)
		return "static, JIT code";
	return root->is_writable ? "static" : "static, read-only";
}

static void write_root(const struct analysis *analysis, const struct ranges *ranges,
		       const struct range *range, struct report *report)
{
	struct root_counts *counts = ranges->details;
	struct root_range root = root_range(analysis_roots(analysis), range->number);
	const struct mapping *mapping = image_find_mapping(analysis_image(analysis), root.start);

	if (!counts->tried)
		count_targets(analysis, counts);
	report_add(report, root.start, root.end, range->size,
		   VALUE_IF(counts->known, counts->counts[range->number]), kind_name(&root));
	report_thread(report, analysis_program(analysis), root.thread);
	report_add(report, mapping ? mapping->path : NULL);
}

/* "allocations": used ones that the range refers to directly. */
const struct range_kind range_kind_roots = {
	.noun = "root ranges",
	.table = TABLE("root", NULL, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		       { "size", VALUE_BYTES }, { "allocations", VALUE_COUNT },
		       { "kind", VALUE_TEXT }, { "thread", VALUE_NUMBER }, { "path", VALUE_TEXT }),
	.contiguous = true,
	.collect = collect,
	.write = write_root,
};
