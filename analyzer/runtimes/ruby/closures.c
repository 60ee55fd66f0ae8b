/*
 * Links of objects that C code of Ruby has: what Procs and Bindings captured, what a Method is of,
 * variables of Threads, items of queues; and singleton classes and methods made of Procs.
 *
 *	rb_proc_t, rb_binding_t (vm_core.h) | self | ep | iseq | u32 kind of block | ...
 *	struct METHOD (proc.c)              | receiver | ...
 *
 * At ep are the words that frames.h shows; behind them is the imemo_env, whose iseq names the
 * variables.
 */
#include "analyzer/runtimes/ruby/links.h"
#include "analyzer/runtimes/ruby/objects.h"

enum {
	WORD = 8,
	CLASS = 8,
	DATA = 32,
	TAG_BITS = 3,
	IS_LOCAL = 2,	  /* of flags at ep: nothing is around */
	MOST_LEVELS = 16, /* blocks in blocks */
	MOST_WORDS = 64,  /* looked at of C code's data */
};

/* The variables of one level. */
struct level {
	uint64_t ep, names, count;
};

static bool read_level(const struct object_walk *walk, struct view *view, uint64_t ep,
		       struct level *ret)
{
	enum { ISEQ = 8 };
	const struct ruby *ruby = ruby_of(walk->space);
	uint64_t env, iseq;

	ret->ep = ep;
	return view_word(view, ep + WORD, &env) &&
	       ruby_is_imemo(ruby_slot_flags(&ruby->slots, view, env), RUBY_ENV) &&
	       view_word(view, env + ISEQ, &iseq) &&
	       ruby_iseq_locals(&ruby->calls.iseqs, view, iseq, &ret->names, &ret->count);
}

/* True if a block within has a variable of the same name, which hides this one. */
static bool is_hidden(struct view *view, const struct level *levels, size_t count, uint64_t name)
{
	uint64_t other;

	for (size_t level = 0; level < count; level++)
		for (uint64_t i = 0; i < levels[level].count; i++)
			if (view_word(view, levels[level].names + WORD * i, &other) &&
			    other == name)
				return true;
	return false;
}

static void walk_level(struct object_walk *walk, enum ruby_link_kind kind,
		       const struct level *levels, size_t number)
{
	enum { WORDS_OF_FRAME = 2 };
	const struct level *level = &levels[number];
	uint64_t name, value;

	for (uint64_t i = 0; i < level->count && object_walk_step(walk); i++)
		if (view_word(&walk->view, level->names + WORD * i, &name) &&
		    view_word(&walk->view, level->ep - WORD * (level->count - i + WORDS_OF_FRAME),
			      &value) &&
		    ruby_is_local(&ruby_of(walk->space)->symbols, ruby_serial(name)) &&
		    !is_hidden(&walk->view, levels, number, name))
			ruby_walk_emit(walk, kind, value, ruby_serial(name), 0);
}

/* From the innermost block outwards. */
static void walk_levels(struct object_walk *walk, enum ruby_link_kind kind, uint64_t ep)
{
	struct level levels[MOST_LEVELS];
	uint64_t flags;

	for (size_t i = 0; i < MOST_LEVELS && ep % WORD == 0 && object_walk_step(walk); i++) {
		if (!read_level(walk, &walk->view, ep, &levels[i]))
			return;
		walk_level(walk, kind, levels, i);
		if (!view_word(&walk->view, ep, &flags) || (flags & IS_LOCAL) ||
		    !view_word(&walk->view, ep - WORD, &ep))
			return;
		ep &= -(uint64_t)(TAG_BITS + 1);
	}
}

/* Walk the words that are addresses of objects. */
static void walk_inside(struct object_walk *walk, enum ruby_link_kind kind, uint64_t start,
			uint64_t size)
{
	uint64_t word;

	for (uint64_t i = 0; i < size / WORD && i < MOST_WORDS && object_walk_step(walk); i++)
		if (view_word(&walk->view, start + WORD * i, &word) && word &&
		    ruby_slot_flags(&ruby_of(walk->space)->slots, &walk->view, word))
			object_walk_follow(walk,
					   &(struct object_link){ kind, word, start + WORD * i });
}

