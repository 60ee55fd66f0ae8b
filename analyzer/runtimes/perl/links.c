#include "analyzer/runtimes/perl/links.h"

#include "analyzer/heap/cycle.h"

enum {
	/* Fields in the body of a PVAV, PVCV, PVGV. */
	LAST_ITEM = 16,
	PACKAGE_OF_CODE = 32,
	NAME_OF_CODE = 56,
	PADS = 72,
	CODE_FLAGS = 92,
	NAME_OF_GLOB = 32,
	PACKAGE_OF_GLOB = 40,
	IS_NAMED = 0x8000, /* the name is a key, not a glob */
	/* A name of a variable. */
	OUR = 8,
	SCOPE = 24, /* from 5.38 on, 32 */
	NAME_FLAGS = 41,
	IS_OUTER = 1,
	/* A context. */
	CONTEXT = 104,
	CALLER = 16,
	CODE_OF_CALL = 72,
	CODE_OF_EVAL = 88,
	DEPTH = 80,
	TYPE = 0xf,
	SUB = 9,
	FORMAT = 10,
	EVAL = 11,
	IS_TEXT = 0x20, /* of an eval: it is of a text or file, not of a block */
	MOST_DEPTH = 1 << 16,
	MOST_VARIABLES = 1 << 16,
	MOST_CALLS = 1 << 20,
	MOST_INFOS = 64,
};

static struct perl *perl_of(const struct object_walk *walk)
{
	return (struct perl *)walk->space;
}

static bool follow_head(struct object_walk *walk, const struct object_link *link)
{
	return perl_find_head(perl_of(walk), link->target) != NO_ALLOCATION &&
	       object_walk_follow(walk, link);
}

static void walk_items(struct object_walk *walk, const struct perl_head *head)
{
	struct object_link link = { .kind = LINK_ITEM };
	uint64_t last;

	if (!view_word(&walk->view, head->body + LAST_ITEM, &last))
		return;
	for (; link.number < last + 1 && object_walk_step(walk); link.number++)
		if (!view_word(&walk->view, head->value + PERL_WORD * link.number, &link.target) ||
		    follow_head(walk, &link))
			return;
}

void perl_walk_entries(struct object_walk *walk, const struct perl_head *head)
{
	struct object_link link = { .kind = LINK_VALUE };
	struct view *view = &walk->view;
	struct perl_hash hash;
	uint64_t entry;

	if (!perl_read_hash(perl_of(walk)->arenas, view, head, &hash))
		return;
	for (uint64_t i = 0; i < hash.chains && object_walk_step(walk); i++) {
		struct cycle_search search = { .power = 1 };

		if (!view_word(view, hash.table + PERL_WORD * i, &entry))
			return;
		/* A damaged chain that returns to itself takes no steps from other hashes. */
		while (entry && !cycle_closes(&search, entry) && object_walk_step(walk))
			if (!view_word(view, entry + PERL_WORD, &link.which) ||
			    !view_word(view, entry + 2 * (uint64_t)PERL_WORD, &link.target) ||
			    follow_head(walk, &link) || !view_word(view, entry, &entry))
				return;
	}
}

void perl_walk_slots(struct object_walk *walk, uint64_t glob)
{
	/* struct gp, gv.h */
	static const struct {
		uint64_t offset;
		const char *name;
	} slots[] = { { 0, "SCALAR" }, { 16, "CODE" }, { 32, "HASH" }, { 40, "ARRAY" } };
	struct object_link link = { .kind = LINK_SLOT };
	struct perl_head head;

	if (!perl_read_head(&walk->view, glob, &head) || !(head.flags & PERL_GLOB) ||
	    (perl_type(&head) != PERL_PVGV && perl_type(&head) != PERL_PVLV))
		return;
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		link.name = slots[i].name;
		if (view_word(&walk->view, head.value + slots[i].offset, &link.target) &&
		    follow_head(walk, &link))
			return;
	}
}

struct wanted {
	struct object_walk slots;
	const char *name;
	char slot;
	uint64_t found;
};

static bool take_slot(void *data, const struct object_link *link)
{
	struct wanted *wanted = data;

	if (link->name[0] == wanted->slot)
		wanted->found = link->target;
	return wanted->found != 0;
}

static bool take_glob(void *data, const struct object_link *link)
{
	struct wanted *wanted = data;
	char key[PERL_MOST_NAME];

	if (perl_read_key(&wanted->slots.view, link->which, key, sizeof(key)) &&
	    strcmp(key, wanted->name) == 0)
		perl_walk_slots(&wanted->slots, link->target);
	return wanted->found != 0;
}

