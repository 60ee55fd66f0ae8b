#include "analyzer/diff/bounded.h"

#include "analyzer/owners/owner_roots.h"

static bool cut_to_module(const void *data, struct root_range *range)
{
	const struct module *module = program_find_module(data, range->start);

	if (!module || range->kind != ROOT_STATIC || range->is_code)
		return false;
	if (range->end > module->end)
		range->end = module->end;
	return true;
}

/* A top of the dominator tree. */
struct top {
	size_t end;	   /* behind the last position below it */
	bool is_bounded;   /* a variable refers to it, and to as many as it has room for */
	bool is_languages; /* an interpreter's variables, or several, lead to it */
};

static struct top find_top(const struct analysis *analysis, size_t position,
			   const struct bitmap *targets)
{
	const struct dominators *tree = analysis_dominators(analysis);
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	allocation_id id = dominators_at(tree, position);
	size_t root = owner_root_of(analysis, position);
	struct top top = { .end = dominators_end(tree, position) };
	const struct variable *variable;

	if (!bitmap_get(analysis_anchored(analysis), id))
		return top;
	if (root == NO_ROOT) {
		top.is_languages = runtimes_space_of(runtimes, id);
		return top;
	}
	variable = variables_at(analysis_variables(analysis), root);
	top.is_bounded = variable->kind == ROOT_STATIC && variable->lasting != LASTING_GLOBAL &&
			 bitmap_get(targets, id);
	top.is_languages = variable->lasting == LASTING_GLOBAL ||
			   (variable->module ? runtimes_have_module(runtimes, variable->module)
					     : variable->kind == ROOT_STATIC);
	return top;
}

/*
 * The namespace of all names, a class at a top: the interpreter's state may hang on it, which these
 * names do not mean.
 */
static bool is_namespace(const struct analysis *analysis, allocation_id id, bool is_top)
{
	return is_top && runtimes_have_class(analysis_runtimes(analysis),
					     allocation_start(analysis_index(analysis), id));
}

/* Objects of a language count if they, or something above, have a name in the program. */
static void find(const struct analysis *analysis, const struct bitmap *targets, struct bitmap *ret)
{
	const struct object_paths *paths = analysis_object_paths(analysis);
	const struct dominators *tree = analysis_dominators(analysis);
	bool has_paths = object_paths_count(paths) > 0;
	size_t count = dominators_count(tree), named_end = 0;
	struct top top = { 0 };

	for (size_t i = 0; i < count; i++) {
		allocation_id id = dominators_at(tree, i);
		bool is_top = i >= top.end;

		if (is_top) {
			top = find_top(analysis, i, targets);
			if (top.is_bounded)
				bitmap_set(ret, id);
			top.is_languages &= has_paths;
		}
		if (!top.is_languages || i < named_end)
			continue;
		if (!object_paths_has(paths, id))
			bitmap_set(ret, id);
		else if (!is_namespace(analysis, id, is_top))
			named_end = dominators_end(tree, i);
	}
}

struct error *bounded_find(struct analysis *analysis, struct bitmap *ret)
{
	struct memory_account *account = analysis_account(analysis);
	size_t count = allocation_count(analysis_index(analysis));
	_cleanup_(bitmap_deinit) struct bitmap targets = { 0 };

	TRY(analysis_need(analysis, STAGE_OBJECT_PATHS));
	TRY(bitmap_init(ret, count, account));
	TRY(bitmap_init(&targets, count, account));
	TRY(roots_find_targets(analysis_roots(analysis), cut_to_module, analysis_program(analysis),
			       &targets));
	find(analysis, &targets, ret);
	return NULL;
}
