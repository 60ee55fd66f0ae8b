#include "cli/views/description.h"

#include "analyzer/analysis/chains.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/reader.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/type_reason.h"
#include "analyzer/query/order.h"
#include "analyzer/query/place.h"
#include "analyzer/query/ranges.h"
#include "cli/views/anchor_row.h"
#include "cli/views/calls.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

/* Both NULL: the allocation has no pattern. */
struct pattern_text {
	const char *name; /* "LongString" */
	char *part;	  /* "the text of the std::string at 0x55d0c0ffee10, ..." */
	bool is_plain;	  /* a type says more */
};

/* Name the owner by its place: an allocation, stack or variable. */
static char *describe_owner_place(const struct analysis *analysis, uint64_t owner)
{
	struct place place = place_find(analysis, owner);
	struct debug *debug = analysis_debug(analysis);
	_cleanup_(free) char *own_name = NULL;
	const char *name = NULL;

	if (place.kind == PLACE_ALLOCATION)
		return place.start == owner ? strdup("")
					    : format_text(", at offset 0x%" PRIx64
							  " of the allocation at 0x%" PRIx64,
							  owner - place.start, place.start);
	if (place.kind == PLACE_MODULE)
		name = debug_name(debug, owner);
	if (place.kind == PLACE_STACK && place.stack->thread != NO_THREAD)
		name = debug_stack_place(debug, place.stack->thread, owner);
	if (!name)
		return strdup("");
	own_name = rows_own_words(name, false);
	return own_name ? format_text(", which is %s", own_name) : NULL;
}

static char *describe_extent(const struct pattern_facts *facts)
{
	char length[NUMBER_SIZE], capacity[NUMBER_SIZE];
	/* Drop the plural s for one unit: all units end in an s. */
	int unit_length = facts->unit ? (int)strlen(facts->unit) : 0;

	if (facts->length == 1)
		unit_length--;
	if (!facts->unit)
		return format_text("%s%s", facts->text[0] ? ": " : "", facts->text);
	grouped(facts->length, length);
	grouped(facts->capacity, capacity);
	if (facts->lacks_length)
		return format_text(": capacity %s %s", capacity, facts->unit);
	if (facts->has_capacity)
		return format_text(": length %s, capacity %s %s", length, capacity, facts->unit);
	return format_text(", which has %s %.*s", length, unit_length, facts->unit);
}

static struct error *describe_part(const struct analysis *analysis,
				   const struct pattern_facts *facts, char **ret)
{
	_cleanup_(free) char *place = NULL, *extent = NULL;

	if (facts->owner == 0) {
		*ret = strdup(facts->role);
	} else {
		place = describe_owner_place(analysis, facts->owner);
		extent = describe_extent(facts);
		TRY_MEMORY(place && extent);
		*ret = format_text("%s at 0x%" PRIx64 "%s%s", facts->role, facts->owner, place,
				   extent);
	}
	return *ret ? NULL : &error_no_memory;
}

/* "held by the Session at 0x7f..., as are 40 of 41 that members like this one hold", or NULL. */
static char *describe_holder(const struct analysis *analysis, allocation_id id)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	struct object_part part;
	_cleanup_(free) char *name = NULL;

	if (!runtimes_part_of(runtimes, id, &part))
		return NULL;
	name = kind_text(analysis, kind_of(analysis, analysis_owners(analysis), part.holder));
	return format_text("held by the %s at 0x%" PRIx64 ", as are %" PRIu64 " of the %" PRIu64
			   " that members like this one hold",
			   name ? name : "allocation", allocation_start(index, part.holder),
			   part.count, part.of);
}

/* Builds what is needed. */
static struct error *pattern_text_init(struct pattern_text *text, struct analysis *analysis,
				       allocation_id id)
{
	struct error *error = analysis_need_owners_of(analysis, &id, 1);
	const struct patterns *patterns;
	struct pattern_facts facts;
	struct reader reader;

	*text = (struct pattern_text){ NULL };
	if (error)
		return error;
	patterns = analysis_owners(analysis);
	patterns_init_reader(patterns, &reader);
	if (!patterns_tell(patterns, &reader, id, &facts)) {
		text->part = describe_holder(analysis, id);
		return NULL;
	}
	text->name = pattern_name(patterns_of(patterns, id));
	text->is_plain = pattern_is_plain(patterns_of(patterns, id));
	return describe_part(analysis, &facts, &text->part);
}