uint64_t perl_find_variable(struct perl *perl, const struct perl_head *stash, const char *name,
			    char slot)
{
	struct wanted wanted = { .name = name, .slot = slot };
	struct object_walk walk = object_walk_begin(&perl->space, take_glob, &wanted);

	wanted.slots = object_walk_begin(&perl->space, take_slot, &wanted);
	perl_walk_entries(&walk, stash);
	return wanted.found;
}

/* A name of a variable: its scope is two numbers of statements. */
struct pad_name {
	uint64_t text, our;
	uint32_t from, to;
	uint8_t flags;
};

static bool read_pad_name(const struct perl *perl, struct view *view, uint64_t address,
			  struct pad_name *ret)
{
	uint64_t more = perl->has_fields ? PERL_WORD : 0, scope;

	if (!view_word(view, address, &ret->text) || !ret->text ||
	    !view_word(view, address + OUR, &ret->our) ||
	    !view_word(view, address + SCOPE + more, &scope) ||
	    !view_read(view, address + NAME_FLAGS + more, &ret->flags, 1))
		return false;
	ret->from = (uint32_t)scope;
	ret->to = (uint32_t)(scope >> 32);
	return true;
}

static bool is_in_scope(const struct pad_name *name, uint32_t number)
{
	return !number || (name->flags & IS_OUTER) || (number > name->from && number <= name->to);
}

/* Walk what the names stand for in one call. */
static bool walk_pad(struct object_walk *walk, const uint64_t names[2], uint64_t pad,
		     uint32_t number)
{
	struct object_link link = { .kind = LINK_VARIABLE };
	struct perl_head head;
	struct pad_name name;
	uint64_t address;

	if (perl_find_head(perl_of(walk), pad) == NO_ALLOCATION ||
	    !perl_read_head(&walk->view, pad, &head))
		return false;
	for (uint64_t i = 1; i <= names[0] && i < MOST_VARIABLES && object_walk_step(walk); i++) {
		if (!view_word(&walk->view, names[1] + PERL_WORD * i, &address) ||
		    !view_word(&walk->view, head.value + PERL_WORD * i, &link.target))
			return false;
		if (!address || !read_pad_name(perl_of(walk), &walk->view, address, &name) ||
		    name.our || !is_in_scope(&name, number))
			continue;
		link.which = name.text;
		if (follow_head(walk, &link))
			return true;
	}
	return false;
}

/* Walk the variables of CODE in the depth-th call of it, 0: in any, at the statement number. */
static void walk_variables(struct object_walk *walk, uint64_t code, uint64_t depth, uint32_t number)
{
	struct view *view = &walk->view;
	uint64_t pads, list[2], table, names[2], pad;
	struct perl_head head;

	if (perl_find_head(perl_of(walk), code) == NO_ALLOCATION ||
	    !perl_read_head(view, code, &head) || perl_type(&head) != PERL_PVCV ||
	    !view_word(view, head.body + PADS, &pads) || !pads ||
	    !view_read(view, pads, list, sizeof(list)) || list[0] > MOST_DEPTH ||
	    !view_word(view, list[1], &table) || !table ||
	    !view_read(view, table, names, sizeof(names)) || names[0] > MOST_VARIABLES)
		return;
	for (uint64_t i = depth ? depth : 1; i <= (depth ? depth : list[0]) && i <= list[0]; i++)
		if (view_word(view, list[1] + PERL_WORD * i, &pad) &&
		    walk_pad(walk, names, pad, number))
			return;
}

void perl_walk_call(struct object_walk *walk, const struct perl_call *call)
{
	enum { NUMBER = 60 };
	uint32_t number;

	if (!call->statement ||
	    !view_read(&walk->view, call->statement + NUMBER, &number, sizeof(number)))
		number = 0;
	walk_variables(walk, call->code, call->depth, number);
}

void perl_walk_value(struct object_walk *walk, uint64_t address)
{
	struct object_link link = { .kind = LINK_REFERENT };
	struct perl_head head;

	if (!perl_read_head(&walk->view, address, &head))
		return;
	switch (perl_type(&head)) {
	case PERL_PVAV:
		walk_items(walk, &head);
		return;
	case PERL_PVHV:
		perl_walk_entries(walk, &head);
		return;
	case PERL_PVCV:
		walk_variables(walk, address, 0, 0);
		return;
	default:
		break;
	}
	link.target = head.value;
	if ((head.flags & PERL_ROK) && !(head.flags & PERL_WEAK))
		follow_head(walk, &link);
	else
		perl_walk_slots(walk, address);
}

