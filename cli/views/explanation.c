#include "cli/views/description.h"

#include "analyzer/analysis/chains.h"
#include "analyzer/base/list.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/kinds/links.h"
#include "analyzer/kinds/type_reason.h"
#include "cli/views/anchor_row.h"
#include "cli/views/leak_root_row.h"
#include "cli/views/rows.h"

#include <limits.h>

/* A chain is shown in full up to twice SHOWN_LINKS, else its two ends. */
enum { SHOWN_REFERRERS = 4, SHOWN_LINKS = PATH_END - 1 };

/* Columns of a link of a chain: a reference to an allocation. */
#define LINK_COLUMNS(address)                                                      \
	COLUMN(address, VALUE_ADDRESS), COLUMN("size", VALUE_BYTES), KIND_COLUMNS, \
		COLUMN("pattern", VALUE_TEXT), COLUMN("type", VALUE_TEXT)

#define LINK_TABLE(name, sentence)                                                \
	TABLE(name, sentence, LINK_COLUMNS("address"), { "tainted", VALUE_TEXT }, \
	      { "field", VALUE_TEXT })

#define LINK_SENTENCE                      \
	"[ of type {type}]" KIND_SENTENCE( \
		" ") "[ with identity {identity} at offset {at offset}][ matching %{pattern}]"

/* NULL where none is known, or a class says more. */
static const char *find_type(const struct describer *describer, allocation_id id)
{
	const struct analysis *analysis = describer->analysis;
	struct typed typed;

	return analysis_cost(analysis, STAGE_TYPES).built &&
			       analysis_signature(analysis, id) == 0 &&
			       analysis_type_of(analysis, id, &typed)
		       ? typing_name(analysis_typing(analysis), typed)
		       : NULL;
}

/* The columns of LINK_COLUMNS. */
static void report_link(struct describer *describer, allocation_id id)
{
	const struct allocation_index *index = analysis_index(describer->analysis);
	pattern_number pattern = patterns_of(analysis_owners(describer->analysis), id);
	const char *type = find_type(describer, id);

	report_add(describer->report, allocation_start(index, id), allocation_size(index, id));
	if (type)
		report_add(describer->report, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT,
			   ABSENT, ABSENT);
	else
		rows_kind(describer->report, describer->analysis, &describer->selection->query, id);
	report_add(describer->report, pattern == NO_PATTERN ? NULL : pattern_name(pattern), type);
}

static void write_field(struct describer *describer, const struct table *table, allocation_id id,
			const char *taint, const char *field)
{
	report_begin_table(describer->report, table);
	report_link(describer, id);
	report_row(describer->report, taint, field);
	report_end_table(describer->report);
}

static void write_allocation(struct describer *describer, const struct table *table,
			     allocation_id id, const char *taint)
{
	write_field(describer, table, id, taint, NULL);
}

/* The field of the allocation that refers to the next, where types are known. */
static char *find_field(const struct describer *describer, allocation_id from, allocation_id to)
{
	struct analysis *analysis = describer->analysis;

	return analysis_cost(analysis, STAGE_TYPES).built ? type_field(analysis, from, to) : NULL;
}

/* Say how many links are not shown. */
static void write_gap(struct report *report, size_t count)
{
	static const struct table table =
		TABLE("gap", "... {count} more {count|allocation|allocations} in between",
		      { "count", VALUE_COUNT });

	report_single(report, &table, count);
}

/* Have the patterns and owners of those that are shown. */
static struct error *need_owners(struct describer *describer, const allocation_id *ids,
				 size_t count)
{
	struct analysis *analysis = describer->analysis;
	const struct patterns *before = analysis_owners(analysis);

	TRY(analysis_need_owners_of(analysis, ids, count));
	/* They may be known of all from now on. */
	if (describer->taints && analysis_owners(analysis) != before)
		taint_memory_destroy(take(describer->taints));
	return describer->taints
		       ? NULL
		       : taint_memory_create(analysis_owners(analysis), analysis_account(analysis),
					     &describer->taints);
}

/*
 * Find the owners along a path; of a long path, at both ends, including the link in front of the
 * second.
 */
static struct error *need_owners_of_path(struct describer *describer, const struct path *path)
{
	enum { END = SHOWN_LINKS + 1, LONG = 64 };

	if (path->count <= LONG)
		return need_owners(describer, path->ids, path->count);
	TRY(need_owners(describer, path->ids, END));
	return need_owners(describer, path->ids + path->count - END, END);
}

