/*
 * Include/cpython/pystate.h: each thread that runs Python has a PyThreadState, in one list:
 *
 *	| previous | next | interpreter | ... frame ... thread_id ... native_thread_id ...
 *
 * thread_id is what pthread_self() returns: the thread's pointer, by which a state is recognised.
 * Variables of the interpreter lead to one at least: to the first of the list where they are within
 * _PyRuntime, else to the last one that held the lock of the interpreter (GIL).
 *
 * The frame is a frame object up to 3.10, and from 3.11 on a _PyInterpreterFrame of
 * Include/internal/pycore_frame.h. Its versions are rows of a table; that row is taken with which
 * frames of the states have code that is valid. 3.14 marks references by their lowest bits.
 */
#include "analyzer/runtimes/python/frames.h"

#include "analyzer/base/macros.h"
#include "analyzer/runtimes/python/layouts.h"
#include "analyzer/runtimes/python/values.h"

enum {
	WORD = 8,
	PREVIOUS = 0, /* of a state */
	NEXT = 8,
	INTERPRETER = 16,
	ID_FIRST = 64, /* where thread_id may be */
	ID_END = 320,
	LENGTH = 16, /* of a tuple, of bytes */
	ITEMS = 24,
	BYTES = 32,
	CONTENT = 16, /* of a cell */
	MOST_STATES = 1 << 16,
	MOST_FRAMES = 1 << 20,
	MOST_LOCALS = 1 << 12,
	MOST_TEXT = 512,
	MOST_VALUE = 80,
};

static const uint64_t TAG = 3, BYTES_FLAG = 1 << 27, TUPLE_FLAG = 1 << 26, ERROR_FLAG = 1 << 30;

struct reading {
	struct view view;
	struct python_types *types;
	const struct program *program;
	const struct python_layout *layout;
	const struct frame_visitor *visitor;
	uint64_t self; /* the thread's pthread_self(); 0: of any thread */
	/* The calls are of a greenlet: what frames they had on the thread's stack is not there. */
	bool is_apart;
	struct error *error;
};

static bool read_int(struct reading *reading, uint64_t address, uint32_t *ret)
{
	return view_read(&reading->view, address, ret, sizeof(*ret));
}

/* From 3.11 on, one tuple names all; before, one each those of the function, shared and outer. */
static const unsigned int name_order[] = { 0, 2 * WORD, WORD };

static size_t name_tuples(const struct python_layout *layout)
{
	return layout->line_table == LINES_LOCATED ? 1 : COUNT_OF(name_order);
}

/* True if the frame's variables end where a frame object, up to 3.10, has its stack of values. */
static bool ends_at_values(struct reading *reading, uint64_t frame, uint64_t code)
{
	enum { VALUES = 64 };
	const struct python_layout *layout = reading->layout;
	uint64_t end = frame + layout->locals, values, tuple, length;

	if (layout->line_table == LINES_LOCATED)
		return true;
	for (size_t i = 0; i < COUNT_OF(name_order); i++) {
		if (!view_word(&reading->view, code + layout->names + name_order[i], &tuple) ||
		    !python_has_flag(&reading->view, tuple, TUPLE_FLAG) ||
		    !view_word(&reading->view, tuple + LENGTH, &length))
			return false;
		end += WORD * length;
	}
	return view_word(&reading->view, frame + VALUES, &values) && values == end;
}

/* True if the word at place refers to an object of a type with that flag. */
static bool leads_to(struct reading *reading, uint64_t place, uint64_t flag)
{
	uint64_t object;

	return view_word(&reading->view, place, &object) &&
	       python_has_flag(&reading->view, object, flag);
}

/* The code that a frame is in; 0: none that is valid. */
static uint64_t code_of(struct reading *reading, uint64_t frame)
{
	const struct python_layout *layout = reading->layout;
	uint64_t code;
	uint32_t first_line;
	bool is_valid;

	if (frame == 0 || frame % WORD != 0 ||
	    !view_word(&reading->view, frame + layout->code, &code))
		return 0;
	code &= ~TAG;
	is_valid = code != 0 && code % WORD == 0 &&
		   leads_to(reading, code + layout->file, TYPE_STRING) &&
		   leads_to(reading, code + layout->name, TYPE_STRING) &&
		   leads_to(reading, code + layout->lines, BYTES_FLAG) &&
		   leads_to(reading, code + layout->names, TUPLE_FLAG) &&
		   read_int(reading, code + layout->first_line, &first_line) &&
		   first_line <= INT32_MAX && ends_at_values(reading, frame, code);
	return is_valid ? code : 0;
}

