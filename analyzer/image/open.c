#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/image/files.h"
#include "analyzer/image/format.h"
#include "analyzer/image/link_map.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/image/unpack.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct error *add_region(struct image *image, struct region region)
{
	if (region.start >= region.end)
		return NULL;
	return LIST_APPEND(image->regions, image->region_count, region);
}

struct error *image_add_segment(struct image *image, uint64_t start, uint64_t end, uint8_t rights,
				enum region_origin origin, const uint8_t *bytes, uint64_t present,
				uint64_t lost)
{
	struct region held = {
		.start = start,
		.end = start + present,
		.rights = rights,
		.origin = origin,
		.segment = image->segment_count++,
		.bytes = bytes,
	};
	struct region rest = held;

	TRY(add_region(image, held));
	rest.start = held.end;
	rest.end = held.end + lost;
	rest.origin = REGION_ABSENT;
	rest.bytes = NULL;
	TRY(add_region(image, rest));
	rest.start = rest.end;
	rest.end = end;
	rest.left_out = true;
	return add_region(image, rest);
}

struct error *image_add_cut(struct image *image, uint64_t start, uint64_t end)
{
	/* Out of order, they would take the square of their number. */
	if (image->cut_count > 0 && start < image->cuts[image->cut_count - 1].end)
		return error_create(ERROR_BAD_DUMP, "the note of truncated mappings is invalid");
	return LIST_APPEND(image->cuts, image->cut_count, (struct note_range){ start, end });
}

struct error *image_add_mapping(struct image *image, struct mapping mapping)
{
	if (mapping.start >= mapping.end)
		return NULL;
	return LIST_APPEND(image->mappings, image->mapping_count, mapping);
}

const char *image_machine_name(unsigned int machine)
{
	static const struct {
		unsigned int machine;
		const char *name;
	} names[] = {
		{ EM_386, "i386" },    { EM_AARCH64, "aarch64" }, { EM_ARM, "arm" },
		{ EM_PPC64, "ppc64" }, { EM_S390, "s390" },	  { EM_RISCV, "riscv32" },
		{ EM_X86_64, "x32" }, /* of the other class, so not supported */
	};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (names[i].machine == machine)
			return names[i].name;
	return NULL;
}

struct error *image_refuse_machine(const struct image *image, const char *what)
{
	char supported[256] = "";
	size_t used = 0, count = 0;

	for (size_t i = 0; image->architectures[i] && used < sizeof(supported); i++) {
		const char *before = i == 0 ? "" : image->architectures[i + 1] ? ", " : " and ";

		used += (size_t)snprintf(supported + used, sizeof(supported) - used, "%s%s", before,
					 image->architectures[i]->name);
		count = i + 1;
	}
	return error_create(ERROR_NOT_SUPPORTED, "is %s; only %s %s supported", what, supported,
			    count > 1 ? "are" : "is");
}

struct error *image_set_machine(struct image *image, unsigned int machine, unsigned int class)
{
	const char *name = image_machine_name(machine);
	char what[48];

	for (size_t i = 0; image->architectures[i]; i++) {
		const struct arch *arch = image->architectures[i];

		if (arch->machine == machine && arch->class == class) {
			image->arch = arch;
			return NULL;
		}
	}
	if (name)
		snprintf(what, sizeof(what), "a core of %s", name);
	else
		snprintf(what, sizeof(what), "a core of machine %u", machine);
	return image_refuse_machine(image, what);
}

DEFINE_COMPARE(compare_regions, struct region, ASCENDING(start), ASCENDING(segment))

DEFINE_COMPARE(compare_mappings, struct mapping, ASCENDING(start))

/* Sort the regions; where two overlap, the one that starts first counts. */
static void sort_regions(struct image *image)
{
	size_t kept = 0;
	uint64_t end = 0;

	SORT(image->regions, image->region_count, compare_regions);
	for (size_t i = 0; i < image->region_count; i++) {
		struct region region = image->regions[i];

		if (region.start < end) {
			uint64_t overlap = end - region.start;

			findings_add(image->findings, FINDING_INCOMPLETE,
				     "two segments overlap at %#" PRIx64
				     ": only the first is believed",
				     region.start);
			if (region.end <= end)
				continue;
			region.start = end;
			if (region.bytes)
				region.bytes += overlap;
		}
		end = region.end;
		image->regions[kept++] = region;
	}
	image->region_count = kept;
}

/*
 * Mark the untouched regions, and give all parts of a mapping the same segment. Returns the size of
 * the largest.
 */
