/*
 * The exception that nobody catches: V8 makes a JSMessageObject of it, src/objects/js-objects.tq,
 * which the innermost of the thread's calls in C++ have in a handle, the address of a word.
 *
 *	| map | properties | elements | type | exception | script | trace | function | code |
 *	place | ...
 */
#include "analyzer/runtimes/node/node.h"
#include "analyzer/runtimes/object_links.h"

#include <string.h>

enum { EXCEPTION = 32, SCRIPT = 40, FUNCTION = 56, PLACE = 72, LINE_ENDS = 56 };

static bool is_message(struct v8_reader *reader, uint64_t word)
{
	struct v8_map map;

	return v8_map_of(reader, word, &map) && map.type == reader->layout->message_type;
}

/* The message that the word is the address of a handle of; 0: it is none. */
static uint64_t follow(struct v8_reader *reader, uint64_t handle)
{
	uint64_t word;

	return handle && handle % V8_WORD == 0 && view_word(&reader->view, handle, &word) &&
			       is_message(reader, word)
		       ? word
		       : 0;
}

/* The tagged address of the message that the thread's calls refer to first; 0: to none. */
static uint64_t find_message(struct v8_reader *reader, const struct thread *thread)
{
	enum { MOST = 8192 };
	struct view stack = reader->view;
	uint64_t place = thread->stack_pointer, word, found = 0;

	for (size_t i = 0; i < MOST_REGISTERS && !found; i++)
		found = follow(reader, thread->registers[i]);
	for (int i = 0; i < MOST && !found && view_word(&stack, place, &word); i++) {
		found = follow(reader, word);
		place += V8_WORD;
	}
	return found;
}

struct wanted {
	struct v8_reader *reader;
	char *ret;
	size_t size;
};

static bool keep_message(void *data, uint64_t name, uint64_t value)
{
	struct wanted *wanted = data;
	char text[sizeof("message") + 1];

	return v8_read_text(wanted->reader, name, text, sizeof(text)) &&
	       strcmp(text, "message") == 0 &&
	       v8_read_text(wanted->reader, value, wanted->ret, wanted->size);
}

/* The line of that place in the script, by the ends of all lines; 0: V8 did not ask for it yet. */
static uint64_t find_line(struct v8_reader *reader, uint64_t script, uint32_t place)
{
	enum { LENGTH = 8, ITEMS = 16 };
	uint64_t ends, low = 0, high, end;
	struct v8_map map;

	if (!view_word(&reader->view, script - V8_STRONG + LINE_ENDS, &ends) ||
	    !v8_map_of(reader, ends, &map) || map.type >= V8_TYPES ||
	    reader->layout->rules[map.type] != V8_ARRAY ||
	    !view_word(&reader->view, ends - V8_STRONG + LENGTH, &high))
		return 0;
	high >>= 32;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (!view_word(&reader->view, ends - V8_STRONG + ITEMS + V8_WORD * middle, &end))
			return 0;
		if (place > end >> 32)
			low = middle + 1;
		else
			high = middle;
	}
	return high ? low + 1 : 0;
}

/* While the place is not asked for, the message has the function. */
static void visit_place(struct v8_reader *reader, uint64_t message,
			const struct frame_visitor *visitor)
{
	char name[NODE_MOST_NAME], file[NODE_MOST_NAME];
	struct runtime_frame frame = { 0 };
	uint64_t script, shared, place;

	if (!view_word(&reader->view, message - V8_STRONG + SCRIPT, &script) ||
	    !view_word(&reader->view, message - V8_STRONG + FUNCTION, &shared) ||
	    !view_word(&reader->view, message - V8_STRONG + PLACE, &place) ||
	    !node_read_file(reader, script, file, sizeof(file)))
		return;
	frame.file = file;
	if (node_read_shared(reader, shared, name, sizeof(name)))
		frame.function = name;
	if ((int64_t)place >= 0)
		frame.line = find_line(reader, script, (uint32_t)(place >> 32));
	visitor->frame(visitor->data, &frame);
}

/* V8 replaces an exception that it reports by its text, "TypeError: text". */
static struct error *cut_class(struct object_space *space, struct runtime_exception *ret)
{
	static const char error[] = "Error";
	char *colon = strstr(ret->message, ": ");
	size_t length = colon ? (size_t)(colon - ret->message) : 0;

	if (length < strlen(error) || strcspn(ret->message, " ") < length ||
	    memcmp(colon - strlen(error), error, strlen(error)) != 0)
		return NULL;
	ret->class_name = name_pool_print(&space->texts, "%.*s", (int)length, ret->message);
	TRY_MEMORY(ret->class_name);
	memmove(ret->message, colon + 2, strlen(colon + 2) + 1);
	return NULL;
}

struct error *node_find_exception(struct object_space *space, uint32_t thread,
				  const struct frame_visitor *visitor,
				  struct runtime_exception *ret)
{
	struct node *node = (struct node *)space;
	struct v8_reader reader = { { space->image } };
	struct wanted wanted = { &reader, ret->message, sizeof(ret->message) };
	uint64_t message, exception, class;
	enum class_name_kind kind;
	allocation_id id;

	/* Also called where V8's heap could not be read. */
	if (!space->has_objects || !node->parts->layout.message_type)
		return NULL;
	reader.layout = &node->parts->layout;
	message = find_message(&reader, &space->program->threads[thread]);
	if (!message || !view_word(&reader.view, message - V8_STRONG + EXCEPTION, &exception))
		return NULL;
	ret->state = "uncaught";
	id = object_find(space, exception);
	class = id == NO_ALLOCATION ? 0 : object_class_of(space, id);
	if (v8_read_text(&reader, exception, ret->message, sizeof(ret->message))) {
		TRY(cut_class(space, ret));
	} else if (class) {
		ret->class_name = object_class_name(space, class, &kind);
		TRY_MEMORY(ret->class_name);
		node_visit_properties(&reader, exception - V8_STRONG, keep_message, &wanted);
	}
	visit_place(&reader, message, visitor);
	return NULL;
}