/* A step of a way: an allocation, or the links of a chain up to that, each by the same member. */
struct step {
	size_t first, end; /* places in the path */
};

/* The type as 'summarize' has it: "std::map<int, Rule *> node". NULL: none is known. To be freed.
 */
static char *step_type(const struct describer *describer, allocation_id id)
{
	const struct analysis *analysis = describer->analysis;
	kind_key key;

	if (!find_type(describer, id))
		return NULL;
	key = kind_typed(analysis, analysis_owners(analysis), analysis_typing(analysis), id);
	return kind_tag(key) == BY_TYPE ? kind_text(analysis, key) : NULL;
}

/* For people: "  3. .next -> struct node 0x..., 104 bytes (x7)". */
static void write_step(struct describer *describer, size_t number, allocation_id id,
		       const char *taint, const char *field, size_t links)
{
	static const struct table table = TABLE(
		"link",
		"  {step}. [{field} ]->[ {type}][ {name}][ signature {signature}][ {identity} (+0x{at offset})][ %{pattern}] 0x{address}, {size,} bytes[ (x{links,})][, by a tainted reference ({tainted})]",
		{ "step", VALUE_NUMBER }, LINK_COLUMNS("address"), { "tainted", VALUE_TEXT },
		{ "field", VALUE_TEXT }, { "links", VALUE_COUNT });
	const struct analysis *analysis = describer->analysis;
	struct report *report = describer->report;
	uint64_t signature = analysis_signature(analysis, id);
	bool has_name =
		signature && rows_signature_name(analysis, &describer->selection->query, signature);
	_cleanup_(free) char *type = step_type(describer, id);
	_cleanup_(free) char *own_field = field ? rows_own_words(field, true) : NULL;

	report_begin_table(report, &table);
	report_add(report, number);
	report_link(describer, id);
	report_add(report, taint, own_field && own_field[0] ? own_field : NULL,
		   VALUE_IF(links > 1, links));
	if (type) {
		report_set(report, "type", type);
		report_set(report, "pattern", ABSENT);
	}
	report_set(report, "signature", VALUE_IF(!has_name, value_nonzero(signature)));
	report_end_row(report);
	report_end_table(report);
}

/* Find the steps behind the first allocation of the path; returns how many there are. */
static size_t find_steps(const struct describer *describer, const struct path *path,
			 struct step *steps)
{
	const struct analysis *analysis = describer->analysis;
	const struct typing *typing =
		analysis_cost(analysis, STAGE_TYPES).built ? analysis_typing(analysis) : NULL;
	size_t count = 0;

	for (size_t i = 1; i < path->count; i = steps[count++].end) {
		bool is_before_gap = path->gap && i < PATH_END;
		size_t end = is_before_gap ? PATH_END : path->count;

		steps[count] = (struct step){ i, i + 1 };
		/* The referrer of the first link behind a gap is unknown. */
		if (!path->gap || i != PATH_END)
			steps[count].end =
				i + links_in_step(analysis, analysis_owners(analysis), typing,
						  path->ids + i - 1, end - i + 1);
	}
	return count;
}

/* How many allocations are in steps of the path, and in its gap, if it is among them. */
static size_t count_left_out(const struct path *path, const struct step *steps, size_t begin,
			     size_t end)
{
	size_t first = steps[begin].first, last = steps[end - 1].end;

	return last - first + (first <= PATH_END && PATH_END < last ? path->gap : 0);
}

/* For people: the path's steps behind the first allocation, which is the step of that number. */
static struct error *write_steps(struct describer *describer, const struct path *path,
				 size_t number)
{
	_cleanup_(free) struct step *steps = calloc(path->count, sizeof(*steps));
	size_t count, begin, end;

	TRY_MEMORY(steps);
	count = find_steps(describer, path, steps);
	begin = count > 2 * SHOWN_LINKS ? SHOWN_LINKS : count;
	end = count > 2 * SHOWN_LINKS ? count - SHOWN_LINKS : count;
	if (path->gap && begin == end)
		for (begin = 0; steps[begin].first < PATH_END; begin++)
			end = begin + 2;
	for (size_t i = 0; i < count; i++) {
		const allocation_id *ids = path->ids;
		_cleanup_(free) char *field = NULL;

		if (i == begin && begin < end) {
			write_gap(describer->report, count_left_out(path, steps, begin, end));
			i = end - 1;
			continue;
		}
		field = find_field(describer, ids[steps[i].first - 1], ids[steps[i].first]);
		write_step(describer, number + i + 1, ids[steps[i].end - 1],
			   taint_memory_find(describer->taints, ids[steps[i].first - 1],
					     ids[steps[i].first]),
			   field, steps[i].end - steps[i].first);
	}
	return NULL;
}