uint64_t perl_key_of_code(const struct perl *perl, struct view *view, uint64_t code,
			  uint64_t *ret_package)
{
	struct perl_head head, glob;
	uint64_t flags, key;

	if (perl_find_head(perl, code) == NO_ALLOCATION || !perl_read_head(view, code, &head) ||
	    !view_word(view, head.body + CODE_FLAGS - 4, &flags) ||
	    !view_word(view, head.body + NAME_OF_CODE, &key) ||
	    !view_word(view, head.body + PACKAGE_OF_CODE, ret_package) || !key)
		return 0;
	if (!(flags >> 32 & IS_NAMED) &&
	    (perl_find_head(perl, key) == NO_ALLOCATION || !perl_read_head(view, key, &glob) ||
	     !view_word(view, glob.body + PACKAGE_OF_GLOB, ret_package) ||
	     !view_word(view, glob.body + NAME_OF_GLOB, &key)))
		return 0;
	return key;
}

void perl_tell_code(const struct perl *perl, struct view *view, uint64_t code, char *ret,
		    size_t size)
{
	char package[PERL_MOST_NAME], name[PERL_MOST_NAME];
	uint64_t stash = 0, key = perl_key_of_code(perl, view, code, &stash);

	ret[0] = '\0';
	if (perl_read_key(view, key, name, sizeof(name)) &&
	    perl_read_package(perl, view, stash, package, sizeof(package)))
		snprintf(ret, size, "%s::%s", package, name);
}

struct calls {
	const struct perl *perl;
	struct view view;
	void (*visit)(void *data, const struct perl_call *call);
	void *data;
	uint64_t statement;
	struct budget left;
};

static bool visit_context(struct calls *calls, uint64_t address)
{
	struct perl_call call = { .statement = calls->statement };
	uint64_t caller;
	uint8_t type;
	int32_t depth;

	if (!view_read(&calls->view, address, &type, sizeof(type)) ||
	    !view_word(&calls->view, address + CALLER, &caller))
		return false;
	if ((type & TYPE) == EVAL && (type & IS_TEXT)) {
		call.kind = "eval";
		if (!view_word(&calls->view, address + CODE_OF_EVAL, &call.code))
			return false;
	} else if ((type & TYPE) == SUB || (type & TYPE) == FORMAT) {
		if (!view_word(&calls->view, address + CODE_OF_CALL, &call.code) ||
		    !view_read(&calls->view, address + DEPTH, &depth, sizeof(depth)))
			return false;
		call.depth = (type & TYPE) == SUB && depth >= 0 ? (uint64_t)depth + 1 : 0;
	} else {
		return true;
	}
	calls->visit(calls->data, &call);
	calls->statement = caller;
	return true;
}

/* struct stackinfo, cop.h */
static bool visit_contexts(struct calls *calls, uint64_t info, uint64_t *ret_previous)
{
	struct {
		uint64_t stack, contexts, previous, next;
		int32_t last, most;
	} words;

	if (!view_read(&calls->view, info, &words, sizeof(words)) || words.last > words.most)
		return false;
	*ret_previous = words.previous;
	for (int32_t i = words.last; i >= 0 && budget_take(&calls->left); i--)
		if (!visit_context(calls, words.contexts + (uint64_t)CONTEXT * (uint64_t)i))
			return false;
	return true;
}

bool perl_visit_calls(const struct perl *perl, const struct perl_interpreter *interpreter,
		      void (*visit)(void *data, const struct perl_call *call), void *data)
{
	struct calls calls = { perl, { perl->space.image }, visit, data, 0, { MOST_CALLS } };
	uint64_t info;

	if (!view_word(&calls.view, interpreter->statement, &calls.statement) ||
	    !view_word(&calls.view, interpreter->info, &info))
		return false;
	for (int i = 0; info && i < MOST_INFOS; i++)
		if (!visit_contexts(&calls, info, &info))
			return false;
	if (calls.statement)
		visit(data, &(struct perl_call){ .code = interpreter->code,
						 .statement = calls.statement,
						 .depth = 1,
						 .kind = "main program" });
	return true;
}
