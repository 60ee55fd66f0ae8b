#include "cli/watch/keeping.h"

#include "cli/prompt/switches.h"
#include "cli/watch/triggers.h"

enum { DEFAULT_HOURLY = 6 };

static const struct switch_place places[] = {
	PLACE('o', PLACE_TEXT, struct keeping, shelf.folder),
	PLACE('q', PLACE_FLAG, struct keeping, quiet),
	PLACE(KEY_MAXIMUM, PLACE_TEXT, struct keeping, hourly),
	PLACE(KEY_ROOM, PLACE_SIZE, struct keeping, shelf.room),
	PLACE(KEY_KEEP, PLACE_TEXT, struct keeping, keep),
	PLACE(KEY_EXEC, PLACE_TEXT, struct keeping, answers.command),
	PLACE(KEY_METRICS, PLACE_TEXT, struct keeping, answers.metrics),
	PLACE(KEY_MAXIMUM_MEMORY, PLACE_SIZE, struct keeping, answers.maximum_memory),
	PLACE(KEY_NO_CONTENT, PLACE_FLAG, struct keeping, answers.no_content),
	PLACE(KEY_SLIM, PLACE_FLAG, struct keeping, answers.slim),
	PLACE(KEY_NO_CACHE, PLACE_FLAG, struct keeping, no_cache),
	PLACE(KEY_DEBUG_DIR, PLACE_TEXT, struct keeping, answers.debug.debug_directory),
	{ 0 },
};

bool keeping_keep(struct keeping *keeping, int key, const char *argument, struct error **ret_error)
{
	return switch_keep(places, key, argument, keeping, ret_error);
}

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
	keeping->answers.debug.cache_folder = keeping->no_cache ? NULL : cache_folder();
	return NULL;
}
