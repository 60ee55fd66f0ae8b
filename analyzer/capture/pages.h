/*
 * Which pages of a process hold anything, without looking at them: to read a page that was never
 * touched would make the kernel provide one.
 */
#ifndef ANALYZER_CAPTURE_PAGES_H
#define ANALYZER_CAPTURE_PAGES_H

#include "analyzer/base/error.h"
#include "analyzer/image/arch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Called for each run of pages that are there, by address. */
typedef struct error *page_run_fn(void *data, uint64_t start, uint64_t end);

struct pages {
	int fd;		  /* of /proc/PID/pagemap */
	bool cannot_scan; /* the kernel is older than Linux 6.7 */
};

struct error *pages_open(pid_t process, struct pages *ret);
void pages_close(struct pages *pages);
DEFINE_DEINIT(pages_close, struct pages)

/* Which pages: all that are in memory, or were swapped out; of a mapped file,
 * only those that the process changed. */
enum page_choice { PAGES_ALL, PAGES_OWN };

/* The pages of that choice in [start, end). */
struct error *pages_find(struct pages *pages, enum page_choice choice, uint64_t start, uint64_t end,
			 page_run_fn *found, void *data);

/* Whether pages are found in no time, however large the range is. */
bool pages_can_scan(struct pages *pages);

/* Whether the page is a guard, which nobody can read. */
bool pages_is_guard(const struct pages *pages, uint64_t address);

#endif
