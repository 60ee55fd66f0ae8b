/*
 * The exception that a thread handles, $!: eval.c finds it in the frame of a rescue clause. Its
 * text is the variable mesg, which programs do not see, see error.c.
 */
#include "analyzer/runtimes/ruby/frames.h"
#include "analyzer/runtimes/ruby/links.h"
#include "analyzer/runtimes/ruby/values.h"

#include <string.h>

enum { WORD = 8, CLASS = 8 };

struct message {
	struct ruby *ruby;
	struct view *view;
	struct runtime_exception *ret;
};

static bool is_exception(const struct ruby *ruby, struct view *view, uint64_t value)
{
	enum { MOST_BASES = 64 };
	uint64_t class;
	char name[RUBY_MOST_NAME + 1];

	if (ruby_slot_flags(&ruby->slots, view, value) % RUBY_TYPES != RUBY_OBJECT ||
	    !view_word(view, value + CLASS, &class))
		return false;
	for (int i = 0; i < MOST_BASES && class; i++) {
		if (ruby_read_name(&ruby->slots, view, class, name) &&
		    strcmp(name, "Exception") == 0)
			return true;
		class = ruby_super(&ruby->slots, view, class);
	}
	return false;
}

static bool keep_message(void *data, const struct object_link *link)
{
	struct message *message = data;
	struct ruby *ruby = message->ruby;
	char name[RUBY_MOST_NAME + 1];

	return ruby_symbol_text(&ruby->symbols, message->view, link->which, name) &&
	       strcmp(name, "mesg") == 0 &&
	       ruby_read_text(&ruby->slots, message->view, link->target, message->ret->message,
			      sizeof(message->ret->message));
}

struct error *ruby_find_exception(struct object_space *space, uint32_t thread,
				  const struct frame_visitor *visitor,
				  struct runtime_exception *ret)
{
	struct ruby *ruby = (struct ruby *)space;
	struct view view = { space->image };
	struct message message = { ruby, &view, ret };
	struct object_walk walk = object_walk_begin(&ruby->space, keep_message, &message);
	uint64_t value = ruby_find_rescued(ruby, &view, thread);

	if (!is_exception(ruby, &view, value))
		return NULL;
	ret->state = "while handling";
	ret->class_name = ruby_value_class(ruby, &view, value);
	TRY_MEMORY(ret->class_name);
	walk.state = RUBY_WITH_HIDDEN;
	ruby_walk_links(&walk, allocation_find(space->index, value));
	return NULL;
}
