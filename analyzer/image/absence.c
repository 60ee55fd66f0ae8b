#include "analyzer/base/text.h"
#include "analyzer/image/kernel_notes.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

/* Bytes of mapped files, and the path of one. */
struct lack {
	uint64_t size;
	const char *path;
};

/* Writable memory that the dump lacks, by what is likely in it. */
struct absence {
	uint64_t unknown, first_unknown;
	uint64_t untouched, first_untouched;
	struct lack shared, devices, huge;
	struct lack omitted; /* of which no segment tells */
	struct lack rings;
};

/*
 * True if the core has private memory at all, which coredump_filter may leave out. If it has, the
 * kernel leaves out only memory that was never written (and what the program excluded by
 * MADV_DONTDUMP, which looks the same).
 */
static bool has_private_memory(const struct image *image)
{
	list_for_each(region, image->regions, image->region_count) {
		if ((region->rights & RIGHT_WRITE) && !region->mapping &&
		    region->origin == REGION_CORE)
			return true;
	}
	return false;
}

static bool starts_behind_module(const struct image *image, const struct region *region)
{
	const struct mapping *below = image_find_mapping(image, region->start - 1);

	return below && below->base;
}

static bool begins_with(const char *path, const char *const *starts)
{
	for (; *starts; starts++)
		if (strncmp(path, *starts, strlen(*starts)) == 0)
			return true;
	return false;
}

/* True if NT_FILE names a file that keeps no data. */
static bool is_device(const char *path)
{
	static const char *const devices[] = { "/dev/", "/sys/", NULL };
	static const char *const memory[] = { "/dev/shm/", "/dev/hugepages/", "/dev/zero", NULL };

	return path[0] != '/' || (begins_with(path, devices) && !begins_with(path, memory));
}

/* True if it is in a folder whose files programs only read. */
static bool is_installed(const char *path)
{
	static const char *const folders[] = { "/usr/", "/lib",	 "/bin/", "/sbin/",	 "/etc/",
					       "/opt/", "/nix/", "/gnu/", "/var/cache/", NULL };

	return begins_with(path, folders);
}

/*
 * True if the mappings [first, end) of one file are a program or library. If its header is not in
 * the dump, code shows that, or the part of its data that is there.
 */
static bool is_module(const struct image *image, size_t first, size_t end)
{
	char magic[SELFMAG];

	if (image_read(image, image->mappings[first].start, magic, SELFMAG))
		return memcmp(magic, ELFMAG, SELFMAG) == 0;
	for (size_t i = first; i < end; i++) {
		const struct region *region = image_find(image, image->mappings[i].start);

		if (region && (region->bytes || (region->rights & RIGHT_EXECUTE)))
			return true;
	}
	return false;
}

/* Weigh a mapping of a file that is no module. gcore leaves out all of it. */
static void weigh_file(const struct image *image, const struct smaps *smaps,
		       const struct mapping *mapping, struct absence *absence)
{
	const struct region *region = image_find(image, mapping->end - 1);
	const struct smaps_area *area = smaps_find(smaps, mapping->start);
	struct lack *lack = NULL;

	if (!region || region->bytes || !(region->is_gap || (region->rights & RIGHT_WRITE)))
		return;
	/* Private and never written: its contents are the file's. */
	if (area && !area->shared)
		return;
	if (strcmp(mapping->path, "anon_inode:[io_uring]") == 0)
		lack = image_held_sought(image, HELD_RING) ? NULL : &absence->rings;
	else if (is_device(mapping->path))
		lack = &absence->devices;
	else if (strncmp(mapping->path, "/anon_hugepage", 14) == 0)
		lack = &absence->huge;
	else if (!region->is_gap)
		lack = &absence->shared;
	else if (!is_installed(mapping->path))
		lack = &absence->omitted;
	if (lack) {
		lack->size += mapping->end - mapping->start;
		lack->path = mapping->path;
	}
}

static void weigh_files(const struct image *image, const struct smaps *smaps,
			struct absence *absence)
{
	size_t count = image->mapping_count, end;

	for (size_t first = 0; first < count; first = end) {
		const char *path = image->mappings[first].path;

		end = first + 1;
		while (end < count && strcmp(image->mappings[end].path, path) == 0)
			end++;
		if (is_module(image, first, end))
			continue;
		for (size_t i = first; i < end; i++)
			weigh_file(image, smaps, &image->mappings[i], absence);
	}
}

/* Memory without rights, in which there was something all the same. */
static bool is_hidden(const struct smaps *smaps, const struct region *region)
{
	const struct smaps_area *area = smaps_find(smaps, region->start);

	return !region->rights && area && area->resident > 0;
}

static bool is_asan_shadow(const struct image *image, const struct region *region)
{
	const struct region *first = image_find(image, ASAN_SHADOW_START);
	const struct region *last = image_find(image, ASAN_SHADOW_END - 1);

	return region->start >= ASAN_SHADOW_START && region->end <= ASAN_SHADOW_END && first &&
	       first->start == ASAN_SHADOW_START && last && last->end == ASAN_SHADOW_END;
}

