#include "cli/watch/triggers.h"

#include "analyzer/base/text.h"

#include <stdlib.h>
#include <string.h>

const char *const cause_names[CAUSES] = {
	[CAUSE_NONE] = "none",	       [CAUSE_ASKED] = "asked",	  [CAUSE_MEMORY] = "memory",
	[CAUSE_PRESSURE] = "pressure", [CAUSE_GROWTH] = "growth",
};

/* Parts of the threshold: below it by that much, it is set again, or pressure is taken for none. */
enum { SET_AGAIN = 20, NEAR = 4 };

/* The error is only that word's; what it was is said in full instead. */
static bool parsed(struct error *error)
{
	if (error)
		error_destroy(error);
	return !error;
}

struct error *parse_memory(const char *word, struct trigger_options *ret)
{
	char *end;
	unsigned long percent = strtoul(word, &end, 10);

	if (end > word && strcmp(end, "%") == 0 && percent > 0 && percent < 100)
		ret->percent = (unsigned int)percent;
	else if (!parsed(parse_size(word, &ret->size)) || ret->size == 0)
		return error_not(word, "a share of memory, such as 85%, or a size");
	return NULL;
}

struct error *parse_growth(const char *word, struct trigger_options *ret)
{
	_cleanup_(free) char *size = strdup(word), *time = NULL;
	char *slash = size ? strchr(size, '/') : NULL;
	uint64_t nanoseconds = 0;

	TRY_MEMORY(size);
	if (slash) {
		*slash++ = '\0';
		/* "/h" is "/1h". */
		time = format_text("%s%s", *slash >= '0' && *slash <= '9' ? "" : "1", slash);
		TRY_MEMORY(time);
	}
	if (!slash || !parsed(parse_size(size, &ret->growth)) || ret->growth == 0 ||
	    !parsed(parse_time(time, &nanoseconds)) || nanoseconds == 0)
		return error_not(word, "growth in a time, such as 200M/h or 50M/10m");
	ret->growth_time = (double)nanoseconds / 1e9;
	return NULL;
}

struct error *parse_hourly(const char *word, uint64_t *ret)
{
	size_t digits = strspn(word, "0123456789");
	_cleanup_(free) char *number = strndup(word, digits);

	TRY_MEMORY(number);
	if (digits == 0 || (word[digits] && strcmp(word + digits, "/h") != 0) ||
	    !parsed(parse_count(number, ret)))
		return error_not(word, "a number in an hour, such as 4/h");
	return NULL;
}

uint64_t triggers_threshold(const struct triggers *triggers, uint64_t most)
{
	if (triggers->options.size)
		return triggers->options.size;
	if (!triggers->options.percent || !most)
		return UINT64_MAX;
	return most / 100 * triggers->options.percent;
}

static enum cause judge_use(struct triggers *triggers, const struct reading *reading)
{
	uint64_t threshold = triggers_threshold(triggers, reading->most);

	if (threshold == UINT64_MAX)
		return CAUSE_NONE;
	if (reading->used < threshold - threshold / SET_AGAIN)
		triggers->next = 0;
	if (reading->used < threshold - threshold / NEAR)
		triggers->was_pressed = false;
	else if (reading->pressed && !triggers->was_pressed)
		return CAUSE_PRESSURE;
	return reading->used >= (triggers->next ? triggers->next : threshold) ? CAUSE_MEMORY
									      : CAUSE_NONE;
}

/* Forget what is older than the time. */
static void turn(struct triggers *triggers, double now)
{
	uint64_t part = (uint64_t)(now / triggers->options.growth_time * LOWEST_COUNT);

	if (part - triggers->part >= LOWEST_COUNT)
		memset(triggers->lowest, 0, sizeof(triggers->lowest));
	else
		while (triggers->part < part)
			triggers->lowest[++triggers->part % LOWEST_COUNT] = 0;
	triggers->part = part;
}

static enum cause judge_growth(struct triggers *triggers, const struct reading *reading)
{
	uint64_t *last, lowest = UINT64_MAX;

	if (!triggers->options.growth || !reading->has_anonymous)
		return CAUSE_NONE;
	turn(triggers, reading->time);
	last = &triggers->lowest[triggers->part % LOWEST_COUNT];
	if (!*last || reading->anonymous < *last)
		*last = reading->anonymous;
	for (size_t i = 0; i < LOWEST_COUNT; i++)
		if (triggers->lowest[i] && triggers->lowest[i] < lowest)
			lowest = triggers->lowest[i];
	return lowest < reading->anonymous &&
			       reading->anonymous - lowest >= triggers->options.growth
		       ? CAUSE_GROWTH
		       : CAUSE_NONE;
}

enum cause triggers_judge(struct triggers *triggers, const struct reading *reading)
{
	enum cause growth = judge_growth(triggers, reading), use = judge_use(triggers, reading);

	return use ? use : growth;
}

void triggers_done(struct triggers *triggers, const struct reading *reading)
{
	uint64_t left = reading->most > reading->used ? reading->most - reading->used : 0;

	/* Without a limit, half as much again. */
	triggers->next = reading->used + (reading->most ? left : reading->used) / 2;
	if (triggers->next <= reading->used)
		triggers->next = UINT64_MAX;
	if (reading->used < triggers_threshold(triggers, reading->most))
		triggers->next = 0;
	triggers->was_pressed |= reading->pressed;
	memset(triggers->lowest, 0, sizeof(triggers->lowest));
	if (reading->has_anonymous)
		triggers->lowest[triggers->part % LOWEST_COUNT] = reading->anonymous;
}
