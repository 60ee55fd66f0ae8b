#include "analyzer/runtimes/runtimes.h"

#include "analyzer/base/list.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>
#include <string.h>

struct runtimes {
	struct object_space **spaces; /* of those that the process has */
	size_t count;
	bool has_objects;
	struct fibers fibers;
	struct unused unused;
};

/* for each space of a list, which may be NULL; and for each of those that have objects. */
#define spaces_for_each(space, list)                                             \
	for (struct object_space **at_ = (list) ? (list)->spaces : NULL, *space; \
	     at_ && at_ < (list)->spaces + (list)->count && ((space) = *at_, true); at_++)
#define objects_for_each(space, list) \
	spaces_for_each(space, list)  \
		if ((space)->has_objects)

/* True if a part of the path begins with one of the names, see the slot modules. */
static bool path_has(const char *path, const char *names)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		for (const char *name = names; *name; name += *name == '|') {
			size_t length = strcspn(name, "|");

			if (name[length - 1] == '$' ? strlen(part) == length - 1 &&
							      strncmp(part, name, length - 1) == 0
						    : strncmp(part, name, length) == 0)
				return true;
			name += length;
		}
	}
	return false;
}

/* True if a module exports one of the symbols among the names. */
static bool has_symbol(const struct program *program, const char *names)
{
	for (const char *mark = strchr(names, '='); mark; mark = strchr(mark + 1, '=')) {
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(mark + 1, "|"), mark + 1);
		if (program_has_symbol(program, name))
			return true;
	}
	return false;
}

static bool has_module(const char *names, const struct program *program)
{
	for (size_t i = 0; i < program->module_count; i++)
		if (path_has(program->modules[i].path, names))
			return true;
	return false;
}

bool runtimes_have_module(const struct runtimes *list, const struct module *module)
{
	spaces_for_each(space, list)
		if (space->runtime->links && space->runtime->modules &&
		    path_has(module->path, space->runtime->modules))
			return true;
	return false;
}

bool runtimes_know_path(const struct runtime *const *kinds, const char *path)
{
	for (; *kinds; kinds++)
		if ((*kinds)->links && (*kinds)->modules && path_has(path, (*kinds)->modules))
			return true;
	return false;
}

bool runtime_is_loaded(const struct runtime *runtime, const struct program *program)
{
	const char *names = runtime->modules;

	return names && (has_module(names, program) || has_symbol(program, names));
}

bool runtimes_are_embedded(const struct runtimes *list, const struct program *program,
			   const struct module *executable)
{
	objects_for_each(space, list) {
		const char *modules = space->runtime->modules;

		if (space->runtime->links && modules && has_module(modules, program) &&
		    !path_has(executable->path, modules))
			return true;
	}
	return false;
}

static void release_space(struct object_space *space)
{
	if (space->runtime->release)
		space->runtime->release(space);
	object_classes_release(&space->classes);
	arrays_release(&space->names, &space->ranges);
	name_pool_deinit(&space->texts);
}

static void close_space(struct object_space *space)
{
	release_space(space);
	free(space);
}
DEFINE_CLEANUP(close_space, struct object_space *)

void runtimes_destroy(struct runtimes *list)
{
	fibers_deinit(&list->fibers);
	unused_deinit(&list->unused);
	while (list->count > 0)
		close_space(list->spaces[--list->count]);
	free(list->spaces);
	free(list);
}

/* NULL in *ret and no error: the process does not have it. */
static struct error *open_space(const struct runtime *runtime,
				const struct runtime_context *context, struct object_space **ret)
{
	_cleanup_(close_space) struct object_space *space = NULL;
	bool is_there = true;

	*ret = NULL;
	if (runtime->modules && !runtime_is_loaded(runtime, context->program))
		return NULL;
	space = calloc(1, MAX(runtime->space_size, sizeof(*space)));
	TRY_MEMORY(space);
	space->runtime = runtime;
	space->context = *context;
	arrays_use(context->account, &space->names, &space->ranges);
	if (runtime->open) {
		is_there = false;
		TRY(runtime->open(space, &is_there));
	}
	if (is_there)
		*ret = take(space);
	return NULL;
}

/* Say what the collector of a language frees among blocks of malloc(). */
static struct error *set_collectable(const struct object_space *space)
{
	size_t count = allocation_count(space->index);
	_cleanup_(bitmap_deinit) struct bitmap set = { 0 };

	TRY(bitmap_init(&set, count, space->account));
	for (size_t i = 0; i < count; i++)
		if (space->runtime->is_collected(space, (allocation_id)i))
			bitmap_set(&set, i);
	return heaps_set_collectable(space->heaps, &set);
}

