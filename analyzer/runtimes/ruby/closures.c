/*
 * Links of objects that C code of Ruby has: what Procs and Bindings captured, what a Method is of;
 * and singleton classes.
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
};

/* The variables of one level. */
struct level {
	uint64_t ep, names, count;
};

static bool read_level(const struct ruby_walk *walk, struct view *view, uint64_t ep,
		       struct level *ret)
{
	enum { ISEQ = 8 };
	const struct ruby *ruby = walk->ruby;
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

static void walk_level(struct ruby_walk *walk, enum ruby_link_kind kind, const struct level *levels,
		       size_t number)
{
	enum { WORDS_OF_FRAME = 2 };
	const struct level *level = &levels[number];
	uint64_t name, value;

	for (uint64_t i = 0; i < level->count && ruby_walk_step(walk); i++)
		if (view_word(&walk->view, level->names + WORD * i, &name) &&
		    view_word(&walk->view, level->ep - WORD * (level->count - i + WORDS_OF_FRAME),
			      &value) &&
		    ruby_is_local(&walk->ruby->symbols, ruby_serial(name)) &&
		    !is_hidden(&walk->view, levels, number, name))
			ruby_walk_emit(walk, kind, value, ruby_serial(name), 0);
}

/* From the innermost block outwards. */
static void walk_levels(struct ruby_walk *walk, enum ruby_link_kind kind, uint64_t ep)
{
	struct level levels[MOST_LEVELS];
	uint64_t flags;

	for (size_t i = 0; i < MOST_LEVELS && ep % WORD == 0 && ruby_walk_step(walk); i++) {
		if (!read_level(walk, &walk->view, ep, &levels[i]))
			return;
		walk_level(walk, kind, levels, i);
		if (!view_word(&walk->view, ep, &flags) || (flags & IS_LOCAL) ||
		    !view_word(&walk->view, ep - WORD, &ep))
			return;
		ep &= -(uint64_t)(TAG_BITS + 1);
	}
}

/* A block of Ruby; others, of C or of a Symbol, have no Binding. */
static void walk_block(struct ruby_walk *walk, uint64_t data, bool is_proc)
{
	enum { SELF, EP, CODE, KIND, WORDS };
	uint64_t words[WORDS];

	if (!view_read(&walk->view, data, words, sizeof(words)) || (uint32_t)words[KIND] != 0 ||
	    !ruby_is_imemo(ruby_slot_flags(&walk->ruby->slots, &walk->view, words[CODE]),
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

void ruby_walk_data(struct ruby_walk *walk, uint64_t object)
{
	const struct ruby *ruby = walk->ruby;
	uint64_t type = ruby_find_data_type(ruby, &walk->view, object), data, receiver;
	char name[RUBY_MOST_NAME + 1];

	if (!type || !ruby_read_data_name(ruby->space.image, type, name) ||
	    !find_data(&ruby->slots, &walk->view, object, &data))
		return;
	if (strcmp(name, "proc") == 0 || strcmp(name, "binding") == 0)
		walk_block(walk, data, name[0] == 'p');
	else if (strcmp(name, "method") == 0 && view_word(&walk->view, data, &receiver))
		ruby_walk_emit(walk, LINK_RECEIVER, receiver, 0, 0);
}

void ruby_walk_singleton(struct ruby_walk *walk, uint64_t object)
{
	uint64_t class;

	if (view_word(&walk->view, object + CLASS, &class) && class != 0 &&
	    ruby_attached(&walk->ruby->slots, &walk->view, class) == object)
		ruby_walk_emit(walk, LINK_SINGLETON, class, 0, 0);
}
