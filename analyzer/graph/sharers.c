#include "analyzer/graph/sharers.h"

#include "analyzer/base/sort.h"
#include "analyzer/base/table.h"
#include "analyzer/graph/embedding.h"

#include <stdlib.h>

/* A top that retains less is not told by its variables. Tops between it and these are bounded. */
enum { LEAST_PART = 256, MOST_TOPS = 4096, MOST_ROUNDS = 4 };

struct top {
	allocation_id id;
	bool is_asked;	  /* not only between one that is and its variables */
	bool is_followed; /* its referrers are known */
	bool has_more;
	uint64_t count, bytes;
	size_t first, shared_by; /* among all sharers */
};

/* A referrer of a top: a variable, or another top, by its number. */
struct reference {
	uint32_t top, from;
	bool is_variable;
};

/* The place of a source in the tree: below a variable, or else below a top. */
struct source {
	allocation_id id, top;
	size_t variable; /* or NO_ROOT */
};

struct sharers {
	HASH_TABLE(struct top) tops; /* by id */
	ARRAY(uint32_t) sharers;     /* of all tops */
};

struct finder {
	const struct sharers_input *input;
	struct sharers *result;
	HASH_TABLE(struct source) sources; /* by id */
	ARRAY(struct reference) references;
	size_t first_fresh; /* the first top that was not followed */
};

static void finder_deinit(struct finder *finder)
{
	table_release(&finder->sources);
	array_release(&finder->references);
}
DEFINE_DEINIT(finder_deinit, struct finder)

void sharers_destroy(struct sharers *sharers)
{
	table_release(&sharers->tops);
	array_release(&sharers->sharers);
	free(sharers);
}

static struct top *find_top(const struct sharers *sharers, allocation_id id)
{
	return table_find(&sharers->tops, id, item, item->id == id);
}

/* The next top from *position on that is shared and retains at least so much; false: none is. */
static bool find_shared(const struct sharers_input *input, uint64_t least, size_t *position,
			struct top *ret)
{
	const struct dominators *tree = input->dominators;

	for (size_t i = *position, end; i < dominators_count(tree); i = end) {
		end = dominators_end(tree, i);
		*ret = (struct top){ .id = dominators_at(tree, i),
				     .is_asked = true,
				     .count = end - i,
				     .bytes = dominators_bytes(tree, i, end) };
		*position = end;
		if (ret->bytes >= least && bitmap_get(input->anchored, ret->id) &&
		    dominators_root_of(tree, i) == NO_ROOT)
			return true;
	}
	return false;
}

static uint64_t least_bytes(const struct sharers_input *input)
{
	return dominators_bytes(input->dominators, 0, dominators_count(input->dominators)) /
		       LEAST_PART +
	       1;
}

bool sharers_are_there(const struct sharers_input *input)
{
	size_t position = 0;
	struct top top;

	return find_shared(input, least_bytes(input), &position, &top);
}

static struct error *find_tops(struct finder *finder)
{
	uint64_t least = least_bytes(finder->input);
	size_t position = 0;
	struct top top;

	while (find_shared(finder->input, least, &position, &top))
		TRY(table_append(&finder->result->tops, top.id, top));
	return NULL;
}

/* Add the direct references of variables. */
static struct error *add_variables(struct finder *finder, const struct bitmap *wanted)
{
	const struct dominator_roots roots = variables_roots(finder->input->variables);
	const struct top *tops = finder->result->tops.items;

	for (uint32_t i = 0; i < roots.count; i++)
		for (size_t j = roots.offsets[i]; j < roots.offsets[i + 1]; j++) {
			if (!bitmap_get(wanted, roots.targets[j]))
				continue;
			const struct top *top = find_top(finder->result, roots.targets[j]);

			TRY(array_append(&finder->references,
					 (struct reference){ (uint32_t)(top - tops), i, true }));
		}
	return NULL;
}

/* Find where those of a set stand in the tree, by one walk along it. */
static struct error *find_sources(struct finder *finder, const struct bitmap *wanted)
{
	const struct dominators *tree = finder->input->dominators;
	struct source source = { 0 };
	size_t end = 0;
	uint64_t reported = 0;

