#include "analyzer/classify/meta_object.h"

#include "analyzer/base/macros.h"
#include "analyzer/image/arch.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/*
 * The first virtual function of a QObject returns its QMetaObject, whose address is in the code as
 * a distance, or where one leads. kernel/qobjectdefs.h of Qt 5 and 6, 64 bits:
 *
 *	QMetaObject | of the class above | strings | numbers | function | ...
 *	numbers     | revision, from 9 on of Qt 6 | number of the string that is the name | ...
 *	strings     | -1, length | 0 | distance |...    of Qt 5, distances from where they stand
 *	            | distance, length | ...            of Qt 6, distances from the first
 */
enum {
	WORD = 8,
	CODE = 64, /* bytes that are searched */
	STRINGS = 1,
	NUMBERS,
	META_WORDS,
	FIRST_REVISION = 4,
	QT_6 = 9,
	LAST_REVISION = 20,
	MOST_STRINGS = 1024,
	LONGEST = 200,
};

struct qt5_string {
	int32_t references, length;
	uint32_t room, unused;
	int64_t distance;
};

struct qt6_string {
	uint32_t distance, length;
};

/* The text if it is the name of a class, such as "shop::Order", and ends there. */
static char *read_name(const struct image *image, uint64_t address, uint64_t length)
{
	char name[LONGEST + 1];

	if (length == 0 || length > LONGEST || !image_read(image, address, name, length + 1) ||
	    name[length] != '\0' || isdigit((unsigned char)name[0]))
		return NULL;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != ':')
			return NULL;
	return strdup(name);
}

static char *read_class(const struct image *image, uint64_t meta)
{
	uint64_t words[META_WORDS], place;
	uint32_t numbers[2];
	struct qt5_string old;
	struct qt6_string new;

	if (meta % WORD || !image_read(image, meta, words, sizeof(words)) ||
	    !image_read(image, words[NUMBERS], numbers, sizeof(numbers)) ||
	    numbers[0] < FIRST_REVISION || numbers[0] > LAST_REVISION || numbers[1] >= MOST_STRINGS)
		return NULL;
	if (numbers[0] >= QT_6)
		return image_read(image, words[STRINGS] + numbers[1] * sizeof(new), &new,
				  sizeof(new))
			       ? read_name(image, words[STRINGS] + new.distance, new.length)
			       : NULL;
	place = words[STRINGS] + numbers[1] * sizeof(old);
	return image_read(image, place, &old, sizeof(old)) && old.references == -1
		       ? read_name(image, place + (uint64_t)old.distance, (uint64_t)old.length)
		       : NULL;
}

/* The name by an instruction that loads an address, or a word, so far behind it. */
static char *name_by_code(const struct image *image, uint64_t address, const uint8_t *code)
{
	enum { LONG = 0x48, LOAD_ADDRESS = 0x8d, LOAD = 0x8b, LENGTH = 7 };
	int32_t distance;
	uint64_t target;

	if (code[0] != LONG || (code[1] != LOAD_ADDRESS && code[1] != LOAD) ||
	    (code[2] & 0xc7) != 0x05)
		return NULL;
	memcpy(&distance, code + LENGTH - sizeof(distance), sizeof(distance));
	target = address + LENGTH + (uint64_t)(int64_t)distance;
	if (code[1] == LOAD && !image_read_u64(image, target, &target))
		return NULL;
	return read_class(image, target);
}

char *meta_object_name(const struct image *image, uint64_t vtable)
{
	enum { LONGEST_INSTRUCTION = 7 };
	uint8_t code[CODE];
	uint64_t function;
	char *name = NULL;

	if (!image->arch || image->arch->machine != EM_X86_64 ||
	    !image_read_u64(image, vtable, &function) ||
	    !image_read(image, function, code, sizeof(code)))
		return NULL;
	for (size_t i = 0; i + LONGEST_INSTRUCTION <= sizeof(code) && !name; i++)
		name = name_by_code(image, function + i, code + i);
	return name;
}
