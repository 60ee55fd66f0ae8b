#include "analyzer/runtimes/ruby/frames.h"

#include "analyzer/runtimes/ruby/kept.h"
#include "analyzer/runtimes/ruby/objects.h"
#include "analyzer/runtimes/ruby/values.h"

enum {
	WORD = 8,
	CLASS = 8,
	DATA = 32,
	MOST_FRAMES = 1 << 20,
	MOST_LOOKED_AT = 64, /* words of threads and fibers */
	MOST_TEXT = 512,
	MOST_VALUE = 80,
	/* Words at ep. */
	IS_LOCAL = 2, /* of flags: nothing is around */
	OF_C = 0x55550001,
	OF_NOTHING = 0x79990001,
	KIND_BITS = 0x7fff0001,
	TAG_BITS = 3,
};

struct context {
	uint64_t stack, words, frame, tag, flags, fiber;
	union {
		uint64_t thread, old_fiber; /* up to 2.7 */
	};
	uint64_t old_thread;
};

struct call {
	uint64_t pc, sp, iseq, self, ep;
};

struct reading {
	struct ruby *ruby;
	struct view view;
	const struct frame_visitor *visitor;
	uint64_t number;
	struct error *error;
};

void ruby_calls_deinit(struct ruby_calls *calls)
{
	ruby_iseqs_deinit(&calls->iseqs);
	arrays_release(&calls->threads, &calls->fibers);
}

static uint64_t end_of(const struct context *context)
{
	return context->stack + WORD * context->words;
}

static bool read_context(struct view *view, uint64_t address, struct context *ret)
{
	enum { MOST_STACK = 1 << 28 };

	return address != 0 && address % WORD == 0 && view_read(view, address, ret, sizeof(*ret)) &&
	       ret->words <= MOST_STACK && ret->stack % WORD == 0 && ret->frame % WORD == 0 &&
	       ret->frame - ret->stack <= WORD * ret->words;
}

/* The context that a word of the thread leads to, and that leads back; its address, or 0. */
static uint64_t find_context(struct view *view, uint64_t thread, struct context *ret)
{
	uint64_t word;

	for (uint64_t i = 0; i < MOST_LOOKED_AT; i++)
		if (view_word(view, thread + WORD * i, &word) && read_context(view, word, ret) &&
		    (ret->thread == thread || ret->old_thread == thread))
			return word;
	return 0;
}

/* The context within a fiber, which leads back to it; its address, or 0. */
static uint64_t find_context_in(struct view *view, uint64_t fiber, struct context *ret)
{
	for (uint64_t i = 0; i < MOST_LOOKED_AT; i++)
		if (read_context(view, fiber + WORD * i, ret) &&
		    (ret->fiber == fiber || ret->old_fiber == fiber))
			return fiber + WORD * i;
	return 0;
}

void ruby_find_stack(struct view *view, uint64_t data, uint64_t *ret_sp, uint64_t *ret_frame)
{
	struct context context;
	uint64_t sp;

	if ((find_context_in(view, data, &context) || find_context(view, data, &context)) &&
	    view_word(view, context.frame + WORD, &sp) &&
	    sp - context.stack <= context.frame - context.stack) {
		*ret_sp = sp;
		*ret_frame = context.frame;
	}
}

static bool read_frame(const struct reading *reading, struct view *view,
		       const struct context *context, uint64_t address, struct call *ret)
{
	uint64_t flags;

	if (!view_read(view, address, ret, sizeof(*ret)) ||
	    ret->sp - context->stack > WORD * context->words || ret->ep % WORD != 0)
		return false;
	flags = ret->iseq ? ruby_slot_flags(&reading->ruby->slots, view, ret->iseq) : RUBY_IMEMO;
	return flags % RUBY_TYPES == RUBY_IMEMO;
}

/* True if all of the innermost frames are consistent. */
static bool fits(struct reading *reading, const struct context *context, uint32_t words)
{
	enum { ENOUGH = 16 };
	uint64_t size = (uint64_t)WORD * words, at = context->frame;
	struct call frame;

	if ((end_of(context) - at) % size != 0)
		return false;
	for (int i = 0; i < ENOUGH && at < end_of(context); i++, at += size)
		if (!read_frame(reading, &reading->view, context, at, &frame))
			return false;
	return true;
}