/* A block of Ruby; others have no Binding: of C, struct vm_ifunc has data; or a Symbol or Proc. */
static void walk_block(struct object_walk *walk, uint64_t data, bool is_proc)
{
	enum { SELF, EP, CODE, KIND, WORDS, OF_C = 1, OF_PROC = 3, DATA_OF_C = 24 };
	uint64_t words[WORDS];

	if (!view_read(&walk->view, data, words, sizeof(words)))
		return;
	if ((uint32_t)words[KIND] == OF_C)
		walk_inside(walk, LINK_INSIDE, words[CODE] + DATA_OF_C, WORD);
	if ((uint32_t)words[KIND] == OF_PROC)
		walk_inside(walk, LINK_INSIDE, data, WORD);
	if ((uint32_t)words[KIND] != 0 ||
	    !ruby_is_imemo(ruby_slot_flags(&ruby_of(walk->space)->slots, &walk->view, words[CODE]),
			   RUBY_ISEQ))
		return;
	ruby_walk_emit(walk, is_proc ? LINK_PROC_SELF : LINK_RECEIVER, words[SELF], 0, 0);
	walk_levels(walk, is_proc ? LINK_PROC_LOCAL : LINK_LOCAL, words[EP]);
}

/* From 3.3 on, small data is in the object itself; from 4.0 on, another bit says so. */
static bool find_data(const struct ruby_slots *slots, struct view *view, uint64_t object,
		      uint64_t *ret)
{
	enum { TYPED = 24, IS_EMBEDDED = 2, IS_EMBEDDED_LATER = 1 };
	uint64_t typed;

	*ret = object + DATA;
	return view_word(view, object + TYPED, &typed) &&
	       ((typed & (slots->has_boxes ? IS_EMBEDDED_LATER : IS_EMBEDDED)) ||
		view_word(view, object + DATA, ret));
}

bool ruby_is_data(const struct ruby *ruby, struct view *view, uint64_t object, const char *name)
{
	uint64_t type = ruby_slot_flags(&ruby->slots, view, object) % RUBY_TYPES == RUBY_DATA
				? ruby_find_data_type(ruby, view, object)
				: 0;
	char text[RUBY_MOST_NAME + 1];

	return type && ruby_read_data_name(ruby->space.image, type, text) &&
	       strcmp(text, name) == 0;
}

static void emit_local(struct object_walk *walk, const struct ruby_id_item *item, void *data)
{
	ruby_walk_emit(walk, LINK_THREAD_LOCAL, item->value, item->serial, 0);
}

/* True if all keys are names of variables that the table has objects or other values for. */
static bool is_of_locals(struct object_walk *walk, uint64_t address)
{
	struct ruby_id_table table;
	struct ruby_id_item item;
	char name[RUBY_MOST_NAME + 1];

	if (!ruby_read_id_table(&walk->view, address, &table) || table.count == 0)
		return false;
	for (uint64_t i = 0; i < table.capacity && object_walk_step(walk); i++)
		if (!view_read(&walk->view, table.items + i * sizeof(item), &item, sizeof(item)) ||
		    (item.serial && !ruby_symbol_text(&ruby_of(walk->space)->symbols, &walk->view,
						      item.serial, name)))
			return false;
	return true;
}

/*
 * rb_execution_context_t: behind the thread follows the table of its locals. It is within the data
 * of a Fiber; a Thread leads to that of the fiber which it runs.
 */
static void walk_locals(struct object_walk *walk, uint64_t context, uint64_t thread)
{
	enum { FARTHEST = 16 };
	uint64_t word;

	for (uint64_t i = 1; i < FARTHEST; i++)
		if (view_word(&walk->view, context + WORD * i, &word) && word == thread &&
		    view_word(&walk->view, context + WORD * (i + 1), &word) &&
		    is_of_locals(walk, word))
			ruby_walk_id_table(walk, word, emit_local, NULL);
}

