#include "analyzer/owners/owners.h"

#include "analyzer/owners/levels.h"

#include <assert.h>

/* An allocation to count below a node. */
struct content {
	uint32_t parent, name;
	bool in_body;  /* a body of the parent holds it: it is no link of a chain */
	bool is_heavy; /* it has a node of its own */
};

/* Remembers the node in which a kind below a node is counted: 8 bytes, for most lookups miss. */
struct found_node {
	uint16_t parent, name;
	uint16_t node; /* 0: not known */
	bool in_body;
};

/* A position whose node is known: it is counted once the node has been fetched. */
struct counted {
	uint64_t bytes, retained;
	allocation_id id;
	uint32_t node;
	bool is_own, is_held, is_leaked, may_be_example;
};

enum { FOUND_NODES = 1 << 16, COUNTED_LATER = 16 };

static_assert(MOST_NODES <= UINT16_MAX + 1, "a found node has 16 bits");

struct builder {
	struct analysis *analysis;
	const struct bitmap *members;
	struct owners *owners;
	const struct patterns *patterns;
	const struct typing *typing; /* or NULL */
	ARRAY(uint16_t) names;	     /* by id, of what is used, and of members */
	ARRAY(uint16_t) roots;	     /* names of what holds the tops, in the order of the tree */
	size_t next_root;
	struct levels levels;		/* numbers are of nodes */
	ARRAY(struct found_node) found; /* the last ones, by a hash */
	ARRAY(uint64_t) most;		/* by node: the bytes that its example dominates */
	ARRAY(uint16_t) kinds;		/* by node: its name */
	uint64_t heavy;			/* bytes from which on an allocation has its own node */
	struct counted later[COUNTED_LATER];
	size_t next_later;
};

static void builder_deinit(struct builder *builder)
{
	arrays_release(&builder->names, &builder->roots, &builder->levels.stack, &builder->found,
		       &builder->most, &builder->kinds);
}
DEFINE_DEINIT(builder_deinit, struct builder)

void owners_deinit(struct owners *owners)
{
	owner_names_deinit(&owners->names);
	table_release(&owners->nodes);
	array_release(&owners->of);
}

struct error *owners_need(struct analysis *analysis)
{
	/* First, for they take most memory. */
	TRY(analysis_need(analysis, STAGE_DOMINATORS));
	TRY(analysis_need(analysis, STAGE_SHARERS));
	TRY(kind_need(analysis));
	TRY(analysis_need(analysis, STAGE_LEAKED_PATTERNS));
	return analysis_need_types(analysis);
}

static struct error *name_roots(struct builder *builder)
{
	const struct dominators *tree = analysis_dominators(builder->analysis);
	size_t last = NO_ROOT;
	uint16_t name = 0;

	for (size_t i = 0; i < dominators_count(tree); i = dominators_end(tree, i)) {
		size_t root = owner_root_of(builder->analysis, i);

		if (root == NO_ROOT || root != last)
			TRY(owner_root_name(builder->analysis, i, &builder->owners->names, &name));
		TRY(array_append(&builder->roots, name));
		last = root;
	}
	return NULL;
}

/* The names of all that are used, and of free members: in order of address, as memory is. */
static struct error *name_all(struct builder *builder)
{
	struct analysis *analysis = builder->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *used = allocation_used(index);
	struct progress *progress = analysis_progress(analysis);
	uint64_t reported = 0;
	size_t hint = 0;

	progress_begin(progress, "finding kinds", used->count);
	for (size_t id = 0; id < used->count; id++) {
		struct memory_range range;
		kind_key key = KIND_UNKNOWN;

		TRY(allocations_check(analysis_image(analysis), index, progress, id, &reported));
		if (!bitmap_get(used, id) && !bitmap_get(builder->members, id))
			continue;
		range = allocation_range_near(index, (allocation_id)id, &hint);
		if (bitmap_get(analysis_unreachable(analysis), id))
			key = kind_leaked(analysis, (allocation_id)id);
		else if (bitmap_get(used, id))
			key = kind_typed(analysis, builder->patterns, builder->typing,
					 (allocation_id)id);
		TRY(owner_names_kind(&builder->owners->names, key, range.end - range.start,
				     &builder->names.items[id]));
	}
	return NULL;
}