static void pattern_text_deinit(struct pattern_text *text)
{
	free(text->part);
	*text = (struct pattern_text){ NULL };
}
DEFINE_DEINIT(pattern_text_deinit, struct pattern_text)

/*
 * Its type, if the user stated it, or debug information gives it and nothing else is known; of an
 * address also who holds it, if its type is unknown. Builds what is needed. No variable leads to
 * what leaked, which may only look like a type.
 */
static void note_type(struct describer *describer, allocation_id id,
		      const struct pattern_text *pattern, struct type_reason *ret)
{
	struct analysis *analysis = describer->analysis;
	bool is_leaked = bitmap_get(analysis_leaked(analysis), id);
	bool is_stated =
		analysis_typing(analysis) && typing_is_stated(analysis_typing(analysis), id);

	if (describer->error ||
	    (!is_stated &&
	     ((pattern->name && !pattern->is_plain) || analysis_signature(analysis, id) ||
	      (!is_leaked && !bitmap_get(analysis_anchored(analysis), id)))))
		return;
	describer->error = analysis_need(analysis, is_leaked ? STAGE_LEAKED_TYPES : STAGE_TYPES);
	if (describer->error)
		return;
	if (type_reason_find(analysis, id, ret) &&
	    (ret->type || describer->selection->is_address)) {
		if (report_is_brief(describer->report) && ret->path) {
			char *path = rows_own_words(ret->path, false);

			free(ret->path);
			ret->path = path;
		}
		return;
	}
	type_reason_deinit(ret);
	*ret = (struct type_reason){ NULL };
}

/*
 * Only for leaked allocations or those asked for by address, because reading all code takes time.
 */
static void note_makers(struct describer *describer, allocation_id id,
			const struct pattern_text *pattern, char **ret)
{
	bool is_leaked = bitmap_get(analysis_leaked(describer->analysis), id);

	if (!describer->error && !pattern->name && (is_leaked || describer->selection->is_address))
		describer->error = allocated_by_find(describer->analysis, id, ret);
}

static void report_type(struct report *report, const struct type_reason *reason,
			const char *allocated_by)
{
	report_set(report, "type", reason->type);
	report_set(report, "values", VALUE_IF(reason->values, (uint64_t)reason->values));
	report_set(report, "sure", reason->sure);
	report_set(report, reason->type ? "by" : "held by", (const char *)reason->path);
	report_set(report, "allocated by", allocated_by);
}

/* All leaked allocations that no other leaked one refers to. */
static void find_unreferenced(struct describer *describer)
{
	struct analysis *analysis = describer->analysis;
	struct bitmap *unreferenced = &describer->unreferenced;
	struct error *error = bitmap_init(unreferenced, allocation_count(analysis_index(analysis)),
					  analysis_account(analysis));

	if (!error)
		unreferenced_find(analysis, unreferenced);
	if (error && !describer->error)
		describer->error = take(error);
	error_destroy(error);
}

/* Leak roots tell, if they are known. */
static bool is_unreferenced(struct describer *describer, allocation_id id)
{
	const struct analysis *analysis = describer->analysis;
	const struct leak_root *root;

	if (!bitmap_get(analysis_leaked(analysis), id))
		return false;
	if (analysis_leaks_to(analysis, id)) {
		root = leak_root_find(analysis_leaks_to(analysis, id), id);
		return root && root->members == 1;
	}
	if (!describer->unreferenced.words)
		find_unreferenced(describer);
	return describer->unreferenced.words && bitmap_get(&describer->unreferenced, id);
}

struct error *describer_init(struct describer *describer, struct analysis *analysis,
			     const struct selection *selection, struct report *report)
{
	TRY(analysis_need(analysis, STAGE_COLLECTOR));
	TRY(analysis_need(analysis, STAGE_CLASSES));
	*describer = (struct describer){ .analysis = analysis,
					 .selection = selection,
					 .report = report };
	return annotation_rows_init(&describer->annotating, analysis, selection);
}

void describer_deinit(struct describer *describer)
{
	bitmap_deinit(&describer->unreferenced);
	chains_destroy(describer->chains);
	if (describer->taints)
		taint_memory_destroy(describer->taints);
	annotating_deinit(&describer->annotating);
	error_destroy(describer->error);
}