/* Choose the size that fits most threads: 3.2 and later, 3.1, before. */
static void learn_frame_size(struct reading *reading)
{
	static const uint32_t sizes[] = { 7, 8, 6 };
	struct ruby_calls *calls = &reading->ruby->calls;
	struct context context;
	size_t most = 0;

	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		size_t count = 0;

		array_for_each(thread, &calls->threads)
			count += find_context(&reading->view, *thread, &context) != 0 &&
				 context.frame < end_of(&context) &&
				 fits(reading, &context, sizes[i]);
		if (count > most) {
			most = count;
			calls->frame_words = sizes[i];
		}
	}
}

static struct error *find_all(struct reading *reading)
{
	struct ruby *ruby = reading->ruby;
	struct ruby_calls *calls = &ruby->calls;
	size_t hint = 0;

	bitmap_for_each(id, &ruby->slots.slots) {
		uint64_t start =
			allocation_range_near(ruby->space.index, (allocation_id)id, &hint).start;
		char name[RUBY_MOST_NAME + 1];
		uint64_t flags, type, data;

		if (!view_word(&reading->view, start, &flags) || flags % RUBY_TYPES != RUBY_DATA)
			continue;
		type = ruby_find_data_type(ruby, &reading->view, start);
		if (!type || !ruby_read_data_name(ruby->space.image, type, name) ||
		    !view_word(&reading->view, start + DATA, &data))
			continue;
		if (strcmp(name, "VM/thread") == 0)
			TRY(array_append(&calls->threads, data));
		else if (strcmp(name, "fiber") == 0)
			TRY(array_append(&calls->fibers, data));
	}
	return NULL;
}

/* True if one of the words from start on is wanted. */
static bool has_word(struct view *view, uint64_t start, uint64_t wanted)
{
	enum { MOST_WORDS = 64 };
	uint64_t word;

	for (uint64_t i = 0; i < MOST_WORDS && view_word(view, start + WORD * i, &word); i++)
		if (word == wanted)
			return true;
	return false;
}

static bool is_thread(const struct ruby_calls *calls, uint64_t address)
{
	array_for_each(thread, &calls->threads)
		if (*thread == address)
			return true;
	return false;
}

/* From 3.3 on, a block that the thread leads to has what pthread_self() returns. */
static bool leads_to_word(struct reading *reading, uint64_t thread, uint64_t wanted)
{
	enum { MOST_WORDS = 16 };
	const struct allocation_index *index = reading->ruby->space.index;
	uint64_t word;

	for (uint64_t i = 0; i < MOST_WORDS && view_word(&reading->view, thread + WORD * i, &word);
	     i++) {
		allocation_id id = word ? allocation_find(index, word) : NO_ALLOCATION;

		if (id != NO_ALLOCATION && allocation_start(index, id) == word &&
		    !is_thread(&reading->ruby->calls, word) &&
		    has_word(&reading->view, word, wanted))
			return true;
	}
	return false;
}

/* The data of the Thread that the system's thread runs; 0: none. */
static uint64_t find_thread(struct reading *reading, uint32_t number)
{
	const struct ruby_calls *calls = &reading->ruby->calls;
	const struct program *program = reading->ruby->space.program;
	uint64_t pointer = program->threads[number].thread_pointer;
	uint64_t self = thread_descriptor(program, pointer);

	array_for_each(thread, &calls->threads)
		if (pointer != 0 && (calls->are_apart ? leads_to_word(reading, *thread, self)
						      : has_word(&reading->view, *thread, self)))
			return *thread;
	return 0;
}

/* True if the frame is of a rescue clause: a part of a method that has code of its own. */
static bool is_rescue(struct view *view, const struct call *frame)
{
	enum { BODY = 16, TYPE_RESCUE = 4 };
	uint64_t body;
	uint32_t type;

	return frame->pc && frame->iseq && view_word(view, frame->iseq + BODY, &body) &&
	       view_read(view, body, &type, sizeof(type)) && type == TYPE_RESCUE;
}

