#include "cli/views/anchor_row.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/account/likely_held.h"
#include "analyzer/image/kernel_notes.h"
#include "analyzer/query/place.h"
#include "analyzer/query/ranges.h"
#include "cli/views/calls.h"
#include "cli/views/rows.h"

/* The name of an anchor; at most one of name, frame, path and allocation is set. */
struct anchor_name {
	const char *name;  /* in static or thread-local memory */
	const char *frame; /* on a stack */
	/* A mapping without names, or an allocation; and the offset in it */
	const char *path;
	uint64_t offset;
	char allocation[48];
};

/* A stack that the program made itself, and that a thread runs on. */
static const char *name_own_stack(const struct analysis *analysis, const struct region *region,
				  uint64_t address)
{
	const struct program *program = analysis_program(analysis);

	for (size_t i = 0; i < program->thread_count; i++) {
		uint64_t pointer = program->threads[i].stack_pointer;

		if (pointer - region->start < region->end - region->start)
			return debug_stack_place(analysis_debug(analysis), (uint32_t)i, address);
	}
	return NULL;
}

static struct anchor_name name_mapped(const struct analysis *analysis, uint64_t address)
{
	struct place place = place_find(analysis, address);
	struct anchor_name name = { .name = NULL };

	if (place.kind == PLACE_MODULE) {
		name.name = debug_name(analysis_debug(analysis), address);
	} else if (place.kind == PLACE_MAPPING) {
		name.frame = name_own_stack(analysis, place.region, address);
		if (name.frame)
			return name;
		name.path = runtimes_page_use(analysis_runtimes(analysis), analysis_image(analysis),
					      address);
		if (!name.path)
			name.path = place.region->mapping ? place.region->mapping->path
							  : "anonymous memory";
		name.offset = address - place.start;
	} else if (place.kind == PLACE_ALLOCATION) {
		snprintf(name.allocation, sizeof(name.allocation), "the allocation at 0x%" PRIx64,
			 place.start);
		name.offset = address - place.start;
	}
	return name;
}

static struct anchor_name name_anchor(const struct analysis *analysis, const struct anchor *anchor)
{
	struct debug *debug = analysis_debug(analysis);
	struct anchor_name name = { .name = NULL };

	if (anchor->address == 0)
		return name;
	name.name = debug_thread_local(debug, anchor->address);
	if (name.name)
		return name;
	if (anchor->kind == ROOT_STATIC || anchor->kind == ROOT_INTEGER)
		return name_mapped(analysis, anchor->address);
	if (anchor->thread != NO_THREAD)
		name.frame = debug_stack_place(debug, anchor->thread, anchor->address);
	else
		name.frame = fiber_place(analysis, anchor->address);
	return name;
}

static const struct table table = TABLE(
	"anchor",
	"{kind}[ 0x{address}][ {register}][ ({holder})][ in {name}][ in {path} at offset 0x{offset}][ ({frame})][ of thread {thread}] references 0x{target}",
	{ "kind", VALUE_TEXT }, { "address", VALUE_ADDRESS }, { "register", VALUE_TEXT },
	{ "holder", VALUE_TEXT }, { "name", VALUE_TEXT }, { "path", VALUE_TEXT },
	{ "offset", VALUE_ADDRESS }, { "frame", VALUE_TEXT }, { "thread", VALUE_NUMBER },
	{ "target", VALUE_ADDRESS });

static void write_thread(const struct analysis *analysis, const struct anchor *anchor,
			 const struct anchor_name *name, struct report *report)
{
	/* The names tell the thread as well. */
	report_thread(report, analysis_program(analysis),
		      name->name || name->frame ? NO_THREAD : anchor->thread);
}

/* Write the anchor's location: five columns. */
static void write_name(const struct analysis *analysis, const struct anchor *anchor,
		       const struct anchor_name *name, struct report *report)
{
	const char *path = name->allocation[0] ? name->allocation : name->path;

	report_add(report, name->name, path, VALUE_IF(path, name->offset), name->frame);
	write_thread(analysis, anchor, name, report);
}

/* The holder of the reference; the name of a register follows it. */
static const char *holder(const struct anchor *anchor, char *text, size_t size)
{
	static const char *const kinds[ROOT_KINDS] = {
		[ROOT_STATIC] = "Static address",
		[ROOT_STACK] = "Stack address",
		[ROOT_REGISTER] = "Register",
		[ROOT_KERNEL] = "The kernel",
	};

	if (anchor->packed) {
		snprintf(text, size, "Packed in a %s:", anchor->packed);
		return text;
	}
	if (anchor->kind == ROOT_INTEGER) {
		snprintf(text, size, "Held as an integer: %s", anchor->integer);
		return text;
	}
	if (anchor->kind != ROOT_REGISTER)
		return kinds[anchor->kind];
	if (strcmp(anchor->register_name, VECTOR_REGISTER) == 0)
		return "A vector register";
	if (strcmp(anchor->register_name, INSIDE_MALLOC) == 0)
		return "A thread at work inside of malloc";
	return kinds[ROOT_REGISTER];
}

