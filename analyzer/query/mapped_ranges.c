/*
 * The sets of mapped memory: all of it, by rights, and the ranges of roots.
 *
 * The image cuts a mapping into regions by where their bytes come from; here its parts are put
 * together again.
 */

#include "analyzer/query/set.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

/* Beside each range, by its number. */
struct mapped_part {
	const struct mapping *mapping;
	uint64_t from_core, from_file; /* how many bytes are known, whence */
	uint8_t rights;
};

static const char *region_group(const struct analysis *analysis, const struct region *region)
{
	const struct program *program = analysis_program(analysis);

	if (program_find_stack(program, region->start) ||
	    program_find_stack(program, region->end - 1))
		return "Mappings with stacks";
	if (program_find_module(program, region->start))
		return "Mappings of modules";
	if (region->mapping)
		return "Mappings of other files";
	return "Anonymous mappings";
}

static bool continues(const struct range *range, const struct mapped_part *part, uint32_t segment,
		      const struct region *region)
{
	return range->start + range->size == region->start && segment == region->segment &&
	       part->mapping == region->mapping && part->rights == region->rights;
}

static struct error *collect(struct analysis *analysis, const struct set_arguments *arguments,
			     struct ranges *ret)
{
	const struct range_kind *kind = arguments->set->ranges;
	const struct image *image = analysis_image(analysis);
	size_t count = image->region_count;
	struct mapped_part *parts = calloc(count + 1, sizeof(*parts));
	uint32_t segment = 0;

	TRY_MEMORY(parts);
	ret->details = parts;
	list_for_each(region, image->regions, count) {
		uint64_t size = region->end - region->start;
		struct range *last = ret->count ? &ret->list[ret->count - 1] : NULL;

		if ((region->rights & kind->rights_mask) != kind->rights)
			continue;
		if (last && continues(last, &parts[last->number], segment, region)) {
			last->size += size;
		} else {
			parts[ret->count].mapping = region->mapping;
			parts[ret->count].rights = region->rights;
			segment = region->segment;
			TRY(ranges_add(ret, (struct range){ region->start, size,
							    region_group(analysis, region),
							    ret->count }));
		}
		if (region->origin == REGION_CORE)
			parts[ret->count - 1].from_core += size;
		if (region->origin == REGION_FILE)
			parts[ret->count - 1].from_file += size;
	}
	return NULL;
}

/* Indexed by the bits of RIGHT_...: execute, write, read. */
static const char *const rights[] = { "---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx" };

/* Or what else the range is known to be for. */
static const char *path_of(const struct analysis *analysis, const struct range *range,
			   const struct mapped_part *part)
{
	const struct program *program = analysis_program(analysis);
	uint64_t last = range->start + range->size - 1;
	const struct module *module = program_find_module(program, range->start);
	const struct stack *stack = program_find_stack(program, last);

	if (part->mapping)
		return part->mapping->path;
	if (module)
		return module->path;
	return stack && stack->kind == STACK_MAIN ? "[stack]" : NULL;
}

static void write_range(const struct analysis *analysis, const struct ranges *ranges,
			const struct range *range, struct report *report)
{
	const struct mapped_part *part =
		(const struct mapped_part *)ranges->details + range->number;
	report_add(report, range->start, range->start + range->size, range->size,
		   part->from_core + part->from_file, rights[part->rights & 7],
		   part->mapping ? part->mapping->path : NULL);
}

/* Write rights as in /proc/PID/maps, except for the shared flag. */
static void write_map(const struct analysis *analysis, const struct ranges *ranges,
		      const struct range *range, struct report *report)
{
	const struct mapped_part *part =
		(const struct mapped_part *)ranges->details + range->number;

	report_add(report, range->start, range->start + range->size, rights[part->rights & 7],
		   range->size, part->from_core, part->from_file, path_of(analysis, range, part));
}

/* How many of the bytes the core has, and how many the mapped file. */
const struct range_kind range_kind_maps = {
	.noun = "mapped ranges",
	.table =
		TABLE("mapping", NULL, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		      { "rights", VALUE_TEXT }, { "size", VALUE_BYTES }, { "in core", VALUE_BYTES },
		      { "in file", VALUE_BYTES }, { "path", VALUE_TEXT }),
	.contiguous = true,
	.collect = collect,
	.write = write_map,
};

/* "known": the bytes that the dump, or the mapped file, has. */
#define RANGES_BY_RIGHTS(the_noun, mask, wanted)                                                   \
	{                                                                                          \
		.noun = the_noun,                                                                  \
		.table =                                                                           \
			TABLE("range", NULL, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS }, \
			      { "size", VALUE_BYTES }, { "known", VALUE_BYTES },                   \
			      { "rights", VALUE_TEXT }, { "path", VALUE_TEXT }),                   \
		.contiguous = true, .collect = collect, .rights_mask = mask, .rights = wanted,     \
		.write = write_range,                                                              \
	}

const struct range_kind range_kind_writable =
	RANGES_BY_RIGHTS("writable ranges", RIGHT_WRITE, RIGHT_WRITE);
const struct range_kind range_kind_readonly =
	RANGES_BY_RIGHTS("read-only ranges", UINT8_MAX, RIGHT_READ);
const struct range_kind range_kind_rxonly =
	RANGES_BY_RIGHTS("executable ranges", UINT8_MAX, RIGHT_READ | RIGHT_EXECUTE);

/* Guards of stacks, and what was reserved for later. */
const struct range_kind range_kind_inaccessible =
	RANGES_BY_RIGHTS("inaccessible ranges", RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE, 0);

/* The allocations that each root range refers to, counted when the first row is written. */
struct root_counts {
	bool tried, known;
	struct analysis *analysis;
	size_t current;	   /* the range that is being counted */
	uint32_t *last;	   /* by allocation: 1 more than the range seen last */
	uint64_t counts[]; /* used allocations, by range */
};

static const char *root_group(const struct analysis *analysis, const struct root_range *root)
{
	const struct region *region = image_find(analysis_image(analysis), root->start);

	if (root->kind == ROOT_STACK)
		return "Stack roots";
	if (root->is_code)
		return "Static roots in JIT code";
	if (program_find_module(analysis_program(analysis), root->start))
		return "Static roots in modules";
	return region && region->mapping ? "Static roots in other mapped files"
					 : "Static roots in anonymous memory";
}

/* Registers are roots, too, but no ranges. */
static bool root_at(const struct analysis *analysis, size_t number, struct range *ret)
{
	const struct roots *roots = analysis_roots(analysis);
	struct root_range root;

	if (number == root_range_count(roots))
		return false;
	root = root_range(roots, number);
	*ret = (struct range){ root.start, root.end - root.start, root_group(analysis, &root) };
	return true;
}

static struct error *prepare_counts(struct analysis *analysis,
				    const struct set_arguments *arguments, struct ranges *ret)
{
	struct root_counts *counts =
		calloc(1, sizeof(*counts) + root_range_count(analysis_roots(analysis)) *
						    sizeof(*counts->counts));

	TRY_MEMORY(counts);
	counts->analysis = analysis;
	ret->details = counts;
	return NULL;
}

static size_t find_range(const struct roots *roots, uint64_t address)
{
	return BISECT(i, 0, root_range_count(roots), root_range(roots, i).end <= address);
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
	.collect = prepare_counts,
	.at = root_at,
	.write = write_root,
};