/* The last variable of the frame is the exception. */
uint64_t ruby_find_rescued(struct ruby *ruby, struct view *view, uint32_t thread)
{
	enum { LAST_VARIABLE = 3 * WORD };
	struct reading reading = { .ruby = ruby, .view = { ruby->space.image } };
	uint64_t size = (uint64_t)WORD * ruby->calls.frame_words, value;
	uint64_t data = size ? find_thread(&reading, thread) : 0;
	struct context context;
	struct call frame;

	if (!data || !find_context(view, data, &context))
		return 0;
	for (uint64_t at = context.frame; end_of(&context) - at >= size; at += size)
		if (!read_frame(&reading, view, &context, at, &frame))
			return 0;
		else if (is_rescue(view, &frame) &&
			 view_word(view, frame.ep - LAST_VARIABLE, &value))
			return value;
	return 0;
}

struct error *ruby_calls_learn(struct ruby *ruby)
{
	struct reading reading = { .ruby = ruby, .view = { ruby->space.image } };
	struct ruby_calls *calls = &ruby->calls;

	if (calls->is_learned)
		return NULL;
	arrays_use(ruby->space.account, &calls->threads, &calls->fibers);
	calls->threads.count = calls->fibers.count = 0;
	ruby_iseqs_deinit(&calls->iseqs);
	calls->iseqs = (struct ruby_iseqs){ 0 };
	TRY(ruby_iseqs_init(&calls->iseqs, &ruby->slots, ruby->space.account));
	if (ruby->symbols.strings.count == 0) {
		ruby_symbols_deinit(&ruby->symbols);
		TRY(ruby_symbols_init(&ruby->symbols, &ruby->slots, ruby->space.account));
	}
	TRY(find_all(&reading));
	learn_frame_size(&reading);
	calls->are_apart = true;
	for (uint32_t i = 0; i < ruby->space.program->thread_count && calls->are_apart; i++) {
		calls->are_apart = false;
		calls->are_apart = find_thread(&reading, i) == 0;
	}
	calls->is_learned = true;
	return NULL;
}

/* The method's entry that the words at ep lead to, perhaps by those around; 0: it is in none. */
static uint64_t find_entry(struct reading *reading, uint64_t ep)
{
	enum { MOST_NESTED = 64, CREF_OR_METHOD = 8 };
	uint64_t flags, entry;

	for (int i = 0; i < MOST_NESTED; i++) {
		if (!view_word(&reading->view, ep, &flags))
			return 0;
		if (flags & IS_LOCAL)
			break;
		if (!view_word(&reading->view, ep - WORD, &ep))
			return 0;
		ep &= -(uint64_t)(TAG_BITS + 1);
	}
	if (!view_word(&reading->view, ep - 2 * WORD, &entry))
		return 0;
	flags = ruby_slot_flags(&reading->ruby->slots, &reading->view, entry);
	if (ruby_is_imemo(flags, RUBY_SVAR) &&
	    !view_word(&reading->view, entry + CREF_OR_METHOD, &entry))
		return 0;
	flags = ruby_slot_flags(&reading->ruby->slots, &reading->view, entry);
	return ruby_is_imemo(flags, RUBY_METHOD) ? entry : 0;
}

/* "Session#", "Session.": what a method's name follows; empty: it is in no class that is known. */
static void tell_class(struct reading *reading, uint64_t entry, char *ret, size_t size)
{
	enum { OWNER = 32 };
	struct ruby *ruby = reading->ruby;
	uint64_t owner, object;
	char name[RUBY_MOST_NAME + 1];

	ret[0] = '\0';
	if (entry == 0 || !view_word(&reading->view, entry + OWNER, &owner))
		return;
	object = ruby_attached(&ruby->slots, &reading->view, owner);
	if (ruby_read_name(&ruby->slots, &reading->view, object ? object : owner, name))
		snprintf(ret, size, "%s%c", name, object ? '.' : '#');
}

/* "block in Session#handle" of "block in handle". */
static void tell_label(const char *class, const char *label, char *ret, size_t size)
{
	const char *name = label, *next;

	while ((next = strstr(name, " in ")))
		name = next + strlen(" in ");
	snprintf(ret, size, "%.*s%s%s", (int)(name - label), label, name[0] == '<' ? "" : class,
		 name);
}

