/*
 * How a program in Perl reaches a value: $main::app->{cache}{"user:17"}[3]. Paths begin at
 * variables of packages, subroutines, and variables of running code.
 */
#include "analyzer/runtimes/perl/links.h"

#include "analyzer/base/text.h"

#include <ctype.h>
#include <inttypes.h>

enum { MOST_TEXT = 128 };

const struct object_step perl_steps[] = {
	[LINK_SLOT] = { "->*{@}" },
	[LINK_VARIABLE] = { "->(my @)" },
};

void perl_walk_links(struct object_walk *walk, allocation_id id)
{
	perl_walk_value(walk, allocation_start(walk->space->index, id));
}

/* The state of a path. */
enum {
	IS_AGGREGATE = 1, /* all there is of it is an array or hash with a name */
	IS_SUBSCRIPT = 2, /* it ends in one, so an arrow is not needed */
};

/* A key that can be written, and whether it needs quotes. */
static bool read_key(struct object_path *path, uint64_t address, char ret[MOST_TEXT],
		     bool *ret_plain)
{
	uint64_t length;

	if (!view_word(&path->view, address, &length) || length >> 32 >= MOST_TEXT ||
	    !perl_read_key(&path->view, address, ret, MOST_TEXT) || strlen(ret) != length >> 32 ||
	    text_run(ret, strlen(ret)) != strlen(ret))
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

static void add_key(struct object_path *path, uint64_t address)
{
	char text[MOST_TEXT];
	bool is_plain;

	if (!path->with_content || !read_key(path, address, text, &is_plain)) {
		path_add(path, "{...}");
	} else if (is_plain) {
		path_add(path, "{%s}", text);
	} else {
		path_add(path, "{\"");
		for (const char *at = text; *at; at++)
			path_add(path, strchr("\"\\$@", *at) ? "\\%c" : "%c", *at);
		path_add(path, "\"}");
	}
}

/* An element of @a is $a[0]; of what a reference leads to, $r->[0]. */
static void begin_subscript(struct object_path *path)
{
	size_t length = strlen(path->text);
	char *sigil = strpbrk(path->text, "@%");

	if ((path->state & IS_AGGREGATE) && sigil)
		*sigil = '$';
	else if (!(path->state & IS_SUBSCRIPT) && length > 0)
		path_add(path, "->");
	path->state = IS_SUBSCRIPT;
}

static bool is_scalar(struct object_path *path, uint64_t address)
{
	struct perl_head head;

	return perl_read_head(&path->view, address, &head) && perl_type(&head) <= PERL_PVLV;
}

/* A path to a reference's target is written like the reference, except for scalars. */
static void add_referent(struct object_path *path)
{
	if (!is_scalar(path, path->target))
		return;
	path_add(path, "->$*");
	path->state &= ~(unsigned int)IS_SUBSCRIPT;
}

static bool read_name(struct view *view, uint64_t address, char *ret, size_t size)
{
	size_t i = 0;

	for (; i + 1 < size && view_read(view, address + i, &ret[i], 1) && ret[i] > ' '; i++)
		;
	ret[i] = '\0';
	return i > 1 && strchr("$@%&", ret[0]);
}

bool perl_tell_step(struct object_path *path, const struct object_link *link)
{
	if (path->is_first && strpbrk(path->text, "@%"))
		path->state = IS_AGGREGATE;
	if (link->kind == LINK_ITEM) {
		begin_subscript(path);
		path_add(path, "[%" PRIu64 "]", link->number);
	} else if (link->kind == LINK_VALUE) {
		begin_subscript(path);
		add_key(path, link->which);
	} else if (link->kind == LINK_REFERENT) {
		add_referent(path);
	} else {
		if (link->kind == LINK_VARIABLE &&
		    !read_name(&path->view, link->which, path->name, sizeof(path->name)))
			path->name[0] = '\0';
		path->state &= ~(unsigned int)IS_SUBSCRIPT;
	}
	return true;
}

/* Names values; the scope is a package. */
struct gathering {
	struct object_naming *naming;
	struct perl *perl;
	char key[PERL_MOST_NAME];
};

static void gather(struct gathering *gathering, uint64_t address, char sigil)
{
	const char *package = gathering->naming->scope;

	object_name(gathering->naming, address, "%c%s%s%s", sigil, package, package[0] ? "::" : "",
		    gathering->key);
}

static bool gather_slot(void *data, const struct object_link *link)
{
	struct gathering *gathering = data;
	size_t length = strlen(gathering->key);
	char sigil = link->name[0] == 'S'   ? '$'
		     : link->name[0] == 'C' ? '&'
		     : link->name[0] == 'H' ? '%'
					    : '@';

	/* Packages are hashes, too. */
	if (sigil == '%' && length > 2 && strcmp(gathering->key + length - 2, "::") == 0)
		return false;
	gather(gathering, link->target, sigil);
	return gathering->naming->error != NULL;
}

/* Instead of a glob, a package has a reference to a subroutine of which nothing else is known. */
static void gather_code(struct gathering *gathering, uint64_t reference)
{
	struct perl_head head, code;

	if (perl_read_head(&gathering->naming->view, reference, &head) && (head.flags & PERL_ROK) &&
	    perl_read_head(&gathering->naming->view, head.value, &code) &&
	    perl_type(&code) == PERL_PVCV)
		gather(gathering, head.value, '&');
}

static bool gather_glob(void *data, const struct object_link *link)
{
	struct gathering *gathering = data;
	struct object_walk walk;

	if (!perl_read_key(&gathering->naming->view, link->which, gathering->key,
			   sizeof(gathering->key)) ||
	    text_run(gathering->key, strlen(gathering->key)) != strlen(gathering->key))
		return false;
	walk = object_walk_begin(&gathering->perl->space, gather_slot, gathering);
	perl_walk_slots(&walk, link->target);
	gather_code(gathering, link->target);
	return gathering->naming->error != NULL;
}

static void gather_packages(struct gathering *gathering)
{
	struct perl *perl = gathering->perl;
	uint32_t stash = address_map_find(&perl->space.classes.places, KIND_STASH);
	struct object_walk walk = object_walk_begin(&perl->space, gather_glob, gathering);
	struct perl_head head;

	walk.steps = perl->space.steps;
	for (size_t i = 0; i < perl->parts.count && !gathering->naming->error; i++) {
		uint64_t address;

		if (object_classes_get(&perl->space.classes, (allocation_id)i) != stash + 1)
			continue;
		address = allocation_start(perl->space.index, (allocation_id)i);
		if (perl_read_head(&walk.view, address, &head) &&
		    perl_read_package(perl, &gathering->naming->view, address,
				      gathering->naming->scope, sizeof(gathering->naming->scope)))
			perl_walk_entries(&walk, &head);
	}
}

/* In key, the call that the variable is of; empty: of the main program. */
static bool gather_variable(void *data, const struct object_link *link)
{
	struct gathering *gathering = data;
	char name[MOST_TEXT];

	if (read_name(&gathering->naming->view, link->which, name, sizeof(name)))
		object_name(gathering->naming, link->target, "%s%s", gathering->key, name);
	return gathering->naming->error != NULL;
}

static void gather_call(void *data, const struct perl_call *call)
{
	struct gathering *gathering = data;
	struct object_walk walk =
		object_walk_begin(&gathering->perl->space, gather_variable, gathering);
	char name[PERL_MOST_NAME - sizeof("(): ")];

	perl_tell_code(gathering->perl, &walk.view, call->code, name, sizeof(name));
	snprintf(gathering->key, sizeof(gathering->key), "%s%s", name, name[0] ? "(): " : "");
	perl_walk_call(&walk, call);
}

/* The table of the keys that hashes share (PL_strtab). No program gets there. */
static void name_shared_keys(struct object_naming *naming)
{
	const struct perl *perl = (const struct perl *)naming->space;

	for (size_t i = 0; i < perl->parts.count; i++)
		if (perl->parts.items[i] == PART_SHARED_KEY &&
		    perl->links.items[i] != NO_ALLOCATION)
			object_name(naming,
				    allocation_start(perl->space.index, perl->links.items[i]),
				    "<shared keys>");
}

struct error *perl_find_globals(struct object_naming *naming)
{
	struct gathering gathering = { naming, (struct perl *)naming->space, "" };

	gather_packages(&gathering);
	name_shared_keys(naming);
	return NULL;
}

struct error *perl_find_locals(struct object_naming *naming)
{
	struct gathering gathering = { naming, (struct perl *)naming->space, "" };

	array_for_each(interpreter, &gathering.perl->interpreters)
		perl_visit_calls(gathering.perl, interpreter, gather_call, &gathering);
	return NULL;
}
