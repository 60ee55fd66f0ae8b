/*
 * Finds the bases of a package: from the order in which methods are searched, mro_core.c, which
 * lists all, if it was needed; or else from @ISA.
 */
#include "analyzer/runtimes/perl/links.h"

enum {
	ORDERS = 32, /* of struct xpvhv_aux */
	ORDER = 8,   /* of struct mro_meta: the one that is used */
	LENGTH = 16, /* of a text */
};

struct bases {
	struct view view;
	bool (*visit)(void *data, const char *name);
	void *data;
	bool is_over;
};

static bool visit_name(void *data, const struct object_link *link)
{
	struct bases *bases = data;
	char name[PERL_MOST_NAME];
	struct perl_head head;
	uint64_t length;

	if (!perl_read_head(&bases->view, link->target, &head) || !(head.flags & PERL_POK) ||
	    perl_type(&head) < PERL_PV || !view_word(&bases->view, head.body + LENGTH, &length) ||
	    length >= sizeof(name) || !view_read(&bases->view, head.value, name, length))
		return false;
	name[length] = '\0';
	bases->is_over = bases->visit(bases->data, name);
	return bases->is_over;
}

static bool is_array(const struct perl *perl, struct view *view, uint64_t address)
{
	struct perl_head head;

	return perl_find_head(perl, address) != NO_ALLOCATION &&
	       perl_read_head(view, address, &head) && perl_type(&head) == PERL_PVAV;
}

void perl_walk_base_names(struct object_walk *walk, uint64_t stash)
{
	struct perl *perl = (struct perl *)walk->space;
	struct view *view = &walk->view;
	struct perl_head head;
	struct perl_hash hash;
	uint64_t orders, list;

	if (perl_find_head(perl, stash) == NO_ALLOCATION || !perl_read_head(view, stash, &head) ||
	    !perl_read_hash(perl->arenas, view, &head, &hash))
		return;
	if (!hash.more || !view_word(view, hash.more + ORDERS, &orders) || !orders ||
	    !view_word(view, orders + ORDER, &list) || !is_array(perl, view, list))
		list = perl_find_variable(perl, &head, "ISA", 'A');
	if (list)
		perl_walk_value(walk, list);
}

bool perl_visit_bases(struct object_space *space, uint64_t number,
		      bool (*visit)(void *data, const char *name), void *data)
{
	struct bases bases = { { space->image }, visit, data, false };
	struct object_walk walk = object_walk_begin(space, visit_name, &bases);

	perl_walk_base_names(&walk, number);
	return bases.is_over;
}
