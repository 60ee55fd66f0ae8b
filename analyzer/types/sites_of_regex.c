#include "analyzer/program/debug/libc_types.h"
#include "analyzer/types/sites_parts.h"
#include "analyzer/types/typing_parts.h"

/*
 * Parts of regular expressions have sizes of the program's own structures, too. Those that are held
 * tell which sizes the C library asked for.
 */

enum {
	MOSTLY_IN = 10, /* all but one of that many */
	SOME_IN = 50,	/* one of that many */
};

static bool has_calls(const struct sites *sites)
{
	return sites->library_calls.count > 0 &&
	       sites->library_calls.items[0].callee == REGEX_CALLS;
}

bool sites_is_of_regex(const struct sites *sites, type_number type)
{
	const char *name = type_get(sites->input.types, type)->name;

	return has_calls(sites) && name && libc_type_has_name(name);
}

/* True if it is of such a type, or an array of numbers or pointers to which one refers. */
static bool is_part(const struct sites *sites, const struct typing *typing, allocation_id id)
{
	struct type_step step;

	if (known_fit(typing, id) != FIT_NONE && sites_is_of_regex(sites, known_type(typing, id)))
		return true;
	return typing_step_to(typing, id, &step) && step.from != NO_ALLOCATION &&
	       known_fit(typing, step.from) != FIT_NONE &&
	       sites_is_of_regex(sites, known_type(typing, step.from));
}

static struct error *count_sizes(struct sites *sites, const struct typing *typing)
{
	bitmap_for_each(id, allocation_used(sites->input.index)) {
		uint64_t size = allocation_size(sites->input.index, (allocation_id)id);
		struct libc_size *known;
		bool is;

		if (!has_step(typing, (allocation_id)id))
			continue;
		is = is_part(sites, typing, (allocation_id)id);
		known = table_find(&sites->libc_sizes, size, item, item->size == size);
		if (known) {
			known->regex += is;
			known->others += !is;
			continue;
		}
		TRY(table_append(&sites->libc_sizes, size,
				 (struct libc_size){ size, is ? 1 : 0, is ? 0 : 1 }));
	}
	return NULL;
}

struct error *sites_find_regex_share(struct sites *sites, const struct typing *typing,
				     uint64_t size, enum regex_share *ret)
{
	const struct libc_size *known;

	*ret = NO_REGEX;
	if (!typing || typing->allocations.count == 0 || !has_calls(sites))
		return NULL;
	if (!sites->has_libc_sizes)
		TRY(count_sizes(sites, typing));
	sites->has_libc_sizes = true;
	known = table_find(&sites->libc_sizes, size, item, item->size == size);
	if (!known || known->regex == 0)
		return NULL;
	if (known->others <= known->regex / (MOSTLY_IN - 1))
		*ret = MOSTLY_REGEX;
	else if (known->others / (SOME_IN - 1) <= known->regex)
		*ret = SOME_REGEX;
	return NULL;
}
