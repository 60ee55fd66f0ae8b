#include "analyzer/graph/variables.h"

#include "analyzer/base/table.h"
#include "analyzer/base/text.h"
#include "analyzer/graph/embedding.h"
#include "analyzer/runtimes/object_links.h"
#include "analyzer/runtimes/runtimes.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* Targets that a variable refers to by words that follow each other. */
struct run {
	uint8_t rank;
	uint32_t variable, count;
	size_t begin; /* among all that are found */
};

/* A variable by the hash of its name and its address. */
struct known {
	uint64_t hash;
	uint32_t number;
};

/*
 * Limits: further variables count as the first one, and of further pages, the contents are not
 * asked for.
 */
enum { MOST_VARIABLES = 1 << 20, MOST_PAGES = 1 << 14 };

static const uint64_t PAGE_BYTES = 4096;

struct variables {
	ARRAY(struct variable) list;
	ARRAY(uint8_t) ranks;
	ARRAY(uint32_t) offsets;
	ARRAY(allocation_id) targets;
	struct bitmap regions, own; /* empty if there are none */
};

/* Anchors come by kind and address, so the last variable is often the next, too. */
struct finder {
	const struct variables_input *input;
	ARRAY(struct variable) list; /* in the order in which they are found */
	HASH_TABLE(struct known) known;
	ARRAY(struct run) runs;
	ARRAY(allocation_id) found; /* of all runs */
	struct bitmap *regions;	    /* parts of a variable; empty if there are none */
	struct memory_range last;   /* addresses in the last variable */
	enum root_kind last_kind;
	uint32_t last_number;
	size_t pages_asked; /* number of pages whose contents were asked for */
	struct error *error;
};

static void finder_deinit(struct finder *finder)
{
	array_for_each(variable, &finder->list)
		free(variable->name);
	arrays_release(&finder->list, &finder->runs, &finder->found);
	table_release(&finder->known);
}
DEFINE_DEINIT(finder_deinit, struct finder)

void variables_destroy(struct variables *variables)
{
	array_for_each(variable, &variables->list)
		free(variable->name);
	arrays_release(&variables->list, &variables->ranks, &variables->offsets,
		       &variables->targets);
	bitmap_deinit(&variables->regions);
	bitmap_deinit(&variables->own);
	free(variables);
}