static void tell_method(struct reading *reading, uint64_t entry, char *ret, size_t size)
{
	enum { CALLED = 24 };
	char class[MOST_TEXT], name[RUBY_MOST_NAME + 1];
	uint64_t called;

	tell_class(reading, entry, class, sizeof(class));
	if (view_word(&reading->view, entry + CALLED, &called) &&
	    ruby_symbol_text(&reading->ruby->symbols, &reading->view, ruby_serial(called), name))
		snprintf(ret, size, "%s%s", class, name);
}

static void visit_local(struct reading *reading, const char *name, uint64_t value)
{
	struct ruby *ruby = reading->ruby;
	struct runtime_local local = { .name = name, .address = value };
	char text[MOST_VALUE];

	local.class_name = ruby_value_class(ruby, &reading->view, value);
	if (!local.class_name)
		reading->error = &error_no_memory;
	else if (ruby_tell_value(ruby, &reading->view, value, text, sizeof(text)))
		local.value = text;
	if (!reading->error)
		reading->visitor->local(reading->visitor->data, &local);
}

/* Variables stand below three words that end at ep. */
static void visit_locals(struct reading *reading, const struct call *frame)
{
	enum { WORDS_OF_FRAME = 2 };
	struct ruby *ruby = reading->ruby;
	uint64_t names, count, id, value;
	char name[RUBY_MOST_NAME + 1];

	visit_local(reading, "self", frame->self);
	if (!ruby_iseq_locals(&ruby->calls.iseqs, &reading->view, frame->iseq, &names, &count))
		return;
	for (uint64_t i = 0; i < count && !reading->error; i++)
		if (view_word(&reading->view, names + WORD * i, &id) &&
		    view_word(&reading->view, frame->ep - WORD * (count - i + WORDS_OF_FRAME),
			      &value) &&
		    ruby_symbol_text(&ruby->symbols, &reading->view, ruby_serial(id), name))
			visit_local(reading, name, value);
}

static void visit_code(struct reading *reading, const struct call *frame)
{
	struct ruby *ruby = reading->ruby;
	char class[MOST_TEXT], label[MOST_TEXT], function[2 * MOST_TEXT], file[MOST_TEXT];
	struct runtime_frame found = { .number = reading->number };
	struct ruby_iseq iseq;
	allocation_id id = ruby_slot_flags(&ruby->slots, &reading->view, frame->iseq)
				   ? allocation_find(ruby->space.index, frame->iseq)
				   : NO_ALLOCATION;

	if (id == NO_ALLOCATION)
		return;
	ruby_iseq_read(&ruby->calls.iseqs, id, &iseq);
	tell_class(reading, find_entry(reading, frame->ep), class, sizeof(class));
	if (ruby_read_text(&ruby->slots, &reading->view, iseq.label, label, sizeof(label))) {
		tell_label(class, label, function, sizeof(function));
		found.function = function;
	}
	if (ruby_read_text(&ruby->slots, &reading->view, iseq.path, file, sizeof(file)))
		found.file = file;
	found.line = ruby_iseq_line(&ruby->calls.iseqs, &reading->view, frame->iseq, frame->pc);
	reading->visitor->frame(reading->visitor->data, &found);
	reading->number++;
	if (reading->visitor->local)
		visit_locals(reading, frame);
}

/* A method in C has no code; others without are of the interpreter itself. */
static void visit_frame(struct reading *reading, const struct call *frame)
{
	char function[2 * MOST_TEXT];
	struct runtime_frame found = { .number = reading->number, .kind = "in C" };
	uint64_t flags, entry;

	if (frame->pc != 0 && frame->iseq != 0) {
		visit_code(reading, frame);
		return;
	}
	if (!view_word(&reading->view, frame->ep, &flags) || (flags & KIND_BITS) != OF_C)
		return;
	entry = find_entry(reading, frame->ep);
	if (entry == 0)
		return;
	function[0] = '\0';
	tell_method(reading, entry, function, sizeof(function));
	found.function = function[0] ? function : NULL;
	reading->visitor->frame(reading->visitor->data, &found);
	reading->number++;
}

/* The outermost frame of a process is of its first file, but of no call. */
static bool is_of_nothing(struct reading *reading, const struct call *frame)
{
	uint64_t flags;

	return view_word(&reading->view, frame->ep, &flags) && (flags & KIND_BITS) == OF_NOTHING;
}