enum live_state describer_state(struct describer *describer, allocation_id id)
{
	enum live_state state = liveness_of(describer->analysis, id);

	return state == STATE_LEAKED && is_unreferenced(describer, id) ? STATE_UNREFERENCED : state;
}

/* The pattern's name and what the allocation is part of, if it has one. */
static void note_pattern(struct describer *describer, allocation_id id, struct pattern_text *ret)
{
	struct error *error = pattern_text_init(ret, describer->analysis, id);

	if (!error)
		return;
	error_destroy(describer->error);
	describer->error = error;
}

static void write_annotations(struct describer *describer, allocation_id id)
{
	if (!describer->annotating.rules || describer->error)
		return;
	describer->error = annotation_rows_write(&describer->annotating, id, describer->report);
}

/* Only one of the paths is there. */
#define TYPE_COLUMNS                                                                           \
	COLUMN("type", VALUE_TEXT), COLUMN("values", VALUE_COUNT), COLUMN("sure", VALUE_TEXT), \
		COLUMN("by", VALUE_TEXT), COLUMN("held by", VALUE_TEXT),                       \
		COLUMN("allocated by", VALUE_TEXT)

#define TYPE_SENTENCE \
	"[\nIt is of type {type}[, of which {values} are known] ({sure}[: by {by}]).][\nIt is held by {held by}.][\nIt was allocated by {allocated by}.]"

#define DESCRIBED_TABLE(name, sentence)                                      \
	TABLE(name, sentence, ALLOCATION_COLUMNS, { "pattern", VALUE_TEXT }, \
	      { "part", VALUE_TEXT }, TYPE_COLUMNS, { "kept", VALUE_TEXT },  \
	      { "contents", VALUE_MEMORY })

#define DESCRIPTION                                      \
	ALLOCATION_SENTENCE                              \
	"[\nThis allocation matches pattern {pattern}.]" \
	"[\nIt is {part}.]" TYPE_SENTENCE "[\nIt is {kept}.][\n{contents}]"

static const struct table allocation_table = DESCRIBED_TABLE("allocation", DESCRIPTION "\n");

/* Used with annotations, which come in front of the empty line. */
static const struct table annotated_table = DESCRIBED_TABLE("allocation", DESCRIPTION);

/*
 * Say that somebody lost a reference to it, behind how an object of a runtime is kept; false:
 * nobody did.
 */
static bool tell_lost(struct describer *describer, allocation_id id, char *ret, size_t size)
{
	const struct lost_count *lost = NULL;
	bool is_object = runtimes_space_of(analysis_runtimes(describer->analysis), id) != NULL;
	size_t length;
	struct error *error = analysis_lost_count(describer->analysis, id, &lost);

	if (error)
		error_destroy(error);
	if (!lost)
		return false;
	if (!ret[0])
		snprintf(ret, size, "kept by a count of %" PRIu64 " references", lost->count);
	length = strlen(ret);
	snprintf(ret + length, size - length, ", of which %" PRIu32 " were found: %s %" PRIu64,
		 lost->found, is_object ? "C code lost" : "lost", lost->count - lost->found);
	return true;
}

void describe_allocation(struct describer *describer, allocation_id id)
{
	const struct allocation_index *index = analysis_index(describer->analysis);
	uint64_t start = allocation_start(index, id);
	uint64_t size = allocation_size(index, id);
	struct report *report = describer->report;
	_cleanup_(pattern_text_deinit) struct pattern_text text = { NULL };
	_cleanup_(type_reason_deinit) struct type_reason reason = { NULL };
	_cleanup_(free) char *allocated_by = NULL;
	struct memory_view view;
	char kept[160] = "";

	note_pattern(describer, id, &text);
	note_type(describer, id, &text, &reason);
	note_makers(describer, id, &text, &allocated_by);
	report_begin_table(report,
			   describer->annotating.rules ? &annotated_table : &allocation_table);
	rows_allocation(report, describer->analysis, &describer->selection->query, id,
			liveness_title(describer_state(describer, id)));
	report_add(report, text.name, text.part);
	report_type(report, &reason, allocated_by);
	runtimes_tell(analysis_runtimes(describer->analysis), id, kept, sizeof(kept));
	if (tell_lost(describer, id, kept, sizeof(kept)))
		report_set(report, "kept", kept);
	view = rows_view(describer->analysis, start, size, describer->selection);
	report_set(report, "contents", VALUE_IF(describer->selection->has_show_up_to, &view));
	report_end_row(report);
	report_end_table(report);
	write_annotations(describer, id);
}