static uint64_t mark_untouched(struct image *image)
{
	uint64_t largest = 0;
	size_t next = 0;

	list_for_each(cut, image->cuts, image->cut_count) {
		uint32_t segment;

		while (next < image->region_count && image->regions[next].start < cut->start)
			next++;
		segment = next < image->region_count ? image->regions[next].segment : 0;
		for (; next < image->region_count && image->regions[next].end <= cut->end; next++) {
			struct region *region = &image->regions[next];

			region->segment = segment;
			region->untouched = region->left_out;
			if (region->untouched && region->end - region->start > largest)
				largest = region->end - region->start;
		}
	}
	return largest;
}

static void provide_zeros(struct image *image)
{
	uint64_t size = mark_untouched(image);
	void *zeros;

	if (size == 0)
		return;
	/* A read-only mapping takes no memory. */
	zeros = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (zeros == MAP_FAILED) {
		findings_add(
			image->findings, FINDING_INCOMPLETE,
			"there are not enough addresses for memory that was never touched: it counts as missing");
	} else {
		image->zeros = zeros;
		image->zeros_size = size;
	}
	list_for_each(region, image->regions, image->region_count) {
		region->untouched &= image->zeros != NULL;
		if (!region->untouched)
			continue;
		region->origin = REGION_CORE;
		region->bytes = image->zeros;
	}
}

/* Anonymous memory in huge pages, which the kernel names like a file: no file, if it is there. */
static bool is_anonymous(const struct image *image, const struct mapping *mapping)
{
	const struct region *region = image_find(image, mapping->start);

	return strncmp(mapping->path, "/anon_hugepage", 14) == 0 && region && region->bytes;
}

/* Sort the mappings; of two that overlap, the first counts. */
static void sort_mappings(struct image *image)
{
	size_t kept = 0;
	uint64_t end = 0;

	SORT(image->mappings, image->mapping_count, compare_mappings);
	list_for_each(mapping, image->mappings, image->mapping_count) {
		if (is_anonymous(image, mapping))
			continue;
		if (mapping->start < end) {
			findings_add(image->findings, FINDING_INCOMPLETE,
				     "two mapped files overlap at %#" PRIx64
				     ": only the first is believed",
				     mapping->start);
			continue;
		}
		end = mapping->end;
		image->mappings[kept++] = *mapping;
	}
	image->mapping_count = kept;
}

/* The end of the module that begins with the mapping; 0: its headers are not in the dump. */
static uint64_t claimed_end(const struct image *image, const struct mapping *mapping)
{
	struct module_headers headers;
	uint8_t first;

	if (module_headers_read(image, mapping->start, &headers))
		return module_headers_end(&headers);
	return image_read(image, mapping->start, &first, 1) ? mapping->end : 0;
}

/*
 * True if the mapping of a file's first page belongs to the same module as the mapping before it.
 */
static bool goes_on(const struct mapping *mapping, uint64_t claimed)
{
	return claimed ? mapping->start < claimed
		       : mapping[-1].offset == 0 && mapping->start == mapping[-1].end;
}

/*
 * From one mapping to the next, for there may be very many of one file. Segments of a module may
 * share the first page of the file, which each of them maps then: lld, mold and gold save space so.
 */
static void find_bases(struct image *image)
{
	uint64_t claimed = 0;

	for (size_t i = 0; i < image->mapping_count; i++) {
		struct mapping *mapping = &image->mappings[i];
		bool follows = i > 0 && strcmp(mapping[-1].path, mapping->path) == 0;

		if (mapping->offset != 0 || (follows && goes_on(mapping, claimed))) {
			mapping->base = follows ? mapping[-1].base : NULL;
			continue;
		}
		mapping->base = mapping;
		claimed = claimed_end(image, mapping);
	}
}

/* The end of the mappings behind the one that all have as their base. */
static uint64_t end_of_module(const struct image *image, size_t base)
{
	const struct mapping *mapping = &image->mappings[base];
	size_t last = base;

	while (last + 1 < image->mapping_count && image->mappings[last + 1].base == mapping)
		last++;
	return image->mappings[last].end;
}

/* Say that the file of the first of them is likely, but not known, to be the right one. */
static void report_likely(const struct image *image, const char *path, size_t count)
{
	char others[48] = "";

	if (count == 0)
		return;
	if (count > 1)
		snprintf(others, sizeof(others), " (and %zu more)", count - 1);
	findings_add(
		image->findings, FINDING_NOTE,
		"the core has no build-id of %s%s (see --build-id in ld(1)), so the file cannot be known to be the one that ran; it is used, because it has the headers and constants that the core has",
		path, others);
}

/* Guile's compiled files are ELF files, too, which no loader of the system's loads. */
static bool is_of_machine(const struct image *image, uint64_t start)
{
	struct module_headers headers;

	return module_headers_read(image, start, &headers) &&
	       headers.header.e_machine == image->arch->machine;
}

static struct error *find_files(struct image *image)
{
	const char *likely = NULL;
	size_t count = 0;

