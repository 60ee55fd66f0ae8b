#include "analyzer/diff/growth.h"

#include <string.h>

/* Growths are bits of a mask. */
enum { MOST_WITH_EXAMPLES = 32, MOST_STEPS = 64 };

struct masks {
	ARRAY(uint32_t);
};

struct sought {
	struct growths *growths;
	size_t count; /* of those that examples are searched for */
	struct census holders, kinds;
	ARRAY(uint32_t) kind_numbers;	   /* by allocation: that of its kind's key, plus 1 */
	struct masks of_holders, of_kinds; /* what each key may be part of */
};

static void sought_deinit(struct sought *search)
{
	census_deinit(&search->holders);
	census_deinit(&search->kinds);
	arrays_release(&search->kind_numbers, &search->of_holders, &search->of_kinds);
}
DEFINE_DEINIT(sought_deinit, struct sought)

static struct error *note_kind(void *data, allocation_id id, struct memory_range range,
			       uint32_t number)
{
	struct sought *search = data;

	search->kind_numbers.items[id] = number;
	return NULL;
}

static bool is_named(const struct census_name *name, const char *text, uint64_t size)
{
	size_t length = strlen(name->prefix);

	return !*text || (name->size == size && strncmp(text, name->prefix, length) == 0 &&
			  strcmp(text + length, name->text) == 0);
}

static struct error *find_masks(const struct sought *search, const struct census *census,
				struct masks *ret)
{
	TRY(array_resize(ret, census->keys.count));
	for (size_t i = 0; i < ret->count; i++) {
		struct census_name name = census_name(census, census->keys.items[i].key);

		for (size_t j = 0; j < search->count; j++) {
			const struct growth *growth = search->growths->items + j;
			bool fits = census->aspect == ASPECT_OWNER
					    ? is_named(&name, growth->holder, 0)
					    : is_named(&name, growth->kind, growth->size);

			ret->items[i] |= (uint32_t)fits << j;
		}
	}
	return NULL;
}

/* Keep a sample of all that come: each second, fourth and so on, as the room is used up. */
static void keep_example(struct growth *growth, allocation_id id)
{
	if (growth->passed++ & ((UINT64_C(1) << growth->skipped) - 1))
		return;
	if (growth->example_count == MOST_EXAMPLES) {
		for (size_t i = 0; i < MOST_EXAMPLES / 2; i++)
			growth->examples[i] = growth->examples[2 * i];
		growth->example_count = MOST_EXAMPLES / 2;
		growth->skipped++;
	}
	growth->examples[growth->example_count++] = id;
}

static void add_example(const struct sought *search, allocation_id id)
{
	uint32_t holder = search->holders.numbers.items[id];
	uint32_t kind = search->kind_numbers.items[id];
	uint32_t mask;

	if (!holder || !kind)
		return;
	mask = search->of_holders.items[holder - 1] & search->of_kinds.items[kind - 1];
	for (size_t i = 0; i < search->count; i++)
		if (mask >> i & 1)
			keep_example(search->growths->items + i, id);
}

struct error *growths_find_examples(struct analysis *newest, struct growths *growths)
{
	struct memory_account *account = analysis_account(newest);
	const struct bitmap *added = named_sets_find(analysis_named_sets(newest), NEW_SET);
	_cleanup_(sought_deinit) struct sought search = {
		.growths = growths,
		.count = growths->count < MOST_WITH_EXAMPLES ? growths->count : MOST_WITH_EXAMPLES,
	};

	arrays_use(account, &search.kind_numbers, &search.of_holders, &search.of_kinds);
	if (!search.count)
		return NULL;
	if (!added)
		added = allocation_used(analysis_index(newest));
	TRY(array_resize(&search.kind_numbers, allocation_count(analysis_index(newest))));
	TRY(census_take(newest, ASPECT_KIND, note_kind, &search, &search.kinds));
	TRY(census_take(newest, ASPECT_OWNER, NULL, NULL, &search.holders));
	TRY(find_masks(&search, &search.holders, &search.of_holders));
	TRY(find_masks(&search, &search.kinds, &search.of_kinds));
	bitmap_for_each(position, added)
		add_example(&search, (allocation_id)position);
	return NULL;
}

struct error *growths_of_holders(struct analysis *newest, const struct diff *diff, uint64_t limit,
				 struct growths *ret)
{
	enum { MOST_HOLDERS = 5 };
	uint64_t most = limit && limit < MOST_HOLDERS ? limit : MOST_HOLDERS;

	ret->memory.account = diff->account;
	array_for_each(group, &diff->holders.groups) {
		struct growth growth = { .kind = "",
					 .by = census_holder_of(group->text),
					 .whole = group };

		if (ret->count == most)
			break;
		if (group->bytes <= 0)
			continue;
		growth.most = diff_most_held(diff, group, &growth.kind);
		growth.size = growth.most ? growth.most->size : 0;
		TRY(array_append(ret, growth));
		ret->items[ret->count - 1].holder = strdup(group->text);
		TRY_MEMORY(ret->items[ret->count - 1].holder);
	}
	return growths_find_examples(newest, ret);
}

