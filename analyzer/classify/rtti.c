#include "analyzer/classify/rtti.h"

#include <string.h>

enum type_kind { TYPE_NONE, TYPE_CLASS, TYPE_SINGLE, TYPE_MULTIPLE };

enum {
	/* Names of instantiations of templates get long. */
	LONGEST_MANGLED = 1 << 14,
	/* A subobject lies no further inside of its object. */
	LARGEST_OBJECT = 1 << 30,
	MOST_BASES = 256,      /* of one class */
	MOST_ANCESTORS = 4096, /* visited for a class */
	DEEPEST_BASE = 64,
	/* Budget for reading a type, without its name. */
	TYPE_COST = 64,
};

/* The offset of a word. */
static uint64_t word_at(const struct image *image, unsigned int number)
{
	return number * (uint64_t)image_word_size(image);
}

static bool read_word(const struct image *image, uint64_t address, uint64_t *ret)
{
	return address % image_word_size(image) == 0 && image_read_word(image, address, ret);
}

/* The type_info of the class whose vtable's address point that is. */
static bool read_type(const struct image *image, uint64_t vtable, uint64_t *ret)
{
	return vtable >= word_at(image, 2) && read_word(image, vtable - word_at(image, 1), ret);
}

static bool holds(const struct image *image, uint64_t address, uint64_t wanted)
{
	uint64_t word;

	return read_word(image, address, &word) && word == wanted;
}

static bool is_letter(char letter)
{
	unsigned char byte = (unsigned char)letter;

	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
	       (byte >= 'A' && byte <= 'Z') || strchr("_.$", byte) || byte >= 0x80;
}

/*
 * Read the mangled name of a class, without the '*' in front of those whose address alone counts.
 * Sets *ret_known to whether it can be read at all.
 */
static char *read_name(const struct image *image, uint64_t type, struct budget *budget,
		       bool *ret_known)
{
	uint64_t address, available;
	const uint8_t *bytes;
	const char *name;
	size_t length;

	*ret_known = false;
	if (!read_word(image, type + word_at(image, 1), &address))
		return NULL;
	bytes = image_bytes(image, address, &available);
	if (!bytes)
		return NULL;
	*ret_known = true;
	name = (const char *)bytes;
	if (*name == '*') {
		name++;
		available--;
	}
	length = available ? strnlen(name, MIN(available, LONGEST_MANGLED)) : 0;
	if (!budget_take_many(budget, length) || length == 0 || length == available ||
	    length == LONGEST_MANGLED || !strchr("0123456789NSZ", *name))
		return NULL;
	for (size_t i = 0; i < length; i++)
		if (!is_letter(name[i]))
			return NULL;
	return strndup(name, length);
}

/* True if the type has that name, or if its name cannot be read. */
static bool may_be_named(const struct image *image, uint64_t type, const char *wanted,
			 struct budget *budget)
{
	bool known;
	_cleanup_(free) char *name = read_name(image, type, budget, &known);

	return !known || (name && strcmp(name, wanted) == 0);
}

/* The three kinds' own type_infos, or rather two: the third is the rest. */
struct kinds {
	uint64_t single_vptr;
	uint64_t single, class;
};

/*
 * Find them from any of the three: the type_info of "single" has the vptr that it stands for, and
 * that of "class" is its base.
 */
static bool find_kinds(const struct image *image, uint64_t kind, struct kinds *ret)
{
	return read_word(image, kind, &ret->single_vptr) &&
	       read_type(image, ret->single_vptr, &ret->single) &&
	       holds(image, ret->single, ret->single_vptr) &&
	       read_word(image, ret->single + word_at(image, 2), &ret->class) &&
	       holds(image, ret->class, ret->single_vptr);
}

