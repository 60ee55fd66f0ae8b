#include "analyzer/diff/owners.h"

#include "analyzer/base/hash.h"
#include "analyzer/base/list.h"
#include "analyzer/query/place.h"

#include <string.h>

/* What holds those below a position of the row. */
struct level {
	size_t end; /* behind the last position below it */
	kind_key key;
};

struct finder {
	struct census *census;
	const struct dominators *tree;
	struct memory levels; /* struct level, the innermost last */
	size_t depth;
	struct memory anchors;	   /* kind_key by id: that of what refers to
				      it from outside, or 0 */
	struct tally_table hashes; /* of the names of variables */
	struct error *error;
};

static void finder_deinit(struct finder *finder)
{
	memory_release(&finder->levels);
	memory_release(&finder->anchors);
	table_release(&finder->hashes);
}
DEFINE_DEINIT(finder_deinit, struct finder)

/*
 * "cache.entries[3] (libfoo.so)", "cache+0x18 (libfoo.so)" and "errno_buffer of thread 4711
 * (libfoo.so)" without what differs between parts of a variable, or between threads. To be freed;
 * NULL if memory is short.
 */
static char *whole_variable(const char *name)
{
	const char *module = strstr(name, " (");
	const char *thread = strstr(name, " of thread ");
	size_t length;
	char *whole;

	/* Names without a namespace begin with that parenthesis, too. */
	for (const char *next = module; next; next = strstr(next + 1, " ("))
		module = next;
	if (!module)
		return strndup(name, strcspn(name, "+"));
	length = strcspn(name, "[+.");
	if (thread && (size_t)(thread - name) < length)
		length = (size_t)(thread - name);
	if (length > (size_t)(module - name))
		length = (size_t)(module - name);
	return asprintf(&whole, "%.*s%s", (int)length, name, module) < 0 ? NULL : whole;
}

/* The key of the variable, whose name is taken over. */
static struct error *add_holder(struct finder *finder, char *name, kind_key *ret)
{
	_cleanup_(free) char *owned = name;
	struct census *census = finder->census;
	struct tally one = { .count = 1 };
	struct error *error;
	uint32_t number;

	if (!name)
		return &error_no_memory;
	one.key = hash_text(0, name);
	error = tally_add_numbered(&finder->hashes, one, &number);
	if (error)
		return error;
	*ret = kind_make(BY_HOLDER, number);
	if (number < census->holder_count)
		return NULL;
	if (!LIST_GROW(census->holders, census->holder_count))
		return &error_no_memory;
	census->holders[census->holder_count++] = take(owned);
	return NULL;
}

/* To be freed; NULL if memory is short. */
static char *name_static(const struct analysis *analysis, uint64_t address)
{
	struct debug *debug = analysis_debug(analysis);
	const char *name = debug_thread_local(debug, address);
	struct place place;

	if (name)
		return whole_variable(name);
	place = place_find(analysis, address);
	if (place.kind == PLACE_MODULE)
		name = debug_name(debug, address);
	if (name)
		return whole_variable(name);
	return strdup(place.region && place.region->mapping ? place.region->mapping->path
							    : "anonymous memory");
}

static bool visit_anchor(void *data, const struct anchor *anchor)
{
	struct finder *finder = data;
	kind_key *key = (kind_key *)finder->anchors.bytes + anchor->target;

	/* The first is static, if any is. */
	if (*key)
		return true;
	if (anchor->kind == ROOT_STACK)
		*key = kind_make(BY_OTHER, OTHER_STACK);
	else if (anchor->kind == ROOT_REGISTER)
		*key = kind_make(BY_OTHER, OTHER_REGISTER);
	else if (anchor->kind == ROOT_KERNEL)
		*key = kind_make(BY_OTHER, OTHER_KERNEL);
	else
		finder->error = add_holder(
			finder, name_static(finder->census->analysis, anchor->address), key);
	return !finder->error;
}

/* Those at the top of the tree, which no other dominates. */
static struct error *find_tops(struct finder *finder, struct bitmap *ret)
{
	const struct analysis *analysis = finder->census->analysis;
	size_t count = dominators_count(finder->tree);
	struct error *error = bitmap_init(ret, allocation_count(analysis_index(analysis)),
					  finder->anchors.account);

	for (size_t i = 0; !error && i < count;) {
		bitmap_set(ret, dominators_at(finder->tree, i));
		i = dominators_end(finder->tree, i);
	}
	return error;
}

static struct error *find_anchors(struct finder *finder)
{
	const struct analysis *analysis = finder->census->analysis;
	_cleanup_(bitmap_deinit) struct bitmap tops = { 0 };
	struct error *error = find_tops(finder, &tops);

	if (!error)
		error = memory_resize(&finder->anchors, tops.count * sizeof(kind_key));
	if (error)
		return error;
	roots_visit(analysis_roots(analysis), &tops, visit_anchor, finder);
	return finder->error;
}

static struct level *levels(const struct finder *finder)
{
	return finder->levels.bytes;
}

static kind_key top_key(const struct finder *finder, allocation_id id)
{
	const struct analysis *analysis = finder->census->analysis;
	kind_key key = ((const kind_key *)finder->anchors.bytes)[id];

	if (key)
		return key;
	return kind_make(BY_OTHER,
			 bitmap_get(analysis_anchored(analysis), id) ? OTHER_SEVERAL : OTHER_NONE);
}

static struct error *push(struct finder *finder, size_t end, kind_key key)
{
	struct error *error =
		memory_reserve(&finder->levels, (finder->depth + 1) * sizeof(struct level));

	if (!error)
		levels(finder)[finder->depth++] = (struct level){ end, key };
	return error;
}

static struct error *count_position(struct finder *finder, size_t position)
{
	const struct analysis *analysis = finder->census->analysis;
	allocation_id id = dominators_at(finder->tree, position);
	size_t end = dominators_end(finder->tree, position);
	struct error *error;
	kind_key key, own;

	while (finder->depth && levels(finder)[finder->depth - 1].end <= position)
		finder->depth--;
	key = finder->depth ? levels(finder)[finder->depth - 1].key : top_key(finder, id);
	error = census_add(finder->census, id, key, allocation_size(analysis_index(analysis), id));
	if (error || end == position + 1)
		return error;
	own = census_class(analysis, id);
	return push(finder, end, own ? own : key);
}

struct error *owners_count(struct census *census)
{
	struct memory_account *account = analysis_account(census->analysis);
	struct progress *progress = analysis_progress(census->analysis);
	_cleanup_(finder_deinit) struct finder finder = {
		.census = census,
		.tree = analysis_dominators(census->analysis),
		.levels.account = account,
		.anchors.account = account,
	};
	size_t count = dominators_count(finder.tree);
	struct error *error;
	uint64_t told = 0;

	finder.hashes.memory.account = account;
	error = find_anchors(&finder);
	progress_begin(progress, "finding owners", count);
	for (size_t i = 0; !error && i < count; i++) {
		error = count_position(&finder, i);
		if (!error && !progress_pass(progress, i, &told))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return error;
}
