#include "analyzer/owners/holders.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/table.h"
#include "analyzer/kinds/links.h"
#include "analyzer/owners/owners.h"

/* The nodes of a list of objects may be so far apart, with tables of their members between. */
enum { LEAST_PART = 50, MOST_PERIOD = 4, NEARLY_ALL = 80 /* % */, LEAST_ALIKE = 4 };

static const uint32_t NO_GROUP = UINT32_MAX;

/* A holder: a variable, or allocations that retain much. */
struct group {
	struct holder holder;
	kind_key kind;
	uint32_t same; /* the group that it counts in, of which its own number is one */
};

/* Groups of a kind below a variable, on paths that differ in numbers of items at most. */
struct alike {
	uint64_t path; /* a hash; 0: they have none */
	size_t root;
	kind_key kind;
	uint32_t group; /* the first */
	uint32_t count;
};

/* The group of a variable. */
struct root_group {
	size_t root;
	uint32_t group;
};

/* A variable, and the bytes that it shares and is the first to lead to. */
struct sharer {
	size_t root;
	uint64_t bytes;
};

/* The allocations of one kind that a group holds. */
struct content {
	uint32_t group;
	kind_key kind;
	uint64_t count, bytes;
	uint64_t behind;       /* of these bytes, not of links but of what they lead to */
	allocation_id example; /* the first */
	bool is_chain;	       /* some are links of a chain that the group's first begins */
};

/* An allocation that retains much, on the path to the position at hand. */
struct heavy {
	size_t position, end;
	struct memory_range range;
	kind_key kind;
	uint64_t offset;     /* in what dominates it, of the word that refers to it; or NO_OFFSET */
	allocation_id owner; /* see find_owner() */
	uint32_t group;
	bool is_part; /* of the object above, not a link of it */
};

struct alike_groups {
	HASH_TABLE(struct alike); /* by variable and kind */
};

struct finder {
	struct analysis *analysis;
	const struct dominators *tree;
	uint64_t least;
	ARRAY(struct group) groups;
	HASH_TABLE(struct content) contents; /* by group and kind */
	HASH_TABLE(struct root_group) roots;
	ARRAY(struct heavy) path;
	struct patterns *owners;	   /* of parts that retain much; NULL: there are none */
	uint32_t root_group;		   /* of what was met last at the top */
	size_t root_end;		   /* behind what it holds there */
	allocation_id top;		   /* at hand */
	struct sharer sharer, main_sharer; /* of the last top that is shared; with most bytes */
	uint32_t chosen[MOST_HOLDERS];	   /* groups, the largest first */
	size_t chosen_count;
};

static void finder_deinit(struct finder *finder)
{
	arrays_release(&finder->groups, &finder->path);
	tables_release(&finder->contents, &finder->roots);
	cleanup_patterns_destroy(&finder->owners);
}
DEFINE_DEINIT(finder_deinit, struct finder)

static kind_key kind_of_id(const struct finder *finder, allocation_id id)
{
	const struct analysis *analysis = finder->analysis;
	kind_key key =
		kind_typed(analysis, analysis_patterns(analysis), analysis_typing(analysis), id);

	if (key == KIND_UNKNOWN)
		return kind_make(BY_SIZE, allocation_size(analysis_index(analysis), id));
	return kind_without_word(key);
}

static kind_key kind_at(const struct finder *finder, size_t position)
{
	return kind_of_id(finder, dominators_at(finder->tree, position));
}

static struct error *add_group(struct finder *finder, allocation_id id, size_t root, kind_key kind,
			       uint32_t *ret)
{
	struct group group = {
		.holder = { .id = id,
			    .top = finder->top,
			    .root = root,
			    .alike = 1,
			    .named = NO_ALLOCATION,
			    .example = NO_ALLOCATION },
		.kind = kind,
		.same = (uint32_t)finder->groups.count,
	};

	*ret = group.same;
	return array_append(&finder->groups, group);
}

static struct error *find_root_group(struct finder *finder, size_t root, uint32_t *ret)
{
	const struct root_group *known = table_find(&finder->roots, root, item, item->root == root);

	if (known) {
		*ret = known->group;
		return NULL;
	}
	TRY(add_group(finder, NO_ALLOCATION, root, KIND_UNKNOWN, ret));
	return table_append(&finder->roots, root, (struct root_group){ root, *ret });
}