	sort_mappings(image);
	find_bases(image);
	for (size_t i = 0; i < image->mapping_count; i++) {
		struct mapping *mapping = &image->mappings[i];
		const struct mapping *base = mapping->base;
		uint64_t end;

		if (!base)
			continue;
		if (base != mapping) {
			mapping->file = base->file;
			continue;
		}
		end = end_of_module(image, i);
		TRY(file_table_find(&image->files, image, mapping, end, &mapping->file,
				    &mapping->state));
		if (mapping->is_matched || mapping->state != FILE_USED ||
		    build_id_of_image(image, mapping->start, end).size > 0)
			continue;
		mapping->is_matched = true;
		if (is_of_machine(image, mapping->start) && count++ == 0)
			likely = mapping->path;
	}
	report_likely(image, likely, count);
	return NULL;
}

static struct error *add_gap(struct image *image, const struct mapping *mapping, uint64_t start,
			     uint64_t end)
{
	return add_region(image, (struct region){
					 .start = start,
					 .end = end,
					 .rights = mapping_rights(mapping, start),
					 .is_gap = true,
					 .origin = REGION_ABSENT,
					 .segment = image->segment_count++,
				 });
}

/* Add the parts of file mappings that no segment of the dump covers. */
static struct error *add_gaps(struct image *image)
{
	size_t count = image->region_count, next = 0;
	uint64_t start = 0;

	list_for_each(mapping, image->mappings, image->mapping_count) {
		if (mapping->start > start)
			start = mapping->start;
		while (start < mapping->end) {
			uint64_t end = mapping->end;

			while (next < count && image->regions[next].end <= start)
				next++;
			if (next < count && image->regions[next].start < end)
				end = image->regions[next].start;
			if (end > start)
				TRY(add_gap(image, mapping, start, end));
			else
				end = image->regions[next].end;
			start = end;
		}
	}
	return NULL;
}

/*
 * True if that many more bytes may be read from files. Programs map each file about once, but a
 * small dump could claim one file for endless memory.
 */
static bool may_fill(struct image *image, uint64_t size)
{
	enum { MOST_TIMES = 16 };

	if (size > MOST_TIMES * image->files.bytes - image->filled)
		return false;
	image->filled += size;
	return true;
}

/* Read an absent region from its file, as far as that reaches. */
static struct error *fill_from_file(struct image *image, size_t number)
{
	struct region *region = &image->regions[number], rest = *region;
	const struct mapping *mapping = region->mapping;
	uint64_t offset, size;

	if (region->origin != REGION_ABSENT || !mapping || !mapping->file || mapping->file->partial)
		return NULL;
	size = MIN(region->end, mapping->end) - region->start;
	if (__builtin_add_overflow(mapping->offset, region->start - mapping->start, &offset) ||
	    offset >= mapping->file->size)
		return NULL;
	size = MIN(size, mapping->file->size - offset);
	if (!may_fill(image, size))
		return NULL;
	region->origin = REGION_FILE;
	region->bytes = mapping->file->bytes + offset;
	region->end = rest.start = region->start + size;
	return add_region(image, rest);
}

static struct error *attach_files(struct image *image)
{
	size_t count;

	TRY(loaded_list_init(&image->loaded, image));
	TRY(image_add_loaded(image));
	TRY(find_files(image));
	TRY(add_gaps(image));
	count = image->region_count;
	for (size_t i = 0; i < count; i++) {
		image->regions[i].mapping = image_find_mapping(image, image->regions[i].start);
		TRY(fill_from_file(image, i));
	}
	SORT(image->regions, image->region_count, compare_regions);
	return NULL;
}

/* Without waiting: a FIFO may never be written to, and is no dump. */
static int open_path(const char *path)
{
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
					: open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && unpack_is_stream(fd))
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

/* The file to be mapped: that at path, or what was packed in it. */
static struct error *open_dump(struct image *image, const struct image_options *options, int *ret)
{
	_cleanup_(close) int fd = open_path(image->path);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0)
		return error_create(errno == ENOMEM ? ERROR_NO_MEMORY : ERROR_SYSTEM, "%s",
				    strerror(errno));
	if (!S_ISREG(status.st_mode) && !unpack_is_stream(fd))
		return error_create(ERROR_NOT_SUPPORTED, "is not a regular file");
	if (S_ISREG(status.st_mode) && status.st_size == 0)
		return error_create(ERROR_BAD_DUMP, "is empty");
	TRY(unpack(fd, options, image->findings, ret));
	image->origin.unpacked = *ret >= 0;
	if (image->origin.unpacked)
		return NULL;
	*ret = fd;
	fd = -1;
	return NULL;
}

/*
 * In a file that is mostly holes, nothing is read ahead but in large pieces of data. A thread's
 * stack is megabytes that were never touched, and a few pages: around each page that is read, the
 * kernel would fill its cache with megabytes of zeros, and that takes as long as to read data.
 */
