/*
 * The sets of mapped memory, by rights: writable, readonly.
 *
 * The image cuts a mapping into regions by where their bytes come from; here
 * its parts are put together again.
 */

#include "analyzer/query/ranges.h"

/* Beside each range, by its number. */
struct mapped_part {
	const struct mapping *mapping;
	uint64_t present; /* bytes of it that are known */
	uint8_t rights;
};

static const char *group_of(const struct analysis *analysis,
			    const struct region *region)
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

static bool continues(const struct range *range, const struct mapped_part *part,
		      uint32_t segment, const struct region *region)
{
	return range->start + range->size == region->start &&
	       segment == region->segment && part->mapping == region->mapping &&
	       part->rights == region->rights;
}

static struct error *collect(const struct analysis *analysis,
			     bool (*takes)(uint8_t rights), struct ranges *ret)
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
		struct range *last =
			ret->count ? &ret->list[ret->count - 1] : NULL;

		if (!takes(region->rights))
			continue;
		if (last &&
		    continues(last, &parts[last->number], segment, region)) {
			last->size += size;
		} else {
			parts[ret->count].mapping = region->mapping;
			parts[ret->count].rights = region->rights;
			segment = region->segment;
			error = ranges_add(
				ret, (struct range){ region->start, size,
						     group_of(analysis, region),
						     ret->count });
		}
		if (!error && region->origin != REGION_ABSENT)
			parts[ret->count - 1].present += size;
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

static struct error *writable_collect(struct analysis *analysis,
				      const struct set_arguments *arguments,
				      struct ranges *ret)
{
	return collect(analysis, is_writable, ret);
}

static struct error *readonly_collect(struct analysis *analysis,
				      const struct set_arguments *arguments,
				      struct ranges *ret)
{
	return collect(analysis, is_readonly, ret);
}

/* By the bits of RIGHT_...: execute, write, read. */
static const char *const rights[] = { "---", "--x", "-w-", "-wx",
				      "r--", "r-x", "rw-", "rwx" };

static void write_range(const struct analysis *analysis,
			const struct ranges *ranges, const struct range *range,
			struct report *report)
{
	const struct mapped_part *part =
		(const struct mapped_part *)ranges->details + range->number;
	report_number(report, range->start);
	report_number(report, range->start + range->size);
	report_number(report, range->size);
	report_number(report, part->present);
	report_text(report, rights[part->rights & 7]);
	report_text(report, part->mapping ? part->mapping->path : NULL);
}

/* "known": the bytes that the dump, or the mapped file, has. */
static const struct column columns[] = {
	{ "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
	{ "size", VALUE_BYTES },    { "known", VALUE_BYTES },
	{ "rights", VALUE_TEXT },   { "path", VALUE_TEXT },
};

const struct range_kind range_kind_writable = {
	.noun = "writable ranges",
	.table = { "range", columns, 6, NULL },
	.contiguous = true,
	.collect = writable_collect,
	.write = write_range,
};

const struct range_kind range_kind_readonly = {
	.noun = "read-only ranges",
	.table = { "range", columns, 6, NULL },
	.contiguous = true,
	.collect = readonly_collect,
	.write = write_range,
};
