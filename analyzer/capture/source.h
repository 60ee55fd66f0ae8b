/*
 * The memory of another process, to be read while that stands still.
 */
#ifndef ANALYZER_CAPTURE_SOURCE_H
#define ANALYZER_CAPTURE_SOURCE_H

#include "analyzer/capture/pages.h"
#include "analyzer/capture/process.h"

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

/* What is mapped there, as a file; -1: it may not be opened. */
int source_open_mapped(const struct source *source, const struct memory_area *area);

#endif
