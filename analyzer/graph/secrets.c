#include "analyzer/graph/secrets.h"

enum {
	RANDOM_BYTES = 16,
	/* Kinds of functions that exit() calls. */
	LEAST_KIND = 2,
	MOST_KIND = 4,
};

struct secrets secrets_of(const struct program *program)
{
	const struct image *image = program->image;
	struct secrets secrets = { program, image_auxiliary(image, AT_RANDOM, 0), 0, 0 };
	uint64_t words[2];

	if (!secrets.random || !image_read_words(image, secrets.random, words, 2))
		return (struct secrets){ .program = program };
	secrets.frame_guard = words[0] & ~UINT64_C(0xff);
	secrets.pointer_guard = words[1];
	return secrets;
}

/* What the word would be if it were encoded. */
static uint64_t decode(const struct secrets *secrets, uint64_t word)
{
	const unsigned int size = image_word_size(secrets->program->image), bits = 8 * size,
			   turn = 2 * size + 1;
	uint64_t turned = word >> turn | word << (bits - turn);

	if (size == sizeof(uint32_t))
		turned = (uint32_t)turned;
	return turned ^ secrets->pointer_guard;
}

static bool has_rights(const struct secrets *secrets, uint64_t address, unsigned int rights)
{
	const struct region *region = image_find(secrets->program->image, address);

	return region && (region->rights & rights) == rights;
}

/* The same of the word at that place. */
static bool decodes(const struct secrets *secrets, uint64_t place, unsigned int rights)
{
	uint64_t word;

	return image_read_word(secrets->program->image, place, &word) &&
	       has_rights(secrets, decode(secrets, word), rights);
}

static bool is_in_jump(const struct secrets *secrets, uint64_t decoded, uint64_t place)
{
	const unsigned int size = image_word_size(secrets->program->image);

	if (has_rights(secrets, decoded, RIGHT_WRITE))
		return decodes(secrets, place + size, RIGHT_EXECUTE);
	return has_rights(secrets, decoded, RIGHT_EXECUTE) &&
	       decodes(secrets, place - size, RIGHT_WRITE);
}

static bool is_called_at_exit(const struct secrets *secrets, uint64_t decoded, uint64_t place)
{
	const struct module *module = program_find_module(secrets->program, place);
	const struct image *image = secrets->program->image;
	uint64_t kind;

	return module && module_is_libc(module) &&
	       image_read_word(image, place - image_word_size(image), &kind) &&
	       kind >= LEAST_KIND && kind <= MOST_KIND &&
	       has_rights(secrets, decoded, RIGHT_EXECUTE);
}

bool is_secret(const struct secrets *secrets, uint64_t word, uint64_t place)
{
	uint64_t decoded;

	if (!secrets->random)
		return false;
	if (word == secrets->frame_guard || word == secrets->pointer_guard ||
	    place + image_word_size(secrets->program->image) - 1 - secrets->random <
		    RANDOM_BYTES + image_word_size(secrets->program->image) - 1)
		return true;
	decoded = decode(secrets, word);
	return is_in_jump(secrets, decoded, place) || is_called_at_exit(secrets, decoded, place);
}
