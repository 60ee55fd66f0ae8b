#include "analyzer/gate/callers.h"

#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/leak_stacks.h"
#include "analyzer/kinds/allocated_by.h"

#include <inttypes.h>
#include <string.h>

struct finding_callers {
	struct callers *callers;
	const struct noting *noting;
	void *owner;
};

/* The caller's place in the list; it is added if it is new. */
static struct error *find_caller(struct callers *callers, const struct noting *noting, void *owner,
				 uint64_t calls, uint32_t *ret)
{
	struct caller *one = table_obtain(
		&callers->list, calls, item, item->calls == calls && item->owner == owner,
		(struct caller){ .noting = noting, .owner = owner, .calls = calls });

	TRY_MEMORY(one);
	*ret = (uint32_t)(one - callers->list.items);
	return NULL;
}

static struct error *add_note(void *data, const struct noted_blocks *note)
{
	struct finding_callers *finding = data;
	struct callers *callers = finding->callers;
	uint32_t number;

	TRY(find_caller(callers, finding->noting, finding->owner, note->calls, &number));
	callers->list.items[number].count += note->count;
	callers->list.items[number].bytes += note->bytes;
	if (!note->start || finding->noting->is_sampled ||
	    address_map_find(&callers->blocks, note->start) != NOT_IN_MAP)
		return NULL;
	return address_map_add(&callers->blocks, note->start, number);
}

static struct error *visit_notes(struct callers *callers, const struct noting *noting, void *owner)
{
	struct finding_callers finding = { callers, noting, owner };

	return noting ? noting->visit(owner, add_note, &finding) : NULL;
}

static struct error *find_notes(struct callers *callers)
{
	const struct heaps *heaps = analysis_heaps(callers->analysis);
	const struct runtimes *runtimes;
	void *owner;

	TRY(heaps_wake(heaps));
	for (size_t i = 0; i < heaps_count(heaps); i++) {
		const struct heap *heap = heaps_heap(heaps, i);

		TRY(visit_notes(callers, heap->allocator->noting, (void *)heap));
	}
	TRY(analysis_need(callers->analysis, STAGE_OBJECTS));
	runtimes = analysis_runtimes(callers->analysis);
	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		const struct noting *noting = runtimes_noting(runtimes, i, &owner);

		TRY(visit_notes(callers, noting, owner));
	}
	return NULL;
}

struct error *callers_find(struct analysis *analysis, struct callers *ret)
{
	struct memory_account *account = analysis_account(analysis);

	arrays_use(account, &ret->list, &ret->list.slots, &ret->blocks, &ret->blocks.slots);
	ret->analysis = analysis;
	TRY(analysis_need(analysis, STAGE_HEAP));
	if (!recorded_is_there(analysis))
		return find_notes(ret);
	return recorded_open(analysis, &ret->recorded);
}

void callers_deinit(struct callers *callers)
{
	tables_release(&callers->list, &callers->blocks);
}

bool callers_know_blocks(const struct callers *callers)
{
	return callers->recorded.analysis || callers->blocks.count > 0;
}

uint64_t callers_of(struct callers *callers, uint64_t address)
{
	uint32_t number;

	if (callers->recorded.analysis)
		return recorded_stack(&callers->recorded, address);
	number = address_map_find(&callers->blocks, address);
	return number == NOT_IN_MAP ? 0 : (uint64_t)number + 1;
}

/* Calls in a language, as frames. */
struct places {
	struct debug *debug;
	struct backtrace calls;
	struct error *error;
};

static void add_place(void *data, const struct noted_place *place)
{
	struct places *places = data;
	struct frame frame = { .is_script = true };

	if (places->error)
		return;
	frame.source =
		debug_keep(places->debug,
			   place->line ? format_text("%s:%" PRIu64, place->path ? place->path : "?",
						     place->line)
				       : strdup(place->path ? place->path : "?"));
	if (place->function)
		frame.function = debug_keep(places->debug, strdup(place->function));
	if (frame.source && (frame.function || !place->function))
		places->error = backtrace_append(&places->calls, &frame, 1);
	else
		places->error = &error_no_memory;
}

static struct error *visit_places(const struct caller *caller, struct debug *debug,
				  struct backtrace *ret)
{
	struct places places = { .debug = debug };

	caller->noting->visit_places(caller->owner, caller->calls, add_place, &places);
	if (places.error)
		free(places.calls.frames);
	else
		*ret = places.calls;
	return places.error;
}

/* Leave out calls within the allocator's library, and those before main(). */
static void shorten(const struct program *program, struct backtrace *calls)
{
	const struct module *library = calls->count ? calls->frames[0].module : NULL;
	size_t inner = 0;

	calls->count = recorded_count_own(calls);
	while (library && library != program->modules && inner + 1 < calls->count &&
	       calls->frames[inner].module == library)
		inner++;
	calls->count -= inner;
	memmove(calls->frames, calls->frames + inner, calls->count * sizeof(*calls->frames));
}

struct error *caller_calls(const struct callers *callers, const struct caller *caller,
			   struct backtrace *ret)
{
	enum { MOST_CALLS = 512 };
	uint64_t calls[MOST_CALLS];
	struct debug *debug;
	size_t count;

	if (!caller->noting)
		return recorded_calls(&callers->recorded, caller->calls, ret);
	TRY(analysis_need(callers->analysis, STAGE_DEBUG));
	debug = analysis_debug(callers->analysis);
	if (caller->noting->visit_places)
		return visit_places(caller, debug, ret);
	count = caller->noting->read_calls(caller->owner, caller->calls, calls, MOST_CALLS);
	TRY(debug_calls_at(debug, calls, count, ret));
	if (!caller->noting->is_outside)
		shorten(analysis_program(callers->analysis), ret);
	else
		ret->count = recorded_count_own(ret);
	return NULL;
}

struct error *callers_calls(const struct callers *callers, uint64_t number, struct backtrace *ret)
{
	if (callers->recorded.analysis)
		return recorded_calls(&callers->recorded, number, ret);
	return caller_calls(callers, &callers->list.items[number - 1], ret);
}

static struct error *count_recorded(struct callers *callers)
{
	const struct allocation_index *index = analysis_index(callers->analysis);
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint64_t stack = recorded_stack(&callers->recorded, range.start);
		uint32_t number;

		if (stack == 0)
			continue;
		TRY(find_caller(callers, NULL, NULL, stack, &number));
		callers->list.items[number].count++;
		callers->list.items[number].bytes += range.end - range.start;
	}
	return NULL;
}

DEFINE_COMPARE(compare_callers, struct caller, DESCENDING(bytes), DESCENDING(count),
	       ASCENDING(calls))

struct error *callers_rank(struct callers *callers)
{
	if (callers->recorded.analysis)
		TRY(count_recorded(callers));
	SORT(callers->list.items, callers->list.count, compare_callers);
	table_release(&callers->blocks);
	return NULL;
}

char *callers_name(const struct callers *callers, const struct frame *frame)
{
	const char *place;

	if (frame->function || frame->is_script)
		return call_text(frame);
	place = debug_name(analysis_debug(callers->analysis), frame->address);
	return strdup(place ? place : "unknown code");
}

const char *caller_source(const struct caller *caller)
{
	return caller->noting ? caller->noting->name : "recorder";
}
