#include "analyzer/types/typing_parts.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/bytes.h"

#include <ctype.h>
#include <string.h>

enum {
	MOST_STEPS = 256, /* to a part of a value */
	LONGEST_NAME = 64,
	ENOUGH = 10, /* votes */
};

/*
 * The type of the part of a value that covers the offset, down to what is of one of the kinds: of
 * members that share a place, the first that has such a part there.
 */
static type_number type_at(const struct typing *typing, type_number number, uint64_t offset,
			   unsigned int kinds, struct budget *budget)
{
	const struct data_type *type = typing_type(typing, number);
	const struct type_member *members = type_members(typing->table, type);
	type_number found = NO_TYPE;

	if (kinds >> type->kind & 1)
		return number;
	if (!budget_take(budget))
		return NO_TYPE;
	if (type->kind == TYPE_ARRAY && typing_type(typing, type->target)->size)
		return type_at(typing, type->target,
			       offset % typing_type(typing, type->target)->size, kinds, budget);
	for (size_t i = 0; is_aggregate(type) && found == NO_TYPE && i < type->member_count; i++)
		if (members[i].offset <= offset &&
		    offset - members[i].offset < typing_type(typing, members[i].type)->size)
			found = type_at(typing, members[i].type, offset - members[i].offset, kinds,
					budget);
	return found;
}

type_number typing_number_at(const struct typing *typing, type_number whole, uint64_t offset)
{
	struct budget budget = { MOST_STEPS };

	return type_at(typing, whole, offset, 1 << TYPE_NUMBER, &budget);
}

/* The name of the enumerator that stands at the tag of a slot; NULL: it is no enumeration. */
static const char *name_tag(const struct typing *typing, type_number whole, const struct slot *slot,
			    uint64_t address)
{
	const struct data_type *type;
	const struct type_member *enumerators;
	uint32_t value = 0;

	if (slot->tag == NO_TAG)
		return NULL;
	type = typing_type(typing, typing_number_at(typing, whole, slot->tag));
	enumerators = type_members(typing->table, type);
	if (type->size > sizeof(value) ||
	    !read_bytes(typing, address + slot->tag - slot->offset, &value, type->size))
		return NULL;
	for (size_t i = 0; type->kind == TYPE_NUMBER && i < type->member_count; i++)
		if (enumerators[i].offset == value)
			return enumerators[i].name;
	return NULL;
}

/* Without underscores, and in small letters. */
static void plain_name(const char *name, char *ret, size_t size)
{
	size_t used = 0;

	for (; *name && used + 1 < size; name++)
		if (*name != '_')
			ret[used++] = (char)tolower((unsigned char)*name);
	ret[used] = '\0';
}

/*
 * The member of the union that the enumerator names, as "cm_for" names "For"; the one with the
 * longest name if it names several. NULL: none.
 */
static const struct type_member *find_named(const struct typing *typing, type_number number,
					    const char *enumerator)
{
	const struct data_type *type = typing_type(typing, number);
	const struct type_member *members = type_members(typing->table, type), *best = NULL;
	char wanted[LONGEST_NAME], name[LONGEST_NAME];
	size_t longest = 0;

	plain_name(enumerator, wanted, sizeof(wanted));
	for (size_t i = 0; type->kind == TYPE_UNION && i < type->member_count; i++) {
		if (!members[i].name)
			continue;
		plain_name(members[i].name, name, sizeof(name));
		if (strlen(name) <= longest || !strstr(wanted, name))
			continue;
		longest = strlen(name);
		best = &members[i];
	}
	return best;
}

const struct type_member *tag_names(const struct typing *typing, type_number whole,
				    const struct slot *slot, uint64_t address)
{
	const char *enumerator = name_tag(typing, whole, slot, address);
	struct budget budget = { MOST_STEPS };

	return enumerator
		       ? find_named(typing,
				    type_at(typing, whole, slot->offset, 1 << TYPE_UNION, &budget),
				    enumerator)
		       : NULL;
}

void votes_release(struct votes *votes)
{
	table_release(&votes->all);
	array_release(&votes->headers);
}

struct ballot ballot_of_header(const struct typing *typing, type_number header, uint64_t address)
{
	uint32_t tag = tag_of(typing->table, typing_type(typing, header));
	uint8_t byte;

	if (tag == NO_TAG || !read_bytes(typing, address + tag, &byte, 1))
		return (struct ballot){ 0, header };
	return (struct ballot){ hash_add(hash_add(1, header), byte), header };
}

/* Members of unions are of one mind, or say nothing. Of headers, some may be known wrongly. */
static type_number winner(const struct vote *vote)
{
	size_t percent = vote->ballot.header == NO_TYPE ? 100 : 90;

	return vote->count >= ENOUGH && vote->count * 100 >= vote->all * percent ? vote->type
										 : NO_TYPE;
}

static struct vote *find_vote(const struct votes *votes, struct ballot ballot)
{
	return ballot.hash ? table_find(&votes->all, ballot.hash, item,
					item->ballot.hash == ballot.hash)
			   : NULL;
}

/* True if tags of the header have elected more than one type. */
static bool tags_tell(const struct votes *votes, type_number header)
{
	type_number first = NO_TYPE;

	array_for_each(vote, &votes->all) {
		type_number elected = vote->ballot.header == header ? winner(vote) : NO_TYPE;

		if (first != NO_TYPE && elected != NO_TYPE && elected != first)
			return true;
		if (elected != NO_TYPE)
			first = elected;
	}
	return false;
}

static struct error *update_header(struct votes *votes, type_number type)
{
	if (type == NO_TYPE)
		return NULL;
	array_for_each(header, &votes->headers) {
		if (header->type != type)
			continue;
		header->is_told = tags_tell(votes, type);
		return NULL;
	}
	return array_append(&votes->headers, (struct voted_header){ type, false });
}

struct error *votes_add(struct votes *votes, struct ballot ballot, type_number type, size_t count)
{
	struct vote *vote = find_vote(votes, ballot);

	if (ballot.hash == 0)
		return NULL;
	if (!vote) {
		TRY(table_append(&votes->all, ballot.hash,
				 (struct vote){ ballot, type, count, count }));
		return update_header(votes, ballot.header);
	}
	vote->all += count;
	if (vote->type == type) {
		vote->count += count;
	} else if (vote->count < count) {
		vote->type = type;
		vote->count = count;
	}
	return update_header(votes, ballot.header);
}

type_number votes_elect(const struct votes *votes, struct ballot ballot, bool *ret_is_told)
{
	const struct vote *vote = find_vote(votes, ballot);

	*ret_is_told = false;
	array_for_each(header, &votes->headers)
		*ret_is_told |= header->type == ballot.header && header->is_told;
	return vote ? winner(vote) : NO_TYPE;
}

bool votes_refute(const struct typing *typing, const struct votes *votes, uint64_t address,
		  type_number type)
{
	array_for_each(header, &votes->headers) {
		type_number elected;
		bool is_told;

		if (!header->is_told || !type_begins_with(typing, type, header->type))
			continue;
		elected = votes_elect(votes, ballot_of_header(typing, header->type, address),
				      &is_told);
		if (elected != NO_TYPE && elected != type &&
		    !type_begins_with(typing, elected, type) &&
		    !type_begins_with(typing, type, elected))
			return true;
	}
	return false;
}
