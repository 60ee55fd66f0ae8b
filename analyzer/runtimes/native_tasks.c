#include "analyzer/runtimes/native_tasks.h"

#include "analyzer/base/address_map.h"

#include <string.h>

enum { WORD = 8, MOST_NAME = 512 };

/* The functions that tasks begin with: a program has few, and many tasks. */
struct task_function {
	const char *name;   /* NULL: it is none that begins tasks */
	const char *source; /* with its line, or NULL */
};

struct search {
	struct view view, targets;
	const struct allocation_index *index;
	struct debug *debug;
	const struct task_visitor *visitor;
	struct address_map places; /* of functions, by address */
	ARRAY(struct task_function) functions;
	struct name_pool texts;
};

static void search_deinit(struct search *search)
{
	table_release(&search->places);
	array_release(&search->functions);
	name_pool_deinit(&search->texts);
}
DEFINE_DEINIT(search_deinit, struct search)

static bool is_code(const struct search *search, uint64_t address)
{
	const struct region *region = address ? image_find(search->view.image, address) : NULL;

	return region && (region->rights & RIGHT_EXECUTE);
}

/* The text between the last start before the end and that end; false: the name has no such end. */
static bool cut_out(const char *name, const char *end, char ret[static MOST_NAME])
{
	static const char start[] = "_Z";
	const char *last = strstr(name, end), *first = name;

	if (!last || last - name >= MOST_NAME)
		return false;
	for (const char *at = name; at < last; at++)
		if (strncmp(at, start, sizeof(start) - 1) == 0)
			first = at;
	memcpy(ret, first, (size_t)(last - first));
	ret[last - first] = '\0';
	return true;
}

/* A coroutine's function, of which another one was made that resumes it. */
static const char *coroutine_name(struct search *search, const struct symbol *symbol)
{
	char name[MOST_NAME];

	return cut_out(symbol->raw, ".Frame.actor", name) || cut_out(symbol->raw, ".resume", name)
		       ? name_demangle(&search->texts, name)
		       : NULL;
}

/* The type of the future that a function polls is its first parameter, in debug information. */
static const char *future_name(struct search *search, const struct symbol *symbol,
			       const char *function)
{
	static const char poll[] = "poll<";
	const char *type = function ? strstr(function, poll) : NULL;
	size_t depth = 0, length = 0;

	if (!strstr(symbol->raw, "tokio") || !strstr(symbol->raw, "poll"))
		return NULL;
	if (!type)
		return symbol->name;
	type += sizeof(poll) - 1;
	for (; type[length] && (depth || (type[length] != ',' && type[length] != '>')); length++)
		depth += type[length] == '<' ? 1 : type[length] == '>' ? -1U : 0;
	return name_pool_print(&search->texts, "%.*s", (int)length, type);
}

static struct error *learn(struct search *search, uint64_t address, bool is_coroutine,
			   struct task_function *ret)
{
	struct backtrace calls = { 0 };
	struct symbol symbol;

	if (!debug_symbol(search->debug, address, &symbol) || symbol.start != address)
		return NULL;
	/* One behind, as calls return there. */
	TRY(debug_calls_at(search->debug, &(uint64_t){ address + 1 }, 1, &calls));
	if (calls.count > 0) {
		const struct frame *frame = &calls.frames[calls.count - 1];

		ret->source = frame->source;
		ret->name = is_coroutine ? coroutine_name(search, &symbol)
					 : future_name(search, &symbol, frame->function);
	}
	free(calls.frames);
	return NULL;
}

static struct error *find_function(struct search *search, uint64_t address, bool is_coroutine,
				   struct task_function *ret)
{
	uint32_t place = address_map_find(&search->places, address);

	if (place == NOT_IN_MAP) {
		place = (uint32_t)search->functions.count;
		TRY(array_append(&search->functions, (struct task_function){ 0 }));
		TRY(address_map_add(&search->places, address, place));
		TRY(learn(search, address, is_coroutine, &search->functions.items[place]));
	}
	*ret = search->functions.items[place];
	return NULL;
}