/* Tops that are shared come in order of their first variables: so each of these ends once. */
static void count_sharer(struct finder *finder, size_t position, uint64_t bytes)
{
	size_t root = dominators_first_root(finder->tree, position);

	if (finder->sharer.root != root)
		finder->sharer = (struct sharer){ root, 0 };
	finder->sharer.bytes += bytes;
	if (finder->sharer.bytes > finder->main_sharer.bytes)
		finder->main_sharer = finder->sharer;
}

/*
 * Another top: what is its variable's is entered at once, as far as that alone holds it. All that
 * several variables share is one more group.
 */
static struct error *enter_top(struct finder *finder, size_t position)
{
	struct positions held = { (uint32_t)position,
				  (uint32_t)dominators_end(finder->tree, position) };
	size_t root = owner_root_of(finder->analysis, position);
	struct holder *holder;
	uint64_t bytes;

	if (dominators_root_of(finder->tree, position) != NO_ROOT)
		held = dominators_root(finder->tree, root);
	finder->root_end = held.end;
	finder->root_group = NO_GROUP;
	if (root == NO_ROOT && !bitmap_get(analysis_anchored(finder->analysis), finder->top))
		return NULL;
	TRY(find_root_group(finder, root, &finder->root_group));
	bytes = dominators_bytes(finder->tree, held.begin, held.end);
	if (root == NO_ROOT && bytes < finder->least)
		count_sharer(finder, position, bytes);
	holder = &finder->groups.items[finder->root_group].holder;
	holder->retained += bytes;
	holder->bytes += bytes;
	return NULL;
}

/* The group of the variable that holds a top; NO_GROUP: none does. */
static struct error *enter_root(struct finder *finder, size_t position, uint32_t *ret)
{
	finder->top = dominators_at(finder->tree, position);
	if (position >= finder->root_end)
		TRY(enter_top(finder, position));
	*ret = finder->root_group;
	return NULL;
}

static bool are_alike(const struct heavy *a, const struct heavy *b)
{
	return a->kind == b->kind && a->range.end - a->range.start == b->range.end - b->range.start;
}

/* True if it is an object of a language that has no name in the program, such as a Map's table. */
static bool is_part_of_object(const struct finder *finder, const struct heavy *heavy)
{
	const struct analysis *analysis = finder->analysis;
	const struct object_paths *paths = analysis_object_paths(analysis);
	const struct heavy *above = finder->path.items + finder->path.count - 1;

	return runtimes_space_of(analysis_runtimes(analysis),
				 dominators_at(finder->tree, heavy->position)) &&
	       !object_paths_has(paths, dominators_at(finder->tree, heavy->position)) &&
	       object_paths_has(paths, dominators_at(finder->tree, above->position));
}

/*
 * Links of a chain are alike. An array that the program names is no link of one that it does not,
 * such as the pad with what a closure keeps.
 */
static bool may_be_links(const struct finder *finder, const struct heavy *a, const struct heavy *b)
{
	const struct object_paths *paths = analysis_object_paths(finder->analysis);

	return are_alike(a, b) &&
	       (object_paths_has(paths, dominators_at(finder->tree, a->position)) ||
		!object_paths_has(paths, dominators_at(finder->tree, b->position)));
}

/*
 * The object that a block is a part of, such as a list for its items, if the program names it and
 * it does not dominate the block, as other words lead there, too; else NO_ALLOCATION.
 */
static allocation_id find_owner(const struct finder *finder, allocation_id part)
{
	const struct analysis *analysis = finder->analysis;
	allocation_id owner = NO_ALLOCATION;

	if (finder->owners)
		owner = allocation_find(analysis_index(analysis),
					patterns_owner(finder->owners, part));
	if (owner == NO_ALLOCATION || !object_paths_has(analysis_object_paths(analysis), owner))
		return NO_ALLOCATION;
	for (size_t i = 0; i < finder->path.count; i++)
		if (dominators_at(finder->tree, finder->path.items[i].position) == owner)
			return NO_ALLOCATION;
	return owner;
}