static struct error *find_objects_of(struct runtimes *list, struct object_space *space,
				     struct debug *debug)
{
	struct error *error = space->runtime->find_objects(space, debug);

	if (!space->has_objects)
		release_space(space);
	list->has_objects |= space->has_objects;
	if (error || !space->has_objects)
		return error;
	if (space->tag_bits)
		heaps_ignore_bits(space->heaps, space->tag_bits);
	return space->runtime->is_collected ? set_collectable(space) : NULL;
}

/* Not all programs give the size that there is. */
static struct error *add_output(void *data, uint64_t start, uint64_t size)
{
	enum { MOST_OUTSIDE = 1 << 20 };
	struct unused *unused = data;
	allocation_id id = allocation_find(unused->index, start);
	uint64_t most = start < UINT64_MAX - MOST_OUTSIDE ? MOST_OUTSIDE : 0;

	if (id != NO_ALLOCATION)
		most = allocation_start(unused->index, id) + allocation_size(unused->index, id) -
		       start;
	return unused_add(unused, start, start + MIN(size, most));
}

/* Find words that hold nothing: those of the runtimes, and what the kernel is about to fill. */
static struct error *find_unused(struct runtimes *list, const struct runtime_context *context)
{
	enum { BYTES_A_RANGE = 32 };
	const struct program *program = context->program;

	TRY(unused_init(&list->unused, context->image, context->index,
			context->image->size / BYTES_A_RANGE, context->account));
	for (size_t i = 0; program && i < program->thread_count; i++)
		TRY(thread_visit_outputs(program, &program->threads[i], add_output, &list->unused));
	spaces_for_each(space, list)
		if (space->runtime->find_unused)
			TRY(space->runtime->find_unused(space, &list->unused));
	unused_seal(&list->unused);
	return NULL;
}

struct error *runtimes_create(const struct runtime *const *kinds,
			      const struct runtime_context *context, struct runtimes **ret)
{
	_cleanup_(runtimes_destroy) struct runtimes *list = calloc(1, sizeof(*list));
	size_t count = 0;

	while (kinds[count])
		count++;
	if (list)
		list->spaces = calloc(count + 1, sizeof(*list->spaces));
	TRY_MEMORY(list && list->spaces);
	list->fibers.memory.account = context->account;
	for (size_t i = 0; i < count; i++) {
		size_t first = list->fibers.count;
		struct object_space *space;

		TRY(open_space(kinds[i], context, &space));
		if (!space)
			continue;
		list->spaces[list->count++] = space;
		if (!kinds[i]->find_objects && space->tag_bits)
			heaps_ignore_bits(space->heaps, space->tag_bits);
		if (kinds[i]->fibers)
			TRY(kinds[i]->fibers->find_fibers(space, &list->fibers));
		/* The note on leaks depends on whether there are objects. */
		if (kinds[i]->find_objects && (kinds[i]->is_link || kinds[i]->leaks_note))
			TRY(find_objects_of(list, space, NULL));
		for (size_t j = first; j < list->fibers.count; j++)
			list->fibers.items[j].runtime = kinds[i];
	}
	fibers_sort(&list->fibers);
	TRY(find_unused(list, context));
	*ret = take(list);
	return NULL;
}

size_t runtime_count(const struct runtimes *list)
{
	return list->count;
}

const struct runtime *runtime_at(const struct runtimes *list, size_t number)
{
	return list->spaces[number]->runtime;
}

const struct integer_encoding *runtimes_integer(const struct runtimes *list, size_t number)
{
	return list && number < list->count ? runtime_at(list, number)->integer : NULL;
}

bool runtimes_have_integers(const struct runtimes *list)
{
	spaces_for_each(space, list)
		if (space->runtime->integer)
			return true;
	return false;
}

const char *runtimes_packed(const struct runtimes *list)
{
	spaces_for_each(space, list)
		if (space->runtime->packed)
			return space->runtime->packed;
	return NULL;
}

const struct named_range *runtimes_memory(const struct runtimes *list, size_t number,
					  size_t *ret_count)
{
	*ret_count = list->spaces[number]->ranges.count;
	return list->spaces[number]->ranges.items;
}

static const char *memory_use(const struct runtimes *list, size_t number, uint64_t address)
{
	size_t count;
	const struct named_range *ranges = runtimes_memory(list, number, &count);
	size_t i = LIST_ABOVE(ranges, count, range.end, address);

	return i < count && ranges[i].range.start <= address ? ranges[i].name : NULL;
}

