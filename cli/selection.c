#include "cli/selection.h"

#include "analyzer/base/text.h"

enum {
	KEY_SIZE = 's',
	KEY_MINIMUM = 'm',
	KEY_MAXIMUM = 'M',
	KEY_SORT = 'o',
	KEY_LIMIT = 'n',
	KEY_ASCII = 'a',
	KEY_SHOW_UP_TO = 'u',
	KEY_FULL_NAMES = 'F',
	KEY_OPERATION = 'O',
	KEY_ALLOW_MISSING = 'A',
};

const struct argp_option contents_options[] = {
	{ "ascii", KEY_ASCII, NULL, 0, "Show contents as characters, too", 0 },
	{ "show-ascii", KEY_ASCII, NULL, OPTION_HIDDEN, NULL, 0 },
	{ "show-up-to", KEY_SHOW_UP_TO, "SIZE", 0,
	  "Show that much of each one's contents", 0 },
	[SELECTION_OPTIONS] = { "size", KEY_SIZE, "SIZE", 0,
				"Take only those of this size: hexadecimal, "
				"or decimal with K, M or G behind it",
				0 },
	{ "min-size", KEY_MINIMUM, "SIZE", 0, "Leave out smaller ones", 0 },
	{ "max-size", KEY_MAXIMUM, "SIZE", 0, "Leave out larger ones", 0 },
	{ "sort-by", KEY_SORT, "count|bytes|address|retained", 0,
	  "What to put first: most instances, most bytes, lowest address, most "
	  "bytes that only it holds",
	  0 },
	{ "limit", KEY_LIMIT, "COUNT", 0, "Show that many at most", 0 },
	{ "full-names", KEY_FULL_NAMES, NULL, 0,
	  "Show names with all default template arguments", 0 },
	{ "set-operation", KEY_OPERATION, "assign|subtract", 0,
	  "Make the members the set 'derived', or take them away from it", 0 },
	{ "allow-missing-signatures", KEY_ALLOW_MISSING, NULL, 0,
	  "Take a signature that nothing has for no mistake", 0 },
	{ 0 },
};

struct error *selection_parse(int key, const char *value, void *arguments)
{
	struct selection *selection = arguments;
	struct set_query *query = &selection->query;

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
	case KEY_ALLOW_MISSING:
		query->allow_missing = true;
		return NULL;
	case KEY_FULL_NAMES:
		query->full_names = true;
		return NULL;
	case KEY_ASCII:
		selection->ascii = true;
		return NULL;
	case KEY_SHOW_UP_TO:
		selection->has_show_up_to = true;
		return parse_size(value, &selection->show_up_to);
	case ARGP_KEY_END:
		return query_check(query);
	default:
		return query_take_word(query, value);
	}
}

/* No set has a name that is a hexadecimal number. */
struct error *selection_or_address_parse(int key, const char *value,
					 void *arguments)
{
	struct selection *selection = arguments;

	if (key == ARGP_KEY_ARG && !selection->query.set &&
	    !selection->is_address && is_address(value)) {
		selection->is_address = true;
		return parse_address(value, &selection->address);
	}
	if (!selection->is_address)
		return selection_parse(key, value, arguments);
	if (key == ARGP_KEY_END)
		return NULL;
	if (key == ARGP_KEY_ARG)
		return error_create(ERROR_USAGE,
				    "'%s' is one word too many behind an "
				    "address",
				    value);
	return selection_parse(key, value, arguments);
}

void selection_release(void *arguments)
{
	struct selection *selection = arguments;

	set_query_deinit(&selection->query);
}
