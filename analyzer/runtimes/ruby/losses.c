/*
 * Known leaks of Ruby itself, 3.1 and 3.3 as in Debian: blocks that no program can free. They are
 * recognised by their contents, each as narrowly as possible.
 */
#include "analyzer/base/list.h"
#include "analyzer/runtimes/ruby/objects.h"
#include "analyzer/runtimes/ruby/space.h"
#include "analyzer/runtimes/ruby/values.h"

enum { WORD = 8, SYMBOL_BITS = 8, STATIC_SYMBOL = 0xc, ID_BITS = 4, LOCAL_ID = 1, MOST_NAMES = 64 };

struct lost {
	struct ruby *ruby;
	struct view *view;
	uint64_t start, size;
};

static bool is_block_of(const struct lost *block, uint64_t size)
{
	enum { MOST_ADDED = 24 }; /* as malloc rounds */

	return block->size >= size && block->size < size + MOST_ADDED;
}

/* True if the words from start on are symbols that are no objects. */
static bool are_symbols(struct view *view, uint64_t start, uint64_t count)
{
	uint64_t word;

	for (uint64_t i = 0; i < count; i++)
		if (!view_word(view, start + i * WORD, &word) || word >> 32 != 0 ||
		    (word & ((1 << SYMBOL_BITS) - 1)) != STATIC_SYMBOL || word >> SYMBOL_BITS == 0)
			return false;
	return true;
}

/* struct rb_callinfo_kwarg, vm_callinfo.h: a count, and the names. */
static bool is_keywords_of_call(const struct lost *block)
{
	uint32_t count;

	return view_read(block->view, block->start, &count, sizeof(count)) && count > 0 &&
	       count <= MOST_NAMES && is_block_of(block, WORD * (1 + (uint64_t)count)) &&
	       are_symbols(block->view, block->start + WORD, count);
}

/* Names alone, as ibf_load_param_keyword(), compile.c, makes them for methods that are built in. */
static bool is_keywords_of_method(const struct lost *block)
{
	struct ruby_symbols *symbols = &block->ruby->symbols;
	uint64_t word = 0, count = 0;
	struct error *error = NULL;

	if (symbols->strings.count == 0) {
		ruby_symbols_deinit(symbols);
		error = ruby_symbols_init(symbols, &block->ruby->slots, block->ruby->space.account);
	}
	if (error) {
		error_destroy(error);
		return false;
	}
	for (; count < MOST_NAMES && view_word(block->view, block->start + count * WORD, &word) &&
	       (word & ((1 << ID_BITS) - 1)) == LOCAL_ID && ruby_is_local(symbols, word >> ID_BITS);
	     count++)
		if ((count + 1) * WORD == block->size)
			return true;
	return count > 0 && word == 0 && is_block_of(block, count * WORD);
}

/* struct autoload_data_i, variable.c: the name of a file, and an empty list of constants. */
static bool is_autoload(const struct lost *block)
{
	enum { FILE, SERIAL, STATE, NEXT, PREVIOUS, WORDS };
	uint64_t words[WORDS], list = block->start + NEXT * WORD;
	char name[RUBY_MOST_NAME + 1];

	return is_block_of(block, sizeof(words)) &&
	       view_read(block->view, block->start, words, sizeof(words)) && words[NEXT] == list &&
	       words[PREVIOUS] == list && words[STATE] == 0 &&
	       ruby_read_string(&block->ruby->slots, block->view, words[FILE], name);
}

/* The values of a thread's calls: the outermost frame, at the upper end, leads into it. */
static bool is_stack(const struct lost *block)
{
	enum { LEAST_STACK = 1 << 17, LAST_WORDS = 32 };
	uint64_t words[LAST_WORDS];
	size_t own = 0;

	if (block->size < LEAST_STACK)
		return false;
	/* Behind the frame may be what malloc rounded up to a page. */
	for (uint64_t at = block->size & -(uint64_t)WORD, most = 1 << 13;
	     own < 2 && most >= sizeof(words); most -= sizeof(words)) {
		at -= sizeof(words);
		if (!view_read(block->view, block->start + at, words, sizeof(words)))
			return false;
		own = 0;
		for (size_t i = 0; i < LAST_WORDS; i++)
			own += words[i] - block->start < block->size;
	}
	return own >= 2;
}

/* struct rb_native_thread, thread_pthread.h, from 3.2 on: its pthread_t, and the system's number.
 */
static bool is_native_thread(const struct lost *block)
{
	enum { FIRST_PLACE = 1, LAST_PLACE = 2, LEAST = 80, MOST = 200 };
	const struct program *program = block->ruby->space.program;
	uint64_t words[LAST_PLACE + 2];

	if (block->size < LEAST || block->size > MOST ||
	    !view_read(block->view, block->start, words, sizeof(words)))
		return false;
	list_for_each(thread, program->threads, program->thread_count) {
		uint64_t descriptor = thread_descriptor(program, thread->thread_pointer);

		for (size_t place = FIRST_PLACE; place <= LAST_PLACE; place++)
			if (words[place] == descriptor && (uint32_t)words[place + 1] == thread->id)
				return true;
	}
	return false;
}

const char *ruby_known_leak(struct object_space *space, allocation_id id)
{
	static const struct {
		bool (*is)(const struct lost *block);
		const char *cause;
	} losses[] = {
		{ is_keywords_of_call, "names of keywords of calls in code that was freed" },
		{ is_keywords_of_method, "names of keywords of built-in methods that were freed" },
		{ is_autoload, "files to be loaded by constants that its end freed" },
		{ is_stack, "the stack of the main thread, which its end left" },
		{ is_native_thread, "its record of the system's main thread" },
	};
	struct ruby *ruby = (struct ruby *)space;
	struct view view = { ruby->space.image };
	const struct lost block = { ruby, &view, allocation_start(ruby->space.index, id),
				    allocation_size(ruby->space.index, id) };

	if (!space->has_objects)
		return NULL;
	for (size_t i = 0; i < COUNT_OF(losses); i++)
		if (losses[i].is(&block))
			return losses[i].cause;
	return NULL;
}
