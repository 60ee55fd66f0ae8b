#include "cli/views/selection.h"

#include "analyzer/base/text.h"
#include "cli/prompt/switches.h"

enum {
	KEY_SIZE = 's',
	KEY_MINIMUM = 'm',
	KEY_MAXIMUM = 'M',
	KEY_SORT = 'o',
	KEY_LIMIT = 'n',
	KEY_OPERATION = 'O',
	KEY_EXTEND = 'x',
	KEY_MINIMUM_INCOMING = 'i',
	KEY_MAXIMUM_INCOMING = 'I',
	KEY_MINIMUM_OUTGOING = 'g',
	KEY_MAXIMUM_OUTGOING = 'G',
	KEY_MINIMUM_FREE_OUTGOING = 'f',
	KEY_MAXIMUM_FREE_OUTGOING = 'Q',
	KEY_SAMPLE = 'b',
	KEY_SKIP = 'k',
	KEY_ANNOTATE = 'e',
};

const struct argp_option sizes_options[] = {
	{ "sizes", KEEP(FLAG, struct selection, sizes), NULL, 0,
	  "A line for each size of a kind, instead of their number", 0 },
	{ 0 },
};

const struct argp_option contents_options[] = {
	{ NULL, 0, NULL, 0, "Switches that show contents", 0 },
	{ "ascii", KEEP(FLAG, struct selection, ascii), NULL, 0, "Also show contents as characters",
	  0 },
	{ "show-ascii", KEEP(FLAG, struct selection, ascii), NULL, OPTION_HIDDEN, NULL, 0 },
	{ "show-up-to", KEEP_GIVEN(SIZE, struct selection, show_up_to, has_show_up_to), "SIZE", 0,
	  "Show at most that much of each one's contents", 0 },
	[ANNOTATION_OPTIONS] = { NULL, 0, NULL, 0, "Switches that show more", 0 },
	{ "annotate", KEY_ANNOTATE, "WHAT[@OFFSET].ANNOTATOR", 0,
	  "Show parts of each allocation of the kind or state WHAT, or of all (*): SSOString, LongString, ModuleAddress, AllocationAddress, or all that is known (*); may be repeated",
	  0 },
	[SELECTION_OPTIONS] = { NULL, 0, NULL, 0, "Switches that narrow the set", 0 },
	{ "size", KEY_SIZE, "SIZE", 0,
	  "Only those of this size: decimal, with K, M or G, or hexadecimal with 0x", 0 },
	{ "min-size", KEY_MINIMUM, "SIZE", 0, "Only those of at least this size", 0 },
	{ "max-size", KEY_MAXIMUM, "SIZE", 0, "Only those of at most this size", 0 },
	{ "allow-missing-signatures", KEEP(FLAG, struct selection, query.allow_missing), NULL, 0,
	  "Do not report a class or signature without members as an error", 0 },
	{ "skip", KEY_SKIP, "used|free|allocations|stacks", 0,
	  "For 'pointers', 'rangerefs' and 'relrefs': skip matches there; may be repeated", 0 },
	{ NULL, 0, NULL, 0, "Switches that count references", 0 },
	{ "min-incoming", KEY_MINIMUM_INCOMING, "[KIND=]COUNT", 0,
	  "Only those with references from at least that many used allocations; with a kind (a class, a signature, %Pattern, - or ?), from that many of that kind",
	  0 },
	{ "max-incoming", KEY_MAXIMUM_INCOMING, "[KIND=]COUNT", 0,
	  "Only those with references from at most that many", 0 },
	{ "min-outgoing", KEY_MINIMUM_OUTGOING, "[KIND=]COUNT", 0,
	  "Only those that refer to at least that many used allocations", 0 },
	{ "max-outgoing", KEY_MAXIMUM_OUTGOING, "[KIND=]COUNT", 0,
	  "Only those that refer to at most that many used allocations", 0 },
	{ "min-free-outgoing", KEY_MINIMUM_FREE_OUTGOING, "[KIND=]COUNT", 0,
	  "Only those that refer to at least that many free allocations", 0 },
	{ "max-free-outgoing", KEY_MAXIMUM_FREE_OUTGOING, "[KIND=]COUNT", 0,
	  "Only those that refer to at most that many free allocations", 0 },
	{ "skip-tainted-references", KEEP(FLAG, struct selection, query.skip_tainted), NULL, 0,
	  "Ignore references in unused space, such as a vector's spare capacity", 0 },
	{ "skip-unfavored-references", KEEP(FLAG, struct selection, query.skip_unfavored), NULL, 0,
	  "Ignore references to parts of containers, except the one that holds each part", 0 },
	{ NULL, 0, NULL, 0, "Switches that sample or extend the set", 0 },
	{ "geometric-sample", KEY_SAMPLE, "BASE", 0,
	  "Only members number 1, BASE, BASE * BASE and so on", 0 },
	{ "extend", KEY_EXTEND, "RULE", 0,
	  "Add what members refer to (MEMBER->EXTENSION; ~> for leaked ones only) or what refers to them (MEMBER<-EXTENSION), and continue from there",
	  0 },
	{ "comment-extensions", KEEP(FLAG, struct selection, query.comment_extensions), NULL, 0,
	  "Show for each added allocation how it was reached", 0 },
	{ NULL, 0, NULL, 0, "Switches for order and number", 0 },
	{ "sort-by", KEY_SORT, "count|bytes|address|retained", 0,
	  "What comes first: most instances, most bytes, lowest address, most bytes retained", 0 },
	{ "limit", KEY_LIMIT, "COUNT", 0, "Show at most that many", 0 },
	{ "all", KEEP(FLAG, struct selection, all), NULL, 0,
	  "Show all, also where the 20 largest are enough for most readers", 0 },
	{ "full-names", KEEP(FLAG, struct selection, query.full_names), NULL, 0,
	  "Show names with all default template arguments", 0 },
	{ NULL, 0, NULL, 0, "Switches that keep the set", 0 },
	{ "set-operation", KEY_OPERATION, "assign|subtract", 0,
	  "Make the members the set 'derived', or take them away from it", 0 },
	{ 0 },
};

