#include "analyzer/runtimes/ruby/iseqs.h"

#include "analyzer/runtimes/ruby/kept.h"

enum {
	WORD = 8,
	BODY = 16, /* of iseqs */
	BODY_WORDS = 48,
	MOST_NESTED = 64, /* blocks in blocks */
	HALVES = 2,	  /* of a word: what has 4 bytes */
	/* Fields of a body, in words before the iseq around it; from 4.0 on, one more. */
	LINES = 6,
	NAMES = 2,
	LINE_COUNT = 2, /* behind LINES */
	LINE_SIZE = 12,
	SHORT_LINE_SIZE = 8,
	/* Types of bodies. */
	METHOD = 1,
	CLASS = 3,
};

/* The beginning of a body; zeros if its block is shorter. */
struct body {
	uint64_t words[BODY_WORDS];
};

static uint32_t place_before(const struct ruby_iseqs *iseqs, uint32_t words)
{
	words += iseqs->slots->has_boxes;
	return iseqs->parent_word > words ? iseqs->parent_word - words : 0;
}

static unsigned int body_type(const struct body *body)
{
	return (uint32_t)body->words[0];
}

static bool is_iseq(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	return ruby_is_imemo(ruby_slot_flags(slots, view, address), RUBY_ISEQ);
}

static bool is_class(const struct ruby_slots *slots, struct view *view, uint64_t address)
{
	unsigned int type = ruby_slot_flags(slots, view, address) % RUBY_TYPES;

	return type == RUBY_CLASS || type == RUBY_MODULE;
}

static bool read_body(const struct ruby_slots *slots, struct view *view, uint64_t iseq,
		      struct body *ret)
{
	uint64_t address, size;
	allocation_id id;

	*ret = (struct body){ 0 };
	if (!view_word(view, iseq + BODY, &address))
		return false;
	id = allocation_find(slots->index, address);
	if (id == NO_ALLOCATION || allocation_start(slots->index, id) != address)
		return false;
	size = allocation_size(slots->index, id) / WORD * WORD;
	return view_read(view, address, ret, size < sizeof(*ret) ? size : sizeof(*ret));
}

/* The path itself, or an array of it and what it is in truth. */
static uint64_t find_path(const struct ruby_slots *slots, struct view *view, uint64_t word)
{
	uint64_t elements, count;

	if (!ruby_read_array(slots, view, word, &elements, &count))
		return word;
	return count > 0 && view_word(view, elements, &word) ? word : 0;
}

/* No label begins like that. */
static bool is_path(const struct ruby_slots *slots, struct view *view, uint64_t word)
{
	char text[RUBY_MOST_NAME + 1];

	return word % WORD == 0 &&
	       ruby_read_text(slots, view, find_path(slots, view, word), text, sizeof(text)) &&
	       (text[0] == '/' || strncmp(text, "(eval", 5) == 0 ||
		strncmp(text, "<internal:", 10) == 0);
}

struct votes {
	size_t path[BODY_WORDS];
	size_t method[BODY_WORDS]; /* a method's body leads to its own iseq there */
	size_t count[BODY_WORDS * HALVES];
};

static void vote(const struct ruby_slots *slots, struct view *view, uint64_t iseq,
		 struct votes *votes)
{
	struct body body;

	if (!read_body(slots, view, iseq, &body))
		return;
	for (size_t i = 2; i < BODY_WORDS; i++) {
		votes->path[i] += is_path(slots, view, body.words[i]);
		votes->method[i] += body_type(&body) == METHOD && body.words[i] == iseq;
	}
}

static uint32_t most(const size_t *votes, uint32_t count)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < count; i++)
		if (votes[i] > votes[best])
			best = i;
	return best;
}

static uint32_t half(const struct body *body, size_t place)
{
	return (uint32_t)(body->words[place / HALVES] >> 32 * (place % HALVES));
}

/* How many names there are, the size of their block tells, nearly: it is rounded up. */
static void vote_for_count(const struct ruby_iseqs *iseqs, const struct body *body,
			   struct votes *votes)
{
	enum { LEAST = 3 };
	const struct allocation_index *index = iseqs->slots->index;
	uint64_t names = body->words[place_before(iseqs, NAMES)], most_names = 0, least = 0;
	allocation_id id = names ? allocation_find(index, names) : NO_ALLOCATION;

	if (id != NO_ALLOCATION) {
		most_names = allocation_size(index, id) / WORD;
		least = most_names > LEAST ? most_names - LEAST : 1;
	}
	for (size_t i = (iseqs->parent_word + 1) * HALVES; i < COUNT_OF(votes->count); i++)
		votes->count[i] += half(body, i) >= least && half(body, i) <= most_names;
}

