#include "analyzer/runtimes/object_links.h"

#include <inttypes.h>

uint64_t object_target(const struct object_space *space, allocation_id id)
{
	const struct runtime_links *links = space->runtime->links;

	return links && links->target_of ? links->target_of(space, id)
					 : allocation_start(space->index, id);
}

allocation_id object_find(const struct object_space *space, uint64_t target)
{
	allocation_id id = allocation_find(space->index, target);

	return id != NO_ALLOCATION && object_class_of(space, id) &&
			       object_target(space, id) == target
		       ? id
		       : NO_ALLOCATION;
}

static struct error *find_names(struct object_space *space, struct bitmap *ret,
				struct error *(*find)(struct object_naming *naming))
{
	struct object_naming naming = { space, { space->image }, ret };
	struct error *error = find(&naming);

	return error_first(error, naming.error);
}

struct error *object_find_globals(struct object_space *space, struct bitmap *ret)
{
	space->names.count = 0;
	space->steps.left = space->image->size; /* eight for each word */
	return find_names(space, ret, space->runtime->links->find_globals);
}

struct error *object_find_locals(struct object_space *space, struct bitmap *ret)
{
	return space->runtime->links->find_locals
		       ? find_names(space, ret, space->runtime->links->find_locals)
		       : NULL;
}

void object_name(struct object_naming *naming, uint64_t target, const char *format, ...)
{
	struct object_space *space = naming->space;
	struct object_name name = { .id = object_find(space, target) };

	if (naming->error || name.id == NO_ALLOCATION || bitmap_get(naming->named, name.id))
		return;
	name.text = name_pool_keep(&space->texts, FORMATTED(format));
	bitmap_set(naming->named, name.id);
	naming->error = name.text ? array_append(&space->names, name) : &error_no_memory;
}

void object_name_frame(void *data, const struct runtime_frame *frame)
{
	struct object_naming *naming = data;

	snprintf(naming->scope, sizeof(naming->scope), "%s",
		 frame->function ? frame->function : "?");
}

void object_name_local(void *data, const struct runtime_local *local)
{
	struct object_naming *naming = data;

	object_name(naming, local->address, "%s.<locals>.%s", naming->scope, local->name);
}

struct object_walk object_walk_begin(struct object_space *space, object_link_visitor *visit,
				     void *data)
{
	enum { MOST_STEPS = 1 << 25 };

	return (struct object_walk){ space, { space->image }, visit, data, { MOST_STEPS } };
}

struct error *object_visit_items(struct object_space *space, allocation_id id,
				 object_link_visitor *visit, void *data)
{
	struct object_walk walk = object_walk_begin(space, visit, data);

	walk.with_values = true;
	if (space->runtime->links)
		space->runtime->links->walk_links(&walk, id);
	return walk.error;
}

struct visiting {
	struct object_space *space;
	struct view view;
	object_visitor *visit;
	void *data;
	struct error *error;
};

static bool visit_link(void *data, const struct object_link *link)
{
	struct visiting *visiting = data;
	struct object_space *space = visiting->space;
	allocation_id id = object_find(space, link->target);

	if (id != NO_ALLOCATION && !(space->runtime->links->skips &&
				     space->runtime->links->skips(space, &visiting->view, link)))
		visiting->error = visiting->visit(visiting->data, id, link->place);
	return visiting->error != NULL;
}

struct error *object_visit_references(struct object_space *space, allocation_id id,
				      object_visitor *visit, void *data)
{
	struct visiting visiting = { space, { space->image }, visit, data, NULL };
	struct object_walk walk = object_walk_begin(space, visit_link, &visiting);

	walk.steps = space->steps;
	space->runtime->links->walk_links(&walk, id);
	space->steps = walk.steps;
	return error_first(walk.error, visiting.error);
}

/* # is the number, @ the name. */
static void tell_text(struct object_path *path, const char *text, uint64_t number, const char *name)
{
	for (; *text; text++)
		if (*text == '#')
			path_add(path, "%" PRIu64, number);
		else if (*text == '@')
			path_add(path, "%s", name);
		else
			path_add(path, "%c", *text);
}

bool object_tell_step(struct object_path *path, const struct object_link *link)
{
	const struct runtime_links *links = path->space->runtime->links;
	const struct object_step *step = &links->steps[link->kind];

	path->name[0] = '\0';
	if (links->tell_step && !links->tell_step(path, link))
		return false;
	if (step->text)
		tell_text(path, step->text, link->number,
			  path->name[0] ? path->name
			  : link->name	? link->name
					: "?");
	return true;
}

static bool tell_link(void *data, const struct object_link *link)
{
	struct object_path *path = data;

	return link->target == path->target && object_tell_step(path, link);
}

void object_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		      bool with_content, char *ret, size_t size)
{
	struct object_path path = {
		.text = ret,
		.size = size,
		.space = space,
		.view = { space->image },
		.with_content = with_content,
	};
	struct object_walk walk;

	ret[0] = '\0';
	array_for_each(name, &space->names)
		if (name->id == ids[0]) {
			path_add(&path, "%s", name->text);
			break;
		}
	for (size_t i = 0; i + 1 < count; i++) {
		path.is_first = i == 0;
		path.id = ids[i];
		path.source = object_target(space, ids[i]);
		path.target = object_target(space, ids[i + 1]);
		walk = object_walk_begin(space, tell_link, &path);
		space->runtime->links->walk_links(&walk, ids[i]);
		error_destroy(walk.error);
	}
}
