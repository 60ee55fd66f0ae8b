#include "cli/commands/gate_options.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/diff/growth.h"

#include <string.h>

enum { KEY_MEASURES = 256 }; /* from there on, by measure */

const struct argp_option gate_switches[] = {
	{ NULL, 0, NULL, 0, "Limits", 0 },
	{ "max-leaked", KEY_MEASURES + MEASURE_LEAKED, "COUNT", 0,
	  "Fail if more than N allocations leaked; 0 unless this or --max-leaked-bytes is given",
	  0 },
	{ "max-leaked-bytes", KEY_MEASURES + MEASURE_LEAKED_BYTES, "BYTES", 0,
	  "Fail if more bytes leaked; K, M and G are understood", 0 },
	{ "max-used", KEY_MEASURES + MEASURE_USED, "BYTES", 0,
	  "Fail if more bytes are allocated, leaked or not", 0 },
	{ "max-class", KEY_MEASURES + MEASURE_CLASS, "KIND=COUNT", 0,
	  "Fail if more allocations of that kind are in use: a class, with those derived from it, a signature or %Pattern; may be repeated",
	  0 },
	{ "compare", KEEP(TEXT, struct gate_options, compared), "OLD", 0,
	  "An older core, for the limits of growth", 0 },
	{ "max-growth", KEY_MEASURES + MEASURE_GROWTH, "BYTES", 0,
	  "Fail if the heap grew by more bytes since the core of --compare", 0 },
	{ "max-class-growth", KEY_MEASURES + MEASURE_CLASS_GROWTH, "KIND=COUNT", 0,
	  "Fail if the number of allocations of that kind grew by more since then; may be repeated",
	  0 },
	{ "growing", KEEP(LIST, struct gate_options, growing), "OLD", 0,
	  "Find growth from each core to the next instead of leaks; name two older cores of the process or more, the oldest first, as 'heapcore soak' does",
	  0 },
	{ "likely", KEEP(FLAG, struct gate_options, likely), NULL, 0,
	  "Count likely leaks, too: referred to only from unused space, such as a vector's spare capacity, or held by a pointer in disguise",
	  0 },
	{ NULL, 0, NULL, 0, "What is accepted", 0 },
	{ "baseline", KEEP(TEXT, struct gate_options, baseline), "FILE", 0,
	  "Accept the leaks that this file lists", 0 },
	{ "update-baseline", KEEP(FLAG, struct gate_options, update), NULL, 0,
	  "Write the present leaks to the file of --baseline, which accepts them", 0 },
	{ "ratchet", KEEP(FLAG, struct gate_options, ratchet), NULL, 0,
	  "Lower the counts in the file of --baseline where there are fewer leaks now", 0 },
	{ "suppress", KEEP(LIST, struct gate_options, suppress), "FILE", 0,
	  "Ignore leaks that match a rule of this file; LeakSanitizer's files work, too; may be repeated",
	  0 },
	{ NULL, 0, NULL, 0, "Other switches", 0 },
	{ "no-known", KEEP(FLAG, struct gate_options, no_known), NULL, 0,
	  "Also count the known leaks of interpreters and libraries", 0 },
	{ "self-check", KEEP(FLAG, struct gate_options, self_check), NULL, 0,
	  "First test heapcore on a process that leaks on purpose", 0 },
	{ 0 },
};

const struct gate_measure_facts gate_measures[MEASURES] = {
	[MEASURE_LEAKED] = { "--max-leaked", "leaked allocations", .of_leaks = true },
	[MEASURE_LEAKED_BYTES] = { "--max-leaked-bytes", "leaked bytes", .of_leaks = true },
	[MEASURE_USED] = { "--max-used", "bytes in use" },
	[MEASURE_CLASS] = { "--max-class", "allocations in use of ", .of_class = true },
	[MEASURE_GROWTH] = { "--max-growth", "bytes more in use", .of_growth = true },
	[MEASURE_CLASS_GROWTH] = { "--max-class-growth", "allocations more in use of ",
				   .of_class = true, .of_growth = true },
	[MEASURE_GROWING] = { "--growing", "kinds that grow" },
};

static struct error *add_limit(struct gate_options *options, struct gate_limit limit)
{
	struct error *error = LIST_APPEND(options->limits, options->limit_count, limit);

