#include "analyzer/classify/classifier.h"
#include "analyzer/classify/type_names.h"

/*
 * | vtable | counts | ...
 *
 * The type's name decides: the word before the vtable points at the type_info, whose second word
 * points at the name. libstdc++ counts in 32 bits each, the weak references one too
 * many; libc++ in 64 bits, less one.
 */
enum { MOST_REFERENCES = 1 << 30 };

static bool is_named(struct reader *reader, uint64_t vtable)
{
	char name[LONGEST_CONTROL_BLOCK + 1] = "";
	uint64_t type, address;

	if (!reader_in_module(reader, vtable) ||
	    !reader_word(reader, vtable - reader->word, &type) ||
	    !reader_word(reader, type + reader->word, &address) ||
	    !image_read(reader->image, address, name, LONGEST_CONTROL_BLOCK))
		return false;
	return control_block_object(name) != NO_CONTROL_BLOCK;
}

static bool is_control_vtable(struct reader *reader, uint64_t vtable)
{
	struct verdict *verdict = &reader->verdicts[vtable / 8 % VERDICTS];

	if (verdict->vtable != vtable)
		*verdict = (struct verdict){ vtable, is_named(reader, vtable) };
	return verdict->right;
}

static bool is_count(int64_t count)
{
	return count >= -1 && count < MOST_REFERENCES;
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	const unsigned int word = reader->word;
	uint64_t vtable;
	int32_t counts[2];
	int64_t long_count;

	if (subject->size < word + sizeof(counts))
		return;
	vtable = load_word(subject->bytes, word);
	memcpy(counts, subject->bytes + word, sizeof(counts));
	memcpy(&long_count, subject->bytes + word, sizeof(long_count));
	if (vtable % word == 0 && vtable > word &&
	    vtable - reader->modules.start < range_size(reader->modules) &&
	    (is_count(long_count) || (is_count(counts[0]) && is_count(counts[1]))) &&
	    is_control_vtable(reader, vtable))
		reader_claim(reader, subject->id, 0);
}

CLASSIFIER(shared_ptr_control_block, "SharedPtrControlBlock",
	   "the counts of std::shared_ptr, and often what it points at",
	   "the control block of a std::shared_ptr", .strength = STRENGTH_MARKED, .narrow = true,
	   .for_cxx = true, .holds_object = true, .inspect = inspect, .numbers = { .own = 1 << 1 });
