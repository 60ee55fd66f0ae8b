#include "analyzer/types/typing_parts.h"

#include "analyzer/base/text.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

enum {
	SAMPLE = 16, /* elements of an array */
	FIRST_ELEMENTS = 4,
	MOST_OF_TAIL = 6,
	SAMPLED_WORDS = 32,
	SAMPLED_TEXT = 16, /* bytes */
	LONGEST_LETTER = 4,
	LONGEST_TEXT = 4096,
	LEAST_LENGTH = 3,	 /* of text that fills its block */
	MOST_ROOM = 24,		 /* behind it */
	MOST_COMPARED = 1 << 15, /* bytes of a value */
	LEAST_PART = 2,		 /* words of a structure that is cut short */
	MOST_TAILS = 4,		 /* structures that end each other */
	ENOUGH_FUNCTIONS = 3,
	MOST_IN_PLACE = 64, /* bytes of text */
	MOST_LINKED = 256,  /* elements */
};

/* True if a word of the range, of which the first are read, refers to the heap. */
bool typing_refers_to_heap(const struct typing *typing, struct memory_range range)
{
	const uint64_t width = typing->word, most = SAMPLED_WORDS * width;
	uint64_t left = range.end - range.start < most ? range.end - range.start : most, word;

	for (uint64_t at = range.start; left >= width; at += width, left -= width)
		if (read_word(typing, at, &word) && find_used(typing, word) != NO_ALLOCATION)
			return true;
	return false;
}

static bool is_same_member(const struct type_member *member, const struct type_member *other)
{
	return member->offset == other->offset && member->type == other->type && member->name &&
	       other->name && strcmp(member->name, other->name) == 0;
}

/*
 * True if the type has all members of the header in front of its own, or the header as first
 * member.
 */
static bool has_members_of(const struct typing *typing, const struct data_type *type,
			   type_number header)
{
	const struct data_type *described = typing_type(typing, header);
	const struct type_member *members = type_members(typing->table, type);
	const struct type_member *wanted = type_members(typing->table, described);

	if (type->kind != TYPE_STRUCTURE || described->kind != TYPE_STRUCTURE ||
	    type->size <= described->size || type->member_count == 0)
		return false;
	if (members->offset == 0 && members->type == header)
		return true;
	if (described->member_count < 2 || type->member_count < described->member_count)
		return false;
	for (size_t i = 0; i < described->member_count; i++)
		if (!is_same_member(&members[i], &wanted[i]))
			return false;
	return true;
}

bool is_text(const struct typing *typing, uint64_t address)
{
	char bytes[SAMPLED_TEXT];
	size_t length;

	if (!read_bytes(typing, address, bytes, sizeof(bytes)))
		return false;
	length = text_run(bytes, sizeof(bytes));
	/* A letter may be cut in two. */
	if (length <= sizeof(bytes) - LONGEST_LETTER && (length == 0 || bytes[length] != '\0'))
		return false;
	/* Bytes of a pointer may be letters, too; to look an address up takes longest. */
	return find_used(typing, load_word((const uint8_t *)bytes, typing->word)) == NO_ALLOCATION;
}

bool is_filled_with_text(const struct typing *typing, struct memory_range range, uint64_t address)
{
	char bytes[LONGEST_TEXT];
	uint64_t available = range.end - address;
	size_t length = 0, size = available < sizeof(bytes) ? available : sizeof(bytes);

	if (read_bytes(typing, address, bytes, size))
		length = text_run(bytes, size);
	return length >= LEAST_LENGTH && length < size && bytes[length] == '\0' &&
	       available <= length + MOST_ROOM &&
	       !typing_refers_to_heap(typing,
				      (struct memory_range){ range.start, address + length });
}

bool type_begins_with(const struct typing *typing, type_number number, type_number header)
{
	for (size_t i = 0; i < MOST_TAILS; i++) {
		const struct data_type *type = typing_type(typing, number);
		const struct type_member *members = type_members(typing->table, type);

		if (has_members_of(typing, type, header))
			return true;
		if (type->kind != TYPE_STRUCTURE || type->member_count == 0 || members->offset != 0)
			return false;
		number = members->type;
	}
	return false;
}

/*
 * True if the known type of an allocation contradicts a pointer to its start: the types differ, and
 * neither begins with the other.
 */