/* True if the block of lines is too small for lines of 12 bytes. */
static bool has_short_lines(const struct ruby_iseqs *iseqs, const struct body *body)
{
	const uint64_t *lines = &body->words[place_before(iseqs, LINES)];
	allocation_id id =
		lines[0] ? allocation_find(iseqs->slots->index, lines[0]) : NO_ALLOCATION;

	return id != NO_ALLOCATION &&
	       allocation_size(iseqs->slots->index, id) / LINE_SIZE < (uint32_t)lines[LINE_COUNT];
}

static void learn_count(struct ruby_iseqs *iseqs)
{
	enum { ENOUGH = 4096 };
	struct view view = { iseqs->slots->image };
	struct votes votes = { 0 };
	struct body body;
	size_t count = 0, many_short = 0;

	if (iseqs->parent_word < LINES)
		return;
	bitmap_for_each(id, &iseqs->iseqs) {
		if (count++ == ENOUGH)
			break;
		if (!read_body(iseqs->slots, &view,
			       allocation_start(iseqs->slots->index, (allocation_id)id), &body))
			continue;
		vote_for_count(iseqs, &body, &votes);
		many_short += has_short_lines(iseqs, &body);
	}
	iseqs->has_short_lines = many_short > count / 2;
	iseqs->count_place = most(votes.count, COUNT_OF(votes.count));
}

/* The parent is before the method's iseq. */
static void learn(struct ruby_iseqs *iseqs)
{
	enum { ENOUGH = 4096 };
	struct view view = { iseqs->slots->image };
	struct votes votes = { 0 };
	size_t count = 0;

	bitmap_for_each(id, &iseqs->iseqs) {
		if (count++ == ENOUGH)
			break;
		vote(iseqs->slots, &view, allocation_start(iseqs->slots->index, (allocation_id)id),
		     &votes);
	}
	iseqs->path_word = most(votes.path, BODY_WORDS);
	iseqs->parent_word = most(votes.method, BODY_WORDS);
	iseqs->parent_word -= iseqs->parent_word > 0;
	learn_count(iseqs);
}

/* The code of a method made by define_method(): its Proc refers to the code of a block. */
static uint64_t find_block(const struct ruby_slots *slots, struct view *view, uint64_t proc)
{
	enum { DATA = 32, CODE = 16 };
	uint64_t data, iseq;

	if (ruby_slot_flags(slots, view, proc) % RUBY_TYPES != RUBY_DATA ||
	    !view_word(view, proc + DATA, &data) || !view_word(view, data + CODE, &iseq) ||
	    !is_iseq(slots, view, iseq))
		return 0;
	return iseq;
}

static uint64_t find_iseq(const struct ruby_slots *slots, struct view *view, uint64_t definition)
{
	enum { FIRST = 1, LAST = 3 };
	uint64_t words[LAST + 1], iseq;

	if (!view_read(view, definition, words, sizeof(words)))
		return 0;
	for (size_t i = FIRST; i <= LAST; i++) {
		if (is_iseq(slots, view, words[i]))
			return words[i];
		iseq = find_block(slots, view, words[i]);
		if (iseq)
			return iseq;
	}
	return 0;
}

static struct error *add_method(struct ruby_iseqs *iseqs, struct view *view, uint64_t entry)
{
	enum { DEFINITION = 2, OWNER = 4 };
	uint64_t words[OWNER + 1], iseq;

	if (!view_read(view, entry, words, sizeof(words)))
		return NULL;
	iseq = find_iseq(iseqs->slots, view, words[DEFINITION]);
	if (!iseq || address_map_find(&iseqs->methods, iseq) != NOT_IN_MAP ||
	    !is_class(iseqs->slots, view, words[OWNER]))
		return NULL;
	TRY(address_map_add(&iseqs->methods, iseq, (uint32_t)iseqs->owners.count));
	return array_append(&iseqs->owners, words[OWNER]);
}

struct error *ruby_iseqs_init(struct ruby_iseqs *ret, const struct ruby_slots *slots,
			      struct memory_account *account)
{
	struct view view = { slots->image };
	size_t hint = 0;

	ret->slots = slots;
	arrays_use(account, &ret->methods, &ret->owners);
	TRY(bitmap_init(&ret->iseqs, allocation_count(slots->index), account));
	bitmap_for_each(id, &slots->slots) {
		uint64_t start =
			allocation_range_near(slots->index, (allocation_id)id, &hint).start;
		uint64_t flags;

		if (!view_word(&view, start, &flags))
			continue;
		if (ruby_is_imemo(flags, RUBY_ISEQ))
			bitmap_set(&ret->iseqs, id);
		else if (ruby_is_imemo(flags, RUBY_METHOD))
			TRY(add_method(ret, &view, start));
	}
	learn(ret);
	return NULL;
}