/* The path's allocations behind the first. */
static void write_chain(struct describer *describer, const struct path *path)
{
	static const struct table table =
		LINK_TABLE("link", "which references 0x{address} of size 0x{size}" LINK_SENTENCE
				   "[ by {field}][ by a tainted reference ({tainted})]");
	size_t links = path->count + path->gap - 1;

	for (size_t i = 1; i < path->count; i++) {
		_cleanup_(free) char *field = NULL;

		if (links > 2 * SHOWN_LINKS && i == SHOWN_LINKS + 1) {
			write_gap(describer->report, links - 2 * SHOWN_LINKS);
			i = path->count - SHOWN_LINKS;
		}
		field = find_field(describer, path->ids[i - 1], path->ids[i]);
		write_field(describer, &table, path->ids[i],
			    taint_memory_find(describer->taints, path->ids[i - 1], path->ids[i]),
			    field);
	}
}

/* Write the links in the form that the report wants. */
static struct error *write_links(struct describer *describer, const struct path *path,
				 size_t number)
{
	if (report_is_brief(describer->report))
		return write_steps(describer, path, number);
	write_chain(describer, path);
	return NULL;
}

static void write_anchors(struct describer *describer, const struct found_anchors *anchors)
{
	for (size_t i = 0; i < anchors->count && i < KEPT_ANCHORS; i++)
		anchor_write(describer->analysis, &anchors->list[i], describer->report);
	rows_left_out(describer->report, "such references", anchors->count, KEPT_ANCHORS);
}

static void write_anchor_head(struct describer *describer, enum root_kind kind,
			      const struct found_anchors *anchors, const struct path *path)
{
	static const struct table table = TABLE(
		"anchored",
		"The allocation at 0x{address} appears to be {how} {kind} anchored[\nvia anchor point 0x{point} of size 0x{size}]" LINK_SENTENCE,
		{ "address", VALUE_ADDRESS }, { "how", VALUE_TEXT }, { "kind", VALUE_TEXT },
		LINK_COLUMNS("point"));
	const char *word = kind == ROOT_STATIC ? "statically" : root_kind_name(kind);
	const struct allocation_index *index = analysis_index(describer->analysis);
	struct report *report = describer->report;
	const char *packed = anchors->count > 0 ? anchors->list[0].packed : NULL;
	bool direct = path->count == 1;

	report_begin_table(report, &table);
	report_add(report, allocation_start(index, path->ids[path->count - 1]),
		   direct ? "directly" : "indirectly", packed ? packed : word);
	if (direct)
		report_add(report, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT,
			   ABSENT, ABSENT, ABSENT, ABSENT);
	else
		report_link(describer, path->ids[0]);
	report_end_row(report);
	report_end_table(report);
}

/* The nearest anchor of a kind, and the chain from it, if there is any. */
static struct error *explain_anchor(struct describer *describer, enum root_kind kind,
				    allocation_id id)
{
	_cleanup_(path_deinit) struct path path = { 0 };
	struct found_anchors anchors;

	TRY(chains_find(describer->chains, (enum chain_source)kind, id, &path));
	if (!path.count)
		return NULL;
	TRY(need_owners_of_path(describer, &path));
	TRY(chains_find_anchors(describer->chains, path.ids[0], kind, &anchors));
	write_anchor_head(describer, kind, &anchors, &path);
	write_anchors(describer, &anchors);
	write_chain(describer, &path);
	rows_text(describer->report, "");
	return NULL;
}

/* A way from roots of a kind to an allocation. */
struct way {
	struct path path; /* empty: there is none */
	struct found_anchors anchors;
	unsigned int rank; /* the least of its anchors; see anchor_rank() */
};

struct ways {
	struct way list[ROOT_KINDS];
	uint64_t count; /* with each anchor */
};

static void ways_deinit(struct ways *ways)
{
	for (size_t i = 0; i < ROOT_KINDS; i++)
		path_deinit(&ways->list[i].path);
}
DEFINE_DEINIT(ways_deinit, struct ways)

/* Have the anchor that lasts longest come first. */
static void rank_anchors(const struct analysis *analysis, struct way *way)
{
	struct anchor *list = way->anchors.list;

	way->rank = UINT_MAX;
	for (size_t i = 0; i < way->anchors.count && i < KEPT_ANCHORS; i++) {
		unsigned int rank = anchor_rank(analysis, &list[i]);
		struct anchor first = list[0];

		if (rank >= way->rank)
			continue;
		way->rank = rank;
		list[0] = list[i];
		list[i] = first;
	}
}

