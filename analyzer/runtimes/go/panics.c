/*
 * The panic that a thread's goroutine is in: src/runtime/runtime2.go. A thread has its g below its
 * thread pointer, which may be the one of its signals.
 *
 *	g      | stack 2, guards 2 | panic | defers | m |
 *	m      | g0 | ... | goroutine that it runs | ...
 *	panic  | argument of the defer | value: type, data | ...
 *	type   | size | pointers | hash, flags, kind | ...
 *
 * From 1.18 on, the value of an error is its text by then, as preprintpanics() replaced it.
 */
#include "analyzer/runtimes/runtime.h"

#include <string.h>

DECLARE_SLOTS(runtime_calls, go, find_exception);

enum { WORD = 8, PANIC = 32, MACHINE = 48, VALUE = 8, KIND = 23, KIND_BITS = 31, STRING = 24 };

/* The machine of a g; 0: it is none. */
static uint64_t machine_of(struct view *view, uint64_t g)
{
	uint64_t machine, first, back;

	return g && g % WORD == 0 && view_word(view, g + MACHINE, &machine) && machine &&
			       machine % WORD == 0 && view_word(view, machine, &first) &&
			       view_word(view, first + MACHINE, &back) && back == machine
		       ? machine
		       : 0;
}

static uint64_t find_machine(struct view *view, uint64_t thread_pointer)
{
	enum { REACH = 64 };
	uint64_t g, machine = 0;

	for (uint64_t i = 1; i <= REACH && !machine; i++)
		if (view_word(view, thread_pointer - i * WORD, &g))
			machine = machine_of(view, g);
	return machine;
}

/* The innermost panic of the goroutine that the machine runs; 0: there is none. */
static uint64_t find_panic(struct view *view, uint64_t machine)
{
	enum { FIRST = 8, END = 64 };
	uint64_t g, panic;

	for (uint64_t i = FIRST; i < END && view_word(view, machine + i * WORD, &g); i++)
		if (machine_of(view, g) == machine && view_word(view, g + PANIC, &panic) && panic)
			return panic;
	return 0;
}

static void read_text(struct view *view, uint64_t data, struct runtime_exception *ret)
{
	uint64_t start, length, known;
	const uint8_t *bytes;

	if (!view_word(view, data, &start) || !view_word(view, data + WORD, &length))
		return;
	bytes = view_bytes(view, start, &known);
	length = MIN(length, sizeof(ret->message) - 1);
	if (bytes && length <= known)
		memcpy(ret->message, bytes, length);
}

struct error *go_find_exception(struct object_space *space, uint32_t thread,
				const struct frame_visitor *visitor, struct runtime_exception *ret)
{
	struct view view = { space->image };
	uint64_t machine = find_machine(&view, space->program->threads[thread].thread_pointer);
	uint64_t panic = machine ? find_panic(&view, machine) : 0, value[2];
	uint8_t kind;

	if (!panic || !view_read(&view, panic + VALUE, value, sizeof(value)) ||
	    !view_read(&view, value[0] + KIND, &kind, sizeof(kind)))
		return NULL;
	ret->state = "panic";
	if ((kind & KIND_BITS) == STRING)
		read_text(&view, value[1], ret);
	return NULL;
}
