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
	struct perl *perl;
	struct view view;
	bool (*visit)(void *data, const char *name);
	void *data;
	uint64_t list; /* @ISA */
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

static bool find_list(void *data, const struct object_link *link)
{
	struct bases *bases = data;

	if (link->name[0] == 'A')
		bases->list = link->target;
	return bases->list != 0;
}

static bool find_isa(void *data, const struct object_link *link)
{
	struct bases *bases = data;
	char key[sizeof("ISA") + 1];

	if (perl_read_key(&bases->view, link->which, key, sizeof(key)) && strcmp(key, "ISA") == 0)
		perl_visit_slots(bases->perl, &bases->view, link->target, find_list, bases);
	return bases->list != 0;
}

static bool is_array(struct bases *bases, uint64_t address)
{
	struct perl_head head;

	return perl_find_head(bases->perl, address) != NO_ALLOCATION &&
	       perl_read_head(&bases->view, address, &head) && perl_type(&head) == PERL_PVAV;
}

void perl_visit_base_names(struct perl *perl, uint64_t stash, object_link_visitor *follow,
			   void *data)
{
	struct bases bases = { .perl = perl, .view = { perl->space.image } };
	struct view view = { perl->space.image };
	struct perl_head head;
	struct perl_hash hash;
	uint64_t orders, order;

	if (perl_find_head(perl, stash) == NO_ALLOCATION || !perl_read_head(&view, stash, &head) ||
	    !perl_read_hash(perl->arenas, &view, &head, &hash))
		return;
	if (hash.more && view_word(&view, hash.more + ORDERS, &orders) && orders &&
	    view_word(&view, orders + ORDER, &order) && is_array(&bases, order))
		bases.list = order;
	else
		perl_visit_entries(perl, &view, &head, find_isa, &bases);
	if (bases.list)
		perl_walk_links(perl, &view, bases.list, follow, data);
}

bool perl_visit_bases(struct object_space *space, uint64_t number,
		      bool (*visit)(void *data, const char *name), void *data)
{
	struct perl *perl = (struct perl *)space;
	struct bases bases = { perl, { perl->space.image }, visit, data, 0, false };

	perl->space.steps.left = perl->space.image->size;
	perl_visit_base_names(perl, number, visit_name, &bases);
	return bases.is_over;
}
