#include "analyzer/graph/leaks.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/graph/components.h"

#include <assert.h>

/*
 * Going through the components of the leaked part backwards meets each before all that it refers
 * to. That is how ownership comes down from the roots: a component belongs to a root if all that
 * refer to it do.
 */

/* Ownership of a component. */
static const uint32_t UNOWNED = UINT32_MAX, SHARED = UINT32_MAX - 1;

struct finder {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct runtimes *runtimes;
	const struct bitmap *leaked;
	const struct components *components;
	struct progress *progress;
};

/* Note that the owner refers to each component that the member refers to. */
static void hand_down(const struct finder *finder, allocation_id id, uint32_t *owner)
{
	uint32_t number = component_of(finder->components, id);
	uint32_t own = owner[number];
	struct edges edges = graph_outgoing(finder->graph, id);

	for (size_t i = 0; i < edges.count; i++) {
		uint32_t target;

		if (!bitmap_get(finder->leaked, edges.targets[i]))
			continue;
		target = component_of(finder->components, edges.targets[i]);
		if (target == number)
			continue;
		if (owner[target] == UNOWNED)
			owner[target] = own;
		else if (owner[target] != own)
			owner[target] = SHARED;
	}
}

/*
 * Ranks how well an allocation names a cycle. Classes that the program made are allocations, too.
 */
enum merit { ANY, OBJECT, OBJECT_OF_PROGRAM };

static enum merit merit_of(const struct finder *finder, allocation_id id)
{
	struct object_space *space = runtimes_space_of(finder->runtimes, id);
	uint64_t class;

	/* Objects of others may not be known yet: the answer is not to depend on that. */
	if (!space || !space->runtime->is_link)
		return ANY;
	class = object_class_of(space, id);
	return allocation_find(finder->index, class) != NO_ALLOCATION ? OBJECT_OF_PROGRAM : OBJECT;
}

static allocation_id find_name(const struct finder *finder, size_t begin, size_t end)
{
	allocation_id best = component_member(finder->components, begin);
	enum merit most = merit_of(finder, best);

	for (size_t i = begin + 1; i < end; i++) {
		allocation_id id = component_member(finder->components, i);
		enum merit merit = merit_of(finder, id);

		if (merit > most || (merit == most && id < best)) {
			best = id;
			most = merit;
		}
	}
	return best;
}

static struct error *add_root(struct leaks *leaks, const struct finder *finder, size_t begin,
			      size_t end)
{
	TRY_MEMORY(LIST_GROW(leaks->roots, leaks->count));
	leaks->roots[leaks->count++] = (struct leak_root){
		.id = find_name(finder, begin, end),
		.members = (uint32_t)(end - begin),
	};
	return NULL;
}

/* Count the component's allocations for its owner. */
static void add_owned(struct leaks *leaks, const struct finder *finder, uint32_t owner,
		      size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		uint64_t size =
			allocation_size(finder->index, component_member(finder->components, i));

		if (owner == SHARED) {
			leaks->shared_count++;
			leaks->shared_bytes += size;
		} else {
			assert(leaks->roots && owner < leaks->count);
			leaks->roots[owner].owned_count++;
			leaks->roots[owner].owned_bytes += size;
		}
	}
}

static struct error *find_owners(const struct finder *finder, struct leaks *leaks,
				 struct memory *owners)
{
	const struct components *components = finder->components;
	uint32_t count = component_count(components), *owner;
	size_t members = component_member_count(components);
	uint64_t reported = 0;

	TRY(memory_resize(owners, (count + (size_t)1) * sizeof(*owner)));
	owner = owners->bytes;
	for (uint32_t i = 0; i < count; i++)
		owner[i] = UNOWNED;
	progress_begin(finder->progress, "finding leak roots", members);
	for (size_t end = members, begin; end > 0; end = begin) {
		uint32_t number = component_before(components, end, &begin);

		if (owner[number] == UNOWNED) {
			owner[number] = (uint32_t)leaks->count;
			TRY(add_root(leaks, finder, begin, end));
		}
		add_owned(leaks, finder, owner[number], begin, end);
		for (size_t i = begin; i < end; i++)
			hand_down(finder, component_member(components, i), owner);
		TRY(progress_check_at(finder->progress, members - begin, &reported));
	}
	return NULL;
}