static uint64_t node_key(uint32_t parent, uint32_t name)
{
	return (uint64_t)parent << 32 | name;
}

static struct error *append_node(struct builder *builder, struct content content, uint32_t *ret)
{
	struct owners *owners = builder->owners;
	struct owner_node node = {
		.parent = content.parent,
		.name = content.name,
		.depth = owners->nodes.count ? owners->nodes.items[content.parent].depth + 1 : 0,
		.is_one = content.is_heavy,
		.in_body = content.in_body,
		.example = NO_ALLOCATION,
	};

	*ret = (uint32_t)owners->nodes.count;
	TRY(array_append(&builder->most, 0));
	TRY(array_append(&builder->kinds, (uint16_t)content.name));
	return table_append(&owners->nodes, node_key(node.parent, node.name), node);
}

/*
 * The node of the kind a few levels above, or 0: nodes of a chain are in turns with what is theirs.
 * What a container holds is no link, and neither are allocations of about the same size.
 */
static uint32_t find_above(const struct owners *owners, uint32_t node, uint32_t name)
{
	enum { MOST_PERIOD = 4 };
	const struct owner_name *names = owners->names.list.items;
	const struct owner_node *nodes = owners->nodes.items;

	if (names[name].by_power)
		return 0;
	for (size_t i = 0; i < MOST_PERIOD && !names[nodes[node].name].is_pattern; i++) {
		if (nodes[node].name == name)
			return node;
		if (nodes[node].in_body)
			return 0;
		node = nodes[node].parent;
	}
	return 0;
}

static bool has_room(const struct owners *owners, uint32_t parent)
{
	return owners->nodes.count / (MOST_NODES / MOST_DEPTH) <
	       MOST_DEPTH - owners->nodes.items[parent].depth;
}

/*
 * Content without a node of its own counts in the node of its kind above, or else with its holder.
 */
static struct error *find_place(struct builder *builder, struct content content, uint32_t *ret)
{
	struct owners *owners = builder->owners;
	uint32_t parent = content.parent, name = content.name;
	const struct owner_node *node =
		content.is_heavy ? NULL
				 : table_find(&owners->nodes, node_key(parent, name), item,
					      item->parent == parent && item->name == name &&
						      item->depth && !item->is_one);

	*ret = node ? (uint32_t)(node - owners->nodes.items) : 0;
	if (*ret == 0 && !content.in_body)
		*ret = find_above(owners, parent, name);
	if (*ret == 0 && has_room(owners, parent))
		return append_node(builder, content, ret);
	*ret = *ret ? *ret : parent;
	return NULL;
}

/* The node in which it is counted. */
static struct error *find_node(struct builder *builder, struct content content, uint32_t *ret)
{
	uint64_t hash = (node_key(content.parent, content.name) + content.in_body) *
			UINT64_C(0x9e3779b97f4a7c15);
	struct found_node *last = &builder->found.items[(hash >> 32) % FOUND_NODES];

	/* In lists and trees, most nodes hang on a node of the same kind. */
	if (content.parent && !content.in_body &&
	    builder->kinds.items[content.parent] == content.name) {
		*ret = content.parent;
		return NULL;
	}
	if (content.is_heavy)
		return find_place(builder, content, ret);
	if (last->node && last->parent == content.parent && last->name == content.name &&
	    last->in_body == content.in_body) {
		*ret = last->node;
		return NULL;
	}
	TRY(find_place(builder, content, ret));
	*last = (struct found_node){ (uint16_t)content.parent, (uint16_t)content.name,
				     (uint16_t)*ret, content.in_body };
	return NULL;
}

