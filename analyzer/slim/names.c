/*
 * Names that only the dump has, replaced by hashes that nobody can compute without the file's key,
 * which is drawn at random and not kept.
 *
 * A name becomes another of the same length and shape, word by word: letters become letters of the
 * same case, digits digits, and all else stays. So what asks for the form of a name finds it, and
 * equal words stay equal, in any case. Texts in binaries are no secret, and stay.
 */
#include "analyzer/base/address_map.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/slim/parts.h"

#include <string.h>
#include <sys/random.h>

enum {
	LONGEST_KNOWN = 1 << 10, /* longer texts of binaries are no names */
	LONGEST_WORD = 1 << 10,	 /* what follows is another word */
	LONGEST_NAME = 1 << 16,	 /* what follows is left out */
};

static uint64_t rotate(uint64_t word, unsigned int by)
{
	return word << by | word >> (64 - by);
}

static void mix(uint64_t state[static 4], unsigned int rounds)
{
	while (rounds-- > 0) {
		state[0] += state[1];
		state[2] += state[3];
		state[1] = rotate(state[1], 13) ^ state[0];
		state[3] = rotate(state[3], 16) ^ state[2];
		state[0] = rotate(state[0], 32);
		state[2] += state[1];
		state[0] += state[3];
		state[1] = rotate(state[1], 17) ^ state[2];
		state[3] = rotate(state[3], 21) ^ state[0];
		state[2] = rotate(state[2], 32);
	}
}

static void take_word(uint64_t state[static 4], uint64_t word)
{
	state[3] ^= word;
	mix(state, 2);
	state[0] ^= word;
}

/* SipHash-2-4 of the text in lower case (Aumasson and Bernstein, 2012), with a number before it. */
static uint64_t hash_text(const uint64_t key[static 2], const uint8_t *text, size_t size,
			  uint64_t number)
{
	uint64_t state[4] = { key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			      key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573 };
	uint64_t word = 0;

	take_word(state, number);
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i];

		word |= (uint64_t)byte << i % 8 * 8;
		if (i % 8 == 7) {
			take_word(state, word);
			word = 0;
		}
	}
	take_word(state, word | (uint64_t)(size + sizeof(number)) << 56);
	state[2] ^= 0xff;
	mix(state, 4);
	return state[0] ^ state[1] ^ state[2] ^ state[3];
}

static bool is_between(uint8_t byte, char first, char last)
{
	return byte >= (uint8_t)first && byte <= (uint8_t)last;
}

static bool is_of_word(uint8_t byte)
{
	return is_between(byte, 'a', 'z') || is_between(byte, 'A', 'Z') ||
	       is_between(byte, '0', '9') || byte == '_' || byte >= 0x80;
}

static uint8_t replace(uint8_t byte, uint8_t by)
{
	if (byte == '_')
		return byte;
	if (is_between(byte, '0', '9'))
		return (uint8_t)('0' + by % 10);
	return (uint8_t)((is_between(byte, 'A', 'Z') ? 'A' : 'a') + by % 26);
}

/* The size of the word that begins at the text; the zero bytes within wide characters are of it. */
static size_t word_size(const uint8_t *text, size_t size)
{
	enum { WIDEST = 4 };
	size_t end = 0, zeros = 0;

	for (size_t i = 0; i < MIN(size, LONGEST_WORD) && zeros < WIDEST; i++) {
		if (text[i] && !is_of_word(text[i]))
			break;
		zeros = text[i] ? 0 : zeros + 1;
		end = text[i] ? i + 1 : end;
	}
	return end;
}

/* Memory that is redacted: of a name, perhaps only a part is in it. */
struct part {
	uint64_t address, size;
	uint8_t *bytes;
};

static void replace_word(const struct slim_rules *rules, uint64_t place, const uint8_t *text,
			 size_t size, const struct part *part)
{
	for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
		uint64_t hash = hash_text(rules->name_key, text, size, i);

		for (size_t j = i; j < MIN(size, i + sizeof(hash)); j++, hash >>= 8)
			if (text[j] && place + j - part->address < part->size)
				part->bytes[place + j - part->address] =
					replace(text[j], (uint8_t)hash);
	}
}

static void replace_name(const struct slim_rules *rules, struct memory_range name,
			 const struct part *part)
{
	uint64_t known = 0, size = name.end - name.start;
	const uint8_t *text = image_bytes(rules->image, name.start, &known);

	for (uint64_t i = 0; text && i < MIN(size, known); i++) {
		size_t word = word_size(text + i, MIN(size, known) - i);

		if (!word) {
			if (name.start + i - part->address < part->size)
				part->bytes[name.start + i - part->address] = text[i];
			continue;
		}
		replace_word(rules, name.start + i, text + i, word, part);
		i += word - 1;
	}
}