struct object_space *runtimes_space(const struct runtimes *list, const struct runtime *runtime)
{
	objects_for_each(space, list)
		if (space->runtime == runtime)
			return space;
	return NULL;
}

const struct fibers *runtimes_fibers(const struct runtimes *list)
{
	return &list->fibers;
}

struct error *runtimes_find_objects(struct runtimes *list, struct debug *debug)
{
	spaces_for_each(space, list)
		if (space->runtime->find_objects && !space->has_objects)
			TRY(find_objects_of(list, space, debug));
	return NULL;
}

bool runtimes_have_objects(const struct runtimes *list)
{
	return list && list->has_objects;
}

uint64_t runtimes_class_of(const struct runtimes *list, allocation_id id)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space ? object_class_of(space, id) : 0;
}

struct object_space *runtimes_space_of(const struct runtimes *list, allocation_id id)
{
	if (runtimes_have_objects(list))
		objects_for_each(space, list)
			if (object_class_of(space, id))
				return space;
	return NULL;
}

bool runtimes_have_certain(const struct runtimes *list)
{
	objects_for_each(space, list)
		if (space->runtime->is_certain)
			return true;
	return false;
}

bool runtimes_are_certain(const struct runtimes *list, allocation_id id)
{
	objects_for_each(space, list)
		if (space->runtime->is_certain && object_class_of(space, id))
			return true;
	return false;
}

bool runtimes_have_links_outside(const struct runtimes *list)
{
	return list && (list->unused.ranges.count > 0 || runtimes_have_links(list));
}

static bool has_links(const struct object_space *space)
{
	return space->runtime->is_link && (space->has_objects || !space->runtime->find_objects);
}

bool runtimes_have_links(const struct runtimes *list)
{
	if (list && unused_is_in_heap(&list->unused))
		return true;
	spaces_for_each(space, list)
		if (has_links(space))
			return true;
	return false;
}

bool runtimes_is_link(const struct runtimes *list, allocation_id source, allocation_id target,
		      uint64_t word, uint64_t place)
{
	if (unused_has(&list->unused, source, place))
		return true;
	spaces_for_each(space, list)
		if (has_links(space) && space->runtime->is_link(space, source, target, word, place))
			return true;
	return false;
}

allocation_id runtimes_resolve(const struct runtimes *list, allocation_id source, uint64_t word)
{
	objects_for_each(space, list) {
		allocation_id id = space->runtime->resolve
					   ? space->runtime->resolve(space, source, word)
					   : NO_ALLOCATION;

		if (id != NO_ALLOCATION)
			return id;
	}
	return NO_ALLOCATION;
}

allocation_id runtimes_whole(const struct runtimes *list, allocation_id block)
{
	objects_for_each(space, list) {
		const struct runtime_links *links = space->runtime->links;
		allocation_id id =
			links && links->whole ? links->whole(space, block) : NO_ALLOCATION;

		if (id != NO_ALLOCATION)
			return id;
	}
	return NO_ALLOCATION;
}

bool runtimes_keep_cycle(const struct runtimes *list, allocation_id id)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space && space->runtime->keeps_cycles;
}

bool runtimes_have_left(const struct runtimes *list, allocation_id id)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space && space->has_ended;
}

const char *runtimes_known_leak(const struct runtimes *list, allocation_id id,
				const char **ret_name)
{
	const char *cause = NULL;

	spaces_for_each(space, list) {
		if (space->runtime->known_leak)
			cause = space->runtime->known_leak(space, id);
		*ret_name = space->runtime->name;
		if (cause)
			break;
	}
	return cause;
}

bool runtimes_count_of(const struct runtimes *list, allocation_id id, struct object_liveness *ret)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space && space->runtime->is_counted && space->runtime->liveness(space, id, ret) &&
	       ret->has_count && !ret->is_immortal;
}

bool runtimes_count_words(const struct runtimes *list, allocation_id id,
			  struct object_liveness *ret)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space && space->runtime->counts_words && space->runtime->liveness(space, id, ret) &&
	       ret->has_count && !ret->is_immortal;
}

const char *runtimes_collecting(const struct runtimes *list, char *ret_note, size_t size)
{
	const char *name = NULL;

	ret_note[0] = '\0';
	objects_for_each(space, list)
		if (!name && space->runtime->is_collecting &&
		    space->runtime->is_collecting(space, ret_note, size))
			name = space->runtime->name;
	return name;
}