/* True if the frame is no function's but the interpreter's own, at each entry from C. */
static bool is_entry(struct reading *reading, uint64_t frame)
{
	enum { FIRST_OF_INTERPRETER = 3 };
	uint8_t owner;

	return reading->layout->owner != NO_OFFSET &&
	       view_read(&reading->view, frame + reading->layout->owner, &owner, 1) &&
	       owner >= FIRST_OF_INTERPRETER;
}

/* The calling frame, without the interpreter's own. */
static uint64_t skip_entries(struct reading *reading, uint64_t frame)
{
	for (int i = 0; i < MOST_STATES && frame != 0 && is_entry(reading, frame); i++)
		if (!view_word(&reading->view, frame + reading->layout->back, &frame))
			return 0;
	return frame;
}

/* The innermost frame of a state; 0: none. */
static uint64_t frame_of(struct reading *reading, uint64_t state)
{
	const struct python_layout *layout = reading->layout;
	uint64_t frame;

	if (!view_word(&reading->view, state + layout->frame, &frame) ||
	    (layout->inner != NO_OFFSET &&
	     !view_word(&reading->view, frame + layout->inner, &frame)))
		return 0;
	return skip_entries(reading, frame);
}

/* The result of pthread_self() in that thread, or 0. */
static uint64_t self_of(const struct program *program, size_t thread)
{
	uint64_t pointer = program->threads[thread].thread_pointer;

	return pointer ? thread_descriptor(program, pointer) : 0;
}

/* The index of the thread that pthread_self() returns the word for; NO_THREAD: of none. */
static uint32_t thread_of(const struct program *program, uint64_t word)
{
	for (uint32_t i = 0; word && i < program->thread_count; i++)
		if (self_of(program, i) == word)
			return i;
	return NO_THREAD;
}

static bool is_self(const struct reading *reading, uint64_t word)
{
	return reading->self ? word == reading->self
			     : thread_of(reading->program, word) != NO_THREAD;
}

/* True if the state belongs to that thread, or to any. */
static bool is_of_thread(struct reading *reading, uint64_t state)
{
	for (uint64_t at = ID_FIRST; at < ID_END; at += WORD) {
		uint64_t word;

		if (!view_word(&reading->view, state + at, &word))
			return false;
		if (is_self(reading, word))
			return true;
	}
	return false;
}

uint32_t python_threads_owner(const struct program *program, const struct image *image,
			      uint64_t state)
{
	struct view view = { image };
	uint32_t thread = NO_THREAD;
	uint64_t word;

	for (uint64_t at = ID_FIRST;
	     at < ID_END && thread == NO_THREAD && view_word(&view, state + at, &word); at += WORD)
		thread = thread_of(program, word);
	return thread;
}

/* True if the neighbour in the list, if there is one, points back. */
static bool leads_back(struct reading *reading, uint64_t state, uint64_t there, uint64_t back)
{
	uint64_t other, word;

	return view_word(&reading->view, state + there, &other) &&
	       (other == 0 || (other % WORD == 0 && other != state &&
			       view_word(&reading->view, other + back, &word) && word == state));
}

/* Find a state in the list of that one, towards next or previous, and its frame. */
static uint64_t find_state(struct reading *reading, uint64_t state, uint64_t towards,
			   uint64_t *ret_frame)
{
	for (int i = 0; i < MOST_STATES && state != 0; i++) {
		*ret_frame = frame_of(reading, state);
		if ((!reading->self || is_of_thread(reading, state)) &&
		    code_of(reading, *ret_frame))
			return state;
		if (!view_word(&reading->view, state + towards, &state) || state % WORD != 0)
			break;
	}
	return 0;
}

static bool find_layout(struct reading *reading, uint64_t state)
{
	uint64_t frame;

	for (size_t i = 0; i < COUNT_OF(python_layouts); i++) {
		reading->layout = &python_layouts[i];
		if (find_state(reading, state, NEXT, &frame) ||
		    find_state(reading, state, PREVIOUS, &frame))
			return true;
	}
	return false;
}

static bool is_state(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct reading *reading = data;
	uint64_t interpreter, self;

	return word != 0 && word % WORD == 0 &&
	       view_word(&reading->view, word + INTERPRETER, &interpreter) && interpreter != 0 &&
	       interpreter % WORD == 0 && view_word(&reading->view, interpreter, &self) &&
	       leads_back(reading, word, NEXT, PREVIOUS) &&
	       leads_back(reading, word, PREVIOUS, NEXT) && is_of_thread(reading, word) &&
	       find_layout(reading, word);
}

