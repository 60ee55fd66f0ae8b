/* Finds which thread-local variable of which thread is at an address. */
#include "analyzer/program/tls.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/debug/debug_parts.h"

enum {
	MOST_RANGES = 1 << 22,
	OWN_RANGES = 2, /* control block and table */
};

struct tls_range {
	uint64_t start, size;
	struct tls_place place; /* of its start */
};

void tls_deinit(struct tls *tls)
{
	free(tls->ranges);
	*tls = (struct tls){ 0 };
}

static void add_range(struct tls *tls, struct memory_range range, struct tls_place place)
{
	tls->ranges[tls->range_count++] =
		(struct tls_range){ range.start, range.end - range.start, place };
}

/* At most as many as there are modules, + OWN_RANGES. */
static void add_thread(struct debug *debug, uint32_t number)
{
	const struct program *program = debug->program;
	const struct thread *thread = &program->threads[number];
	struct tls_place place = { .thread = number };
	struct tls *tls = &debug->tls;
	struct memory_range table;

	if (!thread_has_control_block(program, thread))
		return;
	add_range(tls, thread_control_block(program, thread), place);
	place.in_table = true;
	if (thread_table(program, thread, &table))
		add_range(tls, table, place);
	place.in_table = false;
	list_for_each(module, program->tls_modules, program->tls_module_count) {
		uint64_t block = thread_variables(program, thread, module);

		place.module = module->module;
		if (block)
			add_range(tls, (struct memory_range){ block, block + module->size }, place);
	}
}

DEFINE_COMPARE(compare_ranges, struct tls_range, ASCENDING(start))

static const struct tls *find_ranges(struct debug *debug)
{
	size_t threads = debug->program->thread_count, most;
	size_t modules = debug->program->tls_module_count;
	struct tls *tls = &debug->tls;

	if (tls->made)
		return tls;
	tls->made = true;
	if (threads == 0 || __builtin_mul_overflow(threads, modules + OWN_RANGES, &most) ||
	    most > MOST_RANGES)
		return tls;
	tls->ranges = calloc(most, sizeof(*tls->ranges));
	if (!tls->ranges)
		return tls;
	for (size_t i = 0; i < threads; i++)
		add_thread(debug, (uint32_t)i);
	SORT(tls->ranges, tls->range_count, compare_ranges);
	return tls;
}

bool tls_find(struct debug *debug, uint64_t address, struct tls_place *ret)
{
	const struct tls *tls = find_ranges(debug);
	__auto_type range = LIST_LAST(tls->ranges, tls->range_count, start, address);

	if (!range || address - range->start >= range->size)
		return false;
	*ret = range->place;
	ret->offset = address - range->start;
	return true;
}

bool tls_address(struct debug *debug, uint32_t thread, const struct module *module, uint64_t offset,
		 uint64_t *ret)
{
	const struct tls *tls = find_ranges(debug);

	list_for_each(range, tls->ranges, tls->range_count) {
		if (range->place.thread != thread || range->place.module != module ||
		    offset >= range->size)
			continue;
		*ret = range->start + offset;
		return true;
	}
	return false;
}

bool tls_visit(struct debug *debug, const struct module *module, uint64_t offset,
	       bool (*visit)(void *data, uint64_t address), void *data)
{
	const struct tls *tls = find_ranges(debug);

	list_for_each(range, tls->ranges, tls->range_count) {
		if (range->place.module == module && offset < range->size &&
		    !visit(data, range->start + offset))
			return false;
	}
	return true;
}
