#include "analyzer/owners/owner_roots.h"

#include "analyzer/analysis/liveness.h"
#include "analyzer/base/text.h"
#include "analyzer/graph/sharers.h"

#include <inttypes.h>
#include <string.h>

size_t owner_root_of(const struct analysis *analysis, size_t position)
{
	const struct dominators *tree = analysis_dominators(analysis);
	size_t root = dominators_root_of(tree, position);

	return root != NO_ROOT
		       ? root
		       : sharers_owner(analysis_sharers(analysis), dominators_at(tree, position));
}

/* The length of a name, without its module where next has the same. */
static int length_beside(const char *name, const char *next)
{
	const char *module = strrchr(name, ' '), *next_module = strrchr(next, ' ');

	if (!module || !next_module || module[1] != '(' || strcmp(module, next_module) != 0)
		return (int)strlen(name);
	return (int)(module - name);
}

/*
 * "shared by a and b (server)", or "shared by a (server), b (libfoo.so) and 4 more"; short, without
 * modules.
 */
static char *shared_text(const struct variables *variables, struct shared_by shared, bool is_short)
{
	enum { MOST_NAMED = 3 };
	bool is_all = shared.count <= MOST_NAMED && !shared.has_more;
	size_t named = shared.count <= MOST_NAMED ? shared.count : MOST_NAMED - 1;
	_cleanup_(free) char *text = strdup("shared by ");

	for (size_t i = 0; i < named && text; i++) {
		const char *name = variables_at(variables, shared.variables[i])->name;
		const char *next = is_short ? name
				   : i + 1 < named
					   ? variables_at(variables, shared.variables[i + 1])->name
					   : "";
		const char *before = i == 0 ? "" : is_all && i + 1 == named ? " and " : ", ";
		char *longer =
			format_text("%s%s%.*s", text, before, length_beside(name, next), name);

		free(text);
		text = longer;
	}
	if (!text || is_all)
		return take(text);
	if (shared.has_more)
		return format_text("%s and others", text);
	return format_text("%s and %zu more", text, shared.count - named);
}

static char *top_text(const struct analysis *analysis, allocation_id top, bool is_short)
{
	enum live_state state = liveness_of(analysis, top);
	struct shared_by shared;

	switch (state) {
	case STATE_GARBAGE:
	case STATE_HELD:
		return strdup(liveness_word(state));
	case STATE_LEAKED:
	case STATE_UNREFERENCED:
		return strdup("what leaked");
	default:
		break;
	}
	shared = sharers_of(analysis_sharers(analysis), top);
	return shared.count ? shared_text(analysis_variables(analysis), shared, is_short)
			    : owner_shared_text(analysis, NO_ROOT, is_short);
}

char *owner_top_text(const struct analysis *analysis, allocation_id top)
{
	return top_text(analysis, top, false);
}

char *owner_top_short_text(const struct analysis *analysis, allocation_id top)
{
	return top_text(analysis, top, true);
}

char *owner_shared_text(const struct analysis *analysis, size_t variable, bool is_short)
{
	const uint32_t number = (uint32_t)variable;
	const struct shared_by shared = { &number, 1, true };

	if (variable == NO_ROOT)
		return strdup("shared by several roots");
	return shared_text(analysis_variables(analysis), shared, is_short);
}

struct error *owner_root_name(const struct analysis *analysis, size_t position,
			      struct owner_names *names, uint16_t *ret)
{
	const struct dominators *tree = analysis_dominators(analysis);
	size_t root = owner_root_of(analysis, position);
	_cleanup_(free) char *text = NULL;
	const struct variable *variable;

	if (root == NO_ROOT) {
		text = owner_top_text(analysis, dominators_at(tree, position));
		return text ? owner_names_root(names, text, 0, ret) : &error_no_memory;
	}
	variable = variables_at(analysis_variables(analysis), root);
	return owner_names_root(names, variable->name, variable->address, ret);
}