/* Why the kernel holds it, in text, or NULL. */
static const char *purpose(const struct analysis *analysis, const struct anchor *anchor, char *text,
			   size_t size)
{
	struct held_value value = { .kind = HELD_KINDS };

	if (anchor->kind == ROOT_KERNEL && anchor->held == ASSUMED_STACK)
		snprintf(text, size, "alternate signal stack, by its size");
	else if (anchor->kind == ROOT_KERNEL)
		value = image_held(analysis_image(analysis), anchor->held);
	if (value.kind == HELD_SIGNAL_STACK)
		snprintf(text, size, "alternate signal stack");
	else if (value.kind == HELD_SIGNAL)
		snprintf(text, size, "pending signal %" PRIu64, value.detail);
	else if (value.kind == HELD_TIMER)
		snprintf(text, size, "timer %" PRIu64, value.detail);
	else if (value.kind == HELD_EPOLL)
		snprintf(text, size, "epoll %" PRIu32 ", file %" PRIu64, value.holder,
			 value.detail);
	else if (value.kind == HELD_RING)
		snprintf(text, size, "io_uring %" PRIu32, value.holder);
	else if (anchor->kind != ROOT_KERNEL || anchor->held != ASSUMED_STACK)
		return NULL;
	return text;
}

static bool has_name(const struct anchor *anchor)
{
	return anchor->kind == ROOT_REGISTER &&
	       strcmp(anchor->register_name, VECTOR_REGISTER) != 0 &&
	       strcmp(anchor->register_name, INSIDE_MALLOC) != 0;
}

void anchor_write(const struct analysis *analysis, const struct anchor *anchor,
		  struct report *report)
{
	struct anchor_name name = name_anchor(analysis, anchor);
	/* The report reads texts at the end of the row. */
	char text[64], held[64];

	report_begin_table(report, &table);
	report_add(report, holder(anchor, text, sizeof(text)), value_nonzero(anchor->address),
		   has_name(anchor) ? anchor->register_name : NULL,
		   purpose(analysis, anchor, held, sizeof(held)));
	write_name(analysis, anchor, &name, report);
	report_row(report, allocation_start(analysis_index(analysis), anchor->target));
	report_end_table(report);
}

void anchor_write_step(const struct analysis *analysis, const struct anchor *anchor,
		       const char *number, struct report *report)
{
	static const struct table step_table = TABLE(
		"anchor",
		"  {number} [{name}, ][{frame}, ]{kind}[ 0x{address}][ {register}][ ({holder})][ in {path} at offset 0x{offset}][ of thread {thread}]",
		{ "number", VALUE_TEXT }, { "kind", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		{ "register", VALUE_TEXT }, { "holder", VALUE_TEXT }, { "name", VALUE_TEXT },
		{ "path", VALUE_TEXT }, { "offset", VALUE_ADDRESS }, { "frame", VALUE_TEXT },
		{ "thread", VALUE_NUMBER });
	struct anchor_name name = name_anchor(analysis, anchor);
	_cleanup_(free) char *own_name = name.name ? rows_own_words(name.name, false) : NULL;
	_cleanup_(free) char *own_frame = name.frame ? rows_own_words(name.frame, false) : NULL;
	char text[64], held[64], kind[64];

	name.name = own_name;
	name.frame = own_frame;

	snprintf(kind, sizeof(kind), "%s", holder(anchor, text, sizeof(text)));
	kind[0] = (char)tolower((unsigned char)kind[0]);
	/* "Packed in a ...:" has a colon in front of the address. */
	if (kind[0] && kind[strlen(kind) - 1] == ':')
		kind[strlen(kind) - 1] = '\0';
	report_begin_table(report, &step_table);
	report_add(report, number, kind, value_nonzero(anchor->address),
		   has_name(anchor) ? anchor->register_name : NULL,
		   purpose(analysis, anchor, held, sizeof(held)));
	write_name(analysis, anchor, &name, report);
	report_end_row(report);
	report_end_table(report);
}

unsigned int anchor_rank(const struct analysis *analysis, const struct anchor *anchor)
{
	enum { LASTING, OF_A_VARIABLE, OF_A_REGISTER, OF_NOTHING };
	struct anchor_name name;

	if (anchor->kind == ROOT_REGISTER)
		return OF_A_REGISTER;
	if (anchor->kind != ROOT_STACK)
		return LASTING;
	name = name_anchor(analysis, anchor);
	if (name.name)
		return LASTING; /* thread-local */
	return name.frame && strncmp(name.frame, "in ", 3) != 0 ? OF_A_VARIABLE : OF_NOTHING;
}

/* The disguised word as an anchor; on a stack, with its thread. */
static struct anchor anchor_of(const struct analysis *analysis, const struct disguised *disguised)
{
	const struct stack *stack =
		program_find_stack(analysis_program(analysis), disguised->place);

	return (struct anchor){
		.kind = stack ? ROOT_STACK : ROOT_STATIC,
		.address = disguised->place,
		.thread = stack ? stack->thread : NO_THREAD,
		.target = disguised->target,
	};
}

void anchor_write_likely(const struct analysis *analysis, const struct disguised *disguised,
			 struct report *report)
{
	static const struct table likely_table = TABLE(
		"likely held",
		"The allocation at 0x{target} is likely held by {how} at 0x{address}[ in {name}][ in {path} at offset 0x{offset}][ ({frame})][ of thread {thread}]"
		"[\n(in such a core, a random word looks like that once in {odds,})]",
		{ "target", VALUE_ADDRESS }, { "how", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		{ "name", VALUE_TEXT }, { "path", VALUE_TEXT }, { "offset", VALUE_ADDRESS },
		{ "frame", VALUE_TEXT }, { "thread", VALUE_NUMBER }, { "odds", VALUE_COUNT });
	struct anchor anchor = anchor_of(analysis, disguised);
	struct anchor_name name = name_anchor(analysis, &anchor);

	report_begin_table(report, &likely_table);
	report_add(report, allocation_start(analysis_index(analysis), disguised->target),
		   disguise_name(analysis_runtimes(analysis), disguised->disguise),
		   disguised->place);
	write_name(analysis, &anchor, &name, report);
	report_row(report, value_nonzero(likely_held_odds(analysis, disguised)));
	report_end_table(report);
}
