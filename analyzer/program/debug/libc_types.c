#include "analyzer/program/debug/libc_types.h"

#include "analyzer/base/macros.h"
#include "analyzer/image/image.h"

#include <string.h>

/*
 * glibc's posix/regex_internal.h on machines of 64 bits, the same since 2.5. Single bits and most
 * numbers are left out.
 */
enum {
	INT,
	HASH,
	WORD,
	DFA,
	TOKEN,
	OPERAND,
	SET,
	TABLE_ENTRY,
	STATE,
	TREE,
	TREES,
	STORAGE,
	CHARSET
};

static const struct described {
	const char *name;
	uint64_t size;
	uint8_t kind, form;
	bool is_tagged;
	uint8_t element, count; /* of an array */
} described[] = {
	[INT] = { "int", 4, TYPE_NUMBER, FORM_SIGNED },
	[HASH] = { "unsigned int", 4, TYPE_NUMBER },
	[WORD] = { "unsigned long", 8, TYPE_NUMBER },
	[DFA] = { "re_dfa_t", 224, TYPE_STRUCTURE, .is_tagged = true },
	[TOKEN] = { "re_token_t", 16, TYPE_STRUCTURE },
	[OPERAND] = { NULL, 8, TYPE_UNION },
	[SET] = { "re_node_set", 16, TYPE_STRUCTURE },
	[TABLE_ENTRY] = { "re_state_table_entry", 16, TYPE_STRUCTURE, .is_tagged = true },
	[STATE] = { "re_dfastate_t", 88, TYPE_STRUCTURE, .is_tagged = true },
	[TREE] = { "bin_tree_t", 64, TYPE_STRUCTURE, .is_tagged = true },
	[TREES] = { NULL, 0, TYPE_ARRAY, .element = TREE, .count = 15 },
	[STORAGE] = { "bin_tree_storage_t", 968, TYPE_STRUCTURE, .is_tagged = true },
	[CHARSET] = { "re_charset_t", 72, TYPE_STRUCTURE },
};

/* Members of one structure follow each other, in the order of the structures. */
static const struct {
	uint8_t of, type, stars;
	uint16_t offset;
	const char *name;
} members[] = {
	{ DFA, TOKEN, 1, 0, "nodes" },
	{ DFA, WORD, 0, 8, "nodes_alloc" },
	{ DFA, WORD, 0, 16, "nodes_len" },
	{ DFA, INT, 1, 24, "nexts" },
	{ DFA, INT, 1, 32, "org_indices" },
	{ DFA, SET, 1, 40, "edests" },
	{ DFA, SET, 1, 48, "eclosures" },
	{ DFA, SET, 1, 56, "inveclosures" },
	{ DFA, TABLE_ENTRY, 1, 64, "state_table" },
	{ DFA, STATE, 1, 72, "init_state" },
	{ DFA, STATE, 1, 80, "init_state_word" },
	{ DFA, STATE, 1, 88, "init_state_nl" },
	{ DFA, STATE, 1, 96, "init_state_begbuf" },
	{ DFA, TREE, 1, 104, "str_tree" },
	{ DFA, STORAGE, 1, 112, "str_tree_storage" },
	{ DFA, WORD, 1, 120, "sb_char" },
	{ DFA, INT, 1, 208, "subexp_map" },
	{ TOKEN, OPERAND, 0, 0, "opr" },
	{ TOKEN, HASH, 0, 8, "type" },
	{ OPERAND, WORD, 1, 0, "sbcset" },
	{ OPERAND, CHARSET, 1, 0, "mbcset" },
	{ OPERAND, INT, 0, 0, "idx" },
	{ SET, INT, 0, 0, "alloc" },
	{ SET, INT, 0, 4, "nelem" },
	{ SET, INT, 1, 8, "elems" },
	{ TABLE_ENTRY, INT, 0, 0, "num" },
	{ TABLE_ENTRY, INT, 0, 4, "alloc" },
	{ TABLE_ENTRY, STATE, 2, 8, "array" },
	{ STATE, HASH, 0, 0, "hash" },
	{ STATE, SET, 0, 8, "nodes" },
	{ STATE, SET, 0, 24, "non_eps_nodes" },
	{ STATE, SET, 0, 40, "inveclosure" },
	{ STATE, SET, 1, 56, "entrance_nodes" },
	{ STATE, STATE, 2, 64, "trtable" },
	{ STATE, STATE, 2, 72, "word_trtable" },
	{ TREE, TREE, 1, 0, "parent" },
	{ TREE, TREE, 1, 8, "left" },
	{ TREE, TREE, 1, 16, "right" },
	{ TREE, TREE, 1, 24, "first" },
	{ TREE, TREE, 1, 32, "next" },
	{ TREE, TOKEN, 0, 40, "token" },
	{ TREE, INT, 0, 56, "node_idx" },
	{ STORAGE, STORAGE, 1, 0, "next" },
	{ STORAGE, TREES, 0, 8, "data" },
	{ CHARSET, HASH, 1, 0, "mbchars" },
	{ CHARSET, INT, 1, 8, "coll_syms" },
	{ CHARSET, INT, 1, 16, "equiv_classes" },
	{ CHARSET, HASH, 1, 24, "range_starts" },
	{ CHARSET, HASH, 1, 32, "range_ends" },
	{ CHARSET, WORD, 1, 40, "char_classes" },
	{ CHARSET, HASH, 0, 48, "non_match" },
	{ CHARSET, INT, 0, 52, "nmbchars" },
};

