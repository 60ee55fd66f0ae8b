#include "analyzer/export/sample.h"

#include "analyzer/owners/levels.h"

#define NO_OBJECT UINT32_MAX

/* The object that stands for others of a kind below another one, or for a root's node. */
struct joined {
	uint64_t key;
	uint32_t object;
};

struct joined_table {
	HASH_TABLE(struct joined);
};

struct sampler {
	const struct export *export;
	const struct dominators *tree;
	struct sample *sample;
	size_t most;
	bool is_picture;
	ARRAY(uint64_t) sums;	 /* by position: measured bytes before it */
	ARRAY(uint32_t) objects; /* by allocation, or NO_OBJECT */
	struct levels levels;	 /* numbers are of objects, which others are below */
	struct joined_table roots, others;
	ARRAY(uint32_t) seen; /* by object: the last that refers to it */
	uint64_t least;	      /* retained by what is an object; of that, so many: */
	size_t equal;
};

static void sampler_deinit(struct sampler *sampler)
{
	arrays_release(&sampler->sums, &sampler->objects, &sampler->levels.stack, &sampler->seen);
	tables_release(&sampler->roots, &sampler->others);
}
DEFINE_DEINIT(sampler_deinit, struct sampler)

void sample_deinit(struct sample *sample)
{
	arrays_release(&sample->objects, &sample->edges);
}

/* True if the measure counts the allocation; held: a member dominates it. */
static bool is_measured(const struct sampler *sampler, allocation_id id, bool held)
{
	const struct export *export = sampler->export;
	bool is_member = bitmap_get(export->members, id);

	switch (export->measure) {
	case MEASURE_RETAINED:
		return held || is_member;
	case MEASURE_LEAKED:
		return is_member && bitmap_get(analysis_leaked(export->analysis), id);
	default:
		return is_member;
	}
}

static struct error *add_up(struct sampler *sampler)
{
	size_t count = dominators_count(sampler->tree);
	uint64_t sum = 0;

	TRY(array_resize(&sampler->sums, count + 1));
	for (size_t i = 0; i < count; i++) {
		allocation_id id = dominators_at(sampler->tree, i);
		size_t end = dominators_end(sampler->tree, i);
		const struct level *above = levels_enter(&sampler->levels, i);
		bool held = above && above->held;

		sampler->sums.items[i] = sum;
		if (is_measured(sampler, id, held))
			sum += dominators_bytes(sampler->tree, i, i + 1);
		held |= bitmap_get(sampler->export->members, id);
		if (end > i + 1)
			TRY(levels_push(&sampler->levels,
					(struct level){ (uint32_t)end, 0, held }));
	}
	sampler->sums.items[count] = sum;
	sampler->levels.stack.count = 0;
	return NULL;
}

static uint64_t retained_at(const struct sampler *sampler, size_t position)
{
	return sampler->sums.items[dominators_end(sampler->tree, position)] -
	       sampler->sums.items[position];
}

static int compare_sizes(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left > *right ? -1 : *left < *right;
}

static unsigned int power_of(uint64_t size)
{
	return 63 - (unsigned int)__builtin_clzll(size);
}

/*
 * Find the least retained size of objects to keep: only the sizes of the power of two that has the
 * limit are sorted.
 */
static struct error *find_least(struct sampler *sampler)
{
	size_t count = dominators_count(sampler->tree), powers[64] = { 0 }, above = 0;
	unsigned int power = 64;
	ARRAY(uint64_t) sizes = { .memory.account = analysis_account(sampler->export->analysis) };
	struct error *error = NULL;

	for (size_t i = 0; i < count; i++)
		if (retained_at(sampler, i))
			powers[power_of(retained_at(sampler, i))]++;
	while (power > 0 && above + powers[power - 1] <= sampler->most)
		above += powers[--power];
	sampler->least = 1;
	sampler->equal = count;
	if (power == 0)
		return NULL;
	power--;
	for (size_t i = 0; !error && i < count; i++)
		if (retained_at(sampler, i) && power_of(retained_at(sampler, i)) == power)
			error = array_append(&sizes, retained_at(sampler, i));
	if (!error) {
		size_t kept = sampler->most - above;

		array_sort(&sizes, compare_sizes);
		/* None of these are kept if all that are fit without. */
		sampler->least = kept ? sizes.items[kept - 1] : UINT64_C(2) << power;
		sampler->equal = 0;
		while (kept && sizes.items[kept - 1] == sampler->least) {
			sampler->equal++;
			kept--;
		}
	}
	array_release(&sizes);
	return error;
}