static void visit_all(struct reading *reading, const struct context *context)
{
	uint64_t size = (uint64_t)WORD * reading->ruby->calls.frame_words, at = context->frame;
	struct runtime_frame damage = { .damage = "no frame of Ruby is there" };
	struct call frame;

	for (size_t i = 0; i < MOST_FRAMES && at < end_of(context) && !reading->error;
	     i++, at += size) {
		if (end_of(context) - at < size ||
		    !read_frame(reading, &reading->view, context, at, &frame)) {
			damage.number = reading->number;
			reading->visitor->frame(reading->visitor->data, &damage);
			return;
		}
		if (end_of(context) - at > size || !is_of_nothing(reading, &frame))
			visit_frame(reading, &frame);
	}
}

static struct error *begin(struct reading *reading, struct object_space *space,
			   const struct frame_visitor *visitor)
{
	struct ruby *ruby = (struct ruby *)space;

	*reading = (struct reading){ ruby, { ruby->space.image }, visitor };
	return ruby_calls_learn(ruby);
}

struct error *ruby_visit_frames(struct object_space *space, uint32_t thread,
				const struct frame_visitor *visitor)
{
	struct reading reading;
	struct context context;
	uint64_t data;

	TRY(begin(&reading, space, visitor));
	data = reading.ruby->calls.frame_words ? find_thread(&reading, thread) : 0;
	if (data && find_context(&reading.view, data, &context))
		visit_all(&reading, &context);
	return reading.error;
}

static void visit_fiber(struct reading *reading, uint64_t data)
{
	struct context context;

	reading->number = 0;
	if (reading->ruby->calls.frame_words && find_context_in(&reading->view, data, &context))
		visit_all(reading, &context);
}

struct error *ruby_visit_fiber_frames(struct object_space *space, const struct fiber *fiber,
				      const struct frame_visitor *visitor)
{
	struct reading reading;
	uint64_t data;

	TRY(begin(&reading, space, visitor));
	if (view_word(&reading.view, fiber->object + DATA, &data))
		visit_fiber(&reading, data);
	return reading.error;
}

struct error *ruby_visit_all_fibers(struct object_space *space, const struct frame_visitor *visitor)
{
	struct reading reading;

	TRY(begin(&reading, space, visitor));
	for (size_t i = 0; i < reading.ruby->calls.fibers.count && !reading.error; i++)
		visit_fiber(&reading, reading.ruby->calls.fibers.items[i]);
	return reading.error;
}

/* How many words there are, flags of frames, and values that are no numbers. */
static struct error *keep_context(struct ruby_structure *structure, uint64_t address,
				  const struct context *context)
{
	enum { WORDS_PLACE = 8, SELF = 24 };
	const struct ruby *ruby = structure->ruby;
	uint64_t size = (uint64_t)WORD * ruby->calls.frame_words, sp, flags;
	struct call frame;

	TRY(ruby_keep(structure, address + WORDS_PLACE, WORD));
	if (size == 0 || !view_word(&structure->view, context->frame + WORD, &sp) ||
	    sp - context->stack > context->frame - context->stack)
		return NULL;
	TRY(ruby_keep_values(structure, context->stack, (sp - context->stack) / WORD));
	for (uint64_t at = context->frame; end_of(context) - at >= size; at += size) {
		if (!view_read(&structure->view, at, &frame, sizeof(frame)))
			break;
		TRY(ruby_keep_values(structure, at + SELF, 1));
		if (frame.ep % WORD == 0 && view_word(&structure->view, frame.ep, &flags) &&
		    (flags & 1) && flags <= UINT32_MAX)
			TRY(ruby_keep(structure, frame.ep, WORD));
	}
	return NULL;
}

struct error *ruby_calls_keep(struct ruby_structure *structure)
{
	const struct ruby_calls *calls = &structure->ruby->calls;
	struct context context;
	uint64_t address;

	array_for_each(thread, &calls->threads) {
		address = find_context(&structure->view, *thread, &context);
		if (address)
			TRY(keep_context(structure, address, &context));
	}
	array_for_each(fiber, &calls->fibers) {
		address = find_context_in(&structure->view, *fiber, &context);
		if (address)
			TRY(keep_context(structure, address, &context));
	}
	return NULL;
}