void ruby_iseqs_deinit(struct ruby_iseqs *iseqs)
{
	bitmap_deinit(&iseqs->iseqs);
	table_release(&iseqs->methods);
	array_release(&iseqs->owners);
}

/* The innermost method around the code; the code around a class's body is none. */
static uint64_t find_owner(const struct ruby_iseqs *iseqs, struct view *view, uint64_t iseq)
{
	struct body body;

	for (int i = 0; i < MOST_NESTED && is_iseq(iseqs->slots, view, iseq); i++) {
		uint32_t place = address_map_find(&iseqs->methods, iseq);

		if (place != NOT_IN_MAP)
			return iseqs->owners.items[place];
		if (iseqs->parent_word == 0 || !read_body(iseqs->slots, view, iseq, &body) ||
		    body_type(&body) == CLASS)
			return 0;
		iseq = body.words[iseqs->parent_word];
	}
	return 0;
}

/* Up to 3.1, the line is an Integer, later 32 bits. */
static uint64_t read_line(const struct ruby_slots *slots, uint64_t word)
{
	return slots->has_length_behind ? (uint32_t)word : word & 1 ? word >> 1 : 0;
}

void ruby_iseq_read(const struct ruby_iseqs *iseqs, allocation_id id, struct ruby_iseq *ret)
{
	enum { LABEL = 2, LINE = 3 };
	struct view view = { iseqs->slots->image };
	uint64_t start = allocation_start(iseqs->slots->index, id);
	uint32_t path = iseqs->path_word;
	struct body body;

	*ret = (struct ruby_iseq){ .id = id, .owner = find_owner(iseqs, &view, start) };
	if (path == 0 || path + LINE >= BODY_WORDS || !read_body(iseqs->slots, &view, start, &body))
		return;
	ret->path = find_path(iseqs->slots, &view, body.words[path]);
	ret->label = body.words[path + LABEL];
	ret->line = read_line(iseqs->slots, body.words[path + LINE]);
}

bool ruby_iseq_locals(const struct ruby_iseqs *iseqs, struct view *view, uint64_t iseq,
		      uint64_t *ret_names, uint64_t *ret_count)
{
	enum { MOST_NAMES = 1 << 12 };
	struct body body;

	if (iseqs->count_place == 0 || !is_iseq(iseqs->slots, view, iseq) ||
	    !read_body(iseqs->slots, view, iseq, &body))
		return false;
	*ret_names = body.words[place_before(iseqs, NAMES)];
	*ret_count = half(&body, iseqs->count_place);
	return *ret_count <= MOST_NAMES;
}

/*
 * The number of the entry that is of an instruction, from 1 on. struct succ_index_table, iseq.c: up
 * to 54 instructions, 9 numbers of 7 bits a word; then blocks of 512 instructions, with a bit for
 * each that begins an entry:
 *
 *	| u32 number before | 7 counts of 9 bits: those before each word but the first | 8 words |
 */
static uint64_t find_entry(struct view *view, uint64_t table, uint64_t instruction)
{
	enum { AT_ONCE = 54, PER_WORD = 9, BITS = 7, MOST = 0x7f, BLOCK = 512, BLOCK_WORDS = 10 };
	enum { BEFORE, COUNTS, FIRST_WORD, COUNT_BITS = 9, COUNT_MOST = 0x1ff, WORD_BITS = 64 };
	uint64_t words[BLOCK_WORDS], at = instruction - AT_ONCE, word, number;

	if (instruction < AT_ONCE)
		return view_word(view, table + instruction / PER_WORD * WORD, &word)
			       ? word >> instruction % PER_WORD * BITS & MOST
			       : 0;
	if (!view_read(view, table + AT_ONCE / PER_WORD * WORD + at / BLOCK * sizeof(words), words,
		       sizeof(words)))
		return 0;
	at %= BLOCK;
	number = (uint32_t)words[BEFORE];
	if (at >= WORD_BITS)
		number += words[COUNTS] >> (at / WORD_BITS - 1) * COUNT_BITS & COUNT_MOST;
	word = words[FIRST_WORD + at / WORD_BITS] << (WORD_BITS - 1 - at % WORD_BITS);
	return number + (uint64_t)__builtin_popcountll(word);
}

/* struct iseq_insn_info_entry: a line is followed by events, and from 3.1 on by a node first. */
static uint64_t read_entry_line(const struct ruby_iseqs *iseqs, struct view *view, uint64_t entries,
				uint64_t count, uint64_t number)
{
	uint64_t size = iseqs->has_short_lines ? SHORT_LINE_SIZE : LINE_SIZE;
	uint32_t line;

	return number - 1 < count &&
			       view_read(view, entries + (number - 1) * size, &line, sizeof(line))
		       ? line
		       : 0;
}

