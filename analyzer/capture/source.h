/*
 * The memory of another process, to be read while that stands still; and which pages of it hold
 * anything, without looking at them: to read a page that was never touched would make the kernel
 * provide one.
 */
#pragma once

#include "analyzer/capture/process.h"
#include "analyzer/image/arch.h"

/* Called for each run of pages that are there, by address. */
typedef struct error *page_run_fn(void *data, uint64_t start, uint64_t end);

struct pages {
	int fd;		  /* of /proc/PID/pagemap */
	uint64_t page;	  /* bytes of a page of this system: 4, 16 or 64 KiB */
	bool cannot_scan; /* the kernel is older than Linux 6.7 */
};

struct error *pages_open(pid_t process, struct pages *ret);
void pages_close(struct pages *pages);
DEFINE_DEINIT(pages_close, struct pages)

/*
 * Pages to find: all that are in memory or swapped out; or, in a mapped file, those that the
 * process changed.
 */
enum page_choice { PAGES_ALL, PAGES_OWN };

/* The pages of that choice in [start, end). */
struct error *pages_find(struct pages *pages, enum page_choice choice, uint64_t start, uint64_t end,
			 page_run_fn *found, void *data);

/* True if the kernel can list pages, which is quick for any range. */
bool pages_can_scan(struct pages *pages);

struct source {
	pid_t process;
	int memory;    /* /proc/PID/mem, which also reads what has no rights */
	bool is_clone; /* see source_read() */
	struct pages pages;
};

struct error *source_open(pid_t process, struct source *ret);
void source_close(struct source *source);
DEFINE_DEINIT(source_close, struct source)

/*
 * Read up to size bytes; returns how many there are in a row. Pages that a clone shares with its
 * process stay shared.
 */
uint64_t source_read(const struct source *source, uint64_t address, void *ret, uint64_t size);

/*
 * Copy whole pages; those that cannot be read become zeros. Returns how many bytes of such, without
 * guard pages, which never hold anything.
 */
uint64_t source_copy(const struct source *source, uint64_t address, uint8_t *ret, uint64_t size);

/* Open the file mapped there; -1: access was denied. */
int source_open_mapped(const struct source *source, const struct memory_area *area);