static void count(struct builder *builder, uint32_t node, enum owner_measure measure,
		  uint64_t bytes)
{
	struct owner_amount *amount = &builder->owners->nodes.items[node].total[measure];

	amount->count++;
	amount->bytes += bytes;
}

/* Keep the first of those members that dominate most. */
static void note_example(struct builder *builder, uint32_t node, allocation_id id, uint64_t bytes)
{
	allocation_id *example = &builder->owners->nodes.items[node].example;

	if (*example != NO_ALLOCATION && bytes <= builder->most.items[node])
		return;
	*example = id;
	builder->most.items[node] = bytes;
}

static void count_now(struct builder *builder, const struct counted *one)
{
	if (one->is_own)
		count(builder, one->node, MEASURE_OWN, one->bytes);
	if (one->may_be_example)
		note_example(builder, one->node, one->id, one->retained);
	if (one->is_held)
		count(builder, one->node, MEASURE_RETAINED, one->bytes);
	if (one->is_leaked)
		count(builder, one->node, MEASURE_LEAKED, one->bytes);
}

/* Nodes are few, but more than the cache holds: fetch this one, and count what waited longest. */
static void count_later(struct builder *builder, struct counted one)
{
	struct counted *place = &builder->later[builder->next_later++ % COUNTED_LATER];
	const struct owner_amount *total = builder->owners->nodes.items[one.node].total;

	count_now(builder, place);
	__builtin_prefetch(total, 1);
	__builtin_prefetch(&total[MEASURES - 1].bytes, 1);
	__builtin_prefetch(&builder->most.items[one.node], 1);
	*place = one;
}

static void count_rest(struct builder *builder)
{
	for (size_t i = 0; i < COUNTED_LATER; i++)
		count_later(builder, (struct counted){ 0 });
}

static void note_node(struct builder *builder, size_t id, uint32_t node)
{
	if (builder->owners->of.items)
		builder->owners->of.items[id] = node;
}

/* Find the holder of the position: an allocation, or a root, whose node is made. */
static struct error *find_holder(struct builder *builder, size_t position, struct level *ret)
{
	const struct level *above = levels_enter(&builder->levels, position);
	uint16_t root;

	*ret = above ? *above : (struct level){ 0 };
	if (above)
		return NULL;
	root = builder->roots.items[builder->next_root++];
	return find_node(builder, (struct content){ 0, root, false, false }, &ret->number);
}

/* True if it has no node of its own: it is the body of the one above, or belongs to a region. */
static bool is_part(const struct builder *builder, const struct level *above, allocation_id id)
{
	return above->end ? builder->owners->names.list.items[builder->names.items[id]].is_body
			  : variables_in_region(analysis_variables(builder->analysis), id);
}

static struct error *count_position(struct builder *builder, size_t position)
{
	const struct dominators *tree = analysis_dominators(builder->analysis);
	allocation_id id = dominators_at(tree, position);
	size_t end = dominators_end(tree, position);
	uint64_t bytes = dominators_bytes(tree, position, position + 1);
	uint64_t retained = end == position + 1 ? bytes : dominators_bytes(tree, position, end);
	uint32_t name = builder->names.items[id];
	bool is_member = bitmap_get(builder->members, id);
	struct level above, own = { .end = (uint32_t)end };

	TRY(find_holder(builder, position, &above));
	own.held = is_member || above.held;
	own.is_body = is_part(builder, &above, id);
	own.number = above.number;
	if (!own.is_body)
		TRY(find_node(
			builder,
			(struct content){ above.number, name, above.is_body,
					  retained >= builder->heavy && retained > 2 * bytes },
			&own.number));
	note_node(builder, id, own.number);
	count_later(builder,
		    (struct counted){
			    .bytes = bytes,
			    .retained = retained,
			    .id = id,
			    .node = own.number,
			    .is_own = is_member,
			    .is_held = own.held,
			    .is_leaked =
				    is_member && bitmap_get(analysis_leaked(builder->analysis), id),
			    .may_be_example = is_member && (!own.is_body || !above.end),
		    });
	return end == position + 1 ? NULL : levels_push(&builder->levels, own);
}