DEFINE_COMPARE(compare_roots, struct leak_root, ASCENDING(id))

struct error *leaks_create(const struct graph *graph, const struct allocation_index *index,
			   const struct runtimes *runtimes, const struct bitmap *leaked,
			   struct memory_account *account, struct progress *progress,
			   struct leaks **ret)
{
	_cleanup_(leaks_destroy) struct leaks *leaks = calloc(1, sizeof(*leaks));
	_cleanup_(components_destroy) struct components *components = NULL;
	_cleanup_(memory_release) struct memory owners = { .account = account };

	TRY_MEMORY(leaks);
	TRY(components_create(graph, leaked, account, progress, &components));
	TRY(find_owners(&(struct finder){ .graph = graph,
					  .index = index,
					  .runtimes = runtimes,
					  .leaked = leaked,
					  .components = components,
					  .progress = progress },
			leaks, &owners));
	SORT(leaks->roots, leaks->count, compare_roots);
	*ret = take(leaks);
	return NULL;
}

void leaks_destroy(struct leaks *leaks)
{
	free(leaks->roots);
	free(leaks);
}

const struct leak_root *leak_root_find(const struct leaks *leaks, allocation_id id)
{
	struct leak_root key = { .id = id };

	if (leaks->count == 0)
		return NULL;
	return bsearch(&key, leaks->roots, leaks->count, sizeof(key), compare_roots);
}

/* The layout in a side file. */
struct kept_root {
	uint64_t id, members, owned_count, owned_bytes;
};

struct kept_shared {
	uint64_t count, bytes;
};

struct error *leaks_save(const struct leaks *leaks, struct side_writer *writer)
{
	const struct kept_shared shared = { leaks->shared_count, leaks->shared_bytes };

	TRY(side_writer_array(writer, SIDE_LEAKS, &shared, sizeof(shared)));
	side_writer_begin(writer, SIDE_LEAK_ROOTS);
	list_for_each(root, leaks->roots, leaks->count) {
		const struct kept_root kept = { root->id, root->members, root->owned_count,
						root->owned_bytes };

		TRY(side_writer_add(writer, &kept, sizeof(kept)));
	}
	return NULL;
}

/* True if the entry is a root, behind the one before it. */
static bool check_root(const struct leaks *leaks, const struct kept_root *kept,
		       const struct bitmap *leaked)
{
	return kept->id < leaked->count && bitmap_get(leaked, kept->id) &&
	       kept->members <= leaked->count &&
	       (leaks->count == 0 || kept->id > leaks->roots[leaks->count - 1].id);
}

struct error *leaks_load(struct side_file *file, const struct bitmap *leaked, struct leaks **ret)
{
	_cleanup_(leaks_destroy) struct leaks *leaks = calloc(1, sizeof(*leaks));
	struct side_array array;
	const struct kept_root *kept;
	const void *shared;

	TRY_MEMORY(leaks);
	TRY(side_file_take(file, SIDE_LEAKS, 1, sizeof(struct kept_shared), &shared));
	TRY(side_file_find(file, SIDE_LEAK_ROOTS, &array));
	leaks->shared_count = ((const struct kept_shared *)shared)->count;
	leaks->shared_bytes = ((const struct kept_shared *)shared)->bytes;
	leaks->roots = calloc(array.size / sizeof(*kept) + 1, sizeof(*leaks->roots));
	TRY_MEMORY(leaks->roots);
	kept = array.bytes;
	for (size_t i = 0; i < array.size / sizeof(*kept); i++) {
		if (!check_root(leaks, &kept[i], leaked))
			return error_create(ERROR_BAD_DUMP, "it is damaged");
		leaks->roots[leaks->count++] = (struct leak_root){
			.id = (allocation_id)kept[i].id,
			.members = (uint32_t)kept[i].members,
			.owned_count = kept[i].owned_count,
			.owned_bytes = kept[i].owned_bytes,
		};
	}
	*ret = take(leaks);
	return NULL;
}