static bool is_known_otherwise(const struct typing *typing, allocation_id id, type_number number)
{
	type_number known = known_type(typing, id);

	return known_fit(typing, id) >= FIT_TAIL && known != number &&
	       !type_begins_with(typing, known, number) && !type_begins_with(typing, number, known);
}

/* True if a value of the other type may be at the start of a value of the type. */
static bool may_begin_with(const struct typing *typing, type_number number, type_number other,
			   unsigned int depth)
{
	const struct data_type *type = typing_type(typing, number);
	const struct type_member *members = type_members(typing->table, type);
	bool may_begin = number == other || type_begins_with(typing, other, number);

	if (depth == MOST_TAILS)
		return true;
	if (type->kind == TYPE_ARRAY)
		return may_begin_with(typing, type->target, other, depth + 1);
	for (size_t i = 0; !may_begin && is_aggregate(type) && i < type->member_count; i++)
		may_begin = members[i].offset == 0 &&
			    may_begin_with(typing, members[i].type, other, depth + 1);
	return may_begin;
}

/* True if a static variable at the address contradicts a pointer of that type to it. */
static bool is_other_variable(const struct typing *typing, uint64_t address, type_number number,
			      struct conformity *conformity)
{
	type_number known = address_map_find(&typing->variables, address);

	conformity->known += known == number;
	return known != (type_number)NOT_IN_MAP && !may_begin_with(typing, known, number, 0);
}

bool is_just_as_large(const struct typing *typing, struct memory_range range, uint64_t size)
{
	uint64_t available = range.end - range.start;

	return available - size < MALLOC_UNIT || available <= 3 * typing->word;
}

static void confirm_vaguely(struct conformity *conformity, allocation_id id)
{
	conformity->confirmed += id != NO_ALLOCATION;
	conformity->vague += id != NO_ALLOCATION;
}

/* A member of a union may be a number, which seldom is the start of an allocation. */
static void confirm_choice(const struct typing *typing, struct conformity *conformity,
			   uint64_t word)
{
	allocation_id id = find_used(typing, word);

	if (id != NO_ALLOCATION && allocation_start(typing->input.index, id) == word)
		conformity->confirmed++;
	else
		confirm_vaguely(conformity, id);
}

/* The part of an allocation that its maker gave to its caller. */
static struct memory_range given_of(const struct typing *typing, allocation_id id)
{
	struct memory_range range = range_of(typing, id);

	range.start = MIN(range.start + typing->header, range.end);
	return range;
}

/* True if pointers to structures, and null ones, are all that stands first in the allocation. */
static bool begins_with_pointers(const struct typing *typing, allocation_id id,
				 const struct data_type *element)
{
	enum { FIRST_WORDS = 64 };
	const struct memory_range range = given_of(typing, id);
	uint64_t size = typing_type(typing, element->target)->size, word, count = 0;

	if (!is_aggregate(typing_type(typing, element->target)) || size == 0)
		return false;
	for (uint64_t i = 0; i < FIRST_WORDS && i * typing->word < range.end - range.start; i++) {
		allocation_id to;

		if (!read_word(typing, range.start + i * typing->word, &word))
			return false;
		to = word ? find_used(typing, word) : NO_ALLOCATION;
		if (word && (to == NO_ALLOCATION || size > range_of(typing, to).end - word))
			return false;
		count += word != 0;
	}
	return count > 0;
}

/* True if a pointer in the slot may have that address as target, where something is mapped. */
static bool leads_right(const struct typing *typing, const struct slot *slot, uint64_t address,
			struct conformity *conformity)
{
	const struct data_type *target = typing_type(typing, slot->target);
	allocation_id id = find_used(typing, address);
	/* No code is in the heap. */
	const struct region *region =
		id == NO_ALLOCATION ? image_find(typing->input.image, address) : NULL;
	struct memory_range range;

