/*
 * Words of Perl that are no addresses, and no values of programs: counts, lengths, flags, and the
 * names of packages, of what these have, and of variables. Keys of other hashes are values.
 *
 * Heads are the allocator's, see allocators/perl.c. Two words of a body stay, as all types keep
 * counts there. Perl clears bodies when it makes them.
 */
#include "analyzer/runtimes/keeper.h"
#include "analyzer/runtimes/perl/links.h"

enum {
	HALF = 4,
	/* Offsets in a body. */
	COUNTS = 16, /* bytes of a text and its room, items, keys, chains */
	COUNTS_END = 32,
	CODE_COUNTS = 88, /* number of its statement, flags, depth */
	CODE_END = 100,
	PADS = 72,
	ISA = 32, /* of struct xpvhv_aux */
	ITERATED = 24,
	/* Offsets in other parts: see interpreter.c and links.h. */
	MAGIC_TYPE = 16,
	STATEMENT_LINE = 36,
	STATEMENT_FILE = 48,
	STATEMENT_NUMBER = 60,
	NAME_SCOPE = 24,
	NAME_FLAGS = 40,
	MOST_NAMES = 1 << 16,
};

static struct perl *perl_of(const struct keeper *keeper)
{
	return (struct perl *)keeper->space;
}

/* A key (HEK): | u32 hash | i32 length | text |. */
static bool keep_key(struct keeper *keeper, uint64_t key)
{
	enum { TEXT = 8 };
	int32_t length;

	if (!key || !view_read(&keeper->view, key + HALF, &length, sizeof(length)) || length < 0 ||
	    length >= PERL_MOST_NAME)
		return false;
	return keep_numbers(keeper, key + HALF, HALF) ||
	       keep_name(keeper, key + TEXT, (uint64_t)length + 1);
}

static bool keep_key_of(void *data, const struct object_link *link)
{
	return keep_key(data, link->which);
}

/* The name of a base. */
static bool keep_base(void *data, const struct object_link *link)
{
	struct keeper *keeper = data;
	struct perl_head head;
	uint64_t length;

	if (perl_read_head(&keeper->view, link->target, &head) && perl_type(&head) >= PERL_PV &&
	    perl_type(&head) <= PERL_PVMG && (head.flags & PERL_POK) &&
	    view_word(&keeper->view, head.body + COUNTS, &length) && length < PERL_MOST_NAME)
		keep_name(keeper, head.value, length);
	return keeper->error != NULL;
}

/* The name of a package, and of what it has. */
static void keep_package(struct keeper *keeper, const struct perl_head *head,
			 const struct perl_hash *hash, uint64_t address)
{
	struct object_walk walk;
	char name[PERL_MOST_NAME];
	uint64_t key;
	int32_t names;

	if (!perl_read_package(perl_of(keeper), &keeper->view, address, name, sizeof(name)) ||
	    !view_word(&keeper->view, hash->more, &key) ||
	    !view_read(&keeper->view, hash->more + ITERATED + HALF, &names, sizeof(names)))
		return;
	if (names == 0 || view_word(&keeper->view, key, &key))
		keep_key(keeper, key);
	walk = object_walk_begin(&perl_of(keeper)->space, keep_key_of, keeper);
	perl_walk_entries(&walk, head);
	walk = object_walk_begin(&perl_of(keeper)->space, keep_base, keeper);
	perl_walk_base_names(&walk, address);
}

static void keep_hash(struct keeper *keeper, const struct perl_head *head, uint64_t address)
{
	struct perl_hash hash;

	if (!perl_read_hash(perl_of(keeper)->arenas, &keeper->view, head, &hash) || !hash.more)
		return;
	keep_counts(keeper, hash.more + ITERATED, hash.more + ITERATED + PERL_WORD);
	keep_numbers(keeper, hash.more + ITERATED + HALF, HALF);
	keep_package(keeper, head, &hash, address);
}

static void keep_variable(struct keeper *keeper, uint64_t name)
{
	uint64_t more = perl_of(keeper)->has_fields ? PERL_WORD : 0, text;

	if (!view_word(&keeper->view, name, &text) || !text)
		return;
	keep_numbers(keeper, name + NAME_SCOPE + more, PERL_WORD);
	keep_numbers(keeper, name + NAME_FLAGS + more, 2);
	keep_c_text(keeper, text, PERL_MOST_NAME);
}

/* How many calls there were of the code at once, and its variables. */
static void keep_code(struct keeper *keeper, const struct perl_head *head, uint64_t address)
{
	struct view *view = &keeper->view;
	uint64_t pads, list, table, names[2], name, package;

	keep_numbers(keeper, head->body + CODE_COUNTS, CODE_END - CODE_COUNTS);
	keep_key(keeper, perl_key_of_code(perl_of(keeper), view, address, &package));
	if (!view_word(view, head->body + PADS, &pads) || !pads ||
	    !view_word(view, pads + PERL_WORD, &list) || !view_word(view, list, &table) || !table ||
	    !view_read(view, table, names, sizeof(names)))
		return;
	keep_counts(keeper, pads, pads + PERL_WORD);
	keep_counts(keeper, table, table + PERL_WORD);
	for (uint64_t i = 1; i <= names[0] && i < MOST_NAMES; i++)
		if (view_word(view, names[1] + PERL_WORD * i, &name) && name)
			keep_variable(keeper, name);
}

static void keep_head(struct keeper *keeper, uint64_t address)
{
	struct perl_head head;

	if (!perl_read_head(&keeper->view, address, &head) || perl_type(&head) < PERL_PV)
		return;
	if (perl_type(&head) == PERL_PVCV) {
		keep_code(keeper, &head, address);
		return;
	}
	keep_counts(keeper, head.body + COUNTS, head.body + COUNTS_END);
	if (perl_type(&head) == PERL_PVHV)
		keep_hash(keeper, &head, address);
}

/* The statement of a call: its line, its number, and the name of its file. */
static void keep_call(void *data, const struct perl_call *call)
{
	struct keeper *keeper = data;
	uint64_t file;

	if (!call->statement)
		return;
	keep_numbers(keeper, call->statement + STATEMENT_LINE, HALF);
	keep_numbers(keeper, call->statement + STATEMENT_NUMBER, HALF);
	if (view_word(&keeper->view, call->statement + STATEMENT_FILE, &file) && file)
		keep_c_text(keeper, file, PERL_MOST_NAME);
}

struct error *perl_visit_structure(struct object_space *space,
				   const struct structure_visitor *visitor)
{
	struct perl *perl = (struct perl *)space;
	struct keeper keeper = { visitor, { space->image }, NULL, space };

	for (size_t i = 0; i < perl->parts.count && !keeper.error; i++) {
		uint64_t start = allocation_start(space->index, (allocation_id)i);

		if (perl->parts.items[i] == PART_HEAD)
			keep_head(&keeper, start);
		else if (perl->parts.items[i] == PART_MAGIC || perl->parts.items[i] == PART_WEAK)
			keep_numbers(&keeper, start + MAGIC_TYPE, HALF);
	}
	array_for_each(interpreter, &perl->interpreters)
		perl_visit_calls(perl, interpreter, keep_call, &keeper);
	if (!keeper.error)
		keeper.error = perl_visit_interpreters(perl, visitor);
	return keeper.error;
}