/* Search the interpreter's threads, once. */
static void find_threads(struct python_threads *threads, struct reading *reading)
{
	uint64_t place;

	if (threads->is_searched)
		return;
	threads->is_searched = true;
	place = module_data_search(reading->view.image, reading->program, is_state, reading);
	if (place && view_word(&reading->view, place, &threads->state))
		threads->layout = reading->layout;
}

/*
 * Read a number of 6 bits from each byte, the lowest first, until one has the next bit clear; with
 * a sign, that is its lowest bit.
 */
static int64_t read_signed(const uint8_t *bytes, size_t count, size_t *at)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (*at >= count)
			return 0;
		byte = bytes[(*at)++];
		if (shift < 60)
			value |= (uint64_t)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40);
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Each entry is | 1, what it tells: 4 bits, units less 1: 3 bits | what the 4 bits say |. */
static int64_t located_line(const uint8_t *bytes, size_t count, int64_t line, int64_t wanted)
{
	enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG, NO_LINE, UNIT = 2 };
	int64_t offset = 0;

	for (size_t i = 0; i < count;) {
		unsigned int kind = bytes[i] >> 3 & 0xf;

		offset += UNIT * ((bytes[i++] & 7) + 1);
		if (kind == NO_COLUMNS || kind == LONG)
			line += read_signed(bytes, count, &i);
		else if (kind >= ONE_LINE && kind < NO_COLUMNS)
			line += kind - ONE_LINE;
		if (wanted < offset)
			return kind == NO_LINE ? 0 : line;
		while (i < count && !(bytes[i] & 0x80))
			i++;
	}
	return 0;
}

/* Pairs of bytes: how far a range reaches, and by how much its line is higher; -128 has none. */
static int64_t ranged_line(const uint8_t *bytes, size_t count, int64_t line, int64_t wanted)
{
	int64_t offset = 0;

	for (size_t i = 0; i + 1 < count; i += 2) {
		int8_t step = (int8_t)bytes[i + 1];

		offset += bytes[i];
		if (step != INT8_MIN)
			line += step;
		if (wanted < offset)
			return step == INT8_MIN ? 0 : line;
	}
	return 0;
}

/* Pairs of bytes: how far away the next line begins, and by how much it is higher. */
static int64_t counted_line(const uint8_t *bytes, size_t count, int64_t line, int64_t wanted)
{
	int64_t offset = 0;

	for (size_t i = 0; i + 1 < count; i += 2) {
		offset += bytes[i];
		if (wanted < offset)
			break;
		line += (int8_t)bytes[i + 1];
	}
	return line;
}

/* How many bytes of code are before the instruction that the frame is at. */
static bool read_offset(struct reading *reading, uint64_t frame, uint64_t code, int64_t *ret)
{
	const struct python_layout *layout = reading->layout;
	uint64_t address;
	uint32_t number;

	if (layout->line_table != LINES_LOCATED) {
		if (!read_int(reading, frame + layout->instruction, &number))
			return false;
		*ret = (int64_t)(int32_t)number * (layout->line_table == LINES_RANGED ? 2 : 1);
		return true;
	}
	if (!view_word(&reading->view, frame + layout->instruction, &address))
		return false;
	*ret = (int64_t)(address - code - layout->start);
	return true;
}

/* The line of an instruction behind so many bytes of the code; 0: not known. */
static uint64_t line_at(struct reading *reading, uint64_t code, int64_t offset)
{
	static int64_t (*const read_line[])(const uint8_t *, size_t, int64_t, int64_t) = {
		[LINES_COUNTED] = counted_line,
		[LINES_RANGED] = ranged_line,
		[LINES_LOCATED] = located_line,
	};
	const struct python_layout *layout = reading->layout;
	uint64_t table, length, known;
	const uint8_t *bytes;
	uint32_t first_line;
	int64_t line;

	if (!read_int(reading, code + layout->first_line, &first_line) ||
	    !view_word(&reading->view, code + layout->lines, &table) ||
	    !view_word(&reading->view, table + LENGTH, &length))
		return 0;
	if (offset < 0) /* it is about to begin */
		return first_line;
	bytes = view_bytes(&reading->view, table + BYTES, &known);
	if (!bytes || known < length)
		return 0;
	line = read_line[layout->line_table](bytes, (size_t)length, first_line, offset);
	return line > 0 ? (uint64_t)line : 0;
}