	table_release(&finder->sources);
	progress_begin(finder->input->progress, "finding shared memory", dominators_count(tree));
	for (size_t i = 0; i < dominators_count(tree); i++) {
		TRY(progress_check_at(finder->input->progress, i, &reported));
		if (i == end) {
			end = dominators_end(tree, i);
			source.top = dominators_at(tree, i);
			source.variable = dominators_root_of(tree, i);
		}
		source.id = dominators_at(tree, i);
		/* Nothing that is lost holds what is alive. */
		if (bitmap_get(wanted, source.id) && bitmap_get(finder->input->anchored, source.id))
			TRY(table_append(&finder->sources, source.id, source));
	}
	return NULL;
}

/* A top between one that is asked for and its variables. */
static struct error *add_between(struct finder *finder, struct top *top, allocation_id id)
{
	struct sharers *result = finder->result;
	uint32_t number = (uint32_t)(top - result->tops.items);
	const struct top *between = find_top(result, id);

	if (!between && result->tops.count >= MOST_TOPS) {
		top->has_more = true;
		return NULL;
	}
	if (!between) {
		TRY(table_append(&result->tops, id, (struct top){ .id = id }));
		between = &result->tops.items[result->tops.count - 1];
	}
	return array_append(
		&finder->references,
		(struct reference){ number, (uint32_t)(between - result->tops.items), false });
}

static struct error *add_sources(struct finder *finder, uint32_t number, struct edges sources)
{
	const struct bitmap *own = variables_own(finder->input->variables);

	for (size_t i = 0; i < sources.count; i++) {
		struct top *top = &finder->result->tops.items[number];
		allocation_id id = sources.targets[i];
		const struct source *source =
			table_find(&finder->sources, id, item, item->id == id);

		if (!source || embedding_is_void(own, id, top->id))
			continue;
		if (source->variable != NO_ROOT)
			TRY(array_append(
				&finder->references,
				(struct reference){ number, (uint32_t)source->variable, true }));
		else if (source->top != top->id)
			TRY(add_between(finder, top, source->top));
	}
	return NULL;
}

/* Find what refers to the tops that were not followed yet. */
static struct error *follow(struct finder *finder)
{
	const struct sharers_input *input = finder->input;
	const struct bitmap *used = allocation_used(input->index);
	_cleanup_(bitmap_deinit) struct bitmap wanted = { 0 }, sources = { 0 };
	_cleanup_(graph_destroy) struct graph *incoming = NULL;
	size_t first = finder->first_fresh, end = finder->result->tops.count;

	TRY(bitmap_init(&wanted, used->count, input->account));
	TRY(bitmap_init(&sources, used->count, input->account));
	for (size_t i = first; i < end; i++) {
		finder->result->tops.items[i].is_followed = true;
		bitmap_set(&wanted, finder->result->tops.items[i].id);
	}
	TRY(add_variables(finder, &wanted));
	TRY(graph_transpose_to(input->graph, used, &wanted, input->account, input->progress,
			       &incoming));
	bitmap_for_each(id, &wanted) {
		struct edges edges = graph_outgoing(incoming, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			bitmap_set(&sources, edges.targets[i]);
	}
	TRY(find_sources(finder, &sources));
	for (size_t i = first; i < end; i++)
		TRY(add_sources(finder, (uint32_t)i,
				graph_outgoing(incoming, finder->result->tops.items[i].id)));
	finder->first_fresh = end;
	return NULL;
}

DEFINE_COMPARE(compare_references, struct reference, ASCENDING(top), ASCENDING(from))

static size_t first_reference(const struct finder *finder, uint32_t top)
{
	const struct reference *list = finder->references.items;

	return BISECT(i, 0, finder->references.count, list[i].top < top);
}

/* The variables that lead to a top, and the tops in between, each once. */
struct search {
	ARRAY(uint32_t) pending;
	struct bitmap tops, variables;
};

static void search_deinit(struct search *search)
{
	array_release(&search->pending);
	bitmap_deinit(&search->tops);
	bitmap_deinit(&search->variables);
}
DEFINE_DEINIT(search_deinit, struct search)

static struct error *search_from(const struct finder *finder, struct top *asked,
				 struct search *search)
{
	struct top *tops = finder->result->tops.items;
	const struct reference *list = finder->references.items;