/*
 * A coroutine that awaits another one has it among its variables, behind its promise; in that one's
 * promise is who to go on with. So of two that refer to each other, that waits which has the other
 * further behind.
 */
static uint64_t find_awaited(struct search *search, allocation_id id, uint64_t start, uint64_t size)
{
	enum { FIRST = 2 * WORD, MOST_SIZE = 4096 };
	uint64_t other, word, code;

	for (uint64_t at = FIRST; at + WORD <= size && at < MOST_SIZE; at += WORD) {
		allocation_id target;

		if (!view_word(&search->view, start + at, &other) || other % WORD != 0)
			continue;
		target = other ? allocation_find(search->index, other) : NO_ALLOCATION;
		if (target == NO_ALLOCATION || target == id ||
		    allocation_start(search->index, target) != other ||
		    !view_word(&search->targets, other, &code) || !is_code(search, code))
			continue;
		for (uint64_t back = FIRST; back < at; back += WORD)
			if (view_word(&search->targets, other + back, &word) && word == start)
				return other;
	}
	return 0;
}

static struct error *visit_task(struct search *search, struct runtime_task *task,
				const struct task_function *function)
{
	const struct task_visitor *visitor = search->visitor;
	const struct runtime_frame frame = { .function = function->name, .file = function->source };

	TRY(visitor->task(visitor->frames.data, task));
	visitor->frames.frame(visitor->frames.data, &frame);
	return visitor->end(visitor->frames.data);
}

static struct error *look_at(struct search *search, allocation_id id, struct memory_range range)
{
	enum { FIRST, SECOND, TABLE, WORDS, CODES = 7, OFFSETS = 2 };
	enum { RUNS = 1, ENDED = 2, NOTIFIED = 4 };
	struct runtime_task task = { .id = id, .address = range.start };
	struct task_function function = { 0 }, awaited = { 0 };
	uint64_t words[WORDS], table[CODES + OFFSETS], size = range.end - range.start;
	bool is_coroutine;

	if (size < sizeof(words) || !view_read(&search->view, range.start, words, sizeof(words)))
		return NULL;
	is_coroutine = is_code(search, words[FIRST]) && is_code(search, words[SECOND]);
	if (is_coroutine) {
		TRY(find_function(search, words[FIRST], true, &function));
	} else if (words[TABLE] % WORD == 0 && words[TABLE] &&
		   allocation_find(search->index, words[TABLE]) == NO_ALLOCATION &&
		   view_read(&search->targets, words[TABLE], table, sizeof(table)) &&
		   table[CODES] < size && table[CODES + 1] < size) {
		for (size_t i = 0; i < CODES; i++)
			if (!is_code(search, table[i]))
				return NULL;
		if (!(words[FIRST] & ENDED))
			TRY(find_function(search, table[0], false, &function));
	}
	if (!function.name)
		return NULL;
	task.kind = is_coroutine ? "Coroutine" : "Task";
	task.class_name = is_coroutine ? "C++" : "tokio";
	task.is_running = !is_coroutine && (words[FIRST] & (RUNS | NOTIFIED));
	task.awaited = is_coroutine ? find_awaited(search, id, range.start, size) : 0;
	if (task.awaited && view_word(&search->targets, task.awaited, &words[FIRST]))
		TRY(find_function(search, words[FIRST], true, &awaited));
	task.awaited_class = awaited.name;
	return visit_task(search, &task, &function);
}

struct error *native_tasks_visit(const struct image *image, const struct allocation_index *index,
				 struct debug *debug, struct memory_account *account,
				 const struct task_visitor *visitor)
{
	_cleanup_(search_deinit) struct search search = {
		{ image }, { image }, index, debug, visitor
	};
	size_t hint = 0;

	arrays_use(account, &search.functions);
	search.places.memory.account = account;
	bitmap_for_each(id, allocation_used(index))
		TRY(look_at(&search, (allocation_id)id,
			    allocation_range_near(index, (allocation_id)id, &hint)));
	return NULL;
}