static uint64_t line_of(struct reading *reading, uint64_t frame, uint64_t code)
{
	int64_t offset;

	return read_offset(reading, frame, code, &offset) ? line_at(reading, code, offset) : 0;
}

static const char *kind_of(struct reading *reading, uint64_t code)
{
	enum { GENERATOR = 0x20, COROUTINE = 0x80, ASYNC_GENERATOR = 0x200 };
	uint32_t flags = 0;

	read_int(reading, code + reading->layout->flags, &flags);
	return flags & ASYNC_GENERATOR ? "async generator"
	       : flags & COROUTINE     ? "coroutine"
	       : flags & GENERATOR     ? "generator"
				       : NULL;
}

/* NULL: the object is none, or memory is short, which is an error then. */
static const char *class_of(struct reading *reading, uint64_t object)
{
	uint64_t type;
	uint32_t number = NOT_IN_MAP;
	const char *name;

	if (object % WORD != 0 || !view_word(&reading->view, object + WORD, &type))
		return NULL;
	reading->error = python_types_know(reading->types, &reading->view, type, &number);
	if (reading->error || number == NOT_IN_MAP)
		return NULL;
	name = python_types_name(reading->types, number);
	if (!name)
		reading->error = &error_no_memory;
	return name;
}

/* Variables that functions within share are in cells. */
static void visit_local(struct reading *reading, const char *name, uint64_t object)
{
	unsigned int head = reading->layout->string_head;
	const char *class_name = class_of(reading, object);
	char value[MOST_VALUE];
	struct runtime_local local = { .name = name, .address = object };

	if (class_name && strcmp(class_name, "cell") == 0) {
		if (!view_word(&reading->view, object + CONTENT, &local.address) ||
		    local.address == 0)
			return;
		class_name = class_of(reading, local.address);
	}
	if (reading->error)
		return;
	local.class_name = class_name ? class_name : "no object";
	if (class_name && python_tell_value(&reading->view, head, local.address, class_name, value,
					    sizeof(value)))
		local.value = value;
	reading->visitor->local(reading->visitor->data, &local);
}

/* Visit the variables that a tuple names, whose values begin at place; return where they end. */
static uint64_t visit_names(struct reading *reading, uint64_t tuple, uint64_t place)
{
	uint64_t count, name, object;
	char text[MOST_TEXT];

	if (!python_has_flag(&reading->view, tuple, TUPLE_FLAG) ||
	    !view_word(&reading->view, tuple + LENGTH, &count) || count > MOST_LOCALS)
		return place;
	for (uint64_t i = 0; i < count && !reading->error; i++)
		if (view_word(&reading->view, tuple + ITEMS + WORD * i, &name) &&
		    view_word(&reading->view, place + WORD * i, &object) && (object & ~TAG) != 0 &&
		    python_read_text(&reading->view, reading->layout->string_head, name, text,
				     sizeof(text)))
			visit_local(reading, text, object & ~TAG);
	return place + WORD * count;
}

static void visit_locals(struct reading *reading, uint64_t frame, uint64_t code)
{
	const struct python_layout *layout = reading->layout;
	uint64_t place = frame + layout->locals, tuple;

	for (size_t i = 0; i < name_tuples(layout) && !reading->error; i++)
		if (view_word(&reading->view, code + layout->names + name_order[i], &tuple))
			place = visit_names(reading, tuple, place);
}

static void visit_call(struct reading *reading, uint64_t code, uint64_t line, uint64_t number)
{
	const struct python_layout *layout = reading->layout;
	char function[MOST_TEXT], file[MOST_TEXT];
	struct runtime_frame found = {
		.number = number,
		.line = line,
		.kind = kind_of(reading, code),
	};
	uint64_t text;

	if (view_word(&reading->view, code + layout->name, &text) &&
	    python_read_text(&reading->view, layout->string_head, text, function, sizeof(function)))
		found.function = function;
	if (view_word(&reading->view, code + layout->file, &text) &&
	    python_read_text(&reading->view, layout->string_head, text, file, sizeof(file)))
		found.file = file;
	reading->visitor->frame(reading->visitor->data, &found);
}

static void visit_damage(struct reading *reading, uint64_t number, const char *damage)
{
	struct runtime_frame frame = { .number = number, .damage = damage };

	reading->visitor->frame(reading->visitor->data, &frame);
}

