/*
 * The sets of mapped memory: all of it, and by rights.
 *
 * The image cuts a mapping into regions by where their bytes come from; here its parts are put
 * together again.
 */

#include "analyzer/query/ranges.h"

/* Beside each range, by its number. */
struct mapped_part {
	const struct mapping *mapping;
	uint64_t from_core, from_file; /* how many bytes are known, whence */
	uint8_t rights;
};

static const char *group_of(const struct analysis *analysis, const struct region *region)
{
	const struct program *program = analysis_program(analysis);

	if (program_find_stack(program, region->start) ||
	    program_find_stack(program, region->end - 1))
		return "Ranges with stacks";
	if (program_find_module(program, region->start))
		return "Ranges of modules";
	if (region->mapping)
		return "Ranges of other mapped files";
	return "Anonymous ranges";
}

static bool continues(const struct range *range, const struct mapped_part *part, uint32_t segment,
		      const struct region *region)
{
	return range->start + range->size == region->start && segment == region->segment &&
	       part->mapping == region->mapping && part->rights == region->rights;
}

static struct error *collect(const struct analysis *analysis, bool (*takes)(uint8_t rights),
			     struct ranges *ret)
{
	const struct image *image = analysis_image(analysis);
	size_t count = image_region_count(image);
	struct mapped_part *parts = calloc(count + 1, sizeof(*parts));
	struct error *error = NULL;
	uint32_t segment = 0;

	if (!parts)
		return &error_no_memory;
	ret->details = parts;
	for (size_t i = 0; !error && i < count; i++) {
		const struct region *region = image_region(image, i);
		uint64_t size = region->end - region->start;
		struct range *last = ret->count ? &ret->list[ret->count - 1] : NULL;

		if (!takes(region->rights))
			continue;
		if (last && continues(last, &parts[last->number], segment, region)) {
			last->size += size;
		} else {
			parts[ret->count].mapping = region->mapping;
			parts[ret->count].rights = region->rights;
			segment = region->segment;
			error = ranges_add(ret, (struct range){ region->start, size,
								group_of(analysis, region),
								ret->count });
		}
		if (!error && region->origin == REGION_CORE)
			parts[ret->count - 1].from_core += size;
		if (!error && region->origin == REGION_FILE)
			parts[ret->count - 1].from_file += size;
	}
	return error;
}

static bool is_writable(uint8_t rights)
{
	return rights & RIGHT_WRITE;
}

static bool is_readonly(uint8_t rights)
{
	return rights == RIGHT_READ;
}

static bool is_rxonly(uint8_t rights)
{
	return rights == (RIGHT_READ | RIGHT_EXECUTE);
}

/* Guards of stacks, and what was reserved for later. */
static bool is_inaccessible(uint8_t rights)
{
	return !(rights & (RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE));
}

static bool is_mapped(uint8_t rights)
{
	return true;
}

static struct error *writable_collect(struct analysis *analysis,
				      const struct set_arguments *arguments, struct ranges *ret)
{
	return collect(analysis, is_writable, ret);
}

static struct error *readonly_collect(struct analysis *analysis,
				      const struct set_arguments *arguments, struct ranges *ret)
{
	return collect(analysis, is_readonly, ret);
}

static struct error *rxonly_collect(struct analysis *analysis,
				    const struct set_arguments *arguments, struct ranges *ret)
{
	return collect(analysis, is_rxonly, ret);
}

static struct error *inaccessible_collect(struct analysis *analysis,
					  const struct set_arguments *arguments, struct ranges *ret)
{
	return collect(analysis, is_inaccessible, ret);
}

static struct error *maps_collect(struct analysis *analysis, const struct set_arguments *arguments,
				  struct ranges *ret)
{
	return collect(analysis, is_mapped, ret);
}

/* By the bits of RIGHT_...: execute, write, read. */
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

/* "known": the bytes that the dump, or the mapped file, has. */
#define RANGE_TABLE(name, sentence)                                                        \
	TABLE(name, sentence, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },        \
	      { "size", VALUE_BYTES }, { "known", VALUE_BYTES }, { "rights", VALUE_TEXT }, \
	      { "path", VALUE_TEXT })

/* As the kernel writes them in /proc/PID/maps, but for what is shared. */
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
	.collect = maps_collect,
	.write = write_map,
};

const struct range_kind range_kind_rxonly = {
	.noun = "executable ranges",
	.table = RANGE_TABLE("range", NULL),
	.contiguous = true,
	.collect = rxonly_collect,
	.write = write_range,
};

const struct range_kind range_kind_inaccessible = {
	.noun = "inaccessible ranges",
	.table = RANGE_TABLE("range", NULL),
	.contiguous = true,
	.collect = inaccessible_collect,
	.write = write_range,
};

const struct range_kind range_kind_writable = {
	.noun = "writable ranges",
	.table = RANGE_TABLE("range", NULL),
	.contiguous = true,
	.collect = writable_collect,
	.write = write_range,
};

const struct range_kind range_kind_readonly = {
	.noun = "read-only ranges",
	.table = RANGE_TABLE("range", NULL),
	.contiguous = true,
	.collect = readonly_collect,
	.write = write_range,
};
