/*
 * tracemalloc, of 3.8 to 3.14: Modules/_tracemalloc.c, from 3.13 on Python/tracemalloc.c. A
 *variable of the interpreter is a table from blocks to traces, and from 3.9 on one more is a table
 *from the numbers of domains, which extensions have for memory of their own, to such tables.
 *
 *	table     | entries | buckets, as a power of 2 | first of each | ...
 *	entry     | next | hash | key | value *
 *	trace     | bytes | traceback * |
 *	traceback | hash | u16 calls | u16 all calls | file *, u32 line | ..., packed, innermost
 *first
 *
 * In 3.8, numbers of entries and buckets are the other way round, and sizes of keys and values
 * follow; a trace stands in the entry itself, where a domain may precede it in the key.
 */
#include "analyzer/runtimes/python/traces.h"
#include "analyzer/runtimes/python/space.h"
#include "analyzer/runtimes/python/values.h"

enum {
	WORD = 8,
	CALLS_START = 12, /* of a traceback */
	CALL_SIZE = 12,
	MOST_BUCKETS = 1 << 30,
	MOST_DOMAINS = 1 << 10,
};

struct trace_table {
	uint64_t entries, buckets, first;
	uint64_t key_size; /* in an entry that has its trace; 0: a pointer leads to it */
};

struct traces_reader {
	struct view view;
	struct python *python;
	noted_visitor *visit;
	void *data;
	struct budget steps;
};

static bool is_power_of_2(uint64_t number)
{
	return number && !(number & (number - 1));
}

static bool read_table(struct view *view, uint64_t address, struct trace_table *ret)
{
	enum { KEY, VALUE, HEAD = 3, SMALLEST_TRACE = 2 * WORD, LARGEST_KEY = 2 * WORD };
	uint64_t words[HEAD], sizes[2];

	if (address % WORD || !view_read(view, address, words, sizeof(words)) ||
	    !view_read(view, address + sizeof(words), sizes, sizeof(sizes)))
		return false;
	*ret = (struct trace_table){ words[0], words[1], words[2] };
	if (sizes[KEY] <= LARGEST_KEY && sizes[KEY] % WORD == 0 && sizes[VALUE] == SMALLEST_TRACE)
		*ret = (struct trace_table){ words[1], words[0], words[2], sizes[KEY] };
	return is_power_of_2(ret->buckets) && ret->buckets <= MOST_BUCKETS && ret->entries > 0 &&
	       ret->entries / 2 <= MOST_BUCKETS && ret->first % WORD == 0;
}

struct trace {
	uint64_t start, bytes, calls;
};

static bool has_calls(struct view *view, uint64_t calls)
{
	uint16_t count;
	uint64_t file;

	return calls % WORD == 0 && view_read(view, calls + WORD, &count, sizeof(count)) &&
	       count > 0 && view_read(view, calls + CALLS_START, &file, sizeof(file)) &&
	       python_has_flag(view, file, TYPE_STRING);
}

static bool read_trace(struct view *view, const struct trace_table *table, uint64_t entry,
		       struct trace *ret)
{
	enum { KEY = 2 * WORD };
	uint64_t place = entry + KEY + table->key_size, trace[2];

	if (!view_word(view, entry + KEY, &ret->start) ||
	    (!table->key_size && !view_word(view, entry + KEY + WORD, &place)) ||
	    !view_read(view, place, trace, sizeof(trace)))
		return false;
	ret->bytes = trace[0];
	ret->calls = trace[1];
	return has_calls(view, ret->calls);
}

/* Called with each entry of a table until it is false. */
typedef bool entry_visitor(struct traces_reader *reader, const struct trace_table *table,
			   uint64_t entry, void *data);

static bool visit_entries(struct traces_reader *reader, const struct trace_table *table,
			  entry_visitor *visit, void *data)
{
	uint64_t entry;

	for (uint64_t i = 0; i < table->buckets; i++) {
		if (!view_word(&reader->view, table->first + i * WORD, &entry))
			return true;
		while (entry && entry % WORD == 0) {
			if (!budget_take(&reader->steps) || !visit(reader, table, entry, data))
				return false;
			if (!view_word(&reader->view, entry, &entry))
				break;
		}
	}
	return true;
}

/* data: how many entries are still to be checked. */
static bool check_trace(struct traces_reader *reader, const struct trace_table *table,
			uint64_t entry, void *data)
{
	const struct allocation_index *index = reader->python->space.index;
	uint64_t *left = data;
	struct trace trace;
	allocation_id id;

	if (!read_trace(&reader->view, table, entry, &trace))
		return false;
	id = allocation_find(index, trace.start);
	if (id == NO_ALLOCATION || !bitmap_get(allocation_used(index), id))
		return false;
	return --*left > 0;
}