/* The group above that it is part of: as a buffer or node, or as the next link of a chain. */
static uint32_t find_whole(struct finder *finder, struct heavy *heavy)
{
	size_t depth = finder->path.count;
	const struct heavy *above;

	if (depth == 0 || heavy->owner != NO_ALLOCATION)
		return NO_GROUP;
	above = &finder->path.items[depth - 1];
	heavy->is_part =
		!are_alike(above, heavy) &&
		(kind_has_pattern(heavy->kind) ? !pattern_is_whole(kind_pattern(heavy->kind))
					       : is_part_of_object(finder, heavy));
	if (heavy->is_part || may_be_links(finder, above, heavy))
		return above->group;
	heavy->offset = link_offset(finder->analysis, dominators_at(finder->tree, above->position),
				    dominators_at(finder->tree, heavy->position));
	for (size_t i = 1; i < depth && i < MOST_PERIOD; i++)
		if (may_be_links(finder, above - i, heavy) && above[-i].offset == heavy->offset &&
		    heavy->offset != NO_OFFSET)
			return above[-i].group;
	return NO_GROUP;
}

static struct error *count_content(struct finder *finder, struct content content)
{
	uint64_t key = content.kind ^ (uint64_t)content.group << 32;
	struct content *known =
		table_find(&finder->contents, key, item,
			   item->group == content.group && item->kind == content.kind);

	if (!known)
		return table_append(&finder->contents, key, content);
	known->count += content.count;
	known->bytes += content.bytes;
	known->behind += content.behind;
	known->is_chain |= content.is_chain;
	return NULL;
}

/* True if it is one variable, rather than all those of a module without symbols. */
static bool has_name(const struct finder *finder, size_t root)
{
	return root != NO_ROOT && variables_at(analysis_variables(finder->analysis), root)->is_one;
}

/*
 * Count a part of a group other than its first. Links of a chain count with everything behind them,
 * so that they are the group's largest kind.
 */
static struct error *count_part(struct finder *finder, const struct heavy *heavy, uint64_t retained)
{
	uint64_t size = heavy->range.end - heavy->range.start;
	struct content part = {
		.group = heavy->group,
		.kind = heavy->kind,
		.count = 1,
		.bytes = heavy->is_part ? size : retained,
		.behind = heavy->is_part ? 0 : retained - size,
		.example = dominators_at(finder->tree, heavy->position),
		.is_chain = !heavy->is_part,
	};

	return count_content(finder, part);
}

/* The nearest object on the path that has a name in the program, or NO_ALLOCATION. */
static allocation_id find_named(const struct finder *finder)
{
	const struct object_paths *paths = analysis_object_paths(finder->analysis);

	for (size_t i = finder->path.count; i-- > 0;) {
		allocation_id id = dominators_at(finder->tree, finder->path.items[i].position);

		if (object_paths_has(paths, id))
			return id;
	}
	return NO_ALLOCATION;
}

/* A heavy allocation's retained bytes count for its own group, not for the one above. */
static struct error *add_heavy(struct finder *finder, size_t position, uint64_t retained)
{
	const struct allocation_index *index = analysis_index(finder->analysis);
	allocation_id id = dominators_at(finder->tree, position);
	struct heavy heavy = {
		.position = position,
		.end = dominators_end(finder->tree, position),
		.range = { allocation_start(index, id),
			   allocation_start(index, id) + allocation_size(index, id) },
		.kind = kind_at(finder, position),
		.offset = NO_OFFSET,
		.owner = find_owner(finder, id),
	};
	size_t depth = finder->path.count, root;
	uint32_t above;

	if (depth > 0)
		above = finder->path.items[depth - 1].group;
	else
		TRY(enter_root(finder, position, &above));
	root = above == NO_GROUP ? NO_ROOT : finder->groups.items[above].holder.root;
	heavy.group = find_whole(finder, &heavy);
	if (depth == 0 && root != NO_ROOT && heavy.owner == NO_ALLOCATION &&
	    (variables_in_region(analysis_variables(finder->analysis), id) ||
	     (kind_has_pattern(heavy.kind) && has_name(finder, root)))) {
		heavy.group = above;
		heavy.is_part = true;
	}
	if (heavy.group == NO_GROUP) {
		TRY(heavy.owner == NO_ALLOCATION
			    ? add_group(finder, id, root, heavy.kind, &heavy.group)
			    : add_group(finder, heavy.owner, root, kind_of_id(finder, heavy.owner),
					&heavy.group));
		finder->groups.items[heavy.group].holder.retained = retained;
		finder->groups.items[heavy.group].holder.named = find_named(finder);
	} else {
		TRY(count_part(finder, &heavy, retained));
	}
	if (kind_has_pattern(heavy.kind) && pattern_is_reserve(kind_pattern(heavy.kind)))
		finder->groups.items[heavy.group].holder.is_reserve = true;
	if (above != NO_GROUP)
		finder->groups.items[above].holder.bytes -= retained;
	finder->groups.items[heavy.group].holder.bytes += retained;
	return array_append(&finder->path, heavy);
}