static struct variable of_module(struct finder *finder, const struct module *module,
				 uint64_t address)
{
	struct variable variable = { .module = module, .lasting = LASTING_STATIC };
	struct symbol symbol;

	/* Blocks of its own are used again and keep words of what stood there before. */
	if (module_is_libc(module))
		variable.lasting = LASTING_LIBC;

	if (!debug_symbol(finder->input->debug, address, &symbol)) {
		variable.name = format_text("static data of %s", module_name(module));
		return variable;
	}
	if (symbol.size)
		finder->last = (struct memory_range){ symbol.start, symbol.start + symbol.size };
	variable.name = format_text("%s (%s)", symbol.name, module_name(module));
	variable.address = symbol.start;
	variable.is_one = true;
	return variable;
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

/* True if the range may have thread-local variables. */
static bool holds_thread_locals(const struct program *program, struct memory_range range)
{
	for (size_t i = 0; i < program->thread_memory_count; i++)
		if (program->thread_memory[i].start < range.end &&
		    program->thread_memory[i].end > range.start)
			return true;
	return false;
}

static const char *mapping_name(struct finder *finder, uint64_t address)
{
	const struct variables_input *input = finder->input;
	const char *name = NULL;
	const struct region *region;

	if (finder->pages_asked++ < MOST_PAGES)
		name = runtimes_page_use(input->runtimes, input->image, address);
	if (name)
		return name;
	region = image_find(input->image, address);
	return region && region->mapping ? region->mapping->path : "mapped memory";
}

/* Memory that is in no module: a page is of one variable, but for thread-local ones. */
static struct variable of_mapping(struct finder *finder, uint64_t address)
{
	struct memory_range page = { address & -PAGE_BYTES, (address & -PAGE_BYTES) + PAGE_BYTES };
	struct variable variable = { .lasting = LASTING_THREAD_LOCAL };
	const char *name = debug_thread_local(finder->input->debug, address);

	if (name) {
		variable.name = thread_local_text(name);
		variable.is_one = true;
		return variable;
	}
	if (!holds_thread_locals(finder->input->program, page))
		finder->last = page;
	variable.name = strdup(mapping_name(finder, address));
	variable.lasting = LASTING_STATIC;
	return variable;
}

static struct variable of_static(struct finder *finder, uint64_t address)
{
	const struct module *module = program_find_module(finder->input->program, address);

	return module ? of_module(finder, module, address) : of_mapping(finder, address);
}

static struct variable of_thread(const struct variables_input *input, const struct anchor *anchor,
				 const char *what, enum lasting lasting)
{
	const struct program *program = input->program;
	bool known = anchor->thread != NO_THREAD && anchor->thread < program->thread_count;

	return (struct variable){
		.name = known ? format_text("%s of thread %" PRIu32, what,
					    program->threads[anchor->thread].id)
			      : strdup(what),
		.lasting = lasting,
	};
}

static struct variable of_stack(struct finder *finder, const struct anchor *anchor)
{
	unsigned int depth = 0;
	const char *function =
		anchor->thread == NO_THREAD
			? NULL
			: debug_function_around(finder->input->debug, anchor->thread,
						anchor->address, &finder->last, &depth);
	const char *stack = anchor->thread == NO_THREAD ? "a stack" : "the stack";
	struct variable variable = of_thread(finder->input, anchor, function ? function : stack,
					     function ? LASTING_FRAME : LASTING_WORDS);

	variable.depth = depth;
	return variable;
}

/* Less is more lasting; frames of different threads that are as deep are equals. */
static uint8_t rank_of(const struct variable *variable)
{
	enum { DEEPEST = UINT8_MAX - LASTING_WORDS };
	unsigned int depth = variable->depth < DEEPEST ? variable->depth : DEEPEST;

	return (uint8_t)(variable->lasting < LASTING_WORDS ? variable->lasting + depth : UINT8_MAX);
}

/* The variable that the anchor is in; its name is NULL if memory is short. */
static struct variable find_variable(struct finder *finder, const struct anchor *anchor)
{
	const char *lender = "the kernel";

	switch (anchor->kind) {
	case ROOT_STATIC:
		return of_static(finder, anchor->address);
	case ROOT_STACK:
		return of_stack(finder, anchor);
	case ROOT_REGISTER:
		return of_thread(finder->input, anchor, "registers", LASTING_WORDS);
	case ROOT_INTEGER:
		lender = anchor->integer ? anchor->integer : "integers";
		break;
	default:
		break;
	}
	return (struct variable){ .name = strdup(lender), .lasting = LASTING_LENT };
}

/* The number of the variable, whose name is taken over. */
static struct error *number_variable(struct finder *finder, struct variable variable, uint32_t *ret)
{
	_cleanup_(free) char *name = variable.name;
	const struct known *known;
	struct error *error;
	uint64_t hash;

	TRY_MEMORY(name);
	hash = XXH3_64bits(name, strlen(name)) ^ variable.address;
	known = table_find(&finder->known, hash, item, item->hash == hash);
	*ret = known ? known->number : 0;
	/* In recursion, the outermost frame counts. */
	if (known && variable.depth < finder->list.items[known->number].depth)
		finder->list.items[known->number].depth = variable.depth;
	if (known || finder->list.count >= MOST_VARIABLES)
		return NULL;
	*ret = (uint32_t)finder->list.count;
	TRY(table_append(&finder->known, hash, (struct known){ hash, *ret }));
	error = array_append(&finder->list, variable);
	if (!error)
		take(name);
	return error;
}

static struct error *add_target(struct finder *finder, allocation_id target)
{
	size_t count = finder->found.count;
	struct run *last = finder->runs.items + finder->runs.count;
	bool same = finder->runs.count && last[-1].variable == finder->last_number;

	if (same && finder->found.items[count - 1] == target)
		return NULL;
	if (count == UINT32_MAX)
		return error_create(ERROR_NOT_SUPPORTED,
				    "more than 4,294,967,295 references from roots");
	TRY(array_append(&finder->found, target));
	if (!same)
		return array_append(&finder->runs,
				    (struct run){ 0, finder->last_number, 1, count });
	last[-1].count++;
	return NULL;
}

static struct error *add_named(struct finder *finder, struct variable variable,
			       const struct bitmap *targets)
{
	TRY(number_variable(finder, variable, &finder->last_number));
	bitmap_for_each(id, targets)
		if (bitmap_get(finder->input->anchored, id))
			TRY(add_target(finder, (allocation_id)id));
	return NULL;
}

/* Add the objects that only variables of running functions refer to: each is a variable. */
static struct error *add_locals(struct finder *finder, struct object_space *space,
				const struct bitmap *locals)
{
	enum { MOST_PATH = 256 };
	char path[MOST_PATH];

	bitmap_for_each(id, locals) {
		allocation_id local = (allocation_id)id;
		struct variable variable = { .kind = ROOT_STACK,
					     .lasting = LASTING_LOCAL,
					     .is_one = true };

		if (!bitmap_get(finder->input->anchored, local))
			continue;
		object_tell_path(space, &local, 1, false, path, sizeof(path));
		variable.name = strdup(path);
		TRY(number_variable(finder, variable, &finder->last_number));
		TRY(add_target(finder, local));
	}
	return NULL;
}

/* Add the objects that a program reaches by names of the language. */
static struct error *add_language(struct finder *finder, struct object_space *space)
{
	const struct runtime *runtime = space->runtime;
	size_t count = finder->input->anchored->count;
	_cleanup_(bitmap_deinit) struct bitmap globals = { 0 }, locals = { 0 };

	TRY(bitmap_init(&globals, count, finder->input->account));
	TRY(bitmap_init(&locals, count, finder->input->account));
	TRY(object_find_globals(space, &globals));
	TRY(add_named(finder,
		      (struct variable){ .name = format_text("globals of %s", runtime->name),
					 .kind = ROOT_STATIC,
					 .lasting = LASTING_GLOBAL },
		      &globals));
	if (!runtime->links->find_locals)
		return NULL;
	bitmap_copy(&locals, &globals);
	TRY(object_find_locals(space, &locals));
	bitmap_minus(&locals, &globals);
	return add_locals(finder, space, &locals);
}

/* Each name of regions is one variable. */
static struct error *add_regions(struct finder *finder, struct object_space *space)
{
	size_t count = finder->input->anchored->count;

	if (!finder->regions->count)
		TRY(bitmap_init(finder->regions, count, finder->input->account));
	bitmap_for_each(id, finder->input->anchored) {
		uint64_t class = object_class_of(space, (allocation_id)id);
		enum class_name_kind kind;
		struct variable variable = { .kind = ROOT_STATIC,
					     .lasting = LASTING_GLOBAL,
					     .is_one = true };

		if (!class)
			continue;
		variable.name = strdup(object_class_name(space, class, &kind));
		TRY(number_variable(finder, variable, &finder->last_number));
		TRY(add_target(finder, (allocation_id)id));
		bitmap_set(finder->regions, id);
	}
	return NULL;
}

static struct error *add_languages(struct finder *finder)
{
	const struct runtimes *list = finder->input->runtimes;

	for (size_t i = 0; i < runtime_count(list); i++) {
		struct object_space *space = runtimes_space(list, runtime_at(list, i));

		if (space && space->has_objects && space->runtime->links)
			TRY(add_language(finder, space));
		if (space && space->has_objects && space->runtime->has_regions)
			TRY(add_regions(finder, space));
	}
	return NULL;
}

/* Another variable than the last one. */
static struct error *enter_variable(struct finder *finder, const struct anchor *anchor)
{
	struct variable variable;

	finder->last = (struct memory_range){ 0, 0 };
	finder->last_kind = anchor->kind;
	variable = find_variable(finder, anchor);
	variable.kind = anchor->kind;
	return number_variable(finder, variable, &finder->last_number);
}

static bool visit_anchor(void *data, const struct anchor *anchor)
{
	struct finder *finder = data;
	bool same = anchor->kind == finder->last_kind &&
		    anchor->address - finder->last.start < finder->last.end - finder->last.start;

	if ((finder->regions->count && bitmap_get(finder->regions, anchor->target)) ||
	    (finder->input->nested && bitmap_get(finder->input->nested, anchor->target)))
		return true;
	if (!same)
		finder->error = enter_variable(finder, anchor);
	if (!finder->error)
		finder->error = add_target(finder, anchor->target);
	return !finder->error;
}

static int compare_runs(const void *a, const void *b)
{
	const struct run *left = a, *right = b;

	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	if (left->variable != right->variable)
		return left->variable < right->variable ? -1 : 1;
	return left->begin < right->begin ? -1 : left->begin > right->begin;
}

/* Put the targets of each variable together, in order of lasting. */
static struct error *lay_out(struct finder *finder, struct variables *variables)
{
	const struct run *last = NULL;

	array_for_each(run, &finder->runs)
		run->rank = rank_of(&finder->list.items[run->variable]);
	array_sort(&finder->runs, compare_runs);
	TRY(array_resize(&variables->targets, finder->found.count));
	variables->targets.count = 0;
	array_for_each(run, &finder->runs) {
		if (!last || last->variable != run->variable) {
			struct variable *variable = &finder->list.items[run->variable];

			TRY(array_append(&variables->offsets, (uint32_t)variables->targets.count));
			TRY(array_append(&variables->ranks, run->rank));
			TRY(array_append(&variables->list, *variable));
			variable->name = NULL; /* taken over */
		}
		last = run;
		memcpy(variables->targets.items + variables->targets.count,
		       finder->found.items + run->begin, run->count * sizeof(allocation_id));
		variables->targets.count += run->count;
	}
	return array_append(&variables->offsets, (uint32_t)variables->targets.count);
}

struct error *variables_create(const struct variables_input *input, struct variables **ret)
{
	_cleanup_(variables_destroy) struct variables *variables = calloc(1, sizeof(*variables));
	_cleanup_(finder_deinit) struct finder finder = {
		.input = input,
	};
	const struct embedding_input embedding = {
		.image = input->image,
		.program = input->program,
		.runtimes = input->runtimes,
		.roots = input->roots,
		.graph = input->graph,
		.index = input->index,
		.account = input->account,
		.progress = input->progress,
	};

	TRY_MEMORY(variables);
	arrays_use(input->account, &finder.list, &finder.known, &finder.runs, &finder.found);
	finder.regions = &variables->regions;
	arrays_use(input->account, &variables->list, &variables->ranks, &variables->offsets,
		   &variables->targets);
	TRY(embedding_find(&embedding, &variables->own));
	TRY(add_languages(&finder));
	roots_visit(input->roots, input->targets, visit_anchor, &finder);
	if (finder.error)
		return finder.error;
	TRY(lay_out(&finder, variables));
	*ret = take(variables);
	return NULL;
}

size_t variables_count(const struct variables *variables)
{
	return variables->list.count;
}

const struct variable *variables_at(const struct variables *variables, size_t number)
{
	return &variables->list.items[number];
}

const struct bitmap *variables_regions(const struct variables *variables)
{
	return variables->regions.count ? &variables->regions : NULL;
}

const struct bitmap *variables_own(const struct variables *variables)
{
	return variables->own.count ? &variables->own : NULL;
}

struct dominator_roots variables_roots(const struct variables *variables)
{
	return (struct dominator_roots){ variables->list.count, variables->ranks.items,
					 variables->offsets.items, variables->targets.items };
}