static struct error *find_ways(struct describer *describer, allocation_id id, struct ways *ret)
{
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++) {
		struct way *way = &ret->list[kind];

		TRY(chains_find(describer->chains, (enum chain_source)kind, id, &way->path));
		if (!way->path.count)
			continue;
		TRY(chains_find_anchors(describer->chains, way->path.ids[0], kind, &way->anchors));
		rank_anchors(describer->analysis, way);
		ret->count += way->anchors.count;
	}
	return NULL;
}

/* The best of those that were not written yet; or NULL. */
static struct way *best_way(struct ways *ways)
{
	struct way *best = NULL;

	list_for_each(way, ways->list, ROOT_KINDS) {
		if (way->path.count && (!best || way->rank < best->rank))
			best = way;
	}
	return best;
}

/* Write a numbered chain, one line for each step. */
static struct error *write_way(struct describer *describer, const struct way *way, bool all)
{
	const struct found_anchors *anchors = &way->anchors;

	TRY(need_owners_of_path(describer, &way->path));
	for (size_t i = 0; i < anchors->count && i < KEPT_ANCHORS && (all || i == 0); i++)
		anchor_write_step(describer->analysis, &anchors->list[i], i == 0 ? "1." : "or",
				  describer->report);
	if (all)
		rows_left_out(describer->report, "such references", anchors->count, KEPT_ANCHORS);
	write_step(describer, 2, way->path.ids[0], NULL, NULL, 1);
	return write_steps(describer, &way->path, 2);
}

static void write_named_step(struct describer *describer, size_t number, allocation_id id)
{
	static const struct table table = TABLE(
		"named step", "  {step}. [{arrow} ]{path}:[ {class}] 0x{address}, {size,} bytes",
		{ "step", VALUE_NUMBER }, { "arrow", VALUE_TEXT }, { "path", VALUE_TEXT },
		{ "class", VALUE_TEXT }, { "address", VALUE_ADDRESS }, { "size", VALUE_BYTES });
	const struct analysis *analysis = describer->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t signature = analysis_signature(analysis, id);
	char path[ROWS_PATH_SIZE];

	report_single(
		describer->report, &table, number, number > 1 ? "->" : NULL,
		rows_path(describer->report, analysis, id, path),
		signature ? rows_signature_name(analysis, &describer->selection->query, signature)
			  : NULL,
		allocation_start(index, id), allocation_size(index, id));
}

/* In the program's words, from what has a name on; false: it has none for the object, or its part.
 */
static bool write_named_way(struct describer *describer, allocation_id object, allocation_id id)
{
	const struct object_paths *paths = analysis_object_paths(describer->analysis);
	allocation_id ids[SHOWN_LINKS];
	size_t count =
		object == NO_ALLOCATION ? 0 : object_paths_steps(paths, object, COUNT_OF(ids), ids);

	for (size_t i = 0; i < count; i++)
		write_named_step(describer, i + 1, ids[i]);
	if (count && object != id)
		write_step(describer, count + 1, id, NULL, NULL, 1);
	return count > 0;
}

/*
 * For people: the way that lasts longest, alone, and how many others there are. One in the
 * program's words to the object comes before those through its interpreter.
 */
static struct error *write_best_ways(struct describer *describer, allocation_id object,
				     allocation_id id)
{
	static const struct table others =
		TABLE("other ways", "Also held in {count} other {count|way|ways} (--all)",
		      { "count", VALUE_COUNT });
	_cleanup_(ways_deinit) struct ways ways = { 0 };
	bool all = describer->selection->all;
	struct way *way;

	TRY(find_ways(describer, id, &ways));
	while ((way = best_way(&ways))) {
		if (all || !write_named_way(describer, object, id))
			TRY(write_way(describer, way, all));
		path_deinit(&way->path);
		if (!all && ways.count > 1)
			report_single(describer->report, &others, ways.count - 1);
		rows_text(describer->report, "");
		if (!all)
			break;
	}
	return NULL;
}

/* The head, and the chain from a source to the allocation, its first link by a table. */
static struct error *write_chain_from(struct describer *describer, enum chain_source source,
				      const struct table *head, const struct table *first,
				      allocation_id id, struct path *ret)
{
	TRY(chains_find(describer->chains, source, id, ret));
	TRY(need_owners_of_path(describer, ret));
	if (head)
		report_single(describer->report, head,
			      allocation_start(analysis_index(describer->analysis), id));
	if (ret->count) {
		write_allocation(describer, first, ret->ids[0], NULL);
		TRY(write_links(describer, ret, 1));
	}
	return NULL;
}

