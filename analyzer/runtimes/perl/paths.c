/*
 * How a program in Perl reaches a value: $main::app->{cache}{"user:17"}[3]. Paths begin at
 * variables of packages, subroutines, and variables of running code.
 */
#include "analyzer/runtimes/path_text.h"
#include "analyzer/runtimes/perl/links.h"

#include "analyzer/base/text.h"

#include <ctype.h>
#include <inttypes.h>

enum { MOST_TEXT = 128 };

struct visiting {
	const struct perl *perl;
	object_visitor *visit;
	void *data;
	struct error *error;
};

static bool visit_link(void *data, const struct perl_link *link)
{
	struct visiting *visiting = data;

	visiting->error =
		visiting->visit(visiting->data, perl_find_head(visiting->perl, link->target), 0);
	return visiting->error != NULL;
}

struct error *perl_visit_references(struct object_space *space, allocation_id id,
				    object_visitor *visit, void *data)
{
	struct perl *perl = (struct perl *)space;
	struct visiting visiting = { perl, visit, data, NULL };
	struct view view = { perl->space.image };

	perl_visit_links(perl, &view, allocation_start(perl->space.index, id), visit_link,
			 &visiting);
	return visiting.error;
}

/* Writes the steps of a path. */
struct telling {
	struct perl *perl;
	struct view view;
	bool with_content;
	bool is_aggregate; /* all there is of the path is an array or hash with a name */
	bool is_subscript; /* it ends in one, so an arrow is not needed */
	uint64_t source, target;
	struct path_text path;
};

/* A key that can be written, and whether it needs quotes. */
static bool read_key(struct telling *telling, uint64_t address, char ret[MOST_TEXT],
		     bool *ret_plain)
{
	uint64_t length;

	if (!view_word(&telling->view, address, &length) || length >> 32 >= MOST_TEXT ||
	    !perl_read_key(&telling->view, address, ret, MOST_TEXT) ||
	    strlen(ret) != length >> 32 || text_run(ret, strlen(ret)) != strlen(ret))
		return false;
	*ret_plain = !isdigit((unsigned char)ret[0]) || strspn(ret, "0123456789") == strlen(ret);
	*ret_plain = *ret_plain && ret[0] && (ret[0] != '0' || !ret[1]);
	for (const char *at = ret; *at; at++) {
		if (iscntrl((unsigned char)*at))
			return false;
		*ret_plain = *ret_plain && (*at == '_' || isalnum((unsigned char)*at));
	}
	return true;
}

static void add_key(struct telling *telling, uint64_t address)
{
	char text[MOST_TEXT];
	bool is_plain;

	if (!telling->with_content || !read_key(telling, address, text, &is_plain)) {
		path_text_add(&telling->path, "{...}");
	} else if (is_plain) {
		path_text_add(&telling->path, "{%s}", text);
	} else {
		path_text_add(&telling->path, "{\"");
		for (const char *at = text; *at; at++)
			path_text_add(&telling->path, strchr("\"\\$@", *at) ? "\\%c" : "%c", *at);
		path_text_add(&telling->path, "\"}");
	}
}

/* An element of @a is $a[0]; of what a reference leads to, $r->[0]. */
static void begin_subscript(struct telling *telling)
{
	size_t length = strlen(telling->path.text);
	char *sigil = strpbrk(telling->path.text, "@%");

	if (telling->is_aggregate && sigil)
		*sigil = '$';
	else if (!telling->is_subscript && length > 0)
		path_text_add(&telling->path, "->");
	telling->is_aggregate = false;
	telling->is_subscript = true;
}

static bool is_scalar(struct telling *telling, uint64_t address)
{
	struct perl_head head;

	return perl_read_head(&telling->view, address, &head) && perl_type(&head) <= PERL_PVLV;
}

/* A path to a reference's target is written like the reference, except for scalars. */
static void add_referent(struct telling *telling)
{
	if (!is_scalar(telling, telling->target))
		return;
	path_text_add(&telling->path, "->$*");
	telling->is_subscript = false;
}

static bool read_name(struct view *view, uint64_t address, char *ret, size_t size)
{
	size_t i = 0;

	for (; i + 1 < size && view_read(view, address + i, &ret[i], 1) && ret[i] > ' '; i++)
		;
	ret[i] = '\0';
	return i > 1 && strchr("$@%&", ret[0]);
}

static bool tell_link(void *data, const struct perl_link *link)
{
	struct telling *telling = data;
	char name[MOST_TEXT];

	if (link->target != telling->target)
		return false;
	if (link->kind == LINK_ITEM) {
		begin_subscript(telling);
		path_text_add(&telling->path, "[%" PRIu64 "]", link->number);
	} else if (link->kind == LINK_VALUE) {
		begin_subscript(telling);
		add_key(telling, link->text);
	} else if (link->kind == LINK_REFERENT) {
		add_referent(telling);
	} else if (link->kind == LINK_SLOT) {
		path_text_add(&telling->path, "->*{%s}", link->slot);
		telling->is_subscript = false;
	} else {
		path_text_add(&telling->path, "->(my %s)",
			      read_name(&telling->view, link->text, name, sizeof(name)) ? name
											: "?");
		telling->is_subscript = false;
	}
	return true;
}