/* The limits of numbers of references. */
static const struct limit_key {
	int key;
	enum counted counted;
	bool is_maximum;
} limit_keys[] = {
	{ KEY_MINIMUM_INCOMING, COUNTED_INCOMING, false },
	{ KEY_MAXIMUM_INCOMING, COUNTED_INCOMING, true },
	{ KEY_MINIMUM_OUTGOING, COUNTED_OUTGOING, false },
	{ KEY_MAXIMUM_OUTGOING, COUNTED_OUTGOING, true },
	{ KEY_MINIMUM_FREE_OUTGOING, COUNTED_FREE_OUTGOING, false },
	{ KEY_MAXIMUM_FREE_OUTGOING, COUNTED_FREE_OUTGOING, true },
};

static struct error *check_selection(struct selection *selection)
{
	struct set_query *query = &selection->query;

	TRY(query_check(query));
	if (selection->annotations.count && query->set->ranges)
		return error_create(
			ERROR_USAGE,
			"'%s' is not a set of allocations: there is nothing to annotate",
			query->set->name);
	return NULL;
}

struct error *selection_end_of_allocations(struct selection *selection)
{
	const struct set_query *query = &selection->query;

	if (!query->set)
		TRY(selection_parse(ARGP_KEY_ARG, "used", selection));
	TRY(selection_parse(ARGP_KEY_END, NULL, selection));
	return query->set->ranges ? error_create(ERROR_USAGE, "'%s' is not a set of allocations",
						 query->set->name)
				  : NULL;
}

struct error *selection_parse(int key, const char *value, void *arguments)
{
	struct selection *selection = arguments;
	struct set_query *query = &selection->query;

	if (key & KEPT)
		return NULL;
	for (size_t i = 0; i < COUNT_OF(limit_keys); i++)
		if (key == limit_keys[i].key)
			return reference_limits_take(&query->limits, limit_keys[i].counted,
						     limit_keys[i].is_maximum, value);
	switch (key) {
	case KEY_SIZE:
		return query_take_size(query, value);
	case KEY_MINIMUM:
		return query_take_minimum(query, value);
	case KEY_MAXIMUM:
		return query_take_maximum(query, value);
	case KEY_SORT:
		return query_take_sort(query, value);
	case KEY_LIMIT:
		return query_take_limit(query, value);
	case KEY_OPERATION:
		return query_take_operation(query, value);
	case KEY_SKIP:
		return skipped_parse(value, &query->skipped);
	case KEY_SAMPLE:
		return query_take_sample(query, value);
	case KEY_EXTEND:
		return extension_rules_take(&query->extensions, value);
	case KEY_ANNOTATE:
		query->note_states = true;
		return annotation_rules_take(&selection->annotations, value);
	case ARGP_KEY_END:
		return check_selection(selection);
	default:
		return query_take_word(query, value);
	}
}

/* Nothing that only a set has is said of an address. */
static struct error *check_address(const struct set_query *query)
{
	bool narrows = query->limits.count || query->sample || query->minimum_size ||
		       query->has_maximum || query->skip_tainted || query->skip_unfavored ||
		       query->skipped || query->limit;

	if (!narrows && !query->extensions.count && !query->comment_extensions &&
	    query->sort == SORT_DEFAULT && query->operation == OPERATION_NONE)
		return NULL;
	return error_create(
		ERROR_USAGE,
		"an address cannot be narrowed, sorted, kept or extended; the set 'allocation ADDRESS' can");
}

/* No set has a name that is a hexadecimal number. */
struct error *selection_or_address_parse(int key, const char *value, void *arguments)
{
	struct selection *selection = arguments;

	if (key == ARGP_KEY_ARG && !selection->query.set && !selection->is_address &&
	    is_address(value)) {
		selection->is_address = true;
		return parse_address(value, &selection->address);
	}
	if (!selection->is_address && key == ARGP_KEY_END && !selection->query.set)
		return error_create(ERROR_USAGE,
				    "an address or a set is missing, such as 'used' or 'leaked'");
	if (!selection->is_address)
		return selection_parse(key, value, arguments);
	if (key == ARGP_KEY_END)
		return check_address(&selection->query);
	if (key == ARGP_KEY_ARG)
		return error_create(ERROR_USAGE, "unexpected word '%s' after an address", value);
	return selection_parse(key, value, arguments);
}

void selection_release(void *arguments)
{
	struct selection *selection = arguments;

	set_query_deinit(&selection->query);
	annotation_rules_deinit(&selection->annotations);
}

/* A chain, or how an extension went from one to the next. */
static bool has_order(const struct set_query *query)
{
	return query->set->ranges || query->comment_extensions || query->extensions.count ||
	       query->set->is_ordered;
}

bool selection_shorten(void *arguments, uint64_t count)
{
	struct selection *selection = arguments;
	struct set_query *query = &selection->query;

	if (!query->set || query->limit || selection->all)
		return false;
	query->limit = count;
	if (query->sort == SORT_DEFAULT && !has_order(query))
		query->sort = SORT_BYTES;
	return true;
}
