/*
 * Tasks of asyncio, from 3.8 on. Modules/_asynciomodule.c: behind what a future has, a task has
 *
 *	| future it waits for | coroutine | name | context | ...
 *
 * which are found by the coroutine. That awaits another one, and the last one an object of C: an
 * iterator or a wrapper, behind whose head the future, or one more coroutine or generator, stands.
 *
 * Greenlets, from 2.0 on: behind its head, a greenlet has weak references, a dictionary, and the
 * address of the rest, which has the frame object that it waits in (src/greenlet/greenlet.cpp).
 */
#include "analyzer/runtimes/python/objects.h"
#include "analyzer/runtimes/python/space.h"
#include "analyzer/runtimes/python/values.h"

#include <string.h>

enum {
	WORD = 8,
	HEAD = 2 * WORD, /* of an object */
	MOST_CHAIN = 1 << 10,
	MOST_CLASSES = 64, /* of tasks */
	MOST_TEXT = 256,
};

struct task_reader {
	struct view view;
	struct python *python;
	const struct task_visitor *visitor;
	struct task_class {
		uint32_t number;
		bool is_greenlet;
	} classes[MOST_CLASSES];
	size_t class_count;
};

/* An object by its address; NULL: it is none that an allocation has. */
static const struct python_type *object_at(const struct python *python, uint64_t address,
					   allocation_id *ret)
{
	allocation_id id = allocation_find(python->space.index, address);
	const struct python_type *type = id == NO_ALLOCATION ? NULL : python_type_of(python, id);

	*ret = id;
	return type && python_object_at(python, id) == address ? type : NULL;
}

static bool is_coroutine(const struct python *python, uint64_t address)
{
	allocation_id id;
	const struct python_type *type = object_at(python, address, &id);

	return type && type->kind == PYTHON_GENERATOR;
}

static uint64_t size_of(const struct python *python, uint64_t object)
{
	const struct allocation_index *index = python->space.index;
	size_t hint = 0;

	return allocation_range_near(index, allocation_find(index, object), &hint).end - object;
}

static bool has_name(void *data, const char *name)
{
	return strcmp(name, data) == 0;
}

static struct error *find_classes(struct task_reader *reader)
{
	static const char *const names[] = { "_asyncio.Task", "greenlet.greenlet" };
	struct python_types *types = &reader->python->types;

	for (uint32_t i = 0; i < types->list.count && reader->class_count < MOST_CLASSES; i++) {
		const char *name = python_types_name(types, i);

		TRY_MEMORY(name);
		for (size_t j = 0; j < COUNT_OF(names); j++)
			if (reader->class_count < MOST_CLASSES &&
			    (strcmp(names[j], name) == 0 ||
			     python_types_visit_bases(types, i, has_name, (void *)names[j])))
				reader->classes[reader->class_count++] =
					(struct task_class){ i + 1, j > 0 };
	}
	return NULL;
}

/* NULL: it is neither a task nor a greenlet. */
static const struct task_class *task_class_of(const struct task_reader *reader, allocation_id id)
{
	uint32_t number = python_number_of(reader->python, id);

	for (size_t i = 0; number && i < reader->class_count; i++)
		if (reader->classes[i].number == number)
			return &reader->classes[i];
	return NULL;
}

static bool is_task(const struct task_reader *reader, allocation_id id)
{
	const struct task_class *class = task_class_of(reader, id);

	return class && !class->is_greenlet;
}

/* The place of the coroutine in the task, or 0. */
static uint64_t find_coroutine(struct task_reader *reader, uint64_t task, uint64_t *ret)
{
	uint64_t size = size_of(reader->python, task);

	for (uint64_t at = HEAD; at + WORD <= size; at += WORD)
		if (view_word(&reader->view, task + at, ret) && *ret &&
		    is_coroutine(reader->python, *ret))
			return task + at;
	return 0;
}

/* The name, which is a number from 3.12 on until somebody asks for it. */
static void read_name(struct task_reader *reader, uint64_t place, char *ret, size_t size)
{
	static const char usual[] = "Task-";
	const struct python_layout *layout = reader->python->threads.layout;
	uint64_t name;

	ret[0] = '\0';
	if (!view_word(&reader->view, place, &name) ||
	    python_read_text(&reader->view, layout->string_head, name, ret, size))
		return;
	memcpy(ret, usual, sizeof(usual));
	if (!python_tell_value(&reader->view, layout->string_head, name, "int",
			       ret + sizeof(usual) - 1, size - sizeof(usual) + 1))
		ret[0] = '\0';
}

/* Append the coroutines that await each other; sets the object that the last one awaits, or 0. */
static size_t find_chain(struct task_reader *reader, uint64_t coroutine,
			 uint64_t chain[static MOST_CHAIN], uint64_t *ret_awaited)
{
	struct python *python = reader->python;
	uint64_t awaited = coroutine, behind;
	size_t count = 0;

	while (count < MOST_CHAIN && is_coroutine(python, awaited)) {
		chain[count++] = awaited;
		awaited = python_frames_awaited(&python->threads, &python->types, awaited,
						size_of(python, awaited));
		if (!is_coroutine(python, awaited) && awaited % WORD == 0 &&
		    view_word(&reader->view, awaited + HEAD, &behind) &&
		    is_coroutine(python, behind))
			awaited = behind;
	}
	*ret_awaited = awaited;
	return count;
}