static struct error *explain_dependent(struct describer *describer, allocation_id id)
{
	static const struct table head = TABLE(
		"leaked",
		"The allocation at 0x{address} is leaked: only leaked allocations refer to it",
		{ "address", VALUE_ADDRESS });
	static const struct table root_table = LINK_TABLE(
		"leak root", "The nearest leak root is 0x{address} of size 0x{size}" LINK_SENTENCE);
	_cleanup_(path_deinit) struct path path = { 0 };

	TRY(write_chain_from(describer, CHAIN_LEAK_ROOT, &head, &root_table, id, &path));
	TRY(describer_need_disguised(describer, path.ids, path.count));
	for (size_t i = path.count; i-- > 0;)
		if (describe_likely(describer, path.ids[i]))
			break;
	return NULL;
}

static struct error *explain_leaked(struct describer *describer, allocation_id id)
{
	const struct leak_root *root =
		leak_root_find(analysis_leaks_to(describer->analysis, id), id);
	struct error *error = NULL;

	if (root) {
		leak_root_row(describer->report, describer->analysis, root);
		describe_likely(describer, id);
		error = freed_holder_row(describer->report, describer->analysis, id);
	} else {
		error = explain_dependent(describer, id);
	}
	rows_text(describer->report, "");
	return error;
}

/* A sentence of an allocation, which says its address. */
static void write_sentence(struct describer *describer, const char *format, allocation_id id)
{
	const struct table table = TABLE("explanation", format, { "address", VALUE_ADDRESS });
	const struct allocation_index *index = analysis_index(describer->analysis);

	report_single(describer->report, &table, allocation_start(index, id));
}

/* The used allocations that refer to it, by the table of referrers; how many there are. */
static struct error *write_referrers(struct describer *describer, const struct table *table,
				     allocation_id id, size_t *ret_count)
{
	const struct graph *incoming;
	struct error *error = analysis_incoming_of(describer->analysis, id, &incoming);
	struct edges referrers;

	if (error)
		return error;
	referrers = graph_outgoing(incoming, id);
	TRY(need_owners(describer, referrers.targets, MIN(referrers.count, SHOWN_REFERRERS)));
	for (size_t i = 0; i < referrers.count && i < SHOWN_REFERRERS; i++)
		write_allocation(describer, table, referrers.targets[i],
				 taint_memory_find(describer->taints, referrers.targets[i], id));
	rows_left_out(describer->report, "such allocations", referrers.count, SHOWN_REFERRERS);
	*ret_count = referrers.count;
	return NULL;
}

static struct error *explain_garbage(struct describer *describer, allocation_id id)
{
	static const struct table table = LINK_TABLE(
		"referrer", "The allocation at 0x{address} of size 0x{size}" LINK_SENTENCE
			    " references it[ by a tainted reference ({tainted})]");
	size_t count;

	write_sentence(
		describer,
		"The allocation at 0x{address} is garbage: it is not reachable from any root, so the collector will free it",
		id);
	TRY(write_referrers(describer, &table, id, &count));
	if (count == 0)
		rows_text(describer->report, "Nothing in use refers to it");
	rows_text(describer->report, "");
	return NULL;
}

static struct error *explain_held(struct describer *describer, allocation_id id)
{
	static const struct table head = TABLE(
		"explanation",
		"The allocation at 0x{address} is held by garbage: once the collector frees that, it is leaked,\n"
		"unless a finalizer frees it",
		{ "address", VALUE_ADDRESS });
	static const struct table table = LINK_TABLE(
		"garbage", "The nearest garbage is 0x{address} of size 0x{size}" LINK_SENTENCE);
	_cleanup_(path_deinit) struct path path = { 0 };

	TRY(write_chain_from(describer, CHAIN_GARBAGE, &head, &table, id, &path));
	rows_text(describer->report, "");
	return NULL;
}

/*
 * Explain why the collector may free an allocation in use, and through which block of malloc() the
 * program reaches it, if there is one. How it is used follows.
 */
static struct error *explain_risk(struct describer *describer, allocation_id id)
{
	static const struct table table = LINK_TABLE(
		"unseen",
		"It does not scan the allocation at 0x{address} of size 0x{size}" LINK_SENTENCE
		",");
	_cleanup_(path_deinit) struct path path = { 0 };

