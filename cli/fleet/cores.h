/* The cores of a fleet: files, all files in folders, those of a list. */
#pragma once

#include "cli/command.h"
#include "cli/fleet/store.h"

#include <regex.h>
#include <stdio.h>

enum { MOST_PATH_TAGS = 8 };

/* Borrows what it is set up with. */
struct fleet_cores {
	struct fleet_core *list; /* owned */
	size_t count;
	struct word_list tags; /* "NAME=VALUE", of all cores */
	regex_t pattern;       /* matches the end of a path; has a group for each name */
	char *names[MOST_PATH_TAGS];
	size_t name_count;
	bool has_pattern;
	bool pattern_fits; /* a path that was added */
	bool are_fetched;  /* names of something else than files */
};

void fleet_cores_deinit(struct fleet_cores *cores);
DEFINE_DEINIT(fleet_cores_deinit, struct fleet_cores)

/* "NAME=VALUE", with a name that is no more than letters, digits, '-' and '_'. */
struct error *tag_check(const char *text);

/* Take tags from the ends of paths: of '{host}/{build}/core.*', a name stands for its part. */
struct error *fleet_cores_use_pattern(struct fleet_cores *cores, const char *pattern);

/* Add a file, or all in a folder that are cores or rows of 'facts'. */
struct error *fleet_cores_add(struct fleet_cores *cores, const char *path);

/* Add those of a list: a path a line, with tags behind tabulators. */
struct error *fleet_cores_add_listed(struct fleet_cores *cores, FILE *list);

/* Once all are added: each path is there once. */
void fleet_cores_order(struct fleet_cores *cores);

/*
 * True if the file is a core, or may be a packed or broken one, judged by its beginning or its
 * name.
 */
bool file_may_be_core(const char *path);

/* True if the file has rows of 'facts' rather than a core. */
bool file_has_rows(const char *path);
