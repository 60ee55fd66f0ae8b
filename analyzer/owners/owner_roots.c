#include "analyzer/owners/owner_roots.h"

#include "analyzer/analysis/liveness.h"

const char *owner_top_text(const struct analysis *analysis, allocation_id id)
{
	switch (liveness_of(analysis, id)) {
	case STATE_GARBAGE:
		return "garbage";
	case STATE_HELD:
		return "held by garbage";
	case STATE_LEAKED:
	case STATE_UNREFERENCED:
		return "what leaked";
	default:
		return "several roots";
	}
}

struct error *owner_root_name(const struct analysis *analysis, size_t position,
			      struct owner_names *names, uint16_t *ret)
{
	const struct dominators *tree = analysis_dominators(analysis);
	size_t root = dominators_root_of(tree, position);
	const struct variable *variable;

	if (root == NO_ROOT)
		return owner_names_root(
			names, owner_top_text(analysis, dominators_at(tree, position)), 0, ret);
	variable = variables_at(analysis_variables(analysis), root);
	return owner_names_root(names, variable->name, variable->address, ret);
}