static const char *class_of(const struct task_reader *reader, allocation_id id)
{
	struct python *python = reader->python;

	return python_types_name(&python->types, python_number_of(python, id) - 1);
}

/* Say what the task waits for: the future behind an iterator, or the object itself. */
static void tell_awaited(struct task_reader *reader, uint64_t awaited, struct runtime_task *task,
			 char *name, size_t size)
{
	uint64_t behind, coroutine, place;
	allocation_id id, other;

	if (!object_at(reader->python, awaited, &id))
		return;
	if (strstr(class_of(reader, id), "Iter") &&
	    view_word(&reader->view, awaited + HEAD, &behind) &&
	    object_at(reader->python, behind, &other)) {
		awaited = behind;
		id = other;
	}
	task->awaited = awaited;
	task->awaited_class = class_of(reader, id);
	place = is_task(reader, id) ? find_coroutine(reader, awaited, &coroutine) : 0;
	if (!place)
		return;
	read_name(reader, place + WORD, name, size);
	task->awaited_name = name;
}

static struct error *visit_task(struct task_reader *reader, allocation_id id)
{
	struct python *python = reader->python;
	uint64_t chain[MOST_CHAIN], coroutine = 0, awaited = 0;
	uint64_t address = python_object_at(python, id);
	uint64_t place = find_coroutine(reader, address, &coroutine);
	char name[MOST_TEXT], awaited_name[MOST_TEXT];
	struct runtime_task task = { .id = id, .address = address };
	enum python_frame_state state;
	size_t count;

	if (!place)
		return NULL;
	state = python_frames_state(&python->threads, &python->types, coroutine,
				    size_of(python, coroutine));
	if (state == PYTHON_FRAME_ENDED)
		return NULL;
	count = find_chain(reader, coroutine, chain, &awaited);
	read_name(reader, place + WORD, name, sizeof(name));
	tell_awaited(reader, awaited, &task, awaited_name, sizeof(awaited_name));
	task.name = *name ? name : NULL;
	task.class_name = class_of(reader, id);
	task.is_running = state == PYTHON_FRAME_RUNS;
	TRY(reader->visitor->task(reader->visitor->frames.data, &task));
	for (size_t i = count; i-- > 0;)
		TRY(python_frames_visit_coroutine(&python->threads, &python->types, chain[i],
						  size_of(python, chain[i]), count - 1 - i,
						  &reader->visitor->frames));
	return reader->visitor->end(reader->visitor->frames.data);
}

/* The first frame object behind the rest's start is the one that it waits in; 0: it does not. */
static uint64_t find_waiting(struct task_reader *reader, uint64_t greenlet)
{
	enum { REST = HEAD + 2 * WORD, MOST_REST = 192 };
	uint64_t rest, word;
	allocation_id id;

	if (!view_word(&reader->view, greenlet + REST, &rest) || rest % WORD != 0)
		return 0;
	for (uint64_t at = 0; at < MOST_REST && view_word(&reader->view, rest + at, &word);
	     at += WORD) {
		const struct python_type *type = object_at(reader->python, word, &id);

		if (type && type->kind == PYTHON_FRAME)
			return word;
	}
	return 0;
}

static struct error *visit_greenlet(struct task_reader *reader, allocation_id id)
{
	struct python *python = reader->python;
	struct runtime_task task = {
		.kind = "Greenlet",
		.id = id,
		.address = python_object_at(python, id),
		.class_name = class_of(reader, id),
	};
	uint64_t frame = find_waiting(reader, task.address);

	if (!frame)
		return NULL;
	TRY(reader->visitor->task(reader->visitor->frames.data, &task));
	TRY(python_frames_visit_greenlet(&python->threads, &python->types, python->space.program,
					 frame, &reader->visitor->frames));
	return reader->visitor->end(reader->visitor->frames.data);
}

static struct error *do_nothing(uint64_t state, void *data)
{
	return NULL;
}

struct error *python_visit_tasks(struct object_space *space, const struct task_visitor *visitor)
{
	struct python *python = (struct python *)space;
	struct task_reader reader = {
		.view = { space->image },
		.python = python,
		.visitor = visitor,
	};

	TRY(python_threads_visit(&python->threads, &python->types, space->program, do_nothing,
				 NULL));
	if (!python->threads.layout)
		return NULL;
	TRY(find_classes(&reader));
	bitmap_for_each(id, allocation_used(space->index)) {
		const struct task_class *class = task_class_of(&reader, (allocation_id)id);

		if (class)
			TRY(class->is_greenlet ? visit_greenlet(&reader, (allocation_id)id)
					       : visit_task(&reader, (allocation_id)id));
	}
	return NULL;
}