	/* In place of "void *" numbers may stand. */
	if (target->kind == TYPE_NONE)
		confirm_vaguely(conformity, id);
	if (target->kind == TYPE_NONE)
		return true;
	if (!region && id == NO_ALLOCATION)
		return false;
	if (target->kind == TYPE_FUNCTION) {
		conformity->confirmed++;
		/* Little else has the addresses of several functions just there. */
		conformity->functions++;
		conformity->known += conformity->functions == ENOUGH_FUNCTIONS;
		return region && (region->rights & RIGHT_EXECUTE);
	}
	if (!is_aggregate(target)) {
		conformity->confirmed += target->kind == TYPE_CHARACTER && is_text(typing, address);
		conformity->confirmed += target->kind == TYPE_POINTER && id != NO_ALLOCATION &&
					 address == given_of(typing, id).start &&
					 begins_with_pointers(typing, id, target);
		return true;
	}
	if ((region && (region->rights & RIGHT_EXECUTE)) || address % sizeof(uint32_t) != 0)
		return false;
	conformity->confirmed++;
	conformity->exact += id == NO_ALLOCATION;
	if (id == NO_ALLOCATION)
		return !is_other_variable(typing, address, slot->target, conformity);
	range = given_of(typing, id);
	if (address == range.start) {
		bool is_exact = known_type(typing, id) == slot->target ||
				(target->size <= range.end - range.start &&
				 is_just_as_large(typing, range, target->size)) ||
				(known_fit(typing, id) >= FIT_TAIL &&
				 type_begins_with(typing, known_type(typing, id), slot->target));

		conformity->exact += is_exact;
		conformity->doubtful += !is_exact;
		conformity->known +=
			known_type(typing, id) == slot->target && known_fit(typing, id) >= FIT_TAIL;
		if (is_known_otherwise(typing, id, slot->target))
			return false;
	}
	/*
	 * A block cut short is smaller than its type; pointers may have the end of an array as
	 * target.
	 */
	return known_type(typing, id) == slot->target || target->size <= range.end - address ||
	       (target->size && address > range.start &&
		(address - range.start) % target->size == 0);
}

static bool is_mapped(const struct typing *typing, uint64_t word)
{
	return find_used(typing, word) != NO_ALLOCATION || image_find(typing->input.image, word);
}

/* In Rust, what is empty points to the number that its elements are aligned to. */
static bool is_null(const struct typing *typing, uint64_t word)
{
	enum { MOST_ALIGNMENT = 4096 };

	return word == 0 ||
	       (typing->has_rust && word <= MOST_ALIGNMENT && (word & (word - 1)) == 0);
}

/* True if the word is in padding behind all members, which is never written. */
static bool is_padding(const struct typing *typing, type_number number, uint64_t offset)
{
	enum { DEEPEST = 24 };

	for (size_t i = 0; i < DEEPEST && number != NO_TYPE; i++) {
		const struct data_type *type = typing_type(typing, number);
		const struct type_member *members = type_members(typing->table, type);
		uint64_t end = 0;

		for (size_t j = 0; type->kind == TYPE_STRUCTURE && j < type->member_count; j++) {
			uint64_t last =
				members[j].offset + typing_type(typing, members[j].type)->size;

			end = last > end ? last : end;
		}
		if (end > 0 && offset >= end)
			return true;
		number = typing_enter(typing, number, &offset);
	}
	return false;
}

/*
 * True if a pointer to its own type in a structure that fills the allocation is valid: it points
 * into the same allocation, which may hold several, or to one that is cut as short.
 */
static bool leads_to_own(const struct typing *typing, uint64_t address, allocation_id around)
{
	allocation_id id = find_used(typing, address);

	return id == around ||
	       (id != NO_ALLOCATION && allocation_start(typing->input.index, id) == address &&
		allocation_size(typing->input.index, id) ==
			allocation_size(typing->input.index, around));
}

static bool is_among(uint64_t words, uint64_t word)
{
	return word < sizeof(words) * CHAR_BIT && words >> word & 1;
}

uint64_t typing_text_size(const struct typing *typing, uint64_t address, uint64_t most)
{
	unsigned char text[MOST_IN_PLACE];
	size_t size = most < sizeof(text) ? most : sizeof(text), length = 0;

	if (!image_read(typing->input.image, address, text, size))
		return 0;
	while (length < size && (isprint(text[length]) || isspace(text[length])))
		length++;
	return length > 0 && length < size && text[length] == '\0' ? length + 1 : 0;
}

