/*
 * Targets that look into cores: an input is the number of a core, that of what is asked of it, and
 * edits.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "tests/fuzz/edits.h"
#include "tests/fuzz/target.h"

enum { CORE_TARGET_HEAD = 4 };

struct core_target {
	struct edited_file *files;
	size_t count;
};

/* names ends with NULL; they are those of cores, see edits.h. */
void core_target_init(struct core_target *target, const char *const *names);

/* Call look with the path of the core that the input stands for and the rest of its head. */
void core_target_run(struct core_target *target, const uint8_t *bytes, size_t size,
		     void (*look)(const char *path, unsigned int choice));

/* Build the stage of the core's analysis, and those below. */
void core_target_need(const char *path, enum stage stage);

/* Run the commands, a line each, on the core; NULL behind the last. */
void core_target_ask(const char *path, const char *const *lines);

/* Like core_target_ask(), with the files of the core's machine below root. */
void core_target_ask_in(const char *path, const char *root, const char *const *lines);

/* One thread, wherever the program runs: what happens is the same each time. */
void core_target_settle(void);