	analysis_doubt_risk(describer->analysis);
	write_sentence(
		describer,
		"The collector may free the allocation at 0x{address} while it is in use: nothing that it scans refers to it",
		id);
	TRY(write_chain_from(describer, CHAIN_UNSEEN, NULL, &table, id, &path));
	if (!path.count)
		rows_text(describer->report,
			  "Memory outside of the heaps does, but the collector does not scan that");
	rows_text(describer->report, "");
	return NULL;
}

/* Say where the allocator keeps the free allocation. */
static void write_free(struct describer *describer, allocation_id id)
{
	static const struct table table =
		TABLE("free", "It {how}[, and is {where}]: {who} may hand it out again",
		      { "how", VALUE_TEXT }, { "where", VALUE_TEXT }, { "who", VALUE_TEXT });
	const struct analysis *analysis = describer->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *managed = allocation_having(index, TRAIT_MANAGED);
	bool unswept = describer_state(describer, id) == STATE_UNSWEPT;
	uint64_t start = allocation_start(index, id);
	char where[160];

	report_single(describer->report, &table,
		      unswept ? "was not reachable at the last collection" : "was freed",
		      heaps_tell(analysis_heaps(analysis), start, where, sizeof(where)) ? where
											: NULL,
		      managed && bitmap_get(managed, id) ? "the collector" : "malloc");
}

/* References to free memory: what a use after free begins with. */
static struct error *explain_free(struct describer *describer, allocation_id id)
{
	static const struct table table = LINK_TABLE(
		"referrer", "The used allocation at 0x{address} of size 0x{size}" LINK_SENTENCE
			    " still references it[ by a tainted reference ({tainted})]");
	struct found_anchors anchors;
	struct error *error = chains_find_anchors(describer->chains, id, ROOT_KINDS, &anchors);
	size_t count;

	if (error)
		return error;
	write_free(describer, id);
	TRY(write_referrers(describer, &table, id, &count));
	write_anchors(describer, &anchors);
	rows_text(describer->report, "");
	return NULL;
}

/*
 * Explain how the program reaches the object, or the one that it is part of, in its language. That
 * object is *ret; NO_ALLOCATION: it is part of none.
 */
static struct error *explain_path(struct describer *describer, allocation_id id, allocation_id *ret)
{
	static const struct table table =
		TABLE("path", "The program reaches [{part} ]it as {path}\n", { "part", VALUE_TEXT },
		      { "path", VALUE_TEXT });
	struct analysis *analysis = describer->analysis;
	bool is_object = runtimes_space_of(analysis_runtimes(analysis), id);
	char buffer[ROWS_PATH_SIZE];
	const char *path;

	TRY(analysis_need(analysis, STAGE_OBJECT_PATHS));
	if (!is_object) {
		TRY(need_owners(describer, &id, 1));
		id = allocation_find(analysis_index(analysis),
				     patterns_owner(analysis_owners(analysis), id));
	}
	*ret = id;
	path = id == NO_ALLOCATION ? NULL : rows_path(describer->report, analysis, id, buffer);
	if (path)
		report_single(describer->report, &table, is_object ? NULL : "what owns", path);
	return NULL;
}

static struct error *explain_anchored(struct describer *describer, allocation_id id)
{
	allocation_id object;

	TRY(explain_path(describer, id, &object));
	if (report_is_brief(describer->report))
		return write_best_ways(describer, object, id);
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		TRY(explain_anchor(describer, kind, id));
	return NULL;
}

static struct error *explain_state(struct describer *describer, allocation_id id)
{
	struct error *error;

	switch (describer_state(describer, id)) {
	case STATE_AT_RISK:
		error = explain_risk(describer, id);
		return error ? error : explain_anchored(describer, id);
	case STATE_ANCHORED:
		return explain_anchored(describer, id);
	case STATE_GARBAGE:
		return explain_garbage(describer, id);
	case STATE_HELD:
		return explain_held(describer, id);
	case STATE_LEAKED:
	case STATE_UNREFERENCED:
		return explain_leaked(describer, id);
	default:
		return explain_free(describer, id);
	}
}

struct error *explain_allocation(struct describer *describer, allocation_id id)
{
	struct error *error = NULL;

	if (!describer->chains)
		error = chains_create(describer->analysis, &describer->chains);
	if (!error)
		error = explain_state(describer, id);
	if (!error)
		return take(describer->error);
	error_destroy(take(describer->error));
	return error;
}