uint64_t typing_text_at_end(const struct typing *typing, uint64_t address, type_number number)
{
	const struct data_type *type = typing_type(typing, number), *last;
	const struct type_member *member;
	uint64_t size;

	if (type->kind != TYPE_STRUCTURE || type->member_count < 2)
		return 0;
	member = &type_members(typing->table, type)[type->member_count - 1];
	last = typing_type(typing, member->type);
	if (last->kind != TYPE_ARRAY || typing_type(typing, last->target)->kind != TYPE_CHARACTER)
		return 0;
	size = typing_text_size(typing, address + member->offset, MOST_IN_PLACE);
	if (size == 0 && is_text(typing, address + member->offset))
		size = MOST_IN_PLACE;
	return size ? member->offset + size : 0;
}

/*
 * The number of bytes of text in place of unused members, or 0. Code keeps short text there, and a
 * pointer to characters in the same value points to it.
 *
 *	node->content = (char *)&node->properties;
 */
static uint64_t text_in_place(const struct typing *typing, const struct slot *slots, size_t count,
			      uint64_t value, uint64_t offset, uint64_t size)
{
	uint64_t word;

	for (size_t i = 0; i < count; i++)
		if (typing_type(typing, slots[i].target)->kind == TYPE_CHARACTER &&
		    read_word(typing, value + slots[i].offset, &word) && word == value + offset)
			return typing_text_size(typing, word, size - offset);
	return 0;
}

/*
 * Pointers are null, or lead to something that has room for what they point to; what are no
 * pointers do not refer to the heap. Compares up to size bytes, and returns where the first word is
 * that is wrong. Others of its type may follow in the allocation around it. Odd has a bit for each
 * of the first words where anything may stand, whatever the member is declared as.
 */
static struct error *compare_words(struct typing *typing, uint64_t address, type_number number,
				   uint64_t size, allocation_id around, uint64_t odd,
				   struct conformity *ret, uint64_t *ret_offset)
{
	const struct slot *slots;
	size_t count, next = 0;
	struct error *error = slots_of(&typing->slots, number, &slots, &count);
	uint64_t offset;

	*ret = (struct conformity){ .is_violated = true };
	*ret_offset = 0;
	if (error)
		return error;
	if (size > MOST_COMPARED)
		size = MOST_COMPARED;
	for (offset = 0; offset + typing->word <= size; offset += typing->word) {
		uint64_t word;

		*ret_offset = offset;
		while (next < count && slots[next].offset < offset)
			next++;
		if (!read_word(typing, address + offset, &word))
			return NULL;
		if (next == count || slots[next].offset != offset) {
			if (find_used(typing, word) != NO_ALLOCATION &&
			    !is_among(odd, offset / typing->word) &&
			    !is_padding(typing, number, offset))
				return NULL;
			continue;
		}
		while (next < count && slots[next].offset == offset &&
		       !slot_stands(&typing->slots, typing->input.image, &slots[next],
				    address + offset))
			next++;
		/* The inactive alternative may have left anything. */
		if (next == count || slots[next].offset != offset)
			continue;
		if (slots[next].is_pointer && word != 0 && !is_mapped(typing, word))
			return NULL;
		if (slots[next].is_choice ||
		    (slots[next].target == number && around != NO_ALLOCATION &&
		     leads_to_own(typing, word, around)))
			confirm_choice(typing, ret, word);
		else if (!is_null(typing, word) && !is_among(odd, offset / typing->word) &&
			 !leads_right(typing, &slots[next], word, ret)) {
			uint64_t text = text_in_place(typing, slots, count, address, offset, size);

			if (text == 0)
				return NULL;
			offset += (text - 1) / typing->word * typing->word;
		}
	}
	*ret_offset = offset;
	ret->is_violated = false;
	return NULL;
}

struct error *typing_conforms(struct typing *typing, uint64_t address, type_number number,
			      struct conformity *ret)
{
	uint64_t offset;

	return compare_words(typing, address, number, typing_type(typing, number)->size,
			     NO_ALLOCATION, 0, ret, &offset);
}

struct error *typing_conforms_but(struct typing *typing, uint64_t address, type_number number,
				  uint64_t odd, struct conformity *ret)
{
	uint64_t offset;

	return compare_words(typing, address, number, typing_type(typing, number)->size,
			     NO_ALLOCATION, odd, ret, &offset);
}

