/*
 * The panic by which a thread aborted: library/std/src/panicking.rs keeps a PanicHookInfo on the
 * stack, in an order of words that the compiler chooses. The value is a text behind "dyn", mostly:
 *
 *	info      | value | vtable | place |	value: &str | text | length |, or a String
 *	place     | file | length | u32 line, u32 column |
 */
#include "analyzer/runtimes/rust/rust.h"

#include <signal.h>
#include <string.h>

DECLARE_SLOTS(runtime_calls, rust, find_exception);

enum { WORD = 8, TEXT_SIZE = 16, STRING_SIZE = 24, MOST_TEXT = 4096 };

struct panic_place {
	uint64_t file, length;
	uint32_t line, column;
};

struct panic_text {
	uint64_t start, length;
};

static bool is_constant(const struct object_space *space, uint64_t address)
{
	return program_find_module(space->program, address) != NULL;
}

/* Read the place that the word leads to: constants whose file is a source. */
static bool read_place(const struct object_space *space, struct view *view, uint64_t address,
		       struct panic_place *ret, char *file, size_t size)
{
	static const char suffix[] = ".rs";
	size_t length;

	if (address % WORD || !is_constant(space, address) ||
	    !view_read(view, address, ret, sizeof(*ret)) || !is_constant(space, ret->file) ||
	    ret->length < sizeof(suffix) || ret->length >= size || !ret->line || !ret->column ||
	    !view_read(view, ret->file, file, ret->length))
		return false;
	length = (size_t)ret->length;
	file[length] = '\0';
	return strlen(file) == length && strcmp(file + length - strlen(suffix), suffix) == 0;
}

/* Find the text of the value; the words of a String are in any order. */
static bool find_text(struct view *view, uint64_t value, uint64_t size, struct panic_text *ret)
{
	uint64_t words[3] = { 0 }, known;

	if (!view_read(view, value, words, size))
		return false;
	for (size_t i = 0; i < size / WORD; i++)
		if (view_bytes(view, words[i], &known)) {
			ret->start = words[i];
			ret->length = size == TEXT_SIZE
					      ? words[1 - i]
					      : MIN(words[(i + 1) % 3], words[(i + 2) % 3]);
			return ret->length > 0 && ret->length <= MOST_TEXT && ret->length <= known;
		}
	return false;
}

/* True if two words are a value behind "dyn", of the size of a text. */
static bool read_value(const struct object_space *space, struct view *view, const uint64_t *words,
		       struct panic_text *ret)
{
	uint64_t vtable[3]; /* drop, size, alignment */

	return is_constant(space, words[1]) && view_read(view, words[1], vtable, sizeof(vtable)) &&
	       (vtable[1] == TEXT_SIZE || vtable[1] == STRING_SIZE) && vtable[2] == WORD &&
	       find_text(view, words[0], vtable[1], ret);
}

static bool read_info(const struct object_space *space, struct view *view, uint64_t address,
		      const struct frame_visitor *visitor, struct runtime_exception *ret)
{
	uint64_t words[4];
	struct panic_place place;
	struct panic_text text;
	char file[512];
	struct runtime_frame frame = { .file = file };

	if (!view_read(view, address, words, sizeof(words)))
		return false;
	for (size_t i = 0; i < 2; i++) {
		/* The place comes behind the value, or before it. */
		if (!read_place(space, view, words[i ? 0 : 2], &place, file, sizeof(file)) ||
		    !read_value(space, view, &words[i], &text))
			continue;
		ret->state = "panic";
		text.length = MIN(text.length, sizeof(ret->message) - 1);
		view_read(view, text.start, ret->message, text.length);
		frame.line = place.line;
		visitor->frame(visitor->data, &frame);
		return true;
	}
	return false;
}

struct error *rust_find_exception(struct object_space *space, uint32_t number,
				  const struct frame_visitor *visitor,
				  struct runtime_exception *ret)
{
	enum { MOST_SEARCHED = 1 << 15 };
	const struct thread *thread = &space->program->threads[number];
	struct view view = { space->image };

	/* Other signals come while an old panic may still be there. */
	if (thread->state->signal != SIGABRT)
		return NULL;
	for (uint64_t at = 0; at < MOST_SEARCHED; at += WORD)
		if (read_info(space, &view, thread->stack_pointer + at, visitor, ret))
			return NULL;
	return NULL;
}