static const char *mapping_phrase(const struct region *region)
{
	if (region->rights & RIGHT_EXECUTE)
		return region->mapping ? "executable memory of a mapped file"
				       : "executable anonymous memory";
	if (region->rights & RIGHT_WRITE)
		return region->mapping ? "writable memory of a mapped file"
				       : "writable anonymous memory";
	if (region->rights & RIGHT_READ)
		return region->mapping ? "read-only memory of a mapped file"
				       : "read-only anonymous memory";
	return "memory without any rights";
}

static const char *stack_phrase(enum stack_kind kind)
{
	static const char *const phrases[] = {
		[STACK_MAIN] = "the main thread's stack",
		[STACK_THREAD] = "a thread's stack",
		[STACK_FINISHED] = "the stack of a thread that has ended",
		[STACK_UNJOINED] = "the stack of a thread that has ended and was not joined",
		[STACK_VANISHED] = "the stack of a thread that vanished in a fork",
	};

	return phrases[kind];
}

static const char *place_phrase(struct describer *describer, const struct place *place)
{
	switch (place->kind) {
	case PLACE_ALLOCATION:
		return liveness_phrase(describer_state(describer, place->id));
	case PLACE_STACK:
		return stack_phrase(place->stack->kind);
	case PLACE_ARENA:
		return "heap memory";
	case PLACE_BOOKKEEPING:
		return "the allocator's bookkeeping";
	case PLACE_MODULE:
		return "a module";
	default:
		return fiber_find(analysis_fibers(describer->analysis), place->start)
			       ? "a fiber's stack"
			       : mapping_phrase(place->region);
	}
}

static const char *path_of(const struct place *place)
{
	if (place->kind == PLACE_MODULE)
		return place->module->path;
	return place->kind == PLACE_MAPPING && place->region->mapping ? place->region->mapping->path
								      : NULL;
}

/* Name the address: a thread-local variable, one of a call, or a symbol. */
static const char *name_address(const struct analysis *analysis, const struct place *place,
				uint64_t address)
{
	struct debug *debug = analysis_debug(analysis);
	const char *name = debug_thread_local(debug, address);
	const struct stack *stack = place->stack;
	struct symbol symbol;

	if (name)
		return name;
	if (place->kind == PLACE_STACK && stack->thread != NO_THREAD && address >= stack->live)
		return debug_stack_place(debug, stack->thread, address);
	if (place->kind == PLACE_MODULE && debug_symbol(debug, address, &symbol))
		return debug_name(debug, address);
	if (place->kind == PLACE_MAPPING)
		return fiber_place(analysis, address);
	return NULL;
}

/*
 * Describe what the allocator uses the address for, or knows of the allocation there. An address in
 * no allocation may be in the header of the one above.
 */
static bool tell_use(const struct analysis *analysis, const struct place *place, uint64_t address,
		     char *ret, size_t size)
{
	const struct allocation_index *index = analysis_index(analysis);
	allocation_id id;

	if (place->kind == PLACE_ALLOCATION)
		return allocation_state(index, place->id) != BLOCK_USED
			       ? heaps_tell(analysis_heaps(analysis), place->start, ret, size)
			       : heaps_tell_used(analysis_heaps(analysis), place->start, ret,
						 size) ||
					 runtimes_tell(analysis_runtimes(analysis), place->id, ret,
						       size) ||
					 analysis_tell_counts(analysis, place->id, ret, size);
	if (place->kind != PLACE_ARENA && place->kind != PLACE_BOOKKEEPING)
		return false;
	if (heaps_tell(analysis_heaps(analysis), address, ret, size))
		return true;
	id = heaps_find_header(analysis_heaps(analysis), address);
	if (id == NO_ALLOCATION)
		return false;
	snprintf(ret, size, "the header of the allocation at %#" PRIx64,
		 allocation_start(index, id));
	return true;
}

static void describe_nowhere(struct report *report, uint64_t address)
{
	static const struct table table = TABLE("address", "Address {address} is not mapped.\n",
						{ "address", VALUE_ADDRESS });

	report_single(report, &table, address);
}

