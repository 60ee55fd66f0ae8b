#include "analyzer/runtimes/ruby/traces.h"

#include "analyzer/runtimes/ruby/kept.h"

enum { WORD = 8 };

struct entry {
	uint64_t hash, object, information;
};

struct information {
	uint64_t living, flags, class, path, line, class_path, method, generation;
};

/* Read the entry of a living object: it still has the type with which it was allocated. */
static bool read_information(const struct ruby *ruby, struct view *view, const struct entry *entry,
			     struct information *ret)
{
	uint64_t flags = ruby_slot_flags(&ruby->slots, view, entry->object);

	return entry->hash != UINT64_MAX && flags != 0 && entry->information % WORD == 0 &&
	       view_read(view, entry->information, ret, sizeof(*ret)) &&
	       (uint32_t)ret->living == 1 && (ret->flags ^ flags) % RUBY_TYPES == 0 &&
	       ret->line <= INT32_MAX;
}

static bool read_table(struct view *view, uint64_t address, uint64_t *ret_entries,
		       uint64_t *ret_end)
{
	enum { COUNT = 2, FIRST = 4, END, ENTRIES, WORDS, MOST = 1 << 28 };
	uint64_t words[WORDS];

	if (!view_read(view, address, words, sizeof(words)) || words[COUNT] == 0 ||
	    words[COUNT] > words[END] || words[FIRST] > words[END] || words[END] > MOST)
		return false;
	*ret_entries = words[ENTRIES];
	*ret_end = words[END];
	return true;
}

/* True if most of the first entries are valid; an object may have died. */
static bool is_table(const struct ruby *ruby, struct view *view, uint64_t entries, uint64_t end)
{
	enum { ENOUGH = 32 };
	struct information information;
	struct entry entry;
	size_t right = 0, wrong = 0;

	for (uint64_t i = 0; i < end && right + wrong < ENOUGH; i++) {
		if (!view_read(view, entries + i * sizeof(entry), &entry, sizeof(entry)))
			return false;
		if (entry.hash == UINT64_MAX)
			wrong += i > ENOUGH;
		else if (read_information(ruby, view, &entry, &information))
			right++;
		else
			wrong++;
	}
	return right > wrong;
}

static struct error *add_all(struct ruby_traces *traces, const struct ruby *ruby, struct view *view,
			     uint64_t entries, uint64_t end)
{
	struct information information;
	struct entry entry;

	traces->entries = entries;
	for (uint64_t i = 0; i < end; i++)
		if (view_read(view, entries + i * sizeof(entry), &entry, sizeof(entry)) &&
		    read_information(ruby, view, &entry, &information) &&
		    address_map_find(&traces->places, entry.object) == NOT_IN_MAP)
			TRY(address_map_add(&traces->places, entry.object, (uint32_t)i));
	return NULL;
}

struct error *ruby_traces_init(struct ruby_traces *ret, const struct ruby *ruby)
{
	const struct allocation_index *index = ruby->space.index;
	struct view view = { ruby->space.image };
	uint64_t entries, end;
	size_t hint = 0;

	ret->places.memory.account = ruby->space.account;
	bitmap_for_each(id, allocation_used(index)) {
		uint64_t start = allocation_range_near(index, (allocation_id)id, &hint).start;

		if (!bitmap_get(&ruby->slots.slots, id) &&
		    read_table(&view, start, &entries, &end) && is_table(ruby, &view, entries, end))
			return add_all(ret, ruby, &view, entries, end);
	}
	return NULL;
}

void ruby_traces_deinit(struct ruby_traces *traces)
{
	table_release(&traces->places);
}

static void read_path(struct view *view, uint64_t address, char *ret, size_t size)
{
	size_t length = 0;

	while (length < size - 1 && view_read(view, address + length, &ret[length], 1) &&
	       ret[length] != '\0')
		length++;
	ret[length] = '\0';
}

bool ruby_traces_find(const struct ruby_traces *traces, const struct ruby *ruby, struct view *view,
		      uint64_t object, struct ruby_trace *ret)
{
	uint32_t place = address_map_find(&traces->places, object);
	struct information information;
	struct entry entry;

	if (place == NOT_IN_MAP ||
	    !view_read(view, traces->entries + place * sizeof(entry), &entry, sizeof(entry)) ||
	    !read_information(ruby, view, &entry, &information))
		return false;
	read_path(view, information.path, ret->path, sizeof(ret->path));
	ret->line = information.line;
	ret->method = information.method;
	ret->generation = information.generation;
	return true;
}

/* Keep what is no address of a note: that it is of a living object, flags, line, generation. */
static struct error *keep_information(struct ruby_structure *structure, uint64_t entries,
				      uint32_t number)
{
	enum { CLASS = 16, LINE = 32, LINE_END = 40, METHOD = 48 };
	struct information information;
	char path[sizeof(((struct ruby_trace *)0)->path)];
	struct entry entry;

	if (!view_read(&structure->view, entries + number * sizeof(entry), &entry, sizeof(entry)) ||
	    !read_information(structure->ruby, &structure->view, &entry, &information))
		return NULL;
	TRY(ruby_keep_numbers(structure, entry.information, entry.information + CLASS));
	TRY(ruby_keep_numbers(structure, entry.information + LINE, entry.information + LINE_END));
	TRY(ruby_keep(structure, entry.information + METHOD, sizeof(information) - METHOD));
	read_path(&structure->view, information.path, path, sizeof(path));
	return structure->visitor->name(structure->visitor->data, information.path,
					strlen(path) + 1);
}

struct error *ruby_traces_keep(struct ruby_structure *structure)
{
	struct ruby_traces traces = { 0 };
	struct error *error = ruby_traces_init(&traces, structure->ruby);

	for (size_t i = 0; !error && i < traces.places.count; i++)
		error = keep_information(structure, traces.entries, traces.places.items[i].number);
	ruby_traces_deinit(&traces);
	return error;
}
