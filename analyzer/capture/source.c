/*
 * PAGEMAP_SCAN (Linux 6.7) skips what is not there; before that, there are
 * eight bytes to be read for each page. Layouts and numbers are those of the
 * kernel's include/uapi/linux/fs.h and
 * Documentation/admin-guide/mm/pagemap.rst.
 */
#include "analyzer/capture/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

enum { ENTRIES = 4096, RANGES = 1024 };

#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_FILE    (UINT64_C(1) << 61)
#define ENTRY_GUARD   (UINT64_C(1) << 58)

enum scan_category {
	SCAN_FILE = 1 << 2,
	SCAN_PRESENT = 1 << 3,
	SCAN_SWAPPED = 1 << 4,
	SCAN_ZERO = 1 << 5, /* the page of zeros that all share */
};

struct scan_range {
	uint64_t start, end, categories;
};

struct scan_request {
	uint64_t size, flags;
	uint64_t start, end, walk_end;
	uint64_t ranges, range_count, max_pages;
	uint64_t inverted, all_of, any_of, returned;
};

#define SCAN_PAGES _IOWR('f', 16, struct scan_request)

struct error *pages_open(pid_t process, struct pages *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", process);
	*ret = (struct pages){ .fd = open(path, O_RDONLY | O_CLOEXEC),
			       .page = (uint64_t)sysconf(_SC_PAGESIZE) };
	if (ret->fd < 0)
		return error_system("%s", path);
	return NULL;
}

void pages_close(struct pages *pages)
{
	if (pages->fd >= 0)
		close(pages->fd);
}

static struct error *scan(struct pages *pages, enum page_choice choice, uint64_t start,
			  uint64_t end, page_run_fn *found, void *data)
{
	uint64_t unwanted = SCAN_ZERO | (choice == PAGES_OWN ? SCAN_FILE : 0);
	struct scan_range ranges[RANGES];

	while (start < end) {
		struct scan_request request = {
			.size = sizeof(request),
			.start = start,
			.end = end,
			.ranges = (uintptr_t)ranges,
			.range_count = RANGES,
			.inverted = unwanted,
			.all_of = unwanted,
			.any_of = SCAN_PRESENT | SCAN_SWAPPED,
			/* Asking whether pages belong to a file makes the kernel visit each one. */
			.returned = SCAN_PRESENT,
		};
		int count = ioctl(pages->fd, SCAN_PAGES, &request);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 || request.walk_end <= start) {
			pages->cannot_scan = true;
			return NULL;
		}
		for (int i = 0; i < count; i++)
			TRY(found(data, ranges[i].start, ranges[i].end));
		/*
		 * If there are more ranges than asked for, above 512, Linux returns too small an
		 * end: that of the 512th.
		 */
		start = count > 0 && ranges[count - 1].end > request.walk_end
				? ranges[count - 1].end
				: request.walk_end;
	}
	return NULL;
}

/* Read entries from start on; returns how many there are. */
static size_t read_entries(const struct pages *pages, uint64_t start, uint64_t count,
			   uint64_t entries[static ENTRIES])
{
	size_t size = MIN(count, ENTRIES) * sizeof(*entries);
	ssize_t taken =
		pread(pages->fd, entries, size, (off_t)(start / pages->page * sizeof(*entries)));

	return taken < 0 ? 0 : (size_t)taken / sizeof(*entries);
}

static bool is_wanted(uint64_t entry, enum page_choice choice)
{
	return (entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) &&
	       !(choice == PAGES_OWN && (entry & ENTRY_FILE));
}

static struct error *read_pagemap(const struct pages *pages, enum page_choice choice,
				  uint64_t start, uint64_t end, page_run_fn *found, void *data)
{
	uint64_t entries[ENTRIES], run = end;

	while (start < end) {
		size_t count = read_entries(pages, start, (end - start) / pages->page, entries);

		if (count == 0)
			return error_system("the page table cannot be read");
		for (size_t i = 0; i < count; i++, start += pages->page) {
			bool there = is_wanted(entries[i], choice);

			if (there && run == end)
				run = start;
			if (there || run == end)
				continue;
			TRY(found(data, run, start));
			run = end;
		}
	}
	if (run < end)
		TRY(found(data, run, end));
	return NULL;
}

struct error *pages_find(struct pages *pages, enum page_choice choice, uint64_t start, uint64_t end,
			 page_run_fn *found, void *data)
{
	if (!pages->cannot_scan) {
		TRY(scan(pages, choice, start, end, found, data));
		if (!pages->cannot_scan)
			return NULL;
	}
	return read_pagemap(pages, choice, start, end, found, data);
}

static struct error *ignore_run(void *data, uint64_t start, uint64_t end)
{
	return NULL;
}

/* The first page of all is never mapped, but may be asked for. */
bool pages_can_scan(struct pages *pages)
{
	if (!pages->cannot_scan)
		scan(pages, PAGES_ALL, 0, pages->page, ignore_run, NULL);
	return !pages->cannot_scan;
}

/* True if the page is a guard, which cannot be read. */
static bool pages_is_guard(const struct pages *pages, uint64_t address)
{
	uint64_t entries[ENTRIES];

	return read_entries(pages, address, 1, entries) == 1 && (entries[0] & ENTRY_GUARD);
}

struct error *source_open(pid_t process, struct source *ret)
{
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", process);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return error_system("%s", path);
	*ret = (struct source){ .process = process, .memory = memory };
	return pages_open(process, &ret->pages);
}

void source_close(struct source *source)
{
	if (source->memory >= 0)
		close(source->memory);
	pages_close(&source->pages);
}

uint64_t source_read(const struct source *source, uint64_t address, void *ret, uint64_t size)
{
	ssize_t taken = 0;

	/* It pins pages, and the kernel copies those that are shared. */
	if (!source->is_clone)
		taken = process_peek(source->process, address, ret, size);
	/* Some sandboxes forbid the quicker way. */
	if (taken <= 0)
		taken = pread(source->memory, ret, size, (off_t)address);
	return taken < 0 ? 0 : (uint64_t)taken;
}

uint64_t source_copy(const struct source *source, uint64_t address, uint8_t *ret, uint64_t size)
{
	uint64_t unreadable = 0;

	while (size > 0) {
		uint64_t taken = source_read(source, address, ret, size);

		if (taken == 0) {
			taken = MIN(size, source->pages.page);
			memset(ret, 0, taken);
			if (!pages_is_guard(&source->pages, address))
				unreadable += taken;
		}
		address += taken;
		ret += taken;
		size -= taken;
	}
	return unreadable;
}

int source_open_mapped(const struct source *source, const struct memory_area *area)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, source->process,
		 area->start, area->end);
	return open(path, O_RDONLY | O_CLOEXEC);
}