/* How many links of a chain are below position, itself included. */
static uint64_t count_links(const struct finder *finder, size_t position, kind_key kind)
{
	size_t end = dominators_end(finder->tree, position);
	uint64_t count = 0;

	for (size_t i = position; i < end; i++)
		count += kind_at(finder, i) == kind;
	return count;
}

/*
 * A block that is part of an object, such as one of a deque, says less than the objects to which it
 * leads; false if it leads to none first, or behind a few of its kind.
 */
static bool leads_to_objects(const struct finder *finder, size_t position, kind_key kind)
{
	enum { MOST_ALIKE = 8 };
	const struct runtimes *runtimes = analysis_runtimes(finder->analysis);
	size_t end = dominators_end(finder->tree, position), below = position + 1;

	while (kind_has_pattern(kind) && below < end && below - position < MOST_ALIKE &&
	       kind_at(finder, below) == kind)
		below++;
	return kind_has_pattern(kind) && below < end &&
	       runtimes_space_of(runtimes, dominators_at(finder->tree, below)) &&
	       object_paths_has(analysis_object_paths(finder->analysis),
				dominators_at(finder->tree, below));
}

/*
 * Count what the block, and those behind it such as the next entry of a hash, lead to, each with
 * all that it holds, as content of its group.
 */
static struct error *count_below(struct finder *finder, size_t position, uint32_t group)
{
	size_t end = dominators_end(finder->tree, position), next;

	for (size_t i = position + 1; i < end; i = next) {
		struct content content = { .group = group,
					   .kind = kind_at(finder, i),
					   .count = 1,
					   .example = dominators_at(finder->tree, i) };

		next = i + 1;
		if (leads_to_objects(finder, i, content.kind))
			continue;
		next = dominators_end(finder->tree, i);
		content.bytes = dominators_bytes(finder->tree, i, next);
		TRY(count_content(finder, content));
	}
	return NULL;
}

/* An allocation that retains little is content of the group above, or the rest of its chain. */
static struct error *add_content(struct finder *finder, size_t position, uint64_t retained)
{
	const struct heavy *above =
		finder->path.count ? finder->path.items + finder->path.count - 1 : NULL;
	struct content content = { .count = 1,
				   .bytes = retained,
				   .example = dominators_at(finder->tree, position) };

	if (above)
		content.group = above->group;
	else
		TRY(enter_root(finder, position, &content.group));
	if (content.group == NO_GROUP)
		return NULL;
	content.kind = kind_at(finder, position);
	if (leads_to_objects(finder, position, content.kind))
		return count_below(finder, position, content.group);
	content.is_chain = above && content.kind == above->kind;
	if (content.is_chain || kind_has_pattern(content.kind))
		content.count = count_links(finder, position, content.kind);
	return count_content(finder, content);
}

/* Find blocks that retain much, and are parts of objects: the first so many, in order. */
static struct error *find_parts(const struct finder *finder, struct bitmap *ret, allocation_id *ids,
				size_t *count, size_t most)
{
	const struct analysis *analysis = finder->analysis;
	size_t end = dominators_count(finder->tree), next;

	TRY(bitmap_init(ret, allocation_count(analysis_index(analysis)),
			finder->groups.memory.account));
	for (size_t i = 0; i < end; i = next) {
		allocation_id id = dominators_at(finder->tree, i);
		pattern_number pattern = patterns_of(analysis_patterns(analysis), id);

		next = dominators_end(finder->tree, i);
		if (dominators_bytes(finder->tree, i, next) < finder->least)
			continue;
		next = i + 1;
		if (pattern != NO_PATTERN && !pattern_is_whole(pattern) && *count < most &&
		    !object_paths_has(analysis_object_paths(analysis), id)) {
			bitmap_set(ret, id);
			ids[(*count)++] = id;
		}
	}
	SORT(ids, *count, compare_u32);
	return NULL;
}