uint64_t ruby_iseq_line(const struct ruby_iseqs *iseqs, struct view *view, uint64_t iseq,
			uint64_t instruction)
{
	enum { CODE = 1, ENTRIES = 0, TABLE = 3 };
	struct body body;
	uint64_t *lines, place, count;

	if (iseqs->parent_word < LINES || !is_iseq(iseqs->slots, view, iseq) ||
	    !read_body(iseqs->slots, view, iseq, &body))
		return 0;
	lines = &body.words[place_before(iseqs, LINES)];
	count = (uint32_t)lines[LINE_COUNT];
	place = (instruction - body.words[CODE]) / WORD;
	if (place > body.words[0] >> 32)
		return 0;
	place -= place > 0;
	return read_entry_line(iseqs, view, lines[ENTRIES], count,
			       count == 1 ? 1 : find_entry(view, lines[TABLE], place));
}

/* The table from instructions to entries, see find_entry(). */
static struct error *keep_lines(const struct ruby_iseqs *iseqs, struct ruby_structure *structure,
				const struct body *body)
{
	enum { ENTRIES = 0, TABLE = 3, AT_ONCE = 54, PER_WORD = 9, BLOCK = 512, BLOCK_WORDS = 10 };
	const uint64_t *lines = &body->words[place_before(iseqs, LINES)];
	uint64_t line_size = iseqs->has_short_lines ? SHORT_LINE_SIZE : LINE_SIZE;
	uint64_t size = body->words[0] >> 32;
	uint64_t words = (MIN(size, AT_ONCE) + PER_WORD - 1) / PER_WORD;

	if (size > AT_ONCE)
		words += (size - AT_ONCE + BLOCK - 1) / BLOCK * BLOCK_WORDS;
	TRY(ruby_keep(structure, lines[ENTRIES],
		      MIN(ruby_block_size(structure, lines[ENTRIES]),
			  line_size * (uint32_t)lines[LINE_COUNT])));
	return ruby_keep(structure, lines[TABLE],
			 MIN(ruby_block_size(structure, lines[TABLE]), WORD * words));
}

/*
 * A packed table of exceptions: a u32 count, and entries | u32 type, padding | iseq | 4 numbers |,
 * so that addresses stand at multiples of 4.
 */
static struct error *keep_catches(struct ruby_structure *structure, uint64_t table)
{
	enum { ENTRY = 32, ISEQ = 8 };
	uint64_t size = ruby_block_size(structure, table);
	uint32_t count;

	if (size < sizeof(count) || !view_read(&structure->view, table, &count, sizeof(count)) ||
	    count > (size - sizeof(count)) / ENTRY)
		return NULL;
	TRY(ruby_keep(structure, table, sizeof(count)));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t entry = table + sizeof(count) + ENTRY * i;

		TRY(ruby_keep(structure, entry, sizeof(count)));
		TRY(ruby_keep(structure, entry + ISEQ, ENTRY - ISEQ));
	}
	return NULL;
}

static struct error *keep_iseq(const struct ruby_iseqs *iseqs, struct ruby_structure *structure,
			       allocation_id id)
{
	uint64_t start = allocation_start(iseqs->slots->index, id), address, names, count;
	struct ruby_iseq iseq;
	struct body body;

	if (!read_body(iseqs->slots, &structure->view, start, &body) ||
	    !view_word(&structure->view, start + BODY, &address))
		return NULL;
	TRY(ruby_keep_numbers(structure, address,
			      address + MIN(sizeof(body), ruby_block_size(structure, address))));
	ruby_iseq_read(iseqs, id, &iseq);
	TRY(ruby_keep_text(structure, iseq.path));
	TRY(ruby_keep_text(structure, iseq.label));
	if (iseqs->parent_word < LINES)
		return NULL;
	TRY(keep_lines(iseqs, structure, &body));
	TRY(keep_catches(structure, body.words[iseqs->parent_word - 1]));
	if (!ruby_iseq_locals(iseqs, &structure->view, start, &names, &count))
		return NULL;
	return ruby_keep(structure, names, MIN(WORD * count, ruby_block_size(structure, names)));
}

struct error *ruby_iseqs_keep(const struct ruby_iseqs *iseqs, struct ruby_structure *structure)
{
	bitmap_for_each(id, &iseqs->iseqs)
		TRY(keep_iseq(iseqs, structure, (allocation_id)id));
	return NULL;
}