	bitmap_set(&search->tops, (size_t)(asked - tops));
	TRY(array_append(&search->pending, (uint32_t)(asked - tops)));
	while (search->pending.count) {
		uint32_t number = search->pending.items[--search->pending.count];

		asked->has_more |= tops[number].has_more || !tops[number].is_followed;
		for (size_t i = first_reference(finder, number);
		     i < finder->references.count && list[i].top == number; i++) {
			if (list[i].is_variable) {
				bitmap_set(&search->variables, list[i].from);
			} else if (!bitmap_get(&search->tops, list[i].from)) {
				bitmap_set(&search->tops, list[i].from);
				TRY(array_append(&search->pending, list[i].from));
			}
		}
	}
	return NULL;
}

/* True if all its words belong to a module, but not to a variable with a symbol. */
static bool is_nameless(const struct variable *variable)
{
	return variable->module && variable->address == 0;
}

static bool has_named_of(const struct variables *variables, const struct bitmap *set,
			 const struct module *module)
{
	bitmap_for_each(i, set)
		if (variables_at(variables, i)->module == module &&
		    variables_at(variables, i)->address != 0)
			return true;
	return false;
}

/* Leave those that last longest, and of a module those that have a name. */
static struct error *keep_sharers(const struct finder *finder, struct top *top,
				  const struct bitmap *found)
{
	const struct variables *variables = finder->input->variables;
	const uint8_t *ranks = variables_roots(variables).ranks;
	size_t longest = bitmap_next(found, 0);
	struct sharers *result = finder->result;

	top->first = result->sharers.count;
	for (int nameless = 0; nameless < 2; nameless++)
		bitmap_for_each(i, found) {
			const struct variable *variable = variables_at(variables, i);

			if (is_nameless(variable) != nameless || ranks[i] != ranks[longest] ||
			    (nameless && has_named_of(variables, found, variable->module)))
				continue;
			TRY(array_append(&result->sharers, (uint32_t)i));
			top->shared_by++;
		}
	return NULL;
}

static struct error *resolve(const struct finder *finder, struct top *top)
{
	struct memory_account *account = finder->input->account;
	_cleanup_(search_deinit) struct search search = { .pending.memory.account = account };

	TRY(bitmap_init(&search.tops, finder->result->tops.count, account));
	TRY(bitmap_init(&search.variables, variables_count(finder->input->variables), account));
	TRY(search_from(finder, top, &search));
	return keep_sharers(finder, top, &search.variables);
}

static struct error *find(struct finder *finder)
{
	TRY(find_tops(finder));
	for (int i = 0; i < MOST_ROUNDS && finder->first_fresh < finder->result->tops.count; i++)
		TRY(follow(finder));
	array_sort(&finder->references, compare_references);
	array_for_each(top, &finder->result->tops)
		if (top->is_asked)
			TRY(resolve(finder, top));
	return NULL;
}

struct error *sharers_create(const struct sharers_input *input, struct sharers **ret)
{
	_cleanup_(sharers_destroy) struct sharers *sharers = calloc(1, sizeof(*sharers));
	_cleanup_(finder_deinit) struct finder finder = {
		.input = input,
		.result = sharers,
	};

	arrays_use(input->account, &finder.sources, &finder.references);
	TRY_MEMORY(sharers);
	arrays_use(input->account, &sharers->tops, &sharers->sharers);
	if (input->graph)
		TRY(find(&finder));
	*ret = take(sharers);
	return NULL;
}

size_t sharers_count(const struct sharers *sharers)
{
	return sharers->tops.count;
}

struct shared_by sharers_of(const struct sharers *sharers, allocation_id id)
{
	const struct top *top = find_top(sharers, id);

	if (!top || !top->shared_by)
		return (struct shared_by){ 0 };
	return (struct shared_by){ sharers->sharers.items + top->first, top->shared_by,
				   top->has_more };
}

size_t sharers_owner(const struct sharers *sharers, allocation_id id)
{
	struct shared_by shared = sharers_of(sharers, id);

	return shared.count == 1 && !shared.has_more ? shared.variables[0] : NO_ROOT;
}

struct owned_tops sharers_owned(const struct sharers *sharers, size_t variable)
{
	struct owned_tops sum = { 0 };

	array_for_each(top, &sharers->tops)
		if (top->is_asked && sharers_owner(sharers, top->id) == variable) {
			sum.count += top->count;
			sum.bytes += top->bytes;
		}
	return sum;
}