uint64_t typing_wide_numbers(const struct typing *typing, type_number number)
{
	enum { BITS = sizeof(uint64_t) * CHAR_BIT, DEEPEST = 8 };
	uint64_t words = typing_type(typing, number)->size / typing->word, found = 0;

	for (uint64_t i = 0; i < words && i < BITS; i++) {
		uint64_t offset = i * typing->word;
		type_number at = number;

		for (size_t j = 0;
		     j < DEEPEST && at != NO_TYPE && is_aggregate(typing_type(typing, at)); j++)
			at = typing_enter(typing, at, &offset);
		if (offset == 0 && typing_type(typing, at)->kind == TYPE_NUMBER &&
		    typing_type(typing, at)->size == typing->word)
			found |= UINT64_C(1) << i;
	}
	return found;
}

/* Numbers among the first words that are addresses in the heap. */
static uint64_t find_hidden_pointers(const struct typing *typing, uint64_t address,
				     type_number number)
{
	uint64_t wide = typing_wide_numbers(typing, number), found = 0, word;

	for (uint64_t i = 0; i < sizeof(wide) * CHAR_BIT; i++)
		if (is_among(wide, i) && read_word(typing, address + i * typing->word, &word) &&
		    find_used(typing, word) != NO_ALLOCATION)
			found |= UINT64_C(1) << i;
	return found;
}

struct error *typing_read_pointers(struct typing *typing, uint64_t address, type_number number,
				   struct pointer_words *ret)
{
	const struct slot *slots;
	size_t count;

	*ret = (struct pointer_words){ .odd = find_hidden_pointers(typing, address, number) };
	TRY(slots_of(&typing->slots, number, &slots, &count));
	for (size_t i = 0; i < count; i++) {
		const uint64_t at = slots[i].offset / typing->word;
		struct conformity conformity = { 0 };
		uint64_t word;

		if (at >= sizeof(ret->filled) * CHAR_BIT)
			break;
		if (!read_word(typing, address + slots[i].offset, &word) || word == 0)
			continue;
		/* A list ends somewhere. */
		if (slots[i].target != number)
			ret->filled |= UINT64_C(1) << at;
		if (!slots[i].is_choice && !is_null(typing, word) &&
		    slot_stands(&typing->slots, typing->input.image, &slots[i],
				address + slots[i].offset) &&
		    !leads_right(typing, &slots[i], word, &conformity))
			ret->odd |= UINT64_C(1) << at;
	}
	return NULL;
}

struct error *typing_find_cut(struct typing *typing, struct memory_range range, type_number number,
			      uint64_t *ret)
{
	const struct data_type *type = typing_type(typing, number);
	uint64_t available = range.end - range.start, offset;
	struct conformity conformity;

	*ret = 0;
	if (type->kind != TYPE_STRUCTURE)
		return NULL;
	TRY(compare_words(typing, range.start, number,
			  type->size < available ? type->size : available,
			  find_used(typing, range.start), 0, &conformity, &offset));
	if (offset < LEAST_PART * typing->word || conformity.confirmed == 0)
		return NULL;
	range.start += offset;
	if (offset * 2 >= type->size || !typing_refers_to_heap(typing, range))
		*ret = offset;
	return NULL;
}

/* Set *ret if the structure refers to others of its type, because these are not kept in arrays. */
static struct error *refers_to_itself(struct typing *typing, type_number number, bool *ret)
{
	const struct slot *slots;
	size_t count;
	struct error *error = slots_of(&typing->slots, number, &slots, &count);

	*ret = false;
	for (size_t i = 0; !error && i < count; i++)
		*ret |= slots[i].target == number;
	return error;
}

/* Set *ret if the target of a pointer looks like its type, and not only its address fits. */
static struct error *leads_to_like(struct typing *typing, type_number target, uint64_t address,
				   struct conformity *ret)
{
	const struct data_type *type = typing_type(typing, target);

	*ret = (struct conformity){ .is_violated = true };
	if (type->kind == TYPE_CHARACTER) {
		ret->is_violated = !is_text(typing, address);
		ret->confirmed = !ret->is_violated;
		return NULL;
	}
	return is_aggregate(type) && type->size ? typing_conforms(typing, address, target, ret)
						: NULL;
}

struct error *typing_conforms_led_to(struct typing *typing, uint64_t address, type_number number,
				     struct conformity *ret)
{
	const struct slot *slots;
	size_t count;
	struct error *error = slots_of(&typing->slots, number, &slots, &count);