/* Brent's search of a cycle: mark stays, and moves up whenever the number is a power of two. */
static void visit_all(struct reading *reading, uint64_t frame)
{
	uint64_t mark = 0;

	for (uint64_t number = 0; frame != 0 && !reading->error; number++) {
		uint64_t code = code_of(reading, frame);

		if (!code || frame == mark || number == MOST_FRAMES) {
			visit_damage(reading, number,
				     !code	     ? "no frame of Python is there"
				     : frame == mark ? "the frames lead to each other in a ring"
						     : "there are too many");
			return;
		}
		if ((number & (number - 1)) == 0)
			mark = frame;
		visit_call(reading, code, line_of(reading, frame, code), number);
		if (reading->visitor->local)
			visit_locals(reading, frame, code);
		if (!view_word(&reading->view, frame + reading->layout->back, &frame))
			frame = 1; /* nothing is there */
		if (reading->is_apart && program_find_stack(reading->program, frame))
			break;
		frame = frame == 1 ? frame : skip_entries(reading, frame);
	}
}

/* For the calls of one object, where a thread's are not sought. */
static struct reading reading_of(const struct python_threads *threads, struct python_types *types,
				 const struct frame_visitor *visitor)
{
	return (struct reading){
		.view = { types->image },
		.types = types,
		.layout = threads->layout,
		.visitor = visitor,
	};
}

struct error *python_frames_visit_greenlet(const struct python_threads *threads,
					   struct python_types *types,
					   const struct program *program, uint64_t object,
					   const struct frame_visitor *visitor)
{
	enum { FRAME = 24 };
	struct reading reading = reading_of(threads, types, visitor);

	reading.program = program;
	reading.is_apart = true;
	/* From 3.11 on the object leads to the frame, which it was before. */
	if (threads->layout->line_table != LINES_LOCATED ||
	    view_word(&reading.view, object + FRAME, &object))
		visit_all(&reading, object);
	return reading.error;
}

struct error *python_threads_visit(struct python_threads *threads, struct python_types *types,
				   const struct program *program,
				   struct error *(*visit)(uint64_t state, void *data), void *data)
{
	static const uint64_t ways[] = { NEXT, PREVIOUS };
	struct reading reading = { .view = { types->image }, .types = types, .program = program };

	find_threads(threads, &reading);
	if (!threads->layout)
		return NULL;
	TRY(visit(threads->state, data));
	for (size_t way = 0; way < COUNT_OF(ways); way++) {
		uint64_t state = threads->state;

		for (int i = 0; i < MOST_STATES; i++) {
			if (!view_word(&reading.view, state + ways[way], &state) || state == 0 ||
			    state % WORD != 0)
				break;
			TRY(visit(state, data));
		}
	}
	return NULL;
}

struct error *python_frames_visit(struct python_threads *threads, struct python_types *types,
				  const struct program *program, uint32_t thread,
				  const struct frame_visitor *visitor)
{
	struct reading reading = {
		.view = { types->image },
		.types = types,
		.program = program,
		.visitor = visitor,
	};
	uint64_t frame;

	find_threads(threads, &reading);
	reading.layout = threads->layout;
	reading.self = self_of(program, thread);
	/* Said once: a program that embeds Python, as gdb does, may run none. */
	if (!threads->layout && thread == 0)
		visit_damage(&reading, 0, "no thread that runs Python was found");
	else if (threads->layout && reading.self &&
		 (find_state(&reading, threads->state, NEXT, &frame) ||
		  find_state(&reading, threads->state, PREVIOUS, &frame)))
		visit_all(&reading, frame);
	return reading.error;
}

struct frames_walk {
	const struct python_layout *layout;
	const struct structure_visitor *visitor;
	struct view view;
};

/* Visit the heads of frames, also of those that the interpreter itself makes at entries from C. */
static struct error *visit_heads(uint64_t state, void *data)
{
	struct frames_walk *walk = data;
	const struct python_layout *layout = walk->layout;
	uint64_t frame;

	if (!view_word(&walk->view, state + layout->frame, &frame) ||
	    (layout->inner != NO_OFFSET && !view_word(&walk->view, frame + layout->inner, &frame)))
		return NULL;
	for (int i = 0; frame && i < MOST_FRAMES; i++) {
		TRY(walk->visitor->number(walk->visitor->data, frame, layout->locals));
		if (!view_word(&walk->view, frame + layout->back, &frame))
			break;
	}
	return NULL;
}

struct error *python_frames_visit_structure(struct python_threads *threads,
					    struct python_types *types,
					    const struct program *program,
					    const struct structure_visitor *visitor)
{
	struct frames_walk walk = { threads->layout, visitor, { types->image } };

	return walk.layout ? python_threads_visit(threads, types, program, visit_heads, &walk)
			   : NULL;
}

