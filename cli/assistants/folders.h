/*
 * Checks which cores may be opened: those below folders that the user named, and one named by
 * itself.
 *
 * A path is resolved first, so neither `..` nor links lead out. What is not allowed and what is not
 * there get the same answer: nothing can be learned of other files.
 */
#pragma once

#include "analyzer/report/report.h"

/* Zeroed at first. Paths are resolved, and owned. */
struct folders {
	char **list;
	size_t count;
	char *core; /* one more; or NULL */
};

void folders_deinit(struct folders *folders);
DEFINE_DEINIT(folders_deinit, struct folders)

/* Allow a folder, or a file: there may be one. */
struct error *folders_add(struct folders *folders, const char *path);

/*
 * The file of that name, which may be relative to any of the folders, resolved; to be freed. It is
 * a regular one. what it is, such as "core", is for the message.
 */
struct error *folders_find(const struct folders *folders, const char *what, const char *name,
			   char **ret);

/* Write the cores that may be opened, and then the files of fleets, the newest first. */
struct error *folders_write(const struct folders *folders, struct report *report);