	*ret = (struct conformity){ 0 };
	for (size_t i = 0; !error && i < count && i < SAMPLE && !ret->is_violated; i++) {
		const struct data_type *target = typing_type(typing, slots[i].target);
		struct conformity one;
		uint64_t word;

		if (slots[i].is_choice || !is_aggregate(target) || !target->size ||
		    !slot_stands(&typing->slots, typing->input.image, &slots[i],
				 address + slots[i].offset) ||
		    !read_word(typing, address + slots[i].offset, &word) || is_null(typing, word))
			continue;
		error = typing_conforms(typing, word, slots[i].target, &one);
		ret->is_violated = one.is_violated;
		/* Testing other values may have moved the slots. */
		if (!error)
			error = slots_of(&typing->slots, number, &slots, &count);
	}
	return error;
}

/*
 * Set *ret if text is where the pointer to a structure points, and no pointer as the structure has
 * it.
 */
static struct error *is_to_text(struct typing *typing, const struct slot *slot, uint64_t address,
				bool *ret)
{
	allocation_id id = find_used(typing, address);
	struct conformity conformity;

	*ret = id != NO_ALLOCATION && !slot->is_choice &&
	       is_aggregate(typing_type(typing, slot->target)) && is_text(typing, address) &&
	       range_of(typing, id).start == address &&
	       is_filled_with_text(typing, range_of(typing, id), address);
	if (!*ret)
		return NULL;
	TRY(typing_conforms(typing, address, slot->target, &conformity));
	*ret = conformity.confirmed == 0;
	return NULL;
}

struct error *typing_leads_to_text(struct typing *typing, uint64_t address, type_number number,
				   bool *ret)
{
	const struct slot *slots;
	size_t count;

	TRY(slots_of(&typing->slots, number, &slots, &count));
	*ret = false;
	for (size_t i = 0; i < count && i < SAMPLE && !*ret; i++) {
		struct slot slot = slots[i];
		uint64_t word;

		if (!read_word(typing, address + slot.offset, &word))
			continue;
		TRY(is_to_text(typing, &slot, word, ret));
		/* Testing other values may have moved the slots. */
		TRY(slots_of(&typing->slots, number, &slots, &count));
	}
	return NULL;
}

/* Count a pointer to where a value of its target is known to stand, or of another type. */
static void count_known(const struct typing *typing, uint64_t address, type_number target,
			struct conformity *conformity)
{
	allocation_id id = find_used(typing, address);

	if (id == NO_ALLOCATION || known_fit(typing, id) == FIT_NONE)
		return;
	if (known_type(typing, id) == target) {
		conformity->exact++;
		conformity->confirmed++;
	} else if (known_fit(typing, id) <= FIT_PREFIX &&
		   is_aggregate(typing_type(typing, known_type(typing, id)))) {
		conformity->doubtful++;
	}
}

struct error *typing_conforms_pointers(struct typing *typing, struct memory_range range,
				       type_number pointer, struct conformity *ret)
{
	type_number target = typing_type(typing, pointer)->target;
	uint64_t count = (range.end - range.start) / typing->word, tested = 0;

	*ret = (struct conformity){ .is_violated = true };
	for (uint64_t i = 0; i < count && tested < SAMPLE; i++) {
		struct conformity one;
		uint64_t word;

		if (!read_word(typing, range.start + i * typing->word, &word))
			return NULL;
		if (word == 0)
			continue;
		TRY(leads_to_like(typing, target, word, &one));
		/* The elements behind the used ones may never have been written. */
		if (one.is_violated && (tested < FIRST_ELEMENTS || i + 1 < count))
			return NULL;
		tested++;
		ret->confirmed += one.confirmed > one.vague;
		ret->known += one.known > 0;
		count_known(typing, word, target, ret);
	}
	ret->is_violated = false;
	return NULL;
}

/*
 * Set *ret if all of them look like the type because nothing in them refers to the heap, nor
 * should.
 */
static struct error *is_without_pointers(struct typing *typing, struct memory_range elements,
					 type_number number, bool *ret)
{
	const struct slot *slots;
	size_t count;
	uint64_t word;

	TRY(slots_of(&typing->slots, number, &slots, &count));
	*ret = count == 0 && elements.end - elements.start <= MOST_COMPARED;
	for (uint64_t at = elements.start; *ret && at < elements.end; at += typing->word)
		*ret = read_word(typing, at, &word) &&
		       !heap_bounds_hold(&typing->last->bounds, word);
	return NULL;
}

