/*
 * The panic that a thread's goroutine is in: src/runtime/runtime2.go. A thread has its g below its
 * thread pointer, which may be the one of its signals.
 *
 *	g      | stack 2, guards 2 | panic | defers | m | saved registers: 6 or 5, frame pointer |
 *	m      | g0 | ... | goroutine that it runs | ...
 *	panic  | argument of the defer | value: type, data | ...
 *	type   | size | pointers | hash, flags, kind | ...
 *
 * The registers are those with which it went to the system's stack to print the panic. Each frame
 * begins with the address of the one further out, and where that goes on.
 *
 * From 1.18 on, the value of an error is its text by then, as preprintpanics() replaced it.
 */
#include "analyzer/image/arch.h"
#include "analyzer/runtimes/runtime.h"

#include <string.h>

DECLARE_SLOTS(runtime_calls, go, find_exception);

enum {
	WORD = 8,
	STACK_END = 8,
	PANIC = 32,
	MACHINE = 48,
	FRAME = 104, /* from 1.25 on, a word before */
	VALUE = 8,
	KIND = 23,
	KIND_BITS = 31,
	STRING = 24
};

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
static uint64_t find_panic(struct view *view, uint64_t machine, uint64_t *ret_goroutine)
{
	enum { FIRST = 8, END = 64 };
	uint64_t panic;

	for (uint64_t i = FIRST; i < END && view_word(view, machine + i * WORD, ret_goroutine); i++)
		if (machine_of(view, *ret_goroutine) == machine &&
		    view_word(view, *ret_goroutine + PANIC, &panic) && panic)
			return panic;
	return 0;
}

/* True if a call of x86-64 ends at the address; else a fault was at it. */
static bool is_behind_call(struct view *view, uint64_t address)
{
	enum { NEAR_CALL = 5, CALL = 0xe8, INDIRECT = 0xff };
	uint8_t code[NEAR_CALL];

	return !view_read(view, address - NEAR_CALL, code, sizeof(code)) || code[0] == CALL ||
	       code[2] == INDIRECT || code[3] == INDIRECT;
}

/* Read where the goroutine's calls return to, the innermost first. */
static void read_calls(struct view *view, uint64_t g, struct runtime_exception *ret)
{
	const bool is_x86 = view->image->arch->machine == EM_X86_64;
	uint64_t start, end, frame = 0, next, address;

	if (!view_word(view, g, &start) || !view_word(view, g + STACK_END, &end))
		return;
	for (uint64_t i = 0; i < 2 && frame - start >= end - start; i++)
		if (!view_word(view, g + FRAME - i * WORD, &frame))
			return;
	for (size_t i = 0; i < MOST_RAISING_CALLS && frame - start < end - start; i++) {
		if (!view_word(view, frame, &next) || !view_word(view, frame + WORD, &address))
			return;
		ret->calls[i] = address + (is_x86 && !is_behind_call(view, address));
		if (next <= frame)
			return;
		frame = next;
	}
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
	uint64_t goroutine, value[2];
	uint64_t panic = machine ? find_panic(&view, machine, &goroutine) : 0;
	uint8_t kind;

	if (!panic || !view_read(&view, panic + VALUE, value, sizeof(value)) ||
	    !view_read(&view, value[0] + KIND, &kind, sizeof(kind)))
		return NULL;
	ret->state = "panic";
	read_calls(&view, goroutine, ret);
	if ((kind & KIND_BITS) == STRING)
		read_text(&view, value[1], ret);
	return NULL;
}