static struct error *add_object(struct sampler *sampler, struct object object, uint32_t *ret)
{
	*ret = (uint32_t)sampler->sample->objects.count;
	return array_append(&sampler->sample->objects, object);
}

/* The number of the object of that key, which is added if there is none. */
static struct error *obtain_object(struct sampler *sampler, struct joined_table *table,
				   uint64_t key, struct object object, uint32_t *ret)
{
	const struct joined *joined = table_find(table, key, item, item->key == key);

	if (joined) {
		*ret = joined->object;
		return NULL;
	}
	TRY(add_object(sampler, object, ret));
	return table_append(table, key, (struct joined){ key, *ret });
}

/* The object of the root that the node of the owners hangs on. */
static struct error *find_root(struct sampler *sampler, uint32_t node, uint32_t *ret)
{
	const struct owner_node *nodes = sampler->export->owners->nodes.items;

	while (nodes[node].depth > 1)
		node = nodes[node].parent;
	return obtain_object(sampler, &sampler->roots, node,
			     (struct object){ .kind = OBJECT_ROOT,
					      .name = nodes[node].name,
					      .id = NO_ALLOCATION },
			     ret);
}

/* Roots come first, so that all of them are at hand. */
static struct error *add_roots(struct sampler *sampler)
{
	const uint32_t *of = sampler->export->owners->of.items;
	uint32_t object;

	TRY(add_object(sampler,
		       (struct object){ .kind = OBJECT_HEAP,
					.name = sampler->export->owners->nodes.items[0].name,
					.id = NO_ALLOCATION },
		       &object));
	for (size_t i = 0; !sampler->is_picture && i < dominators_count(sampler->tree);
	     i = dominators_end(sampler->tree, i))
		if (retained_at(sampler, i))
			TRY(find_root(sampler, of[dominators_at(sampler->tree, i)], &object));
	return NULL;
}

static uint32_t name_of(const struct sampler *sampler, allocation_id id)
{
	const struct owners *owners = sampler->export->owners;

	return owners->nodes.items[owners->of.items[id]].name;
}

/* Below too many, all others of an object are one. */
static struct error *join_other(struct sampler *sampler, uint32_t parent, allocation_id id,
				uint64_t bytes)
{
	enum { OTHERS_OF_EACH = 4 };
	uint32_t name = name_of(sampler, id), object;

	if (sampler->is_picture || sampler->others.count / OTHERS_OF_EACH > sampler->most)
		name = OTHER_NAMES;
	TRY(obtain_object(sampler, &sampler->others, (uint64_t)parent << 32 | name,
			  (struct object){ .kind = OBJECT_OTHERS,
					   .parent = parent,
					   .name = name,
					   .id = NO_ALLOCATION },
			  &object));
	sampler->sample->objects.items[object].count++;
	sampler->sample->objects.items[object].bytes += bytes;
	sampler->sample->objects.items[object].retained += bytes;
	return NULL;
}

static bool is_object(struct sampler *sampler, uint64_t retained)
{
	return retained > sampler->least ||
	       (retained == sampler->least && sampler->equal > 0 && sampler->equal--);
}

static struct error *add_position(struct sampler *sampler, size_t position)
{
	allocation_id id = dominators_at(sampler->tree, position);
	size_t end = dominators_end(sampler->tree, position);
	uint64_t retained = retained_at(sampler, position);
	uint64_t bytes = sampler->sums.items[position + 1] - sampler->sums.items[position];
	uint32_t object = 0;
	bool keep = is_object(sampler, retained);
	const struct level *above = levels_enter(&sampler->levels, position);

	if (above)
		object = above->number;
	else if (keep || !sampler->is_picture)
		TRY(find_root(sampler, sampler->export->owners->of.items[id], &object));
	if (keep) {
		TRY(add_object(sampler,
			       (struct object){ .kind = OBJECT_ALLOCATION,
						.parent = object,
						.name = name_of(sampler, id),
						.id = id,
						.count = bytes > 0,
						.bytes = bytes,
						.retained = retained },
			       &object));
		sampler->objects.items[id] = object;
	} else if (bytes) {
		TRY(join_other(sampler, object, id, bytes));
	}
	return end > position + 1 ? levels_push(&sampler->levels,
						(struct level){ (uint32_t)end, object, false })
				  : NULL;
}

/* Add up the retained bytes of roots and the heap from those below. */
static void add_up_roots(struct sample *sample)
{
	for (size_t i = sample->objects.count; i-- > 1;) {
		const struct object *object = &sample->objects.items[i];
		struct object *parent = &sample->objects.items[object->parent];

		if (parent->kind < OBJECT_ALLOCATION)
			parent->retained += object->retained;
	}
}

