/*
 * CPython 3.6 to 3.14: the frames of PyGILState_GetThisThreadState(), which are this thread's even
 * while it is without the interpreter's lock.
 */
#include "analyzer/base/macros.h"
#include "analyzer/runtimes/python/layouts.h"
#include "cli/live/recorder/language.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
	TYPE = 8,
	LENGTH = 16, /* of a string */
	STATE = 32,
	KIND_SHIFT = 2,
	KIND_BITS = 7,
	IS_COMPACT = 1 << 5,
	IS_ASCII = 1 << 6,
	FIRST_OF_INTERPRETER = 3, /* owners of frames that are no function's */
};

static const struct python_layout *layout;
static const char *(*get_version)(void);
static const char *(*get_state)(void);
static int (*find_line)(const char *code, int offset);
static const char *code_type;

static bool python_open(void)
{
	unsigned long minor;

	if (!FIND_EXPORTED(get_version, "Py_GetVersion") ||
	    !FIND_EXPORTED(get_state, "PyGILState_GetThisThreadState") ||
	    !FIND_EXPORTED(find_line, "PyCode_Addr2Line") ||
	    !FIND_EXPORTED(code_type, "PyCode_Type") || strncmp(get_version(), "3.", 2) != 0 ||
	    strstr(get_version(), "free-threading"))
		return false;
	minor = strtoul(get_version() + 2, NULL, 10);
	for (size_t i = 0; i < COUNT_OF(python_layouts) && !layout; i++)
		if (minor >= python_layouts[i].minor)
			layout = &python_layouts[i];
	return layout != NULL;
}

static const char *code_of(const char *frame)
{
	const char *code = word_at(frame + layout->code);

	code -= (uintptr_t)code & 3; /* 3.14 marks references */
	return code && word_at(code + TYPE) == code_type ? code : NULL;
}

/* Texts beyond ASCII have more in front. */
static void add_text(struct script_call *call, const char *string)
{
	const size_t more = layout->string_head == STRING_HEAD ? 16 : 24;
	const char *text = string + layout->string_head;
	size_t length = (size_t)word_at(string + LENGTH);
	uint32_t state = int_at(string + STATE);

	if (!(state & IS_COMPACT)) /* 3.14 has 16 bits before the kind */
		state >>= 14;
	if (state & IS_ASCII)
		script_call_add(call, text, length, 0);
	else
		script_call_add(call, text + more, length, state >> KIND_SHIFT & KIND_BITS);
}

/* How many bytes of code are before the instruction that the frame is at. */
static int offset_of(const char *frame, const char *code)
{
	const char *place = frame + layout->instruction;

	if (layout->line_table == LINES_LOCATED)
		return (int)(word_at(place) - code - layout->start);
	return (int)int_at(place) * (layout->line_table == LINES_RANGED ? 2 : 1);
}

/* True if the frame is no function's but the interpreter's own, at each entry from C. */
static bool is_entry(const char *frame)
{
	return layout->owner != NO_OFFSET && frame[layout->owner] >= FIRST_OF_INTERPRETER;
}

/*
 * Up to 3.10 each call has a loop of its own; in 3.11 the frame says so, in front of its owner;
 * then there is an entry behind the first.
 */
static bool is_first(const char *frame, const char *back)
{
	if (layout->line_table != LINES_LOCATED || !back)
		return true;
	return layout->minor == 11 ? frame[layout->owner - 1] : is_entry(back);
}

static const char *innermost(const char *state)
{
	const char *frame = state ? word_at(state + layout->frame) : NULL;

	return frame && layout->inner != NO_OFFSET ? word_at(frame + layout->inner) : frame;
}

static void python_visit(script_visitor *visit, void *data)
{
	const char *back;

	for (const char *frame = innermost(get_state()); frame; frame = back) {
		const char *code = is_entry(frame) ? NULL : code_of(frame);
		struct script_call call;
		int line;

		back = word_at(frame + layout->back);
		if (!code)
			continue;
		line = find_line(code, offset_of(frame, code));
		call.line = line > 0 ? (uint64_t)line : 0;
		call.size = 0;
		call.is_first = is_first(frame, back);
		add_text(&call, word_at(code + layout->file));
		add_text(&call, word_at(code + layout->name));
		if (!visit(data, &call))
			return;
	}
}

const struct language language_python = {
	.loop = "_PyEval_EvalFrameDefault",
	.open = python_open,
	.visit = python_visit,
};