#define ADDRESS_TABLE(name, sentence)                                                           \
	TABLE(name, sentence, { "address", VALUE_ADDRESS }, { "offset", VALUE_ADDRESS },        \
	      { "what", VALUE_TEXT }, { "start", VALUE_ADDRESS }, { "size", VALUE_BYTES },      \
	      CLASS_COLUMNS("class"), { "pattern", VALUE_TEXT }, { "part", VALUE_TEXT },        \
	      { "arena", VALUE_TEXT }, { "allocator", VALUE_TEXT }, { "thread", VALUE_NUMBER }, \
	      { "in use", VALUE_TEXT }, { "path", VALUE_TEXT }, { "name", VALUE_TEXT },         \
	      { "source", VALUE_TEXT }, { "known", VALUE_TEXT }, TYPE_COLUMNS,                  \
	      { "contents", VALUE_MEMORY })

#define ADDRESS_SENTENCE                                                                          \
	"Address {address} is at offset {offset} of\n"                                            \
	"{what} at {start} of size {size}" KIND_SENTENCE(                                         \
		"\n... ") "[\n... with identity {identity} at offset {at offset}]"                \
			  "[\n... in the {arena} arena of {allocator}, but not in an allocation]" \
			  "[\n... of thread {thread}]"                                            \
			  "[\n... {in use}]"                                                      \
			  "[\n... mapped from {path}]"                                            \
			  "[\n... which is {name}]"                                               \
			  "[\n... compiled from {source}]"                                        \
			  "[\n... {known}]"                                                       \
			  "[\nThis allocation matches pattern {pattern}.]"                        \
			  "[\nIt is {part}.]" TYPE_SENTENCE "[\n{contents}]"

static const struct table address_table = ADDRESS_TABLE("address", ADDRESS_SENTENCE "\n");

static const struct table annotated_address_table = ADDRESS_TABLE("address", ADDRESS_SENTENCE);

/* Say which block the nested heap that the address is in lies in. */
static void write_outer(struct report *report, const struct heaps *heaps, uint64_t address)
{
	static const struct table table = TABLE(
		"outer block",
		"It is in the block at {outer} of size {size} of {allocator}, which holds a heap of {nested}.\n",
		{ "outer", VALUE_ADDRESS }, { "size", VALUE_BYTES }, { "allocator", VALUE_TEXT },
		{ "nested", VALUE_TEXT });
	const struct outer_block *outer = heaps_find_outer_block(heaps, address);

	if (outer)
		report_single(report, &table, outer->start, outer->end - outer->start,
			      heaps_arena_allocator(heaps, outer->arena)->name,
			      heaps_arena_allocator(heaps, outer->inner_arena)->name);
}

/* Describe the address by the kind of its place. */
static void report_place(struct describer *describer, uint64_t address, const struct place *place)
{
	const struct analysis *analysis = describer->analysis;
	struct report *report = describer->report;
	const struct stack *stack = place->stack;

	if (place->kind == PLACE_ARENA) {
		report_set(report, "arena", place->arena.kind->name);
		report_set(report, "allocator", place->allocator->name);
	}
	if (stack && stack->thread != NO_THREAD)
		report_set(report, "thread", analysis_program(analysis)->threads[stack->thread].id);
	if (stack && (address < stack->live || address >= stack->live_end))
		report_set(report, "in use", "not in use");
	if (place->kind == PLACE_MODULE)
		report_set(report, "source", debug_source(analysis_debug(analysis), address));
	report_set(report, "path", path_of(place));
	if (!place->region || !place->region->bytes)
		report_set(report, "known", "whose contents at that address are not known");
}

