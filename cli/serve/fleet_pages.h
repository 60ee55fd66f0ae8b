/*
 * The pages of a fleet: what `fleet report` and `fleet show` answer, as tables with links, and the
 * holder tree of a core. They are plain HTML with the style of the page of a core.
 *
 *	/			the report: leaks, builds, growth, outliers, days
 *	/leak?of=FINGERPRINT	the builds that have a leak, and cores
 *	/core?of=PATH		who holds the memory of a core of the file
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdio.h>

struct fleet_pages {
	const char *path; /* of the fleet's file; borrowed */
	bool no_content;  /* holder trees are without contents of memory */
};

/* True if the file is one of 'heapcore fleet'. */
bool fleet_pages_are_at(const char *path);

/*
 * Write the page of that path; of: what it is about, or NULL. *ret_found is false if there is no
 * such page. Several threads may ask at once.
 */
struct error *fleet_pages_write(const struct fleet_pages *pages, const char *path, const char *of,
				FILE *out, bool *ret_found);
