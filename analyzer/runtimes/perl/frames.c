/*
 * The calls of Perl that threads are in.
 */
#include "analyzer/runtimes/perl/links.h"

#include "analyzer/base/text.h"

#include <inttypes.h>

enum {
	LINE = 36, /* of a statement */
	FILE_NAME = 48,
	MOST_TEXT = 512,
	MOST_VALUE = 80,
	MOST_PTHREAD = 0xa00,
};

struct reading {
	struct perl *perl;
	struct view view;
	const struct frame_visitor *visitor;
	uint64_t number;
	struct error *error;
};

static bool read_text(struct view *view, uint64_t address, char *ret, size_t size)
{
	size_t i = 0;

	if (!address)
		return false;
	for (; i + 1 < size && view_read(view, address + i, &ret[i], 1) && ret[i]; i++)
		;
	ret[i] = '\0';
	return i > 0 && text_run(ret, i) == i;
}

static void tell_string(struct reading *reading, const struct perl_head *head, char *ret,
			size_t size)
{
	enum { LENGTH = 16 };
	char text[MOST_VALUE];
	uint64_t length;

	if (!view_word(&reading->view, head->body + LENGTH, &length))
		return;
	if (length < size - sizeof("\"\"") && length < sizeof(text) &&
	    (length == 0 || view_read(&reading->view, head->value, text, length)) &&
	    text_run(text, length) == length)
		snprintf(ret, size, "\"%.*s\"", (int)length, text);
	else
		snprintf(ret, size, "%" PRIu64 " bytes", length);
}

static void tell_value(struct reading *reading, uint64_t address, char *ret, size_t size)
{
	enum { LAST_ITEM = 16, KEYS = 16 };
	struct perl_head head;
	uint64_t word;

	ret[0] = '\0';
	if (!perl_read_head(&reading->view, address, &head))
		return;
	if (perl_type(&head) == PERL_PVAV) {
		if (view_word(&reading->view, head.body + LAST_ITEM, &word))
			snprintf(ret, size, "%" PRIu64 " item%s", word + 1, word == 0 ? "" : "s");
	} else if (perl_type(&head) == PERL_PVHV) {
		if (view_word(&reading->view, head.body + KEYS, &word))
			snprintf(ret, size, "%" PRIu64 " key%s", word, word == 1 ? "" : "s");
	} else if (head.flags & PERL_ROK) {
		allocation_id id = perl_find_head(reading->perl, head.value);

		if (id != NO_ALLOCATION)
			snprintf(ret, size, "%s at %#" PRIx64,
				 object_class_name_at(&reading->perl->space, id), head.value);
	} else if ((head.flags & PERL_POK) && perl_type(&head) >= PERL_PV &&
		   perl_type(&head) <= PERL_PVLV && !(head.flags & PERL_GLOB)) {
		tell_string(reading, &head, ret, size);
	} else if (perl_type(&head) == PERL_IV && (head.flags & PERL_IOK)) {
		snprintf(ret, size, "%" PRId64, (int64_t)head.value);
	}
}

static bool visit_local(void *data, const struct object_link *link)
{
	struct reading *reading = data;
	struct perl *perl = reading->perl;
	char name[MOST_VALUE], text[MOST_VALUE];
	struct runtime_local local = { .name = name, .address = link->target };

	if (!read_text(&reading->view, link->which, name, sizeof(name)))
		return false;
	local.class_name = object_class_name_at(&perl->space, perl_find_head(perl, link->target));
	tell_value(reading, link->target, text, sizeof(text));
	local.value = text[0] ? text : NULL;
	if (!local.class_name)
		reading->error = &error_no_memory;
	else
		reading->visitor->local(reading->visitor->data, &local);
	return reading->error != NULL;
}

static void visit_call(void *data, const struct perl_call *call)
{
	struct reading *reading = data;
	char function[MOST_TEXT], file[MOST_TEXT];
	struct runtime_frame frame = { .number = reading->number, .kind = call->kind };
	struct object_walk walk = object_walk_begin(&reading->perl->space, visit_local, reading);
	uint64_t address;
	uint32_t line;

	if (reading->error)
		return;
	perl_tell_code(reading->perl, &reading->view, call->code, function, sizeof(function));
	if (function[0])
		frame.function = function;
	if (call->statement && view_word(&reading->view, call->statement + FILE_NAME, &address) &&
	    read_text(&reading->view, address, file, sizeof(file)))
		frame.file = file;
	if (frame.file && view_read(&reading->view, call->statement + LINE, &line, sizeof(line)))
		frame.line = line;
	reading->visitor->frame(reading->visitor->data, &frame);
	reading->number++;
	if (reading->visitor->local)
		perl_walk_call(&walk, call);
}

/* pthread_getspecific() has the interpreter: its address is in the thread's control block. */
static bool runs(const struct perl *perl, const struct thread *thread, uint64_t interpreter)
{
	struct view view = { perl->space.image };
	uint64_t block = thread_descriptor(perl->space.program, thread->thread_pointer), word;

	for (uint64_t i = 0; thread->thread_pointer && i < MOST_PTHREAD; i += PERL_WORD)
		if (view_word(&view, block + i, &word) && word == interpreter)
			return true;
	return false;
}

struct error *perl_visit_frames(struct object_space *space, uint32_t thread,
				const struct frame_visitor *visitor)
{
	struct perl *perl = (struct perl *)space;
	const struct program *program = perl->space.program;
	struct reading reading = {
		.perl = perl,
		.view = { perl->space.image },
		.visitor = visitor,
	};
	struct runtime_frame damage = { .damage = "a context of Perl is not there" };

	array_for_each(interpreter, &perl->interpreters) {
		bool is_only = perl->interpreters.count == 1 && program->thread_count == 1;

		if (!is_only && !runs(perl, &program->threads[thread], interpreter->start))
			continue;
		if (!perl_visit_calls(perl, interpreter, visit_call, &reading)) {
			damage.number = reading.number;
			visitor->frame(visitor->data, &damage);
		}
		break;
	}
	return reading.error;
}
