#include "analyzer/runtimes/perl/links.h"

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

static bool follow_head(struct perl *perl, const struct object_link *link,
			object_link_visitor *follow, void *data)
{
	return perl_find_head(perl, link->target) != NO_ALLOCATION && follow(data, link);
}

static void visit_items(struct perl *perl, struct view *view, const struct perl_head *head,
			object_link_visitor *follow, void *data)
{
	struct object_link link = { .kind = LINK_ITEM };
	uint64_t last;

	if (!view_word(view, head->body + LAST_ITEM, &last))
		return;
	for (; link.number < last + 1 && budget_take(&perl->space.steps); link.number++)
		if (!view_word(view, head->value + PERL_WORD * link.number, &link.target) ||
		    follow_head(perl, &link, follow, data))
			return;
}

void perl_visit_entries(struct perl *perl, struct view *view, const struct perl_head *head,
			object_link_visitor *follow, void *data)
{
	struct object_link link = { .kind = LINK_VALUE };
	struct perl_hash hash;
	uint64_t entry;

	if (!perl_read_hash(perl->arenas, view, head, &hash))
		return;
	for (uint64_t i = 0; i < hash.chains && budget_take(&perl->space.steps); i++) {
		if (!view_word(view, hash.table + PERL_WORD * i, &entry))
			return;
		while (entry && budget_take(&perl->space.steps))
			if (!view_word(view, entry + PERL_WORD, &link.which) ||
			    !view_word(view, entry + 2 * (uint64_t)PERL_WORD, &link.target) ||
			    follow_head(perl, &link, follow, data) ||
			    !view_word(view, entry, &entry))
				return;
	}
}

void perl_visit_slots(struct perl *perl, struct view *view, uint64_t glob,
		      object_link_visitor *follow, void *data)
{
	/* struct gp, gv.h */
	static const struct {
		uint64_t offset;
		const char *name;
	} slots[] = { { 0, "SCALAR" }, { 16, "CODE" }, { 32, "HASH" }, { 40, "ARRAY" } };
	struct object_link link = { .kind = LINK_SLOT };
	struct perl_head head;

	if (!perl_read_head(view, glob, &head) || !(head.flags & PERL_GLOB) ||
	    (perl_type(&head) != PERL_PVGV && perl_type(&head) != PERL_PVLV))
		return;
	for (size_t i = 0; i < COUNT_OF(slots); i++) {
		link.name = slots[i].name;
		if (view_word(view, head.value + slots[i].offset, &link.target) &&
		    follow_head(perl, &link, follow, data))
			return;
	}
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

/* Visit what the names stand for in one call. */
static bool visit_pad(struct perl *perl, struct view *view, const uint64_t names[2], uint64_t pad,
		      uint32_t number, object_link_visitor *follow, void *data)
{
	struct object_link link = { .kind = LINK_VARIABLE };
	struct perl_head head;
	struct pad_name name;
	uint64_t address;

	if (perl_find_head(perl, pad) == NO_ALLOCATION || !perl_read_head(view, pad, &head))
		return false;
	for (uint64_t i = 1; i <= names[0] && i < MOST_VARIABLES && budget_take(&perl->space.steps);
	     i++) {
		if (!view_word(view, names[1] + PERL_WORD * i, &address) ||
		    !view_word(view, head.value + PERL_WORD * i, &link.target))
			return false;
		if (!address || !read_pad_name(perl, view, address, &name) || name.our ||
		    !is_in_scope(&name, number))
			continue;
		link.which = name.text;
		if (follow_head(perl, &link, follow, data))
			return true;
	}
	return false;
}

void perl_visit_variables(struct perl *perl, struct view *view, uint64_t code, uint64_t depth,
			  uint32_t number, object_link_visitor *follow, void *data)
{
	uint64_t pads, list[2], table, names[2], pad;
	struct perl_head head;

	if (perl_find_head(perl, code) == NO_ALLOCATION || !perl_read_head(view, code, &head) ||
	    perl_type(&head) != PERL_PVCV || !view_word(view, head.body + PADS, &pads) || !pads ||
	    !view_read(view, pads, list, sizeof(list)) || list[0] > MOST_DEPTH ||
	    !view_word(view, list[1], &table) || !table ||
	    !view_read(view, table, names, sizeof(names)) || names[0] > MOST_VARIABLES)
		return;
	for (uint64_t i = depth ? depth : 1; i <= (depth ? depth : list[0]) && i <= list[0]; i++)
		if (view_word(view, list[1] + PERL_WORD * i, &pad) &&
		    visit_pad(perl, view, names, pad, number, follow, data))
			return;
}

void perl_walk_links(struct perl *perl, struct view *view, uint64_t address,
		     object_link_visitor *follow, void *data)
{
	struct object_link link = { .kind = LINK_REFERENT };
	struct perl_head head;

	if (!perl_read_head(view, address, &head))
		return;
	switch (perl_type(&head)) {
	case PERL_PVAV:
		visit_items(perl, view, &head, follow, data);
		return;
	case PERL_PVHV:
		perl_visit_entries(perl, view, &head, follow, data);
		return;
	case PERL_PVCV:
		perl_visit_variables(perl, view, address, 0, 0, follow, data);
		return;
	default:
		break;
	}
	link.target = head.value;
	if ((head.flags & PERL_ROK) && !(head.flags & PERL_WEAK))
		follow_head(perl, &link, follow, data);
	else
		perl_visit_slots(perl, view, address, follow, data);
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

uint32_t perl_statement_number(struct view *view, uint64_t statement)
{
	enum { NUMBER = 60 };
	uint32_t number;

	return statement && view_read(view, statement + NUMBER, &number, sizeof(number)) ? number
											 : 0;
}
