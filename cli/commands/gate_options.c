#include "cli/commands/gate_options.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <string.h>

enum {
	KEY_MAX_LEAKED = 'l',
	KEY_MAX_LEAKED_BYTES = 'b',
	KEY_MAX_USED = 'u',
	KEY_MAX_CLASS = 'c',
	KEY_COMPARE = 'o',
	KEY_MAX_GROWTH = 'g',
	KEY_MAX_CLASS_GROWTH = 'k',
	KEY_BASELINE = 'B',
	KEY_UPDATE = 'U',
	KEY_RATCHET = 'R',
	KEY_SUPPRESS = 's',
	KEY_LIKELY = 'y',
	KEY_SELF_CHECK = 'S',
};

const struct argp_option gate_switches[] = {
	{ NULL, 0, NULL, 0, "Switches that say what is too much", 0 },
	{ "max-leaked", KEY_MAX_LEAKED, "COUNT", 0,
	  "Fail if more allocations leaked than that; 0 unless it, or --max-leaked-bytes, is given",
	  0 },
	{ "max-leaked-bytes", KEY_MAX_LEAKED_BYTES, "SIZE", 0,
	  "Fail if more bytes leaked: decimal, also with K, M or G behind it", 0 },
	{ "max-used", KEY_MAX_USED, "SIZE", 0, "Fail if more bytes are allocated, leaked or not",
	  0 },
	{ "max-class", KEY_MAX_CLASS, "KIND=COUNT", 0,
	  "Fail if more allocations in use are of that kind: a class, with those derived from it, a signature or %Pattern; may be repeated",
	  0 },
	{ "compare", KEY_COMPARE, "OLD", 0, "An older core, for the limits of growth", 0 },
	{ "max-growth", KEY_MAX_GROWTH, "SIZE", 0,
	  "Fail if what is allocated grew by more bytes since the core of --compare", 0 },
	{ "max-class-growth", KEY_MAX_CLASS_GROWTH, "KIND=COUNT", 0,
	  "Fail if the allocations in use of that kind grew by more since then; may be repeated",
	  0 },
	{ "likely", KEY_LIKELY, NULL, 0,
	  "Count what likely leaked, too: only words lead to it that hold nothing any more, as the spare capacity of a vector",
	  0 },
	{ NULL, 0, NULL, 0, "Switches that say what is accepted", 0 },
	{ "baseline", KEY_BASELINE, "FILE", 0, "Accept the leaks that this file lists", 0 },
	{ "update-baseline", KEY_UPDATE, NULL, 0,
	  "Write the leaks that there are into the file of --baseline, and so accept them", 0 },
	{ "ratchet", KEY_RATCHET, NULL, 0, "Lower in the file of --baseline what got better", 0 },
	{ "suppress", KEY_SUPPRESS, "FILE", 0,
	  "Leave out leaks that are named by a rule of this file, which may be one of LeakSanitizer; may be repeated",
	  0 },
	{ NULL, 0, NULL, 0, "Other switches", 0 },
	{ "self-check", KEY_SELF_CHECK, NULL, 0,
	  "First have a process leak, and see whether that is found", 0 },
	{ 0 },
};

const struct switch_place gate_places[] = {
	PLACE(KEY_COMPARE, PLACE_TEXT, struct gate_options, compared),
	PLACE(KEY_BASELINE, PLACE_TEXT, struct gate_options, baseline),
	PLACE(KEY_UPDATE, PLACE_FLAG, struct gate_options, update),
	PLACE(KEY_RATCHET, PLACE_FLAG, struct gate_options, ratchet),
	PLACE(KEY_LIKELY, PLACE_FLAG, struct gate_options, likely),
	PLACE(KEY_SELF_CHECK, PLACE_FLAG, struct gate_options, self_check),
	{ 0 },
};

const char *gate_measure_switch(enum gate_measure measure)
{
	static const char *const names[] = {
		[MEASURE_LEAKED] = "--max-leaked", [MEASURE_LEAKED_BYTES] = "--max-leaked-bytes",
		[MEASURE_USED] = "--max-used",	   [MEASURE_CLASS] = "--max-class",
		[MEASURE_GROWTH] = "--max-growth", [MEASURE_CLASS_GROWTH] = "--max-class-growth",
	};

	return names[measure];
}

static struct error *add_limit(struct gate_options *options, struct gate_limit limit)
{
	if (!LIST_GROW(options->limits, options->limit_count)) {
		free(limit.name);
		return &error_no_memory;
	}
	options->limits[options->limit_count++] = limit;
	return NULL;
}

/* The last one given counts. */
static struct error *set_limit(struct gate_options *options, enum gate_measure measure,
			       const char *typed, uint64_t number)
{
	struct gate_limit limit = { measure, typed, number, { 0 }, NULL };

	for (size_t i = 0; i < options->limit_count; i++)
		if (options->limits[i].measure == measure) {
			options->limits[i] = limit;
			return NULL;
		}
	return add_limit(options, limit);
}