/* Prefetch what is needed about an allocation that follows. */
static void fetch(const struct builder *builder, allocation_id id)
{
	__builtin_prefetch(&builder->names.items[id]);
	__builtin_prefetch(&builder->members->words[id / 64]);
	__builtin_prefetch(&analysis_leaked(builder->analysis)->words[id / 64]);
}

static struct error *count_used(struct builder *builder)
{
	enum { AHEAD = 16, BETWEEN_CHECKS = 1 << 16, HEAVY = 50 };
	const struct dominators *tree = analysis_dominators(builder->analysis);
	struct progress *progress = analysis_progress(builder->analysis);
	size_t positions = dominators_count(tree);

	builder->heavy = dominators_bytes(tree, 0, positions) / HEAVY + 1;
	progress_begin(progress, "grouping holders by kind", positions);
	for (size_t i = 0; i < positions; i++) {
		if (i % BETWEEN_CHECKS == BETWEEN_CHECKS - 1)
			TRY(progress_check(progress, BETWEEN_CHECKS));
		if (i + AHEAD < positions)
			fetch(builder, dominators_at(tree, i + AHEAD));
		TRY(count_position(builder, i));
	}
	count_rest(builder);
	return NULL;
}

/* Free members are below a root of their own. */
static struct error *count_free(struct builder *builder)
{
	const struct allocation_index *index = analysis_index(builder->analysis);
	uint32_t root, node;
	uint16_t name;

	bitmap_for_each(id, builder->members) {
		if (bitmap_get(allocation_used(index), id))
			continue;
		TRY(owner_names_root(&builder->owners->names, "free memory", 0, &name));
		TRY(find_node(builder, (struct content){ 0, name, false, false }, &root));
		TRY(find_node(builder,
			      (struct content){ root, builder->names.items[id], false, false },
			      &node));
		note_node(builder, id, node);
		count(builder, node, MEASURE_OWN, allocation_size(index, (allocation_id)id));
		count(builder, node, MEASURE_RETAINED, allocation_size(index, (allocation_id)id));
	}
	return NULL;
}

/* Until now, nothing below a node counts in it. */
static void add_up(struct owners *owners)
{
	struct owner_node *nodes = owners->nodes.items;

	for (size_t i = owners->nodes.count; i-- > 1;)
		for (enum owner_measure measure = 0; measure < MEASURES; measure++) {
			struct owner_amount *above = &nodes[nodes[i].parent].total[measure];

			above->count += nodes[i].total[measure].count;
			above->bytes += nodes[i].total[measure].bytes;
		}
}

struct error *owners_find(struct analysis *analysis, const struct bitmap *members, bool with_nodes,
			  struct owners *ret)
{
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(builder_deinit) struct builder builder = {
		.analysis = analysis,
		.members = members,
		.owners = ret,
	};
	uint32_t process;
	uint16_t name;

	arrays_use(account, &builder.names, &builder.roots, &builder.levels.stack, &builder.found,
		   &builder.most, &builder.kinds);
	arrays_use(account, &ret->nodes, &ret->of);
	TRY(owners_need(analysis));
	builder.patterns = analysis_patterns(analysis);
	builder.typing = analysis_typing(analysis);
	TRY(array_resize(&builder.found, FOUND_NODES));
	TRY(owner_names_init(&ret->names, analysis));
	TRY(owner_names_root(&ret->names, "the heap", 0, &name));
	TRY(append_node(&builder, (struct content){ .name = name }, &process));
	if (with_nodes)
		TRY(array_resize(&ret->of, members->count));
	TRY(array_resize(&builder.names, members->count));
	TRY(name_roots(&builder));
	TRY(name_all(&builder));
	TRY(count_used(&builder));
	analysis_spend_dominators(analysis);
	TRY(count_free(&builder));
	memory_release(&ret->nodes.slots.memory);
	add_up(ret);
	return analysis_need(analysis, STAGE_OBJECT_PATHS);
}