/* The paths of examples, from the names that the program has down to what holds each. */
struct paths {
	allocation_id steps[MOST_EXAMPLES][MOST_STEPS];
	size_t depths[MOST_EXAMPLES];
	size_t count;
};

/* The nearest object above with a path that alone holds it; NO_ALLOCATION: there is none near. */
static allocation_id named_above(const struct analysis *analysis, allocation_id id)
{
	enum { FARTHEST = 1 << 20 };
	const struct object_paths *all = analysis_object_paths(analysis);
	const struct dominators *tree = analysis_dominators(analysis);
	size_t position, first;

	if (!dominators_position(tree, id, &position))
		return NO_ALLOCATION;
	first = position > FARTHEST ? position - FARTHEST : 0;
	for (size_t i = position; i-- > first;)
		if (dominators_end(tree, i) > position &&
		    object_paths_has(all, dominators_at(tree, i)))
			return dominators_at(tree, i);
	return NO_ALLOCATION;
}

/*
 * An example is not the holder of itself, and a longer path lacks its beginning. A part of an
 * object, such as a buffer, has no path of its own.
 */
static void find_paths(const struct analysis *newest, const struct growth *growth,
		       struct paths *ret)
{
	const struct object_paths *all = analysis_object_paths(newest);

	for (size_t i = 0; i < growth->example_count; i++) {
		allocation_id id = growth->examples[i];
		bool has_own = object_paths_has(all, id);
		size_t depth;

		if (!has_own && growth->whole)
			id = named_above(newest, id);
		if (id == NO_ALLOCATION)
			continue;
		depth = object_paths_steps(all, id, MOST_STEPS, ret->steps[ret->count]);
		if (depth < 1 + (size_t)has_own || depth == MOST_STEPS)
			continue;
		ret->depths[ret->count++] = depth - has_own;
	}
}

/* Keep the paths that have the step that most have, if these are more than half of all. */
static bool go_down(struct paths *paths, size_t depth, size_t all)
{
	allocation_id step = NO_ALLOCATION;
	size_t most = 0, kept = 0;

	for (size_t i = 0; i < paths->count; i++) {
		size_t alike = 0;

		for (size_t j = 0; j < paths->count && depth < paths->depths[i]; j++)
			alike += depth < paths->depths[j] &&
				 paths->steps[j][depth] == paths->steps[i][depth];
		if (alike <= most)
			continue;
		step = paths->steps[i][depth];
		most = alike;
	}
	if (most * 2 <= all)
		return false;
	for (size_t i = 0; i < paths->count; i++) {
		if (depth >= paths->depths[i] || paths->steps[i][depth] != step)
			continue;
		memmove(paths->steps[kept], paths->steps[i], sizeof(paths->steps[i]));
		paths->depths[kept++] = paths->depths[i];
	}
	paths->count = kept;
	return true;
}

static struct error *growth_path(const struct analysis *newest, const struct growth *growth,
				 bool with_content, char **ret)
{
	enum { PATH_SIZE = 256 };
	const struct object_paths *all = analysis_object_paths(newest);
	struct paths paths = { .count = 0 };
	size_t depth = 0, found;
	char text[PATH_SIZE];

	*ret = NULL;
	find_paths(newest, growth, &paths);
	found = paths.count;
	/* Nothing is said of all that a holder has by a few of it. */
	if (growth->whole && found * 2 <= growth->example_count)
		return NULL;
	while (paths.count && go_down(&paths, depth, found))
		depth++;
	if (!depth ||
	    !object_paths_tell(all, paths.steps[0][depth - 1], with_content, text, sizeof(text)))
		return NULL;
	*ret = strdup(text);
	return *ret ? NULL : &error_no_memory;
}

/* The static variable that alone holds the allocation, or NULL. */
static const struct variable *variable_of(const struct analysis *analysis, allocation_id id)
{
	const struct dominators *tree = analysis_dominators(analysis);
	const struct variable *variable;
	size_t position, root = NO_ROOT;

	if (dominators_position(tree, id, &position))
		root = dominators_root_of(tree, position);
	variable = root == NO_ROOT ? NULL : variables_at(analysis_variables(analysis), root);
	return variable && variable->is_one && variable->lasting == LASTING_STATIC ? variable
										   : NULL;
}

static struct error *growth_variable(const struct analysis *newest, const struct growth *growth,
				     char **ret)
{
	const struct variable *first = NULL;
	size_t votes = 0;
	const char *module;

	*ret = NULL;
	for (size_t i = 0; i < growth->example_count; i++) {
		const struct variable *one = variable_of(newest, growth->examples[i]);

		first = first ? first : one;
		votes += one && one == first;
	}
	if (votes * 2 <= growth->example_count || strcmp(first->name, growth->holder) == 0)
		return NULL;
	module = first->module ? strrchr(first->name, ' ') : NULL;
	*ret = module ? strndup(first->name, (size_t)(module - first->name)) : strdup(first->name);
	return *ret ? NULL : &error_no_memory;
}

struct error *growth_place(const struct analysis *newest, const struct growth *growth,
			   bool with_content, char **ret)
{
	TRY(growth_path(newest, growth, with_content, ret));
	return *ret || growth->by != HELD_BY_NAME ? NULL : growth_variable(newest, growth, ret);
}