static bool is_traces(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { ENOUGH = 16, MOST_STEPS = 64 };
	struct traces_reader reader = { *view, data, .steps.left = MOST_STEPS };
	struct trace_table table;
	uint64_t left = ENOUGH;

	if (!word || !read_table(&reader.view, word, &table))
		return false;
	left = table.entries < ENOUGH ? table.entries : ENOUGH;
	visit_entries(&reader, &table, check_trace, &left);
	return left == 0;
}

/* A table of domains: from small numbers to tables of traces. */
static bool read_domain(struct view *view, uint64_t entry, struct trace_table *ret)
{
	enum { KEY = 2 * WORD, VALUE = 3 * WORD };
	uint64_t domain, table;

	return view_word(view, entry + KEY, &domain) && domain <= UINT32_MAX &&
	       view_word(view, entry + VALUE, &table) && read_table(view, table, ret);
}

static bool check_domain(struct traces_reader *reader, const struct trace_table *table,
			 uint64_t entry, void *data)
{
	struct trace_table traces;

	*(bool *)data = read_domain(&reader->view, entry, &traces);
	return false;
}

static bool is_domains(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { MOST_STEPS = 16 };
	struct traces_reader reader = { *view, data, .steps.left = MOST_STEPS };
	struct trace_table table;
	bool found = false;

	if (!word || !read_table(&reader.view, word, &table) || table.key_size ||
	    table.buckets > MOST_DOMAINS || table.entries > MOST_DOMAINS)
		return false;
	visit_entries(&reader, &table, check_domain, &found);
	return found;
}

static bool visit_trace(struct traces_reader *reader, const struct trace_table *table,
			uint64_t entry, void *data)
{
	struct error **error = data;
	struct trace trace;
	struct noted_blocks noted = { .count = 1 };

	if (!read_trace(&reader->view, table, entry, &trace))
		return true;
	noted.start = trace.start;
	noted.bytes = trace.bytes;
	noted.calls = trace.calls;
	*error = reader->visit(reader->data, &noted);
	return !*error;
}

static bool visit_domain(struct traces_reader *reader, const struct trace_table *table,
			 uint64_t entry, void *data)
{
	struct error **error = data;
	struct trace_table traces;

	if (read_domain(&reader->view, entry, &traces))
		visit_entries(reader, &traces, visit_trace, error);
	return !*error;
}

static struct error *visit_table(struct traces_reader *reader, module_word_test is_table,
				 entry_visitor *visit)
{
	const struct object_space *space = &reader->python->space;
	struct error *error = NULL;
	struct trace_table table;
	uint64_t place, address;

	place = module_data_search(space->image, space->program, is_table, reader->python);
	if (place && view_word(&reader->view, place, &address) &&
	    read_table(&reader->view, address, &table))
		visit_entries(reader, &table, visit, &error);
	return error;
}

static struct error *visit_traces(void *owner, noted_visitor *visit, void *data)
{
	struct python *python = owner;
	struct traces_reader reader = {
		.view = { python->space.image },
		.python = python,
		.visit = visit,
		.data = data,
		.steps.left = python->space.image->size / WORD,
	};

	if (!python->space.has_objects)
		return NULL;
	TRY(visit_table(&reader, is_traces, visit_trace));
	return visit_table(&reader, is_domains, visit_domain);
}

/* Strings before 3.12 are longer, which their type knows. */
static unsigned int head_of(struct view *view, uint64_t string)
{
	enum { SIZE = 32, SMALLEST_OLD = 72 };
	uint64_t type, size;

	return view_word(view, string + WORD, &type) && view_word(view, type + SIZE, &size) &&
			       size < SMALLEST_OLD
		       ? STRING_HEAD
		       : STRING_HEAD_OLD;
}

static void visit_places(void *owner, uint64_t calls,
			 void (*visit)(void *data, const struct noted_place *place), void *data)
{
	enum { MOST_PATH = 512 };
	struct python *python = owner;
	struct view view = { python->space.image };
	uint16_t count;

	if (!view_read(&view, calls + WORD, &count, sizeof(count)))
		return;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t place = calls + CALLS_START + i * CALL_SIZE, file;
		char path[MOST_PATH];
		uint32_t line;

		if (view_read(&view, place, &file, sizeof(file)) &&
		    view_read(&view, place + WORD, &line, sizeof(line)) &&
		    python_read_text(&view, head_of(&view, file), file, path, sizeof(path)))
			visit(data, &(struct noted_place){ .path = path, .line = line });
	}
}

const struct noting python_noting = {
	.name = "tracemalloc",
	.visit = visit_traces,
	.visit_places = visit_places,
};