static struct error *set_count(struct gate_options *options, enum gate_measure measure,
			       const char *value)
{
	uint64_t number = 0;

	TRY(parse_count(value, &number));
	return set_limit(options, measure, value, number);
}

/*
 * Unlike elsewhere, plain digits are decimal: nobody reads "4096" in a build's configuration as
 * 16,534.
 */
static struct error *set_size(struct gate_options *options, enum gate_measure measure,
			      const char *value)
{
	bool decimal = value[strspn(value, "0123456789")] == '\0';
	bool hexadecimal = is_address(value);
	uint64_t number = 0;

	if (decimal)
		TRY(parse_count(value, &number));
	else if (hexadecimal && value[0] != '0')
		return error_not(value, "a size: hexadecimal ones begin with 0x");
	else
		TRY(parse_size(value, &number));
	return set_limit(options, measure, value, number);
}

/* "KIND=COUNT"; the kind may have a = of its own. */
static struct error *add_class(struct gate_options *options, enum gate_measure measure,
			       const char *value)
{
	struct gate_limit limit = { .measure = measure, .typed = value };
	const char *sign = strrchr(value, '=');
	struct error *error;

	if (!sign || sign == value)
		return error_not(value, "a kind, = and a count, as app::Session=100");
	error = parse_count(sign + 1, &limit.limit);
	if (error)
		return error;
	limit.name = strndup(value, (size_t)(sign - value));
	error = limit.name ? kind_parse(limit.name, &limit.kind) : &error_no_memory;
	if (error) {
		free(limit.name);
		return error;
	}
	return add_limit(options, limit);
}

static struct error *add_suppressions(struct gate_options *options, const char *value)
{
	if (!LIST_GROW(options->suppress, options->suppress_count))
		return &error_no_memory;
	options->suppress[options->suppress_count++] = value;
	return NULL;
}

static bool limits_leaks(const struct gate_options *options)
{
	for (size_t i = 0; i < options->limit_count; i++)
		if (options->limits[i].measure == MEASURE_LEAKED ||
		    options->limits[i].measure == MEASURE_LEAKED_BYTES)
			return true;
	return false;
}

bool gate_measures_growth(enum gate_measure measure)
{
	return measure == MEASURE_GROWTH || measure == MEASURE_CLASS_GROWTH;
}

static struct error *check_growth(const struct gate_options *options)
{
	const char *limit = NULL;

	for (size_t i = 0; i < options->limit_count; i++)
		if (gate_measures_growth(options->limits[i].measure))
			limit = gate_measure_switch(options->limits[i].measure);
	if (limit && !options->compared)
		return error_create(ERROR_USAGE, "%s needs --compare OLD", limit);
	if (!limit && options->compared)
		return error_create(
			ERROR_USAGE,
			"--compare needs --max-growth SIZE or --max-class-growth KIND=COUNT");
	return NULL;
}

static struct error *complete(struct gate_options *options)
{
	if ((options->update || options->ratchet) && !options->baseline)
		return error_create(ERROR_USAGE, "--%s needs --baseline FILE",
				    options->update ? "update-baseline" : "ratchet");
	if (options->update && options->ratchet)
		return error_create(
			ERROR_USAGE,
			"--update-baseline accepts what there is, so --ratchet is of no use with it");
	TRY(check_growth(options));
	if (!limits_leaks(options))
		return set_limit(options, MEASURE_LEAKED, "0", 0);
	return NULL;
}

struct error *gate_options_parse(int key, const char *value, void *data)
{
	struct gate_options *options = data;

	switch (key) {
	case KEY_MAX_LEAKED:
		return set_count(options, MEASURE_LEAKED, value);
	case KEY_MAX_LEAKED_BYTES:
		return set_size(options, MEASURE_LEAKED_BYTES, value);
	case KEY_MAX_USED:
		return set_size(options, MEASURE_USED, value);
	case KEY_MAX_CLASS:
		return add_class(options, MEASURE_CLASS, value);
	case KEY_MAX_GROWTH:
		return set_size(options, MEASURE_GROWTH, value);
	case KEY_MAX_CLASS_GROWTH:
		return add_class(options, MEASURE_CLASS_GROWTH, value);
	case KEY_SUPPRESS:
		return add_suppressions(options, value);
	case ARGP_KEY_END:
		return complete(options);
	default:
		return error_create(ERROR_USAGE, "'gate' takes switches only; '%s' is none", value);
	}
}

void gate_options_release(void *data)
{
	struct gate_options *options = data;

	for (size_t i = 0; i < options->limit_count; i++)
		free(options->limits[i].name);
	free(options->limits);
	free(options->suppress);
}