/* The exception that the thread handles, innermost, as Include/cpython/pystate.h lists them. */
static uint64_t find_handled(struct reading *reading, uint64_t state)
{
	enum { ITEM_OF_STATE = 104 }; /* 3.6 has one alone */
	bool is_old = reading->layout->line_table != LINES_LOCATED;
	uint64_t item = state + ITEM_OF_STATE, value;

	if (reading->layout->handled != NO_OFFSET &&
	    !view_word(&reading->view, state + reading->layout->handled, &item))
		return 0;
	for (int i = 0; i < MOST_STATES && item; i++) {
		if (!view_word(&reading->view, item + (is_old ? WORD : 0), &value))
			return 0;
		if (python_has_flag(&reading->view, value, ERROR_FLAG))
			return value;
		if (reading->layout->handled == NO_OFFSET ||
		    !view_word(&reading->view, item + (is_old ? 3 * WORD : WORD), &item))
			return 0;
	}
	return 0;
}

/* Visit the innermost call of the exception's traceback, where it was raised. */
static void visit_raised(struct reading *reading, uint64_t exception)
{
	enum { TRACEBACK = 32, NEXT_CALL = 16, FRAME = 24, LAST = 32, LINE = 36 };
	bool is_new = reading->layout->line_table == LINES_LOCATED;
	uint64_t call = 0, next = 0, frame, code;
	uint32_t last = 0, line = 0;

	view_word(&reading->view, exception + TRACEBACK + (is_new ? WORD : 0), &next);
	for (int i = 0; i < MOST_FRAMES && next; i++) {
		call = next;
		if (!view_word(&reading->view, call + NEXT_CALL, &next))
			return;
	}
	if (!call || !view_word(&reading->view, call + FRAME, &frame) ||
	    (is_new && !view_word(&reading->view, frame + FRAME, &frame)))
		return;
	code = code_of(reading, frame);
	read_int(reading, call + LAST, &last);
	read_int(reading, call + LINE, &line);
	if (code)
		visit_call(reading, code,
			   (int32_t)line > 0 ? line : line_at(reading, code, (int32_t)last), 0);
}

/* Join the arguments, of which the first mostly is the text. */
static void tell_arguments(struct reading *reading, uint64_t exception, char *ret, size_t size)
{
	enum { ARGUMENTS = 24, MOST_ARGUMENTS = 4 };
	unsigned int head = reading->layout->string_head;
	uint64_t tuple, count = 0, item;
	size_t length = 0;

	if (!view_word(&reading->view, exception + ARGUMENTS, &tuple) ||
	    !python_has_flag(&reading->view, tuple, TUPLE_FLAG) ||
	    !view_word(&reading->view, tuple + LENGTH, &count))
		return;
	for (uint64_t i = 0; i < count && i < MOST_ARGUMENTS && size - length > MOST_VALUE; i++) {
		const char *class_name = NULL;

		if (i > 0)
			length += (size_t)snprintf(ret + length, size - length, ", ");
		if (!view_word(&reading->view, tuple + ITEMS + WORD * i, &item))
			return;
		class_name = class_of(reading, item);
		if (!python_read_text(&reading->view, head, item, ret + length, size - length) &&
		    !(class_name && python_tell_value(&reading->view, head, item, class_name,
						      ret + length, size - length)))
			snprintf(ret + length, size - length, "%s",
				 class_name ? class_name : "no object");
		length += strlen(ret + length);
	}
}

struct error *python_frames_exception(struct python_threads *threads, struct python_types *types,
				      const struct program *program, uint32_t thread,
				      const struct frame_visitor *visitor,
				      struct runtime_exception *ret)
{
	struct reading reading = reading_of(threads, types, visitor);
	uint64_t frame, state, exception;
	bool is_raised;

	reading.program = program;
	reading.self = self_of(program, thread);
	if (!threads->layout || !reading.self)
		return NULL;
	state = find_state(&reading, threads->state, NEXT, &frame);
	if (!state)
		state = find_state(&reading, threads->state, PREVIOUS, &frame);
	if (!state || !view_word(&reading.view, state + threads->layout->raised, &exception))
		return NULL;
	is_raised = python_has_flag(&reading.view, exception, ERROR_FLAG);
	if (!is_raised)
		exception = find_handled(&reading, state);
	if (exception)
		ret->class_name = class_of(&reading, exception);
	if (ret->class_name) {
		ret->state = is_raised ? "pending exception" : "while handling";
		tell_arguments(&reading, exception, ret->message, sizeof(ret->message));
		visit_raised(&reading, exception);
	}
	return reading.error;
}