void slim_names_replace(const struct slim_rules *rules, uint64_t address, uint64_t size,
			uint8_t *ret)
{
	const struct range_list *names = &rules->names;
	const struct part part = { address, size, ret };
	size_t i = LIST_ABOVE(names->items, names->count, end, address);

	for (; i < names->count && names->items[i].start < address + size; i++)
		replace_name(rules, names->items[i], &part);
}

/* The texts of names, by hash, and whether a binary has each. */
struct known {
	const struct slim_rules *rules;
	struct address_map *texts;
};

/* The name's hash; false: it is not in the dump. */
static bool hash_name(const struct slim_rules *rules, struct memory_range name, uint64_t *ret)
{
	uint64_t known = 0, size = name.end - name.start;
	const uint8_t *text = image_bytes(rules->image, name.start, &known);

	if (!text || known < size)
		return false;
	while (size > 0 && text[size - 1] == '\0')
		size--;
	*ret = hash_text(rules->name_key, text, size, UINT64_MAX);
	return size > 0;
}

/* Note the texts of a binary, of so many bytes, that are names. */
static void look_through(struct known *known, const uint8_t *bytes, uint64_t size)
{
	const uint8_t *end = bytes + size;

	while (bytes < end) {
		const uint8_t *stop = memchr(bytes, 0, (size_t)(end - bytes));
		size_t length = (size_t)((stop ? stop : end) - bytes);

		if (stop && length > 0 && length <= LONGEST_KNOWN) {
			uint64_t hash =
				hash_text(known->rules->name_key, bytes, length, UINT64_MAX);
			struct address_number *text =
				table_find(known->texts, hash, item, item->address == hash);

			if (text)
				text->number = true;
		}
		bytes += length + 1;
	}
}

/* Look through the parts of modules that have no code and are as in their files. */
static void find_known(struct known *known)
{
	const struct image *image = known->rules->image;

	list_for_each(region, image->regions, image->region_count) {
		uint64_t start = region->start, at = start;

		if (!region->bytes || (region->rights & (RIGHT_WRITE | RIGHT_EXECUTE)))
			continue;
		for (; at < region->end; at += PAGE) {
			if (slim_is_binary(known->rules, region, at))
				continue;
			look_through(known, region->bytes + (start - region->start), at - start);
			start = at + PAGE;
		}
		if (start < region->end)
			look_through(known, region->bytes + (start - region->start),
				     region->end - start);
	}
}

/* Make the names that a binary has structure, which stays. */
static struct error *sort_names(struct slim_rules *rules, const struct address_map *texts)
{
	struct range_list *names = &rules->names;
	size_t kept = 0;

	array_for_each(name, names) {
		uint64_t hash;

		if (hash_name(rules, *name, &hash) && address_map_find(texts, hash) == true)
			TRY(array_append(&rules->structure, *name));
		else
			names->items[kept++] = *name;
	}
	names->count = kept;
	return NULL;
}

DEFINE_COMPARE(compare_names, struct memory_range, ASCENDING(start))

/*
 * Put them in order, apart; those of one text that were told with and without its end become one. A
 * name is replaced anew for each block that it is in, so none may be long.
 */
static void join_names(struct range_list *names)
{
	size_t kept = 0;

	array_sort(names, compare_names);
	array_for_each(name, names) {
		struct memory_range *last = kept ? &names->items[kept - 1] : NULL;
		uint64_t end = MIN(name->end, name->start + LONGEST_NAME);

		if (!last || name->start >= last->end)
			names->items[kept++] = (struct memory_range){ name->start, end };
		else if (end > last->end)
			last->end = MIN(end, last->start + LONGEST_NAME);
	}
	names->count = kept;
}

struct error *slim_names_prepare(struct slim_rules *rules)
{
	_cleanup_(table_release) struct address_map texts = { .memory.account =
								      rules->names.memory.account };

	if (rules->names.count == 0)
		return NULL;
	if (getrandom(rules->name_key, sizeof(rules->name_key), 0) != sizeof(rules->name_key))
		return error_system("there is no key for names");
	join_names(&rules->names);
	array_for_each(name, &rules->names) {
		uint64_t hash;

		if (hash_name(rules, *name, &hash) && address_map_find(&texts, hash) == NOT_IN_MAP)
			TRY(address_map_add(&texts, hash, false));
	}
	find_known(&(struct known){ rules, &texts });
	return sort_names(rules, &texts);
}