/* The kind of class that a type_info tells of. */
static enum type_kind find_kind(const struct image *image, uint64_t type, struct budget *budget)
{
	static const char *const names[] = {
		[TYPE_CLASS] = "N10__cxxabiv117__class_type_infoE",
		[TYPE_SINGLE] = "N10__cxxabiv120__si_class_type_infoE",
		[TYPE_MULTIPLE] = "N10__cxxabiv121__vmi_class_type_infoE",
	};
	enum type_kind found = TYPE_NONE;
	struct kinds kinds;
	uint64_t vptr, kind;

	if (!budget_take_many(budget, TYPE_COST) || !read_word(image, type, &vptr) ||
	    !read_type(image, vptr, &kind) || !find_kinds(image, kind, &kinds))
		return TYPE_NONE;
	if (kind == kinds.single)
		found = TYPE_SINGLE;
	else if (kind == kinds.class)
		found = TYPE_CLASS;
	else if (holds(image, kind + word_at(image, 2), kinds.class))
		found = TYPE_MULTIPLE;
	return found && may_be_named(image, kind, names[found], budget) ? found : TYPE_NONE;
}

bool rtti_is_class(const struct image *image, uint64_t type, struct budget *budget)
{
	bool known;

	if (find_kind(image, type, budget) == TYPE_NONE)
		return false;
	_cleanup_(free) char *name = read_name(image, type, budget, &known);

	return name || !known;
}

uint64_t rtti_type(const struct image *image, uint64_t vtable, struct budget *budget)
{
	uint64_t type, word;
	int64_t offset_to_top;

	if (!read_type(image, vtable, &type) || type == 0 ||
	    !read_word(image, vtable - word_at(image, 2), &word))
		return 0;
	/* The offset is negative in a vtable for a base inside of the object. */
	offset_to_top = image_word_size(image) == sizeof(int32_t) ? (int32_t)word : (int64_t)word;
	if (offset_to_top > 0 || offset_to_top < -LARGEST_OBJECT ||
	    offset_to_top % (int)image_word_size(image) != 0)
		return 0;
	return rtti_is_class(image, type, budget) ? type : 0;
}

char *rtti_name(const struct image *image, uint64_t type, struct budget *budget)
{
	bool known;

	return read_name(image, type, budget, &known);
}

/* The address of the type's bases, of which there are so many, each of two words. */
static uint64_t find_bases(const struct image *image, uint64_t type, struct budget *budget,
			   uint64_t *ret_address)
{
	uint32_t count;

	switch (find_kind(image, type, budget)) {
	case TYPE_SINGLE:
		*ret_address = type + word_at(image, 2);
		return 1;
	case TYPE_MULTIPLE:
		/* Flags and count are 32 bits each. */
		if (!image_read_u32(image, type + word_at(image, 2) + sizeof(count), &count))
			return 0;
		*ret_address = type + word_at(image, 2) + 2 * sizeof(count);
		return count < MOST_BASES ? count : MOST_BASES;
	default:
		return 0;
	}
}

struct search {
	const struct image *image;
	bool (*visit)(void *data, uint64_t base);
	void *data;
	struct budget left; /* of visits */
	struct budget *budget;
};

static bool search_bases(struct search *search, uint64_t type, unsigned int depth)
{
	/* A base and what kind of base it is. */
	const uint64_t step = word_at(search->image, 2);
	uint64_t address = 0, base;
	uint64_t count = find_bases(search->image, type, search->budget, &address);

	for (uint64_t i = 0;
	     i < count && !budget_is_spent(search->budget) && budget_take(&search->left); i++) {
		if (!read_word(search->image, address + i * step, &base))
			continue;
		if (search->visit(search->data, base) ||
		    (depth < DEEPEST_BASE && search_bases(search, base, depth + 1)))
			return true;
	}
	return false;
}

bool rtti_find_base(const struct image *image, uint64_t type,
		    bool (*visit)(void *data, uint64_t base), void *data, struct budget *budget)
{
	struct search search = { image, visit, data, { MOST_ANCESTORS }, budget };

	return search_bases(&search, type, 0);
}