/* The state of a frame that is an object, up to 3.10: find_top() has the members. */
static enum python_frame_state state_of_object(struct reading *reading, uint64_t frame)
{
	enum { TOP = 72, DEPTH = 80 };
	uint64_t top;
	uint32_t depth;
	bool runs = reading->layout->line_table == LINES_COUNTED
			    ? view_word(&reading->view, frame + TOP, &top) && top == 0
			    : read_int(reading, frame + DEPTH, &depth) && (int32_t)depth < 0;

	return runs ? PYTHON_FRAME_RUNS : PYTHON_FRAME_WAITS;
}

/* The offset of the frame in the generator, as its type says: that counts the frame's head. */
static uint64_t offset_in_object(struct reading *reading, uint64_t object)
{
	enum { SIZE = 32 };
	uint64_t type, size;

	return view_word(&reading->view, object + WORD, &type) &&
			       view_word(&reading->view, type + SIZE, &size) &&
			       size > reading->layout->locals
		       ? size - reading->layout->locals
		       : 0;
}

/*
 * Its frame is within the object from 3.11 on, behind a byte that says whether it waits, and an
 * object of its own before. 0: it has ended.
 */
static uint64_t find_frame(struct reading *reading, uint64_t object, uint64_t size,
			   enum python_frame_state *ret)
{
	enum { FRAME = 16, STATE = 5 };
	uint64_t frame = 0, at;
	int8_t state;

	*ret = PYTHON_FRAME_ENDED;
	if (reading->layout->line_table != LINES_LOCATED) {
		if (!view_word(&reading->view, object + FRAME, &frame) || !code_of(reading, frame))
			return 0;
		*ret = state_of_object(reading, frame);
		return frame;
	}
	at = offset_in_object(reading, object);
	if (at < FRAME || at + reading->layout->locals > size || !code_of(reading, object + at) ||
	    !view_read(&reading->view, object + at - STATE, &state, sizeof(state)) || state > 0)
		return 0;
	*ret = state < 0 ? PYTHON_FRAME_WAITS : PYTHON_FRAME_RUNS;
	return object + at;
}

static uint64_t find_suspended(struct reading *reading, uint64_t object, uint64_t size)
{
	enum python_frame_state state;
	uint64_t frame = find_frame(reading, object, size, &state);

	return state == PYTHON_FRAME_WAITS ? frame : 0;
}

enum python_frame_state python_frames_state(const struct python_threads *threads,
					    struct python_types *types, uint64_t object,
					    uint64_t size)
{
	struct reading reading = reading_of(threads, types, NULL);
	enum python_frame_state state = PYTHON_FRAME_ENDED;

	if (threads->layout)
		find_frame(&reading, object, size, &state);
	return state;
}

struct error *python_frames_visit_coroutine(const struct python_threads *threads,
					    struct python_types *types, uint64_t object,
					    uint64_t size, uint64_t number,
					    const struct frame_visitor *visitor)
{
	struct reading reading = reading_of(threads, types, visitor);
	enum python_frame_state state;
	uint64_t frame = threads->layout ? find_frame(&reading, object, size, &state) : 0;
	uint64_t code = frame ? code_of(&reading, frame) : 0;

	if (!code)
		return NULL;
	visit_call(&reading, code, line_of(&reading, frame, code), number);
	if (visitor->local)
		visit_locals(&reading, frame, code);
	return reading.error;
}

struct error *python_frames_visit_suspended(const struct python_threads *threads,
					    struct python_types *types, uint64_t object,
					    uint64_t size, const struct frame_visitor *visitor)
{
	struct reading reading = reading_of(threads, types, visitor);
	uint64_t frame = threads->layout ? find_suspended(&reading, object, size) : 0;

	if (frame)
		visit_locals(&reading, frame, code_of(&reading, frame));
	return reading.error;
}

struct error *python_frames_visit_object(const struct python_threads *threads,
					 struct python_types *types, uint64_t object,
					 const struct frame_visitor *visitor)
{
	enum { FRAME = 24 }; /* from 3.11 on */
	struct reading reading = reading_of(threads, types, visitor);
	uint64_t frame = object, code;

	if (!threads->layout || (threads->layout->line_table == LINES_LOCATED &&
				 !view_word(&reading.view, object + FRAME, &frame)))
		return NULL;
	code = code_of(&reading, frame);
	if (code)
		visit_locals(&reading, frame, code);
	return reading.error;
}

uint64_t python_frames_code_start(const struct python_threads *threads)
{
	return threads->layout ? threads->layout->start : 0;
}