/* Set *ret if elements that look like the type are there; the rest may never have been written. */
static struct error *begins_as_array(struct typing *typing, uint64_t address, type_number number,
				     bool *ret)
{
	*ret = true;
	for (uint64_t i = 0; *ret && i < FIRST_ELEMENTS; i++) {
		struct conformity conformity;

		TRY(typing_conforms(typing, address + i * typing_type(typing, number)->size, number,
				    &conformity));
		*ret = !conformity.is_violated && conformity.confirmed > 0;
	}
	return NULL;
}

/*
 * Set *ret if pointers of the elements to their own type lead to other elements, and nowhere else:
 * such structures, as nodes of a tree that is built in one piece, are in an array after all.
 */
static struct error *refers_within(struct typing *typing, struct memory_range elements,
				   type_number number, bool *ret)
{
	const uint64_t size = typing_type(typing, number)->size;
	const struct slot *slots;
	size_t count;

	TRY(slots_of(&typing->slots, number, &slots, &count));
	*ret = false;
	for (uint64_t at = elements.start, i = 0; at < elements.end && i < MOST_LINKED;
	     at += size, i++) {
		for (size_t j = 0; j < count; j++) {
			uint64_t word;

			if (slots[j].target != number ||
			    !read_word(typing, at + slots[j].offset, &word) || word == 0)
				continue;
			*ret = word >= elements.start && word < elements.end &&
			       (word - elements.start) % size == 0;
			if (!*ret)
				return NULL;
		}
	}
	return NULL;
}

/* ArcInner<str> and the like of Rust have as many elements behind them as a pointer's length says.
 */
static bool ends_before_last(const struct typing *typing, const struct data_type *type)
{
	const struct type_member *members = type_members(typing->table, type);

	return type->kind == TYPE_STRUCTURE && type->size && type->member_count &&
	       members[type->member_count - 1].offset == type->size &&
	       typing_type(typing, members[type->member_count - 1].type)->size;
}

static struct error *fits_as_array(struct typing *typing, struct memory_range range,
				   type_number number, bool *ret)
{
	const struct data_type *type = typing_type(typing, number);
	uint64_t count = (range.end - range.start) / type->size, between;
	struct error *error = NULL;

	*ret = false;
	if (!is_aggregate(type) && type->kind != TYPE_POINTER) {
		*ret = !typing_refers_to_heap(typing, range);
		return NULL;
	}
	if ((count < 2 && type->kind != TYPE_POINTER) || ends_before_last(typing, type) ||
	    typing_text_at_end(typing, range.start, number) > type->size)
		return NULL;
	if (!allocation_fits(typing->input.index, range, count * type->size, false))
		return NULL;
	if (is_aggregate(type)) {
		bool is_linked;

		TRY(refers_to_itself(typing, number, &is_linked));
		if (is_linked)
			TRY(refers_within(typing,
					  (struct memory_range){ range.start,
								 range.start + count * type->size },
					  number, ret));
		if (is_linked && !*ret)
			return NULL;
	}
	TRY(is_without_pointers(
		typing, (struct memory_range){ range.start, range.start + count * type->size },
		number, ret));
	if (*ret)
		return NULL;
	between = count > SAMPLE ? count / SAMPLE : 1;
	*ret = true;
	for (uint64_t i = 0; !error && *ret && i < count; i += between) {
		struct conformity conformity;

		error = typing_conforms(typing, range.start + i * type->size, number, &conformity);
		*ret = !conformity.is_violated;
	}
	if (!error && !*ret && count >= 2 * FIRST_ELEMENTS)
		error = begins_as_array(typing, range.start, number, ret);
	return error;
}

/* The last member if it may be of any size: where it begins, and the type of its elements. */
bool type_find_tail(const struct typing *typing, type_number number, uint64_t *ret_offset,
		    type_number *ret_element)
{
	*ret_offset = 0;
	for (size_t i = 0; i < MOST_TAILS; i++) {
		const struct data_type *type = typing_type(typing, number), *last;
		const struct type_member *member;

		if (type->kind != TYPE_STRUCTURE || type->member_count == 0)
			return false;
		member = &type_members(typing->table, type)[type->member_count - 1];
		last = typing_type(typing, member->type);
		*ret_offset += member->offset;
		*ret_element = last->target;
		if (last->kind == TYPE_ARRAY)
			return last->count <= 1;
		if (ends_before_last(typing, type)) {
			*ret_element = member->type;
			return true;
		}
		number = member->type;
	}
	return false;
}

