#include "analyzer/owners/owner_roots.h"

#include "analyzer/analysis/liveness.h"
#include "analyzer/base/text.h"
#include "analyzer/query/place.h"

#include <inttypes.h>
#include <string.h>

/* Anchors come by kind and address, so the last variable, region or frame is often the next. */
struct finder {
	struct analysis *analysis;
	struct owner_names *names;
	struct bitmap tops; /* without a name so far */
	uint16_t *roots;
	struct memory_range last; /* addresses with the same name */
	enum root_kind last_kind;
	uint16_t last_name;
	struct error *error;
};

/* The name of what holds the address, to be freed; NULL if memory is short. */
struct found {
	char *text;
	uint64_t address; /* of a variable */
};

static struct found name_symbol(struct finder *finder, const struct module *module,
				uint64_t address)
{
	struct debug *debug = analysis_debug(finder->analysis);
	struct symbol symbol;

	if (!debug_symbol(debug, address, &symbol))
		return (struct found){ format_text("static data of %s", module_name(module)), 0 };
	if (symbol.size)
		finder->last = (struct memory_range){ symbol.start, symbol.start + symbol.size };
	return (struct found){ format_text("%s (%s)", symbol.name, module_name(module)),
			       symbol.start };
}

/* "errno_buffer of thread 4711 (libfoo.so)" is one variable for all threads. */
static char *thread_local_text(const char *name)
{
	const char *thread = strstr(name, " of thread ");
	const char *behind = thread ? strchr(thread, '(') : NULL;

	if (!thread)
		return strdup(name);
	return format_text("thread-local %.*s%s%s", (int)(thread - name), name, behind ? " " : "",
			   behind ? behind : "");
}

static struct found name_static(struct finder *finder, uint64_t address)
{
	const struct analysis *analysis = finder->analysis;
	const struct module *module = program_find_module(analysis_program(analysis), address);
	const char *name;
	const struct region *region;

	if (module)
		return name_symbol(finder, module, address);
	name = debug_thread_local(analysis_debug(analysis), address);
	if (name)
		return (struct found){ thread_local_text(name), 0 };
	name = runtimes_page_use(analysis_runtimes(analysis), analysis_image(analysis), address);
	if (name)
		return (struct found){ strdup(name), 0 };
	region = image_find(analysis_image(analysis), address);
	return (struct found){ strdup(region && region->mapping ? region->mapping->path
								: "memory outside of heaps"),
			       0 };
}

/* The function whose frame the address is in. */
static const char *find_function(struct finder *finder, const struct anchor *anchor)
{
	struct debug *debug = analysis_debug(finder->analysis);
	const struct backtrace *calls = debug_backtrace(debug, anchor->thread);

	for (size_t i = 0; calls && i < calls->count; i++) {
		const struct frame *frame = &calls->frames[i];

		if (frame->inlined || anchor->address < frame->stack_pointer ||
		    anchor->address >= frame->end)
			continue;
		finder->last = (struct memory_range){ frame->stack_pointer, frame->end };
		return debug_frame_function(debug, frame);
	}
	return NULL;
}

static struct found name_stack(struct finder *finder, const struct anchor *anchor)
{
	const struct program *program = analysis_program(finder->analysis);
	const char *function;

	if (anchor->thread == NO_THREAD || anchor->thread >= program->thread_count)
		return (struct found){ strdup("a stack"), 0 };
	function = find_function(finder, anchor);
	return (struct found){ format_text("%s of thread %" PRIu32,
					   function ? function : "the stack",
					   program->threads[anchor->thread].id),
			       0 };
}

static struct found name_anchor(struct finder *finder, const struct anchor *anchor)
{
	const struct program *program = analysis_program(finder->analysis);

	switch (anchor->kind) {
	case ROOT_STATIC:
		return name_static(finder, anchor->address);
	case ROOT_STACK:
		return name_stack(finder, anchor);
	case ROOT_REGISTER:
		if (anchor->thread < program->thread_count)
			return (struct found){ format_text("registers of thread %" PRIu32,
							   program->threads[anchor->thread].id),
					       0 };
		return (struct found){ strdup("registers"), 0 };
	case ROOT_KERNEL:
		return (struct found){ strdup("the kernel"), 0 };
	default:
		return (struct found){ strdup(anchor->integer ? anchor->integer : "integers"), 0 };
	}
}

static bool visit_anchor(void *data, const struct anchor *anchor)
{
	struct finder *finder = data;
	uint16_t *root = &finder->roots[anchor->target];
	_cleanup_(free) char *text = NULL;
	struct found found;

	bitmap_clear(&finder->tops, anchor->target);
	if (anchor->kind == finder->last_kind &&
	    anchor->address - finder->last.start < finder->last.end - finder->last.start) {
		*root = finder->last_name;
		return true;
	}
	finder->last = (struct memory_range){ 0, 0 };
	finder->last_kind = anchor->kind;
	found = name_anchor(finder, anchor);
	text = found.text;
	finder->error = text ? owner_names_root(finder->names, text, found.address, root)
			     : &error_no_memory;
	finder->last_name = *root;
	return !finder->error;
}

/* Of tops that no root refers to. */
static const char *why_at_top(const struct analysis *analysis, allocation_id id)
{
	switch (liveness_of(analysis, id)) {
	case STATE_GARBAGE:
		return "garbage";
	case STATE_HELD:
		return "held by garbage";
	case STATE_LEAKED:
	case STATE_UNREFERENCED:
		return "what leaked";
	default:
		return "several roots";
	}
}

static struct error *name_tops(struct finder *finder)
{
	const char *last = NULL;

	roots_visit(analysis_roots(finder->analysis), &finder->tops, visit_anchor, finder);
	if (finder->error)
		return finder->error;
	bitmap_for_each(id, &finder->tops) {
		const char *text = why_at_top(finder->analysis, (allocation_id)id);

		if (text != last)
			TRY(owner_names_root(finder->names, text, 0, &finder->last_name));
		finder->roots[id] = finder->last_name;
		last = text;
	}
	return NULL;
}

struct error *owner_roots_find(struct analysis *analysis, struct owner_names *names,
			       uint16_t *ret_roots)
{
	const struct dominators *tree = analysis_dominators(analysis);
	struct finder finder = { .analysis = analysis, .names = names, .roots = ret_roots };
	struct error *error;

	TRY(bitmap_init(&finder.tops, allocation_count(analysis_index(analysis)),
			analysis_account(analysis)));
	for (size_t i = 0; i < dominators_count(tree); i = dominators_end(tree, i))
		bitmap_set(&finder.tops, dominators_at(tree, i));
	error = name_tops(&finder);
	bitmap_deinit(&finder.tops);
	return error;
}