enum { MOST_STARS = 2 };

/* Types are named by addresses of entries, and no entry stands here. */
static uint64_t entry_of(size_t type, size_t stars)
{
	return (uint64_t)(uintptr_t)&described[type] + stars;
}

bool libc_type_is(uint64_t entry)
{
	return entry - entry_of(0, 0) < sizeof(described);
}

bool libc_type_has_name(const char *name)
{
	for (size_t i = DFA; i < COUNT_OF(described); i++)
		if (described[i].name && strcmp(described[i].name, name) == 0)
			return true;
	return false;
}

/* True if the program has pointers to the first type, and no types of its own for it. */
static bool is_wanted(const struct type_reader *reader)
{
	bool is_declared = false;

	array_for_each(raw, &reader->raws) {
		if (!raw->name || strcmp(raw->name, described[DFA].name) != 0)
			continue;
		if (raw->kind != TYPE_DECLARED)
			return false;
		is_declared = true;
	}
	return is_declared && image_word_size(reader->debug->image) == sizeof(uint64_t);
}

static struct error *add_raw(struct type_reader *reader, uint64_t entry, const struct raw *raw)
{
	TRY(array_append(&reader->entries, (struct entry){ entry, (uint32_t)reader->raws.count }));
	return array_append(&reader->raws, *raw);
}

static struct error *add_members(struct type_reader *reader, size_t type, struct raw *raw)
{
	raw->first_member = (uint32_t)reader->members.count;
	for (size_t i = 0; i < COUNT_OF(members); i++)
		if (members[i].of == type)
			TRY(array_append(
				&reader->members,
				(struct raw_member){
					.name = members[i].name,
					.type = entry_of(members[i].type, members[i].stars),
					.offset = members[i].offset,
				}));
	raw->member_count = (uint32_t)reader->members.count - raw->first_member;
	return NULL;
}

/* Add the type, and pointers to it. */
static struct error *add_type(struct type_reader *reader, size_t type)
{
	struct raw raw = {
		.name = described[type].name,
		.size = described[type].size,
		.count = described[type].count,
		.target = described[type].count ? entry_of(described[type].element, 0) : 0,
		.kind = described[type].kind,
		.form = described[type].form,
		.is_tagged = described[type].is_tagged,
	};

	/* Names are compared by their places. */
	if (raw.name)
		raw.name = name_pool_print(&reader->debug->names, "%s", raw.name);
	TRY(add_members(reader, type, &raw));
	TRY(add_raw(reader, entry_of(type, 0), &raw));
	for (size_t stars = 1; stars <= MOST_STARS; stars++) {
		raw = (struct raw){ .kind = TYPE_POINTER,
				    .size = sizeof(uint64_t),
				    .target = entry_of(type, stars - 1) };
		TRY(add_raw(reader, entry_of(type, stars), &raw));
	}
	return NULL;
}

struct error *libc_types_add(struct type_reader *reader)
{
	if (is_wanted(reader))
		for (size_t i = 0; i < COUNT_OF(described); i++)
			TRY(add_type(reader, i));
	return NULL;
}