static bool is_sparse(const struct stat *status)
{
	enum { BLOCK = 512 };

	return status->st_blocks < status->st_size / BLOCK / 2;
}

/*
 * Writable, for libelf may convert headers in place: of other byte orders and, where a processor
 * demands it, alignments. But RLIMIT_DATA counts all that is writable.
 */
static int protection(void)
{
	struct rlimit data;

	return getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY
		       ? PROT_READ
		       : PROT_READ | PROT_WRITE;
}

static struct error *map_dump(struct image *image, const struct image_options *options)
{
	struct stat status;
	void *bytes;

	TRY(open_dump(image, options, &image->fd));
	if (fstat(image->fd, &status) < 0)
		return error_system("cannot be mapped");
	bytes = mmap(NULL, (size_t)status.st_size, protection(), MAP_PRIVATE | MAP_NORESERVE,
		     image->fd, 0);
	if (bytes == MAP_FAILED)
		return error_system("cannot be mapped");
	if (is_sparse(&status))
		madvise(bytes, (size_t)status.st_size, MADV_RANDOM);
	image->bytes = bytes;
	image->size = (size_t)status.st_size;
	image->room = options->memory == 0 ? SIZE_MAX : options->memory / 4 * 3;
	return NULL;
}

static struct error *read_dump(struct image *image, const struct image_options *options)
{
	image->architectures = options->architectures ? options->architectures : architectures;
	for (size_t i = 0; image_formats[i]; i++) {
		const struct image_format *format = image_formats[i];

		if (format->recognise(image->bytes, image->size))
			return format->read(image->bytes, image->size, image);
	}
	if (image->size >= 4 && memcmp(image->bytes, "MDMP", 4) == 0)
		return error_create(
			ERROR_NOT_SUPPORTED,
			"is a minidump, not a core: breakpad's minidump-2-core makes a core of one with all memory");
	return error_create(ERROR_NOT_SUPPORTED, "is not a core dump: it has no ELF header");
}

static void advise_data(const struct image *image)
{
	enum { LEAST = 1 << 20, MOST_ADVISED = 1 << 14 };
	size_t advised = 0; /* each cuts our mapping */
	struct stat status;

	if (fstat(image->fd, &status) < 0 || !is_sparse(&status))
		return;
	list_for_each(region, image->regions, image->region_count) {
		uint64_t size = region->end - region->start;

		if (region->origin == REGION_CORE && !region->untouched && size >= LEAST &&
		    advised < MOST_ADVISED &&
		    image_next_data(image, region->start) == region->start &&
		    image_next_hole(image, region->start) - region->start >= size / 2)
			advised += madvise((void *)page_below((uintptr_t)region->bytes), size,
					   MADV_NORMAL) == 0;
	}
}

static struct error *build(struct image *image, const struct image_options *options)
{
	char missing[NUMBER_SIZE], all[NUMBER_SIZE];

	TRY(map_dump(image, options));
	TRY(read_dump(image, options));
	if (image->missing > 0)
		findings_add(
			image->findings, FINDING_INCOMPLETE,
			"the core is truncated: %s of %s bytes are missing at its end; what they held is unknown",
			grouped(image->missing, missing),
			grouped(image->size + image->missing, all));
	if (image->region_count == 0)
		return error_create(ERROR_BAD_DUMP, image->missing ? "is cut off before any memory"
								   : "holds no memory");
	sort_regions(image);
	provide_zeros(image);
	TRY(attach_files(image));
	TRY(image_report_absence(image, image->findings));
	mprotect(image->bytes, image->size, PROT_READ);
	advise_data(image);
	return NULL;
}

struct error *image_open(const char *path, struct findings *findings, struct image **ret)
{
	return image_open_with(path, &(struct image_options){ 0 }, findings, ret);
}

struct error *image_open_with(const char *path, const struct image_options *options,
			      struct findings *findings, struct image **ret)
{
	_cleanup_(image_close) struct image *image = calloc(1, sizeof(*image));
	struct error *error;

	TRY_MEMORY(image);
	image->findings = findings;
	image->fd = -1;
	image->files.sysroot = options->sysroot;
	image->path = strdup(path);
	TRY_MEMORY(image->path);
	error = build(image, options);
	if (error)
		return error_wrap(error, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
	*ret = take(image);
	return NULL;
}

void image_close(struct image *image)
{
	if (image->bytes)
		munmap(image->bytes, image->size);
	if (image->fd >= 0)
		close(image->fd);
	if (image->zeros)
		munmap(image->zeros, image->zeros_size);
	free(image->cuts);
	free(image->tagged);
	file_table_deinit(&image->files);
	loaded_list_deinit(&image->loaded);
	free(image->auxiliary);
	free(image->threads);
	free(image->mappings);
	free(image->regions);
	free(image->path);
	free(image);
}
