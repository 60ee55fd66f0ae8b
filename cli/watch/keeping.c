#include "cli/watch/keeping.h"

#include "cli/watch/triggers.h"

enum { DEFAULT_HOURLY = 6 };

struct error *keeping_check(struct keeping *keeping)
{
	if (!keeping->shelf.folder)
		return error_create(ERROR_USAGE, "no folder is given: -o DIR");
	keeping->shelf.hourly = DEFAULT_HOURLY;
	if (keeping->hourly)
		TRY(parse_hourly(keeping->hourly, &keeping->shelf.hourly));
	if (keeping->keep)
		TRY(parse_time(keeping->keep, &keeping->shelf.keep));
	keeping->answers.debug.give_up = give_up;
	/* Elsewhere may be memory that counts against the limit of who is watched. */
	keeping->answers.debug.temporary_folder = keeping->shelf.folder;
	keeping->answers.debug.cache_folder = keeping->no_cache ? NULL : cache_folder();
	return NULL;
}
