#include "analyzer/export/stacks.h"

#include "analyzer/base/text.h"

/* The node of the innermost call of a stack. */
struct stack_node {
	uint64_t stack;
	uint32_t node;
};

struct stack_nodes {
	HASH_TABLE(struct stack_node);
};

/* Find or add the node of that name below the parent. */
static struct error *find_node(struct owners *owners, uint32_t parent, uint16_t name, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t depth = owners->nodes.items[parent].depth + 1;
	const struct owner_node *known =
		table_find(&owners->nodes, key, item,
			   item->parent == parent && item->name == name && item->depth > 0);

	*ret = known ? (uint32_t)(known - owners->nodes.items) : (uint32_t)owners->nodes.count;
	if (known)
		return NULL;
	if (owners->nodes.count == MOST_NODES) {
		*ret = parent;
		return NULL;
	}
	return table_append(
		&owners->nodes, key,
		(struct owner_node){
			.parent = parent, .name = name, .depth = depth, .example = NO_ALLOCATION });
}

static struct error *add_call(struct owners *owners, const char *text, uint64_t address,
			      uint32_t *node)
{
	_cleanup_(free) char *escaped = escape_text(text);
	uint16_t name;

	TRY_MEMORY(escaped);
	TRY(owner_names_root(&owners->names, escaped, address, &name));
	return find_node(owners, *node, name, node);
}

static struct error *add_stack(const struct callers *callers, uint64_t stack, struct owners *owners,
			       uint32_t *ret)
{
	struct backtrace calls = { 0 };
	struct error *error = NULL;

	if (stack == 0)
		return add_call(owners, "no recorded stack", 0, ret);
	TRY(callers_calls(callers, stack, &calls));
	for (size_t i = calls.count < MOST_DEPTH ? calls.count : MOST_DEPTH; !error && i-- > 0;) {
		const struct frame *frame = &calls.frames[i];
		_cleanup_(free) char *text = callers_name(callers, frame);

		error = text ? add_call(owners, text, frame->address, ret) : &error_no_memory;
	}
	free(calls.frames);
	return error;
}

static void count(struct owner_node *node, uint64_t size, bool is_leaked)
{
	for (enum owner_measure i = 0; i < MEASURES; i++)
		if (i != MEASURE_LEAKED || is_leaked) {
			node->total[i].count++;
			node->total[i].bytes += size;
		}
}

static struct error *count_all(struct callers *callers, const struct bitmap *members,
			       struct stack_nodes *known, struct owners *ret)
{
	const struct allocation_index *index = analysis_index(callers->analysis);
	const struct bitmap *leaked = analysis_leaked(callers->analysis);
	size_t hint = 0;

	bitmap_for_each(id, members) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint64_t stack = callers_of(callers, range.start);
		const struct stack_node *one = table_find(known, stack, item, item->stack == stack);
		uint32_t node = one ? one->node : 0;

		if (!one) {
			TRY(add_stack(callers, stack, ret, &node));
			TRY(table_append(known, stack, (struct stack_node){ stack, node }));
		}
		ret->of.items[id] = node;
		count(&ret->nodes.items[node], range.end - range.start, bitmap_get(leaked, id));
	}
	return NULL;
}

struct error *stacks_as_owners(struct callers *callers, const struct bitmap *members,
			       struct owners *ret)
{
	struct memory_account *account = analysis_account(callers->analysis);
	_cleanup_(table_release) struct stack_nodes known = { .memory.account = account,
							      .slots.memory.account = account };
	struct owner_node *nodes;
	uint16_t name;

	arrays_use(account, &ret->nodes, &ret->of);
	TRY(owners_need(callers->analysis));
	TRY(owner_names_init(&ret->names, callers->analysis));
	TRY(owner_names_root(&ret->names, "the heap", 0, &name));
	TRY(table_append(&ret->nodes, 0,
			 (struct owner_node){ .name = name, .example = NO_ALLOCATION }));
	TRY(array_resize(&ret->of, members->count));
	TRY(count_all(callers, members, &known, ret));
	nodes = ret->nodes.items;
	for (size_t i = ret->nodes.count; i-- > 1;)
		for (enum owner_measure j = 0; j < MEASURES; j++) {
			nodes[nodes[i].parent].total[j].count += nodes[i].total[j].count;
			nodes[nodes[i].parent].total[j].bytes += nodes[i].total[j].bytes;
		}
	return NULL;
}