/* rb_thread_t, vm_core.h: the value of a Thread that has ended stands behind its ThreadGroup. */
static void walk_thread(struct object_walk *walk, uint64_t thread)
{
	uint64_t word;

	for (uint64_t i = 0; i < MOST_WORDS && view_word(&walk->view, thread + WORD * i, &word) &&
			     object_walk_step(walk);
	     i++) {
		if (word % WORD == 0 && word != 0)
			walk_locals(walk, word, thread);
		if (ruby_is_data(ruby_of(walk->space), &walk->view, word, "thgroup"))
			walk_inside(walk, LINK_THREAD_VALUE, thread + WORD * (i + 1), WORD);
	}
	walk->state |= RUBY_IS_THREAD;
}

/* Any other data: its words that are addresses of objects. */
static void walk_other(struct object_walk *walk, uint64_t object, uint64_t data, bool is_queue)
{
	const struct allocation_index *index = ruby_of(walk->space)->space.index;
	allocation_id id = allocation_find(index, data);
	uint64_t end;

	if (id == NO_ALLOCATION || (data != object + DATA && allocation_start(index, id) != data))
		return;
	end = allocation_start(index, id) + allocation_size(index, id);
	walk_inside(walk, is_queue ? LINK_ITEMS : LINK_INSIDE, data, end - data);
}

void ruby_walk_data(struct object_walk *walk, uint64_t object)
{
	const struct ruby *ruby = ruby_of(walk->space);
	uint64_t type = ruby_find_data_type(ruby, &walk->view, object), data, receiver;
	char name[RUBY_MOST_NAME + 1];

	if (!type || !ruby_read_data_name(ruby->space.image, type, name) ||
	    !find_data(&ruby->slots, &walk->view, object, &data))
		return;
	if (strcmp(name, "proc") == 0 || strcmp(name, "binding") == 0)
		walk_block(walk, data, name[0] == 'p');
	else if (strcmp(name, "method") == 0 && view_word(&walk->view, data, &receiver))
		ruby_walk_emit(walk, LINK_RECEIVER, receiver, 0, 0);
	else if (strcmp(name, "VM/thread") == 0)
		walk_thread(walk, data);
	else if (strncmp(name, "VM", 2) != 0)
		walk_other(walk, object, data, strstr(name, "queue") != NULL);
}

/* rb_method_entry_t and rb_method_definition_t, method.h: the first 4 bits are the kind. */
static void visit_method(struct object_walk *walk, const struct ruby_id_item *item, void *data)
{
	enum { DEFINITION = 16, KINDS = 16, OF_PROC = 4, BODY = 8 };
	uint64_t definition, kind, proc;

	if (view_word(&walk->view, item->value + DEFINITION, &definition) && definition &&
	    view_word(&walk->view, definition, &kind) && kind % KINDS == OF_PROC &&
	    view_word(&walk->view, definition + BODY, &proc) &&
	    ruby_is_data(ruby_of(walk->space), &walk->view, proc, "proc"))
		ruby_walk_emit(walk, LINK_METHOD, proc, item->serial, 0);
}

void ruby_walk_methods(struct object_walk *walk, uint64_t class)
{
	enum { EXTENSION = 24, OF_EXTENSION = 16, METHODS = 24, BOXED = 48 };
	const struct ruby_slots *slots = &ruby_of(walk->space)->slots;
	uint64_t place = class + (slots->has_boxes ? BOXED : METHODS), table;

	if (!slots->has_length_behind) {
		if (!view_word(&walk->view, class + EXTENSION, &place))
			return;
		place += OF_EXTENSION;
	}
	if (view_word(&walk->view, place, &table))
		ruby_walk_id_table(walk, table, visit_method, NULL);
}

void ruby_walk_singleton(struct object_walk *walk, uint64_t object)
{
	uint64_t class;

	if (view_word(&walk->view, object + CLASS, &class) && class != 0 &&
	    ruby_attached(&ruby_of(walk->space)->slots, &walk->view, class) == object)
		ruby_walk_emit(walk, LINK_SINGLETON, class, 0, 0);
}