bool runtimes_tell(const struct runtimes *list, allocation_id id, char *ret, size_t size)
{
	enum { MOST_NAME = 80 }; /* the address stands behind it */
	const struct object_space *space = runtimes_space_of(list, id);
	struct object_liveness liveness = { 0 };
	enum class_name_kind kind;
	const char *name;

	if (!space || !space->runtime->liveness || !space->runtime->liveness(space, id, &liveness))
		return false;
	if (liveness.moved_to) {
		name = runtimes_class_name(list, liveness.moved_class, &kind);
		snprintf(ret, size, "what its collector left of the %.*s that is now at %#" PRIx64,
			 MOST_NAME, name ? name : "object", liveness.moved_to);
	} else if (liveness.has_count && !liveness.is_immortal) {
		snprintf(ret, size, "kept by a count of %" PRIu64 " reference%s", liveness.count,
			 liveness.count == 1 ? "" : "s");
	} else {
		snprintf(ret, size, "%s",
			 liveness.is_immortal ? "immortal"
			 : liveness.is_marked ? "marked by its collector"
					      : "not marked by its collector");
	}
	return true;
}

static bool is_part(const struct object_space *space, uint64_t number)
{
	const struct runtime_layout *layout = space->runtime->layout;

	return layout && layout->is_part && layout->is_part(space, number);
}

/* The one that has the class, or NULL. */
static struct object_space *find_space(const struct runtimes *list, uint64_t number)
{
	objects_for_each(space, list)
		if (number && (address_map_find(&space->classes.places, number) != NOT_IN_MAP ||
			       is_part(space, number)))
			return space;
	return NULL;
}

bool runtimes_have_class(const struct runtimes *list, uint64_t number)
{
	return find_space(list, number) != NULL;
}

const char *runtimes_page_use(const struct runtimes *list, const struct image *image,
			      uint64_t address)
{
	enum { MOST_STEPS = 1 << 12 };
	const struct region *region = image_find(image, address);

	for (size_t i = 0; list && region && i < list->count; i++) {
		const struct object_pages *pages = list->spaces[i]->runtime->pages;
		uint64_t least = pages && pages->use ? pages->alignment[0] : 0;
		uint64_t page = least ? address & ~(least - 1) : 0;
		const char *known = memory_use(list, i, address);

		if (known)
			return known;
		for (size_t step = 0; least && step < MOST_STEPS && page >= region->start;
		     step++, page -= least)
			if (address - page < pages->measure(image, page))
				return pages->use(image, page);
	}
	return NULL;
}

bool runtimes_is_part(const struct runtimes *list, uint64_t number)
{
	const struct object_space *space = find_space(list, number);

	return space && is_part(space, number);
}

bool runtimes_part_of(const struct runtimes *list, allocation_id id, struct object_part *ret)
{
	objects_for_each(space, list) {
		const struct runtime_layout *layout = space->runtime->layout;

		if (layout && layout->part_of && layout->part_of(space, id, ret))
			return true;
	}
	return false;
}

size_t runtimes_class_count(const struct runtimes *list)
{
	size_t count = 0;

	objects_for_each(space, list)
		count += space->classes.list.count;
	return count;
}

const char *object_class_name(struct object_space *space, uint64_t number,
			      enum class_name_kind *ret_kind)
{
	uint32_t place = address_map_find(&space->classes.places, number);
	struct object_class *class;

	if (place == NOT_IN_MAP)
		return space->runtime->class_name(space, number, ret_kind);
	class = &space->classes.list.items[place];
	if (!class->name)
		class->name = space->runtime->class_name(space, number, &class->kind);
	*ret_kind = class->kind;
	return class->name;
}

const char *object_class_name_at(struct object_space *space, allocation_id id)
{
	enum class_name_kind kind;

	return object_class_name(space, object_class_of(space, id), &kind);
}

const char *runtimes_class_name(const struct runtimes *list, uint64_t number,
				enum class_name_kind *ret_kind)
{
	struct object_space *space = find_space(list, number);

	return space ? object_class_name(space, number, ret_kind) : NULL;
}

bool runtimes_visit_bases(const struct runtimes *list, uint64_t number,
			  bool (*visit)(void *data, const char *name), void *data)
{
	struct object_space *space = find_space(list, number);

	return space && space->runtime->visit_bases &&
	       space->runtime->visit_bases(space, number, visit, data);
}

struct error *runtimes_visit_code(const struct runtimes *list, object_code_visitor *visit,
				  void *data)
{
	objects_for_each(space, list)
		if (space->runtime->calls && space->runtime->calls->visit_code)
			TRY(space->runtime->calls->visit_code(space, visit, data));
	return NULL;
}