static void weigh_absent(const struct image *image, const struct region *region, bool private,
			 struct absence *absence)
{
	const struct mapping *mapping = region->mapping;
	uint64_t size = region->end - region->start;

	if ((mapping && !mapping->base) || is_asan_shadow(image, region))
		return;
	if (!private || image->missing > 0) {
		if (absence->unknown == 0)
			absence->first_unknown = region->start;
		absence->unknown += size;
	} else if (!mapping && !starts_behind_module(image, region)) {
		if (absence->untouched == 0)
			absence->first_untouched = region->start;
		absence->untouched += size;
	}
}

static void report_lack(const struct lack *lack, const char *what, enum finding_weight weight,
			const char *what_follows, struct findings *findings)
{
	char size[NUMBER_SIZE];

	if (lack->size > 0)
		findings_add(findings, weight, "%s bytes of %s, such as %s, are not in the core%s",
			     grouped(lack->size, size), what, lack->path, what_follows);
}

static void report_files(const struct absence *absence, struct findings *findings)
{
	report_lack(
		&absence->huge, "memory in huge pages", FINDING_INCOMPLETE,
		", because bit 6 (shared) or 5 (private) of coredump_filter was not set: what only they refer to looks leaked",
		findings);
	report_lack(&absence->shared, "writable shared file mappings", FINDING_INCOMPLETE,
		    ": what only they refer to looks leaked", findings);
	report_lack(
		&absence->omitted, "mapped files", FINDING_INCOMPLETE,
		", which does not say whether they were writable: what only they refer to looks leaked",
		findings);
	if (absence->rings.size > 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the program uses io_uring, whose requests are not in the core: what only they refer to looks leaked");
	report_lack(&absence->devices, "mapped devices", FINDING_NOTE,
		    " and were not searched for references", findings);
}

static void report(const struct image *image, const struct absence *absence,
		   struct findings *findings)
{
	char size[NUMBER_SIZE];

	if (absence->unknown > 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "%s bytes of writable memory, first at %#" PRIx64
			     ", are not in the core%s: what only they refer to looks leaked",
			     grouped(absence->unknown, size), absence->first_unknown,
			     image->missing ? "" : " (see coredump_filter in core(5))");
	if (absence->untouched > 0)
		findings_add(
			findings, FINDING_NOTE,
			"%s bytes of writable memory, first at %#" PRIx64
			", are not in the core: they were never written, or the program keeps them out of cores (MADV_DONTDUMP); then what only they refer to looks leaked",
			grouped(absence->untouched, size), absence->first_untouched);
	report_files(absence, findings);
}

/* Rings whose requests the kernel did not list. */
static void report_untold(const struct image *image, struct findings *findings)
{
	for (size_t i = 0; i < image_held_count(image); i++) {
		struct held_value value = image_held(image, i);

		if (value.kind == HELD_UNTOLD)
			findings_add(
				findings, FINDING_INCOMPLETE,
				"io_uring %" PRIu32
				" has requests in flight that the kernel does not report: what only they refer to looks leaked",
				value.holder);
	}
}

static void report_slim(const struct image *image, struct findings *findings)
{
	if (image_is_slim(image))
		findings_add(
			findings, FINDING_NOTE,
			"contents were left out of this core by 'heapcore slim'%s: its texts and numbers are placeholders, and types, patterns and copies that rest on them may not be recognised%s",
			image_keeps_content(image) ? ", but for those that --keep named" : "",
			image->origin.hashed_names ? "; names that no binary has are hashes" : "");
}

/* Memory that is not from the clone of the process, as the rest is. */
static void report_unshared(const struct image *image, struct findings *findings)
{
	struct own_note note = image_note(image, NOTE_UNSHARED);
	char text[NUMBER_SIZE];
	uint64_t size = 0;

	for (size_t i = 0; note.size - i >= sizeof(struct note_range);
	     i += sizeof(struct note_range)) {
		struct note_range range;

		memcpy(&range, note.bytes + i, sizeof(range));
		size += range.end - range.start;
	}
	if (size > 0)
		findings_add(
			findings, FINDING_NOTE,
			"the core is of a clone of the process: %s bytes of memory that a clone lacks, such as shared memory, were copied while the process stood still",
			grouped(size, text));
}

/*
 * Writable memory that nobody can read may hold the only pointer to what then looks leaked. A
 * module's data that was never written holds none to a heap.
 */
struct error *image_report_absence(const struct image *image, struct findings *findings)
{
	bool private = has_private_memory(image);
	_cleanup_(smaps_deinit) struct smaps smaps = { 0 };
	struct absence absence = { 0 };

	TRY(smaps_read(image, &smaps));
	list_for_each(region, image->regions, image->region_count) {
		if (region->origin == REGION_ABSENT &&
		    ((region->rights & RIGHT_WRITE) || is_hidden(&smaps, region)))
			weigh_absent(image, region, private, &absence);
	}
	weigh_files(image, &smaps, &absence);
	report_untold(image, findings);
	report_unshared(image, findings);
	report_slim(image, findings);
	report(image, &absence, findings);
	return NULL;
}
