/*
 * CRuby 2.5 to 3.4: the control frames of this thread's context, vm_core.h:
 *
 *	context   stack | words | innermost frame | ...
 *	frame     pc | sp | code | self | ep | ...      the next one is the caller's
 *
 * Where ep leads to are flags, of which one says that the frame was made by a loop of its own.
 */
#include "cli/live/recorder/language.h"

#include <dlfcn.h>
#include <string.h>

enum {
	WORD = 8,
	/* Words at ep. */
	OF_NOTHING = 0x79990001,
	KIND_BITS = 0x7fff0001,
	IS_LAST_OF_LOOP = 0x20,
	/* Strings. */
	LENGTH = 16,
	TEXT = 24,
	OLD_TEXT = 16, /* up to 3.1, within the object */
	IS_ELSEWHERE = 1 << 13,
	OLD_LENGTH_SHIFT = 14,
	OLD_LENGTH_BITS = 31,
	TYPE_BITS = 31,
	TYPE_STRING = 5,
};

struct context {
	const char *stack;
	uint64_t words;
	const char *frame;
};

struct frame {
	uint64_t pc, sp;
	const char *code, *self, *ep;
};

static const char *(*find_path)(const char *code);
static const char *(*find_label)(const char *code);
static unsigned int (*find_line)(const char *code, size_t position);
static size_t frame_size;
static bool has_long_strings; /* as from 3.2 on */

/* This thread has the address of its context there. */
static __thread struct context **place __attribute__((tls_model("initial-exec")));

static uint64_t number_at(const char *address)
{
	uint64_t word;

	memcpy(&word, address, sizeof(word));
	return word;
}

static bool ruby_open(void)
{
	const int *version;
	int number;

	if (!FIND_EXPORTED(version, "ruby_api_version") ||
	    !FIND_EXPORTED(find_path, "rb_profile_frame_path") ||
	    !FIND_EXPORTED(find_label, "rb_profile_frame_label") ||
	    !FIND_EXPORTED(find_line, "rb_iseq_line_no"))
		return false;
	number = version[0] * 100 + version[1];
	has_long_strings = number >= 302;
	frame_size = (size_t)WORD * (number >= 302 ? 7 : number == 301 ? 8 : 6);
	return number >= 205 && number <= 304;
}

static void add_text(struct script_call *call, const char *string)
{
	uint64_t flags, length;
	const char *text = NULL;

	/* Immediate values, such as nil, are no addresses. */
	flags = (uint64_t)string % WORD == 0 && (uint64_t)string > WORD ? number_at(string) : 0;
	length = (flags & TYPE_BITS) == TYPE_STRING ? number_at(string + LENGTH) : 0;
	if ((flags & TYPE_BITS) != TYPE_STRING) {
		text = "";
	} else if (flags & IS_ELSEWHERE) {
		text = word_at(string + TEXT);
	} else if (has_long_strings) {
		text = string + TEXT;
	} else {
		text = string + OLD_TEXT;
		length = flags >> OLD_LENGTH_SHIFT & OLD_LENGTH_BITS;
	}
	script_call_add(call, text, length, 0);
}

/* The instruction before pc is the one that runs. */
static uint64_t line_of(const struct frame *frame)
{
	enum { BODY = 16, INSTRUCTIONS = 8 };
	uint64_t position = frame->pc - number_at(word_at(frame->code + BODY) + INSTRUCTIONS);

	position /= WORD;
	return find_line(frame->code, position ? position - 1 : 0);
}

static void ruby_visit(script_visitor *visit, void *data)
{
	const struct context *context;
	struct frame frame;

	if (!place && !FIND_EXPORTED(place, "ruby_current_ec"))
		return;
	context = *place;
	if (!context || !context->stack || !context->frame)
		return;
	for (const char *at = context->frame; at < context->stack + WORD * context->words;
	     at += frame_size) {
		struct script_call call;
		uint64_t flags;

		memcpy(&frame, at, sizeof(frame));
		flags = frame.ep ? number_at(frame.ep) : OF_NOTHING;
		if (!frame.pc || !frame.code || (flags & KIND_BITS) == OF_NOTHING)
			continue;
		call.size = 0;
		call.line = line_of(&frame);
		call.is_first = flags & IS_LAST_OF_LOOP;
		add_text(&call, find_path(frame.code));
		add_text(&call, find_label(frame.code));
		if (!visit(data, &call))
			return;
	}
}

const struct language language_ruby = {
	.loop = "rb_vm_exec",
	.open = ruby_open,
	.visit = ruby_visit,
};