const char *runtimes_field_name(const struct runtimes *list, allocation_id id, uint64_t offset)
{
	uint64_t number = runtimes_have_objects(list) ? runtimes_class_of(list, id) : 0;
	struct object_space *space = find_space(list, number);

	return space && space->runtime->layout
		       ? space->runtime->layout->field_name(space, number, offset)
		       : NULL;
}

struct error *runtimes_visit_members(const struct runtimes *list, allocation_id id,
				     bool with_content,
				     bool (*visit)(void *data, const struct runtime_member *member),
				     void *data)
{
	struct object_space *space = runtimes_space_of(list, id);

	return space && space->runtime->visit_members
		       ? space->runtime->visit_members(space, id, with_content, visit, data)
		       : NULL;
}

static bool note_member(void *data, const struct runtime_member *member)
{
	(void)member;
	*(bool *)data = true;
	return false;
}

bool runtimes_have_members(const struct runtimes *list, allocation_id id)
{
	bool found = false;

	return !runtimes_visit_members(list, id, false, note_member, &found) && found;
}

bool runtimes_have_fields(const struct runtimes *list, allocation_id id)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space && space->runtime->layout;
}

const char *runtimes_type_name(const struct runtimes *list, allocation_id id)
{
	enum class_name_kind kind = CLASS_NUMBERED;
	const char *name;

	if (!runtimes_have_fields(list, id))
		return NULL;
	name = runtimes_class_name(list, runtimes_class_of(list, id), &kind);
	return kind == CLASS_NAMED ? name : NULL;
}

size_t runtimes_find_makers(const struct runtimes *list, uint64_t number,
			    const char *ret[static MOST_OBJECT_MAKERS])
{
	struct object_space *space = find_space(list, number);

	return space && space->runtime->layout && space->runtime->layout->find_makers
		       ? space->runtime->layout->find_makers(space, number, ret)
		       : 0;
}

bool runtimes_text(const struct runtimes *list, allocation_id id, uint64_t *ret_start,
		   uint64_t *ret_size)
{
	const struct object_space *space = runtimes_space_of(list, id);

	return space && space->runtime->text &&
	       space->runtime->text(space, id, ret_start, ret_size);
}

bool runtimes_own_code(const struct runtimes *list, const char *name)
{
	spaces_for_each(space, list) {
		const char *own = space->runtime->own_code;

		for (size_t length; own && *own; own += length + (own[length] == '|')) {
			length = strcspn(own, "|");
			if (strncmp(name, own, length) == 0)
				return true;
		}
	}
	return false;
}

bool runtimes_have_frames(const struct runtime *const *kinds, const struct program *program)
{
	for (size_t i = 0; kinds[i]; i++)
		if (kinds[i]->calls && kinds[i]->calls->visit_frames &&
		    runtime_is_loaded(kinds[i], program))
			return true;
	return false;
}

struct error *runtimes_visit_frames(const struct runtimes *list, size_t number, uint32_t thread,
				    const struct frame_visitor *visitor)
{
	struct object_space *space = list->spaces[number];
	const struct runtime_calls *calls = space->runtime->calls;

	return space->has_objects && calls && calls->visit_frames
		       ? calls->visit_frames(space, thread, visitor)
		       : NULL;
}

struct error *runtimes_visit_tasks(const struct runtimes *list, size_t number,
				   const struct task_visitor *visitor)
{
	struct object_space *space = list->spaces[number];
	const struct runtime_calls *calls = space->runtime->calls;

	return space->has_objects && calls && calls->visit_tasks
		       ? calls->visit_tasks(space, visitor)
		       : NULL;
}

struct error *runtimes_find_exception(const struct runtimes *list, size_t number, uint32_t thread,
				      const struct frame_visitor *visitor,
				      struct runtime_exception *ret)
{
	struct object_space *space = list->spaces[number];
	const struct runtime_calls *calls = space->runtime->calls;

	*ret = (struct runtime_exception){ 0 };
	return calls && calls->find_exception && (space->has_objects || !calls->visit_frames)
		       ? calls->find_exception(space, thread, visitor, ret)
		       : NULL;
}

struct error *runtimes_visit_fiber_frames(const struct runtimes *list, const struct fiber *fiber,
					  const struct frame_visitor *visitor)
{
	struct object_space *space = runtimes_space(list, fiber->runtime);

	return space && fiber->runtime->fibers->visit_fiber_frames
		       ? fiber->runtime->fibers->visit_fiber_frames(space, fiber, visitor)
		       : NULL;
}

const struct noting *runtimes_noting(const struct runtimes *list, size_t number, void **ret_owner)
{
	*ret_owner = list->spaces[number];
	return list->spaces[number]->runtime->noting;
}
