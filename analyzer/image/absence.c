#include "analyzer/image/absence.h"

#include "analyzer/base/text.h"

#include <inttypes.h>

/* Writable memory that the dump lacks, by what is likely in it. */
struct absence {
	uint64_t unknown, first_unknown;
	uint64_t untouched, first_untouched;
	uint64_t shared;
	const char *shared_path;
};

/*
 * Whether the core has private memory at all; coredump_filter may leave it
 * out. If it has, the kernel leaves out only what was never written (and what
 * the program excluded by MADV_DONTDUMP, which looks the same).
 */
static bool has_private_memory(const struct image *image)
{
	for (size_t i = 0; i < image_region_count(image); i++) {
		const struct region *region = image_region(image, i);

		if ((region->rights & RIGHT_WRITE) && !region->mapping &&
		    region->origin == REGION_CORE)
			return true;
	}
	return false;
}

static bool starts_behind_module(const struct image *image,
				 const struct region *region)
{
	const struct mapping *below =
		image_find_mapping(image, region->start - 1);

	return below && image_module_base(image, below);
}

static void weigh_absent(const struct image *image, const struct region *region,
			 bool private, struct absence *absence)
{
	const struct mapping *mapping = region->mapping;
	uint64_t size = region->end - region->start;

	if (mapping && !image_module_base(image, mapping)) {
		absence->shared += size;
		absence->shared_path = mapping->path;
	} else if (!private || image_missing(image) > 0) {
		if (absence->unknown == 0)
			absence->first_unknown = region->start;
		absence->unknown += size;
	} else if (!mapping && !starts_behind_module(image, region)) {
		if (absence->untouched == 0)
			absence->first_untouched = region->start;
		absence->untouched += size;
	}
}

/*
 * Writable memory that nobody can read may hold the only pointer to what then
 * looks leaked. A module's data that was never written holds none to a heap.
 */
void image_report_absence(const struct image *image, struct findings *findings)
{
	bool private = has_private_memory(image);
	struct absence absence = { 0 };
	char size[NUMBER_SIZE];

	for (size_t i = 0; i < image_region_count(image); i++) {
		const struct region *region = image_region(image, i);

		if (region->origin == REGION_ABSENT &&
		    (region->rights & RIGHT_WRITE))
			weigh_absent(image, region, private, &absence);
	}
	if (absence.unknown > 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "%s bytes of writable memory, first at "
			     "%#" PRIx64
			     ", are not in the core%s: what only they refer "
			     "to looks leaked",
			     grouped(absence.unknown, size),
			     absence.first_unknown,
			     image_missing(image)
				     ? ""
				     : " (see coredump_filter in core(5)"
				       ")");
	if (absence.untouched > 0)
		findings_add(findings, FINDING_NOTE,
			     "%s bytes of writable memory, first at "
			     "%#" PRIx64
			     ", are not in the core: they were never written, "
			     "or the program keeps them out of cores "
			     "(MADV_DONTDUMP); then what only they refer to "
			     "looks leaked",
			     grouped(absence.untouched, size),
			     absence.first_untouched);
	if (absence.shared > 0)
		findings_add(findings, FINDING_NOTE,
			     "%s bytes of shared file mappings, as %s, are not "
			     "in the core and were not searched for references",
			     grouped(absence.shared, size),
			     absence.shared_path);
}
