/*
 * Sets member by member, as `list` and `show` write them: a header for each, then its contents
 * where they are wanted, and the total at the end.
 */
#ifndef CLI_VIEWS_LISTING_H
#define CLI_VIEWS_LISTING_H

#include "cli/views/selection.h"

struct error *listing_write(struct analysis *analysis, const struct selection *selection,
			    bool contents, struct report *report);

#endif