/* Nothing dominates free members. */
static struct error *add_free(struct sampler *sampler)
{
	const struct export *export = sampler->export;
	const struct allocation_index *index = analysis_index(export->analysis);
	uint32_t root = 0;

	bitmap_for_each(id, export->members) {
		if (bitmap_get(allocation_used(index), id) || export->measure == MEASURE_LEAKED)
			continue;
		if (!sampler->is_picture)
			TRY(find_root(sampler, export->owners->of.items[id], &root));
		TRY(join_other(sampler, root, (allocation_id)id,
			       allocation_size(index, (allocation_id)id)));
	}
	return NULL;
}

static struct error *add_objects(struct sampler *sampler)
{
	size_t count = allocation_count(analysis_index(sampler->export->analysis));

	TRY(array_resize(&sampler->objects, count));
	for (size_t i = 0; i < count; i++)
		sampler->objects.items[i] = NO_OBJECT;
	TRY(add_roots(sampler));
	for (size_t i = 0; i < dominators_count(sampler->tree); i++) {
		/* Whatever is below without any of the measure is passed over. */
		while (i < dominators_count(sampler->tree) && !retained_at(sampler, i))
			i = dominators_end(sampler->tree, i);
		if (i < dominators_count(sampler->tree))
			TRY(add_position(sampler, i));
	}
	TRY(add_free(sampler));
	add_up_roots(sampler->sample);
	return NULL;
}

static struct error *add_references(struct sampler *sampler, uint32_t from)
{
	const struct analysis *analysis = sampler->export->analysis;
	const struct bitmap *lost = analysis_unreachable(analysis);
	allocation_id id = sampler->sample->objects.items[from].id;
	struct edges edges = { 0 };

	if (id != NO_ALLOCATION)
		edges = graph_outgoing(analysis_graph(analysis), id);
	for (size_t i = 0; i < edges.count; i++) {
		uint32_t to = sampler->objects.items[edges.targets[i]];

		if (to == NO_OBJECT || to == from || sampler->seen.items[to] == from + 1 ||
		    (bitmap_get(lost, id) && !bitmap_get(lost, edges.targets[i])))
			continue;
		sampler->seen.items[to] = from + 1;
		TRY(array_append(&sampler->sample->edges, (struct object_edge){ from, to, true }));
	}
	return NULL;
}

/*
 * Add edges to what each object dominates, sorted by counting; then those of its references that
 * are not among these.
 */
static struct error *add_edges(struct sampler *sampler)
{
	const struct object *objects = sampler->sample->objects.items;
	uint32_t count = (uint32_t)sampler->sample->objects.count;
	struct memory_account *account = analysis_account(sampler->export->analysis);
	_cleanup_(array_release) ARRAY(uint32_t) first = { .memory.account = account };
	_cleanup_(array_release) ARRAY(uint32_t) children = { .memory.account = account };

	TRY(array_resize(&sampler->seen, count));
	TRY(array_resize(&first, count + 1));
	TRY(array_resize(&children, count));
	for (uint32_t i = 1; i < count; i++)
		first.items[objects[i].parent + 1]++;
	for (uint32_t i = 0; i < count; i++)
		first.items[i + 1] += first.items[i];
	for (uint32_t i = 1; i < count; i++)
		children.items[first.items[objects[i].parent]++] = i;
	for (uint32_t from = 0; from < count; from++) {
		uint32_t child = from ? first.items[from - 1] : 0;

		TRY(add_references(sampler, from));
		for (; child < first.items[from]; child++)
			if (sampler->seen.items[children.items[child]] != from + 1)
				TRY(array_append(&sampler->sample->edges,
						 (struct object_edge){ from, children.items[child],
								       false }));
	}
	return NULL;
}

struct error *sample_make(const struct export *export, uint64_t most, bool is_picture,
			  struct sample *ret)
{
	struct memory_account *account = analysis_account(export->analysis);
	_cleanup_(sampler_deinit) struct sampler sampler = {
		.export = export,
		.tree = analysis_dominators(export->analysis),
		.sample = ret,
		.most = most ? most : 1,
		.is_picture = is_picture,
	};

	arrays_use(account, &sampler.sums, &sampler.objects, &sampler.levels.stack, &sampler.roots,
		   &sampler.others, &sampler.seen);
	ret->export = export;
	arrays_use(account, &ret->objects, &ret->edges);
	TRY(add_up(&sampler));
	TRY(find_least(&sampler));
	TRY(add_objects(&sampler));
	return add_edges(&sampler);
}