struct error *typing_conforms_behind(struct typing *typing, struct memory_range range,
				     type_number number, struct conformity *ret)
{
	const struct data_type *element;
	type_number element_number;
	uint64_t offset;

	*ret = (struct conformity){ .is_violated = false };
	if (!type_find_tail(typing, number, &offset, &element_number) ||
	    offset >= range.end - range.start)
		return NULL;
	ret->has_tail = true;
	range.start += offset;
	element = typing_type(typing, element_number);
	if (element->kind == TYPE_CHARACTER || element->kind == TYPE_NUMBER) {
		ret->confirmed = element->kind == TYPE_CHARACTER && is_text(typing, range.start);
		range.start += -range.start % typing->word;
		ret->is_violated = !ret->confirmed && range.start < range.end &&
				   typing_refers_to_heap(typing, range);
		return NULL;
	}
	/* It may have room for more than there is; but the first is there. */
	for (uint64_t i = 0;
	     i < MOST_OF_TAIL && element->size && element->size <= range.end - range.start;
	     i++, range.start += element->size) {
		struct conformity one;

		TRY(typing_conforms(typing, range.start, element_number, &one));
		ret->is_violated |= i == 0 && one.is_violated;
		ret->confirmed += one.confirmed;
		ret->vague += one.vague;
		ret->known += one.known;
		ret->doubtful += one.is_violated;
	}
	return NULL;
}

bool typing_points_behind(struct typing *typing, struct memory_range range, type_number number)
{
	uint64_t size = typing_type(typing, number)->size, word;

	for (uint64_t i = 0; i + typing->word <= size && i < MOST_COMPARED; i += typing->word)
		if (slot_at(&typing->slots, number, i) &&
		    read_word(typing, range.start + i, &word) && word >= range.start + size &&
		    word < range.end)
			return true;
	return false;
}

enum type_fit typing_fit_of_one(struct typing *typing, struct memory_range range,
				type_number number)
{
	const struct data_type *type = typing_type(typing, number);
	type_number element;
	uint64_t offset;

	if (!is_aggregate(type) || type->size == 0 || type->size > range.end - range.start)
		return FIT_NONE;
	if (allocation_fits(typing->input.index, range, type->size, true))
		return FIT_ONE;
	if (type_find_tail(typing, number, &offset, &element))
		return FIT_TAIL;
	return typing_points_behind(typing, range, number) ? FIT_PREFIX : FIT_NONE;
}

struct error *typing_find_fit(struct typing *typing, struct memory_range range, type_number number,
			      enum type_fit *ret)
{
	const struct data_type *type = typing_type(typing, number);
	struct error *error = NULL;
	bool is_array = false;
	type_number element;
	uint64_t offset;

	*ret = FIT_NONE;
	if (type->size == 0 || type->size > range.end - range.start)
		return NULL;
	if (is_aggregate(type) && allocation_fits(typing->input.index, range, type->size, true)) {
		*ret = FIT_ONE;
		/* malloc does not split off what is too small, but two may be meant as well. */
		if (!is_just_as_large(typing, range, type->size) && type->size >= 2 * typing->word)
			error = fits_as_array(typing, range, number, &is_array);
		if (is_array)
			*ret = FIT_ARRAY;
	} else if (type_find_tail(typing, number, &offset, &element)) {
		*ret = FIT_TAIL;
	} else {
		struct conformity conformity = { .is_violated = true };

		error = fits_as_array(typing, range, number, &is_array);
		if (!error && !is_array && is_aggregate(type))
			error = typing_conforms(typing, range.start, number, &conformity);
		*ret = is_array ? FIT_ARRAY : conformity.is_violated ? FIT_NONE : FIT_PREFIX;
	}
	return error;
}

struct error *typing_begins_as_array(struct typing *typing, struct memory_range range,
				     type_number number, bool *ret)
{
	const uint64_t size = typing_type(typing, number)->size;

	*ret = true;
	for (uint64_t i = 0; *ret && i < SAMPLE && size <= range.end - range.start - i * size;
	     i++) {
		struct conformity conformity;

		TRY(typing_conforms(typing, range.start + i * size, number, &conformity));
		*ret = !conformity.is_violated;
	}
	return NULL;
}
