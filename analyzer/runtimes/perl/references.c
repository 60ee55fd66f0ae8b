/*
 * Which words are references: a value is in use as long as its count says, but its address stands
 * in other places, too.
 */
#include "analyzer/runtimes/perl/space.h"

#include "analyzer/base/list.h"

static const struct perl *of(const struct object_space *space)
{
	return (const struct perl *)space;
}

static bool read_source(const struct perl *perl, allocation_id id, struct perl_head *ret)
{
	return image_read(perl->space.image, allocation_start(perl->space.index, id), ret,
			  sizeof(*ret));
}

/*
 * C code takes memory as the room for a value's text, as Perl_my_cxt_init() of util.c does for an
 * XS module's own data (MY_CXT), and keeps the text's address alone: that holds the value, too.
 */
static allocation_id find_room(const struct perl *perl, uint64_t word)
{
	const struct allocation_index *index = perl->space.index;
	allocation_id text = allocation_find(index, word);
	struct perl_head head;

	if (text == NO_ALLOCATION || perl->parts.items[text] != PART_TEXT ||
	    allocation_start(index, text) != word ||
	    !read_source(perl, perl->links.items[text], &head))
		return NO_ALLOCATION;
	return perl_type(&head) == PERL_PV && head.value == word &&
			       !(head.flags & (PERL_POK | PERL_ROK))
		       ? perl->links.items[text]
		       : NO_ALLOCATION;
}

static bool may_know_rooms(const struct perl *perl, allocation_id source)
{
	enum perl_part part = perl->parts.items[source];

	return part == PART_INTERPRETER || part == PART_TEXT;
}

/* A head's address of its body may lie before that. */
allocation_id perl_resolve(const struct object_space *space, allocation_id source, uint64_t word)
{
	const struct perl *perl = of(space);
	struct perl_head head;
	uint64_t start;

	if (source == NO_ALLOCATION)
		return NO_ALLOCATION;
	if (may_know_rooms(perl, source))
		return find_room(perl, word);
	if (perl->parts.items[source] != PART_HEAD || !read_source(perl, source, &head) ||
	    word != head.body ||
	    !perl_find_body(perl->arenas, allocation_start(perl->space.index, source), &head,
			    &start) ||
	    start == word || start == 0)
		return NO_ALLOCATION;
	return allocation_find(perl->space.index, start);
}

/*
 * C code keeps addresses of values as integers. What an operator computed last, such as the address
 * that refaddr() returned, stays in the operator's own value, and holds nothing.
 */
static bool is_kept_integer(const struct perl_head *head)
{
	return (head->flags & PERL_IOK) && !(head->flags & (PERL_ROK | PERL_TEMPORARY));
}

/* True if the word of a head is a reference that counts. */
static bool is_counted(const struct perl *perl, allocation_id source, uint64_t word)
{
	struct perl_head head;

	if (!read_source(perl, source, &head) || word != head.value)
		return false;
	return head.flags & PERL_ROK ? !(head.flags & PERL_WEAK)
				     : perl_type(&head) == PERL_IV && is_kept_integer(&head);
}

/* In a body of numbers and texts, the first word may be its package, and others an integer. */
static bool may_hold(const struct perl *perl, allocation_id body, uint64_t word)
{
	allocation_id owner = perl->links.items[body];
	struct perl_head head;
	uint64_t package;

	return !read_source(perl, owner, &head) || perl_type(&head) > PERL_PVMG ||
	       is_kept_integer(&head) ||
	       (perl_type(&head) == PERL_PVMG &&
		image_read_u64(perl->space.image, head.body, &package) && package == word);
}

/* Before the first item of an array and behind the last, its block has what was there before. */
static bool is_item(const struct perl *perl, allocation_id items, uint64_t place)
{
	enum { LAST_ITEM = 16 };
	struct perl_head head;
	uint64_t last;

	return !read_source(perl, perl->links.items[items], &head) ||
	       !image_read_u64(perl->space.image, head.body + LAST_ITEM, &last) ||
	       (place - head.value) / PERL_WORD < last + 1;
}

static bool refers_to_head(const struct perl *perl, allocation_id source, allocation_id target,
			   uint64_t word, uint64_t place)
{
	const struct perl_word *live = perl->live.items;
	size_t above;

	if (word != allocation_start(perl->space.index, target))
		return source != NO_ALLOCATION && may_know_rooms(perl, source) &&
		       find_room(perl, word) == target;
	if (source == NO_ALLOCATION)
		return true;
	switch (perl->parts.items[source]) {
	case PART_HEAD:
		return is_counted(perl, source, word);
	case PART_BODY:
	case PART_CHAINS:
		return may_hold(perl, source, word) &&
		       address_map_find(&perl->weak, word) != source;
	case PART_ITEMS:
		return is_item(perl, source, place);
	case PART_STACK:
	case PART_ARGUMENTS:
		above = LIST_ABOVE(live, perl->live.count, word, word);
		return above > 0 && live[above - 1].word == word;
	case PART_WEAK:
	case PART_TABLE:
		return false;
	default:
		return true;
	}
}

/* The last word of a head that is of no type yet is of what was there before: new_SV() of sv.c. */
static bool is_blank(const struct perl *perl, allocation_id source)
{
	struct perl_head head;

	return source != NO_ALLOCATION && perl->parts.items[source] == PART_HEAD &&
	       read_source(perl, source, &head) && perl_type(&head) == PERL_NULL;
}

bool perl_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		  uint64_t word, uint64_t place)
{
	const struct perl *perl = of(space);
	enum perl_part part = perl->parts.items[target];

	if (part == PART_HEAD)
		return !refers_to_head(perl, source, target, word, place);
	if (is_blank(perl, source))
		return true;
	if (source != NO_ALLOCATION && (perl->parts.items[source] == PART_ITEMS ||
					perl->parts.items[source] == PART_ARGUMENTS))
		return true;
	/* A value alone leads to its body, a hash to its entries. */
	if (part == PART_BODY)
		return source != perl->links.items[target];
	if (part == PART_ENTRY)
		return source == NO_ALLOCATION || perl->parts.items[source] == PART_HEAD ||
		       perl->links.items[source] != perl->links.items[target];
	return false;
}

bool perl_liveness(const struct object_space *space, allocation_id id, struct object_liveness *ret)
{
	const struct perl *perl = of(space);
	struct perl_head head;

	if (perl->parts.items[id] != PART_HEAD || !read_source(perl, id, &head))
		return false;
	*ret = (struct object_liveness){
		.has_count = true,
		.count = head.count,
		.address = allocation_start(perl->space.index, id),
	};
	return true;
}