/* Add the objects with a path that refer to the parts. */
static void add_referrers(const struct finder *finder, const struct bitmap *parts,
			  struct bitmap *sources)
{
	const struct analysis *analysis = finder->analysis;
	const struct object_paths *paths = analysis_object_paths(analysis);

	bitmap_for_each(id, analysis_anchored(analysis)) {
		struct edges edges = graph_outgoing(analysis_graph(analysis), (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			if (bitmap_get(parts, edges.targets[i]) &&
			    object_paths_has(paths, (allocation_id)id)) {
				bitmap_set(sources, id);
				break;
			}
	}
}

/* Find what the parts that retain much belong to, by what these and their referrers say. */
static struct error *find_owners(struct finder *finder)
{
	enum { MOST_PARTS = 1024 };
	_cleanup_(bitmap_deinit) struct bitmap parts = { 0 }, sources = { 0 };
	allocation_id ids[MOST_PARTS];
	size_t count = 0;

	if (object_paths_count(analysis_object_paths(finder->analysis)) == 0)
		return NULL;
	TRY(find_parts(finder, &parts, ids, &count, MOST_PARTS));
	if (count == 0)
		return NULL;
	TRY(bitmap_init(&sources, allocation_count(analysis_index(finder->analysis)),
			finder->groups.memory.account));
	add_referrers(finder, &parts, &sources);
	bitmap_or(&sources, &parts);
	return analysis_owners_among(finder->analysis, ids, count, &sources, &finder->owners);
}

/* Prefetch what is needed about the positions that follow; returns the next one. */
static size_t fetch_ahead(const struct finder *finder, size_t ahead, size_t position)
{
	enum { AHEAD = 32 };
	size_t count = dominators_count(finder->tree);

	for (size_t end; ahead < position + AHEAD && ahead < count;
	     ahead = end < ahead + AHEAD ? end : ahead + 1) {
		end = dominators_end(finder->tree, ahead);
		analysis_fetch(finder->analysis, dominators_at(finder->tree, ahead));
	}
	return ahead;
}

static struct error *walk(struct finder *finder)
{
	struct progress *progress = analysis_progress(finder->analysis);
	size_t count = dominators_count(finder->tree), next, ahead = 0;
	uint64_t reported = 0;

	progress_begin(progress, "finding largest holders", count);
	for (size_t i = 0; i < count; i = next) {
		size_t end = dominators_end(finder->tree, i);
		uint64_t retained = dominators_bytes(finder->tree, i, end);
		bool is_heavy = retained >= finder->least;

		ahead = fetch_ahead(finder, MAX(ahead, i), i);
		while (finder->path.count && finder->path.items[finder->path.count - 1].end <= i)
			finder->path.count--;
		TRY(is_heavy ? add_heavy(finder, i, retained) : add_content(finder, i, retained));
		next = is_heavy ? i + 1 : end;
		TRY(progress_check_at(progress, i, &reported));
	}
	return NULL;
}

/* A hash of the path to the object, without the numbers of items; 0: there is none. */
static uint64_t hash_path(const struct finder *finder, allocation_id id)
{
	enum { MOST_PATH = 512 };
	const struct object_paths *paths = analysis_object_paths(finder->analysis);
	char path[MOST_PATH], *end = path;

	if (!object_paths_has(paths, id) || !object_paths_tell(paths, id, true, path, sizeof(path)))
		return 0;
	for (const char *at = path; *at; at++) {
		*end++ = *at;
		if (*at == '[')
			at += strspn(at + 1, "0123456789");
	}
	*end = '\0';
	return hash_text(0, path) | 1;
}

/* Groups like the wanted one; NULL: there is none. */
static struct alike *find_alike(const struct alike_groups *alike, const struct alike *wanted)
{
	return table_find(alike, wanted->path ^ wanted->kind ^ wanted->root, item,
			  item->path == wanted->path && item->root == wanted->root &&
				  item->kind == wanted->kind);
}

/* Describe those that the group would be shown as one with; false: it stands alone. */
static bool describe_alike(const struct finder *finder, uint32_t number, struct alike *ret)
{
	const struct group *group = &finder->groups.items[number];

	if (group->holder.bytes == 0 || group->holder.id == NO_ALLOCATION ||
	    group->holder.root == NO_ROOT)
		return false;
	*ret = (struct alike){ hash_path(finder, group->holder.id), group->holder.root, group->kind,
			       number, 1 };
	return true;
}

/* Count the group in the first of many that are shown in the same words. */
static void merge_group(struct finder *finder, uint32_t number, const struct alike *alike)
{
	struct group *group = &finder->groups.items[number];
	struct holder *first = &finder->groups.items[alike->group].holder;

	if (alike->count < LEAST_ALIKE || alike->group == number)
		return;
	group->same = alike->group;
	first->alike++;
	first->bytes += group->holder.bytes;
	first->retained += group->holder.retained;
	if (first->named != group->holder.named)
		first->named = NO_ALLOCATION;
}

static struct error *merge_groups(struct finder *finder)
{
	_cleanup_(table_release) struct alike_groups groups = {
		.memory.account = finder->groups.memory.account
	};
	struct alike wanted, *known;

	for (uint32_t i = 0; i < finder->groups.count; i++) {
		if (!describe_alike(finder, i, &wanted))
			continue;
		known = find_alike(&groups, &wanted);
		if (known)
			known->count++;
		else
			TRY(table_append(&groups, wanted.path ^ wanted.kind ^ wanted.root, wanted));
	}
	for (uint32_t i = 0; i < finder->groups.count; i++)
		if (describe_alike(finder, i, &wanted))
			merge_group(finder, i, find_alike(&groups, &wanted));
	return NULL;
}

static struct error *merge_alike(struct finder *finder)
{
	size_t count = finder->contents.count;

	TRY(merge_groups(finder));
	for (size_t i = 0; i < count; i++) {
		struct content content = finder->contents.items[i];
		uint32_t same = finder->groups.items[content.group].same;

		if (same == content.group)
			continue;
		content.group = same;
		TRY(count_content(finder, content));
	}
	return NULL;
}

static bool ranks_before(const struct holder *a, const struct holder *b)
{
	return a->is_reserve != b->is_reserve ? b->is_reserve : a->bytes > b->bytes;
}

/* Leaked allocations have no holder, and are none. */
static bool is_leaked(const struct finder *finder, const struct holder *holder)
{
	return holder->id != NO_ALLOCATION &&
	       bitmap_get(analysis_leaked(finder->analysis), holder->id);
}

static void choose(struct finder *finder)
{
	const struct group *groups = finder->groups.items;

	for (uint32_t i = 0; i < finder->groups.count; i++) {
		uint64_t bytes = groups[i].holder.bytes;
		size_t place = finder->chosen_count;

		while (place > 0 &&
		       ranks_before(&groups[i].holder, &groups[finder->chosen[place - 1]].holder))
			place--;
		if (bytes < finder->least || place == MOST_HOLDERS || groups[i].same != i ||
		    is_leaked(finder, &groups[i].holder))
			continue;
		finder->chosen_count += finder->chosen_count < MOST_HOLDERS;
		for (size_t last = finder->chosen_count - 1; last > place; last--)
			finder->chosen[last] = finder->chosen[last - 1];
		finder->chosen[place] = i;
	}
}

static kind_key shown(kind_key kind)
{
	return kind_tag(kind) == BY_SIZE ? KIND_UNKNOWN : kind;
}

/* True if the variable above it holds hardly anything else. */
static bool is_nearly_all(const struct finder *finder, const struct holder *holder)
{
	const struct root_group *root;

	if (!has_name(finder, holder->root))
		return false;
	root = table_find(&finder->roots, holder->root, item, item->root == holder->root);
	return holder->retained / NEARLY_ALL >=
	       finder->groups.items[root->group].holder.retained / 100;
}

/*
 * Pick an object of those that globals of a language share: one that retains about as much as any
 * of them, and of these the one that is fewest steps from a global.
 */
static allocation_id usual_example(const struct finder *finder, const struct holder *holder,
				   const struct content *content)
{
	enum { MOST_STEPS = 8, ALIKE = 2 };
	const struct object_paths *paths = analysis_object_paths(finder->analysis);
	struct positions held = dominators_root(finder->tree, holder->root);
	allocation_id found = content->example, steps[MOST_STEPS];
	size_t least = MOST_STEPS, end;
	uint64_t most = 0;

	for (size_t i = held.begin; i < held.end; i = end) {
		size_t count;
		uint64_t bytes;

		end = dominators_end(finder->tree, i);
		bytes = dominators_bytes(finder->tree, i, end);
		if (bytes >= finder->least || bytes < most / ALIKE ||
		    kind_at(finder, i) != content->kind)
			continue;
		count = object_paths_steps(paths, dominators_at(finder->tree, i), MOST_STEPS,
					   steps);
		if (count == 0 || (count >= least && bytes / ALIKE <= most))
			continue;
		found = dominators_at(finder->tree, i);
		least = count;
		most = bytes;
	}
	return found;
}

static bool is_shared_by_globals(const struct finder *finder, const struct holder *holder)
{
	return holder->root != NO_ROOT && holder->id == NO_ALLOCATION &&
	       variables_at(analysis_variables(finder->analysis), holder->root)->lasting ==
		       LASTING_GLOBAL;
}

/* A pair such as a dict in a dict is no chain: what is in it says more. */
static uint64_t weight_of(const struct content *content)
{
	enum { LEAST_LINKS = 4 };

	return content->bytes - (content->count < LEAST_LINKS ? content->behind : 0);
}

/* True if nearly all its bytes are of its own allocation, such as a buffer's. */
static bool is_its_own(const struct finder *finder, const struct holder *holder)
{
	const struct allocation_index *index = analysis_index(finder->analysis);

	return holder->id != NO_ALLOCATION && holder->alike == 1 &&
	       allocation_size(index, holder->id) >= holder->bytes / 10 * 9;
}

/* The named variable that leads to three quarters of what several share, or NO_ROOT. */
static size_t find_main_sharer(const struct finder *finder, const struct holder *holder)
{
	const struct sharer *most = &finder->main_sharer;
	bool is_shared = holder->id == NO_ALLOCATION && holder->root == NO_ROOT;

	return is_shared && has_name(finder, most->root) && most->bytes / 3 >= holder->bytes / 4
		       ? most->root
		       : NO_ROOT;
}

static struct holder finish(const struct finder *finder, uint32_t number)
{
	const struct group *group = &finder->groups.items[number];
	const struct content *most = NULL;
	struct holder holder = group->holder;

	array_for_each(content, &finder->contents)
		if (content->group == number && (!most || weight_of(content) > weight_of(most)))
			most = content;
	holder.kind = shown(group->kind);
	holder.is_nearly_all = is_nearly_all(finder, &holder);
	holder.shared_by = find_main_sharer(finder, &holder);
	if (most && !is_its_own(finder, &holder)) {
		holder.content = shown(most->kind);
		/* The first link of a chain is the holder itself. A list of lists is no chain. */
		holder.content_count = most->count + (most->kind == group->kind && most->is_chain);
		holder.example = is_shared_by_globals(finder, &holder)
					 ? usual_example(finder, &holder, most)
					 : most->example;
	}
	return holder;
}

struct error *holders_find(struct analysis *analysis, struct holder ret[static MOST_HOLDERS],
			   size_t *ret_count)
{
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(finder_deinit) struct finder finder = {
		.analysis = analysis,
	};
	size_t count;

	arrays_use(account, &finder.groups, &finder.contents, &finder.roots, &finder.path);
	TRY(owners_need(analysis));
	TRY(analysis_need(analysis, STAGE_OBJECT_PATHS));
	finder.tree = analysis_dominators(analysis);
	count = dominators_count(finder.tree);
	finder.least = dominators_bytes(finder.tree, 0, count) / LEAST_PART;
	if (count > 0 && finder.least > 0) {
		TRY(find_owners(&finder));
		TRY(walk(&finder));
		TRY(merge_alike(&finder));
		choose(&finder);
	}
	for (size_t i = 0; i < finder.chosen_count; i++)
		ret[i] = finish(&finder, finder.chosen[i]);
	*ret_count = finder.chosen_count;
	return NULL;
}