void describe_address(struct describer *describer, uint64_t address, const struct place *place)
{
	struct report *report = describer->report;
	_cleanup_(pattern_text_deinit) struct pattern_text text = { NULL };
	_cleanup_(type_reason_deinit) struct type_reason reason = { NULL };
	_cleanup_(free) char *allocated_by = NULL;
	struct memory_view view;
	bool is_annotated = describer->annotating.rules && place->kind == PLACE_ALLOCATION;
	char use[160];

	if (place->kind == PLACE_NOWHERE) {
		describe_nowhere(report, address);
		return;
	}
	if (place->kind == PLACE_ALLOCATION) {
		note_pattern(describer, place->id, &text);
		note_type(describer, place->id, &text, &reason);
		note_makers(describer, place->id, &text, &allocated_by);
	}
	report_begin_table(report, is_annotated ? &annotated_address_table : &address_table);
	report_add(report, address, address - place->start, place_phrase(describer, place),
		   place->start, place->size);
	if (place->kind == PLACE_ALLOCATION) {
		rows_kind(report, describer->analysis, &describer->selection->query, place->id);
		report_add(report, text.name, text.part);
	}
	report_place(describer, address, place);
	report_type(report, &reason, allocated_by);
	if (tell_use(describer->analysis, place, address, use, sizeof(use))) {
		if (place->kind == PLACE_ALLOCATION)
			tell_lost(describer, place->id, use, sizeof(use));
		report_set(report, "name", use);
	} else
		report_set(report, "name", name_address(describer->analysis, place, address));
	if (describer->selection->has_show_up_to) {
		view = rows_view(describer->analysis, place->start, place->size,
				 describer->selection);
		report_set(report, "contents", &view);
	}
	report_end_row(report);
	report_end_table(report);
	write_outer(report, analysis_heaps(describer->analysis), address);
	if (is_annotated)
		write_annotations(describer, place->id);
}

struct error *describer_need_disguised(struct describer *describer, const allocation_id *ids,
				       size_t count)
{
	return describer->selection->is_address
		       ? analysis_need_disguised_of(describer->analysis, ids, count)
		       : analysis_need(describer->analysis, STAGE_DISGUISED);
}

bool describe_likely(struct describer *describer, allocation_id id)
{
	struct analysis *analysis = describer->analysis;
	const struct disguised *disguised;

	if (describer->error || !bitmap_get(analysis_leaked(analysis), id))
		return false;
	describer->error = describer_need_disguised(describer, &id, 1);
	if (describer->error)
		return false;
	disguised = likely_held_find(analysis, id);
	if (disguised)
		anchor_write_likely(analysis, disguised, describer->report);
	return disguised;
}

static void write_comment(void *data, const struct member_comment *comment)
{
	struct describer *describer = data;

	comment_row(describer->report, describer->analysis, comment);
}

static struct error *describe_allocations(struct describer *describer,
					  bool (*visit)(void *data, allocation_id id))
{
	const struct set_query *query = &describer->selection->query;
	_cleanup_(members_deinit) struct members members = { 0 };
	const struct member_visitor visitor = { visit, write_comment, describer };
	struct set_total total;
	struct error *error = query_select(describer->analysis, query, &members);

	describer->annotating.members = &members;
	if (!error)
		error = query_visit(describer->analysis, query, &members, &visitor);
	describer->annotating.members = NULL;
	if (error)
		return error;
	if (describer->error)
		return take(describer->error);
	total = allocations_total(analysis_index(describer->analysis), &members.set);
	rows_left_out(describer->report, "allocations", total.count, query->limit);
	rows_total(describer->report, "allocations", total);
	return NULL;
}

static void describe_range(struct describer *describer, struct range range)
{
	struct analysis *analysis = describer->analysis;
	enum range_calls calls = describer->selection->query.set->ranges->calls;
	struct place place;

	if (calls == RANGE_OF_THREAD) {
		thread_describe(analysis, (uint32_t)range.number, describer->report);
		return;
	}
	if (calls == RANGE_OF_FIBER) {
		fiber_describe(analysis, range.number, SHOWN_CALLS, describer->report);
		describer->error = fiber_write_frames(analysis, range.number, SHOWN_CALLS, false,
						      describer->report);
		calls_end(describer->report);
		return;
	}
	if (range.start == 0)
		return; /* an arena without a place of its own */
	place = place_find(analysis, range.start);
	describe_address(describer, range.start, &place);
}

static struct error *describe_ranges(struct describer *describer)
{
	const struct set_query *query = &describer->selection->query;
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error = query_collect(describer->analysis, query, &ranges);

	size_t count = ranges.count;

	if (query->limit && count > query->limit)
		count = query->limit;
	for (size_t i = 0; !error && i < count; i++) {
		describe_range(describer, ranges_at(&ranges, i));
		if (report_broken(describer->report))
			break;
		error = take(describer->error);
	}
	if (error)
		return error;
	rows_left_out(describer->report, rows_noun(query), ranges_found(&ranges), count);
	rows_total(describer->report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

struct error *describe_set(struct describer *describer, bool (*visit)(void *data, allocation_id id))
{
	if (describer->selection->query.set->ranges)
		return describe_ranges(describer);
	return describe_allocations(describer, visit);
}
