/*
 * Reads values of Perl: numbers, texts, and how many items there are. A body has them behind two
 * words that all have; so has a head without a body, see allocators/perl/perl.h.
 */
#include "analyzer/runtimes/object_values.h"
#include "analyzer/runtimes/perl/links.h"

enum {
	COUNT = 16, /* the bytes of a text, the keys of a hash, the last item of an array */
	INTEGER = 32,
	REAL = 40,
	IS_INTEGER = 0x100, /* flags */
	IS_REAL = 0x200,
	IS_TEXT = 0x400,
};

static void read_scalar(struct view *view, const struct perl_head *head, struct object_value *ret)
{
	uint64_t word;
	double real;

	if (head->flags & PERL_ROK)
		return;
	if (head->flags & IS_TEXT) {
		if (view_word(view, head->body + COUNT, &word))
			object_value_read_text(ret, view, head->value, word);
	} else if (head->flags & IS_INTEGER) {
		if (view_word(view, head->body + INTEGER, &word))
			object_value_set_integer(ret, (int64_t)word);
	} else if (head->flags & IS_REAL) {
		if (view_read(view, head->body + REAL, &real, sizeof(real)))
			object_value_set_real(ret, real);
	}
}

uint64_t perl_referent(struct object_space *space, struct view *view,
		       const struct object_link *link)
{
	struct perl *perl = (struct perl *)space;
	struct perl_head head;

	return perl_find_head(perl, link->target) != NO_ALLOCATION &&
			       perl_read_head(view, link->target, &head) &&
			       perl_type(&head) <= PERL_PVMG && (head.flags & PERL_ROK) &&
			       perl_find_head(perl, head.value) != NO_ALLOCATION
		       ? head.value
		       : 0;
}

bool perl_read_value(struct object_space *space, struct view *view, const struct object_link *link,
		     struct object_value *ret)
{
	struct perl_head head;
	uint64_t count;
	allocation_id id = perl_find_head((struct perl *)space, link->target);
	unsigned int type;

	if (id == NO_ALLOCATION || !perl_read_head(view, link->target, &head))
		return false;
	ret->class_name = object_class_name_at(space, id);
	type = perl_type(&head);
	if (type > PERL_NULL && type <= PERL_PVMG && type != PERL_INVLIST)
		read_scalar(view, &head, ret);
	else if ((type == PERL_PVAV || type == PERL_PVHV) &&
		 view_word(view, head.body + COUNT, &count))
		object_value_set_length(ret, count + (type == PERL_PVAV));
	return true;
}