/* The end of the stack of a frame that waits; 0: it is not known. */
static uint64_t find_top(struct reading *reading, uint64_t frame)
{
	enum { VALUES = 64, TOP = 72, DEPTH = 80, USED = 64 };
	const struct python_layout *layout = reading->layout;
	uint64_t values = frame + layout->locals, top = 0;
	uint32_t used;

	if (layout->line_table == LINES_COUNTED)
		return view_word(&reading->view, frame + TOP, &top) ? top : 0;
	if (layout->line_table == LINES_LOCATED && layout->locals > USED + WORD)
		return view_word(&reading->view, frame + USED, &top) ? top : 0;
	if (layout->line_table != LINES_LOCATED &&
	    !view_word(&reading->view, frame + VALUES, &values))
		return 0;
	return read_int(reading, frame + (layout->line_table == LINES_LOCATED ? USED : DEPTH),
			&used)
		       ? values + WORD * (uint64_t)used
		       : 0;
}

uint64_t python_frames_awaited(const struct python_threads *threads, struct python_types *types,
			       uint64_t object, uint64_t size)
{
	enum { TAGS = 3 }; /* of a reference, from 3.14 on */
	struct reading reading = reading_of(threads, types, NULL);
	uint64_t frame = threads->layout ? find_suspended(&reading, object, size) : 0;
	uint64_t top = frame ? find_top(&reading, frame) : 0, awaited = 0;

	if (top > frame)
		view_word(&reading.view, top - WORD, &awaited);
	return awaited & ~(uint64_t)TAGS;
}

/*
 * Up to 3.10, a frame is an object: stacktop is 0 (3.8, 3.9), or the depth less than 0 (3.10),
 * while it runs or after it ended.
 */
static bool is_above_top(const struct python_layout *layout, const struct image *image,
			 uint64_t frame, uint64_t at)
{
	enum { VALUES = 64, TOP = 72, DEPTH = 80, MOST_DEPTH = 1 << 20 };
	uint64_t values, top;
	int32_t depth;

	if (layout->line_table == LINES_COUNTED)
		return image_read_u64(image, frame + TOP, &top) && top >= frame + layout->locals &&
		       frame + at >= top;
	return image_read_u64(image, frame + VALUES, &values) && values >= frame + layout->locals &&
	       image_read(image, frame + DEPTH, &depth, sizeof(depth)) && depth >= 0 &&
	       depth <= MOST_DEPTH && frame + at >= values + WORD * (uint64_t)depth;
}

/*
 * From 3.11 on, how much of a frame's variables and stack is in use is an int, less than 0 while it
 * runs; in 3.14, an address.
 */
static bool is_above_used(const struct python_layout *layout, const struct image *image,
			  uint64_t frame, uint64_t at)
{
	enum { USED = 64, MOST_USED = 1 << 20 };
	uint64_t top;
	int32_t used;

	if (layout->locals > USED + WORD)
		return image_read_u64(image, frame + USED, &top) && top >= frame + layout->locals &&
		       frame + at >= top;
	return image_read(image, frame + USED, &used, sizeof(used)) && used >= 0 &&
	       used <= MOST_USED && at >= layout->locals + WORD * (uint64_t)used;
}

/* The type counts what a frame has before its variables. */
uint64_t python_frames_start(const struct python_threads *threads, const struct python_type *type)
{
	const struct python_layout *layout = threads->layout;

	return layout && layout->line_table == LINES_LOCATED && type->size >= layout->locals
		       ? type->size - layout->locals
		       : type->size;
}

bool python_frames_are_stale(const struct python_threads *threads, const struct image *image,
			     const struct python_type *type, uint64_t object, uint64_t at)
{
	enum { FRAME = 24, STATE = 5 };
	const struct python_layout *layout = threads->layout;
	uint64_t start, frame;
	int8_t state;

	if (!layout)
		return false;
	if (layout->line_table != LINES_LOCATED)
		return type->kind == PYTHON_FRAME && at >= layout->locals &&
		       is_above_top(layout, image, object, at);
	start = python_frames_start(threads, type);
	if (at < start)
		return false;
	if (type->kind == PYTHON_FRAME) {
		if (!image_read_u64(image, object + FRAME, &frame))
			return false;
		return frame != object + start || is_above_used(layout, image, frame, at - start);
	}
	if (!image_read(image, object + start - STATE, &state, sizeof(state)))
		return false;
	return state > 0 ? at != start + layout->code
			 : is_above_used(layout, image, object + start, at - start);
}