	if (error)
		free(limit.name);
	return error;
}

/* The last one given counts. */
static struct error *set_limit(struct gate_options *options, struct gate_limit limit)
{
	for (size_t i = 0; i < options->limit_count; i++)
		if (options->limits[i].measure == limit.measure) {
			options->limits[i] = limit;
			return NULL;
		}
	return add_limit(options, limit);
}

/* "KIND=COUNT"; the kind may have a = of its own. */
static struct error *add_class(struct gate_options *options, struct gate_limit limit)
{
	const char *sign = strrchr(limit.typed, '=');
	struct error *error;

	if (!sign || sign == limit.typed)
		return error_not(limit.typed, "a kind, = and a count, as app::Session=100");
	TRY(parse_count(sign + 1, &limit.limit));
	limit.name = strndup(limit.typed, (size_t)(sign - limit.typed));
	error = limit.name ? kind_parse(limit.name, &limit.kind) : &error_no_memory;
	if (!error)
		return add_limit(options, limit);
	free(limit.name);
	return error;
}

static struct error *take_limit(struct gate_options *options, enum gate_measure measure,
				const char *value)
{
	struct gate_limit limit = { .measure = measure, .typed = value };

	if (gate_measures[measure].of_class)
		return add_class(options, limit);
	TRY(measure == MEASURE_LEAKED ? parse_count(value, &limit.limit)
				      : parse_size(value, &limit.limit));
	return set_limit(options, limit);
}

static struct error *check_growth(const struct gate_options *options)
{
	const char *limit = NULL;

	for (size_t i = 0; i < options->limit_count; i++)
		if (gate_measures[options->limits[i].measure].of_growth)
			limit = gate_measures[options->limits[i].measure].name;
	if (limit && !options->compared)
		return error_create(ERROR_USAGE, "%s needs --compare OLD", limit);
	if (!limit && options->compared)
		return error_create(
			ERROR_USAGE,
			"--compare needs --max-growth SIZE or --max-class-growth KIND=COUNT");
	return NULL;
}

/* Growth and leaks are not counted together. */
static struct error *complete_growing(struct gate_options *options)
{
	if (options->growing.count + 1 < LEAST_GROWING_CORES)
		return error_create(ERROR_USAGE, "--growing needs two older cores at least");
	for (size_t i = 0; i < options->limit_count; i++)
		if (gate_measures[options->limits[i].measure].of_leaks)
			return error_create(ERROR_USAGE, "%s cannot be combined with --growing",
					    gate_measures[options->limits[i].measure].name);
	if (options->likely || options->no_known)
		return error_create(ERROR_USAGE, "%s cannot be combined with --growing",
				    options->likely ? "--likely" : "--no-known");
	return add_limit(options, (struct gate_limit){ .measure = MEASURE_GROWING, .typed = "0" });
}

static struct error *complete(struct gate_options *options)
{
	if ((options->update || options->ratchet) && !options->baseline)
		return error_create(ERROR_USAGE, "--%s needs --baseline FILE",
				    options->update ? "update-baseline" : "ratchet");
	if (options->update && options->ratchet)
		return error_create(
			ERROR_USAGE,
			"--update-baseline accepts all present leaks, so it cannot be combined with --ratchet");
	TRY(check_growth(options));
	if (options->growing.count)
		return complete_growing(options);
	for (size_t i = 0; i < options->limit_count; i++)
		if (gate_measures[options->limits[i].measure].of_leaks)
			return NULL;
	return add_limit(options, (struct gate_limit){ .typed = "0" });
}

struct error *gate_options_parse(int key, const char *value, void *data)
{
	struct gate_options *options = data;

	if (key >= KEY_MEASURES && key < KEY_MEASURES + MEASURES)
		return take_limit(options, (enum gate_measure)(key - KEY_MEASURES), value);
	if (key == ARGP_KEY_END)
		return complete(options);
	return error_create(ERROR_USAGE, "'gate' takes only switches; '%s' is not one", value);
}

void gate_options_release(void *data)
{
	struct gate_options *options = data;

	for (size_t i = 0; i < options->limit_count; i++)
		free(options->limits[i].name);
	free(options->limits);
	free(options->suppress.list);
	free(options->growing.list);
}