void perl_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		    bool with_content, char *ret, size_t size)
{
	struct perl *perl = (struct perl *)space;
	struct telling telling = {
		.perl = perl,
		.view = { perl->space.image },
		.with_content = with_content,
		.path = { ret, size, 0 },
	};
	struct view view = { perl->space.image };

	ret[0] = '\0';
	array_for_each(name, &perl->named)
		if (name->id == ids[0]) {
			path_text_add(&telling.path, "%s", name->text);
			telling.is_aggregate = name->is_aggregate;
			break;
		}
	for (size_t i = 0; i + 1 < count; i++) {
		telling.source = allocation_start(perl->space.index, ids[i]);
		telling.target = allocation_start(perl->space.index, ids[i + 1]);
		perl_visit_links(perl, &view, telling.source, tell_link, &telling);
	}
}

/* Collects named values. */
struct gathering {
	struct perl *perl;
	struct view view;
	struct bitmap *names;
	char package[PERL_MOST_NAME];
	char key[PERL_MOST_NAME];
	struct error *error;
};

static void gather(struct gathering *gathering, uint64_t address, const char *before, char sigil,
		   const char *package, const char *name)
{
	struct perl *perl = gathering->perl;
	struct perl_name found = { .id = perl_find_head(perl, address) };

	if (gathering->error || found.id == NO_ALLOCATION || bitmap_get(gathering->names, found.id))
		return;
	found.is_aggregate = sigil == '@' || sigil == '%';
	found.text = name_pool_print(&perl->names, "%s%c%s%s%s", before, sigil, package,
				     package[0] ? "::" : "", name);
	gathering->error = found.text ? array_append(&perl->named, found) : &error_no_memory;
	bitmap_set(gathering->names, found.id);
}

static bool gather_slot(void *data, const struct perl_link *link)
{
	struct gathering *gathering = data;
	size_t length = strlen(gathering->key);
	char sigil = link->slot[0] == 'S'   ? '$'
		     : link->slot[0] == 'C' ? '&'
		     : link->slot[0] == 'H' ? '%'
					    : '@';

	/* Packages are hashes, too. */
	if (sigil == '%' && length > 2 && strcmp(gathering->key + length - 2, "::") == 0)
		return false;
	gather(gathering, link->target, "", sigil, gathering->package, gathering->key);
	return gathering->error != NULL;
}

static bool gather_glob(void *data, const struct perl_link *link)
{
	struct gathering *gathering = data;

	if (perl_read_key(&gathering->view, link->text, gathering->key, sizeof(gathering->key)) &&
	    text_run(gathering->key, strlen(gathering->key)) == strlen(gathering->key))
		perl_visit_slots(gathering->perl, &gathering->view, link->target, gather_slot,
				 gathering);
	return gathering->error != NULL;
}

static void gather_packages(struct gathering *gathering)
{
	struct perl *perl = gathering->perl;
	uint32_t stash = address_map_find(&perl->space.classes.places, KIND_STASH);
	struct view heads = { perl->space.image };
	struct perl_head head;

	for (size_t i = 0; i < perl->parts.count && !gathering->error; i++) {
		uint64_t address;

		if (object_classes_get(&perl->space.classes, (allocation_id)i) != stash + 1)
			continue;
		address = allocation_start(perl->space.index, (allocation_id)i);
		if (perl_read_head(&heads, address, &head) &&
		    perl_read_package(perl, &gathering->view, address, gathering->package,
				      sizeof(gathering->package)))
			perl_visit_entries(perl, &heads, &head, gather_glob, gathering);
	}
}

/* In key, the call that the variable is of; empty: of the main program. */
static bool gather_variable(void *data, const struct perl_link *link)
{
	struct gathering *gathering = data;
	char name[MOST_TEXT];

	if (read_name(&gathering->view, link->text, name, sizeof(name)))
		gather(gathering, link->target, gathering->key, name[0], "", name + 1);
	return gathering->error != NULL;
}

static void gather_call(void *data, const struct perl_call *call)
{
	struct gathering *gathering = data;
	struct view view = { gathering->perl->space.image };
	char name[PERL_MOST_NAME - sizeof("(): ")];

	perl_tell_code(gathering->perl, &view, call->code, name, sizeof(name));
	snprintf(gathering->key, sizeof(gathering->key), "%s%s", name, name[0] ? "(): " : "");
	perl_visit_variables(gathering->perl, &view, call->code, call->depth,
			     perl_statement_number(&view, call->statement), gather_variable,
			     gathering);
}

struct error *perl_find_globals(struct object_space *space, struct bitmap *ret)
{
	struct perl *perl = (struct perl *)space;
	struct gathering gathering = { perl, { perl->space.image }, ret, "", "", NULL };

	perl->named.memory.account = perl->space.account;
	perl->named.count = 0;
	perl->steps.left = perl->space.image->size;
	gather_packages(&gathering);
	return gathering.error;
}

struct error *perl_find_locals(struct object_space *space, struct bitmap *ret)
{
	struct perl *perl = (struct perl *)space;
	struct gathering gathering = { perl, { perl->space.image }, ret, "", "", NULL };

	array_for_each(interpreter, &perl->interpreters)
		perl_visit_calls(perl, interpreter, gather_call, &gathering);
	return gathering.error;
}
