#include "analyzer/classify/cxx.h"

#include "analyzer/classify/literal.h"

#include <elf.h>

/* True if the last part of the path begins with name. */
static bool is_called(const char *path, const char *name)
{
	const char *last = strrchr(path, '/');

	last = last ? last + 1 : path;
	return strncmp(last, name, strlen(name)) == 0;
}

/* Find the libraries that are loaded, by their names. */
static unsigned int find_loaded(const struct program *program)
{
	unsigned int found = 0;

	for (size_t i = 0; i < program->module_count; i++) {
		const char *path = program->modules[i].path;

		if (is_called(path, "libstdc++"))
			found |= LIBSTDCXX;
		else if (is_called(path, "libc++."))
			found |= LIBCXX;
	}
	return found;
}

/*
 * Find the C++ libraries that are loaded, or linked into the program. The latter are recognised by
 * names of types: those of all type_infos, and the namespace of libc++. If the dump cannot prove
 * that there is none, it may be either.
 */
static unsigned int find_libraries(const struct image *image, const struct program *program)
{
	static const char type_info[] = "N10__cxxabiv117__class_type_infoE";
	static const char libcxx[] = "NSt3__1";
	const struct module *main = program_main_module(program);
	unsigned int found = find_loaded(program);

	if (found)
		return found;
	if (!main || !program_knows_modules(program) || !module_has_constants(image, main))
		return LIBSTDCXX | LIBCXX;
	if (!module_holds(image, main, type_info, strlen(type_info)))
		return 0;
	return module_holds(image, main, libcxx, strlen(libcxx)) ? LIBCXX : LIBSTDCXX;
}

unsigned int cxx_find(const struct image *image, const struct program *program)
{
	unsigned int found = find_libraries(image, program);

	/* libc++ with words of 4 bytes is not supported. */
	return image_word_size(image) == sizeof(uint32_t) ? found & ~(unsigned int)LIBCXX : found;
}

/*
 * libstdc++, <bits/basic_string.h>: up to 15 bytes are kept in the string itself, where the
 * capacity stands otherwise.
 *
 *	| pointer | length | capacity | unused |
 *	| pointer | length | text ...          |
 */
enum { INLINE_CAPACITY = 15, INLINE_SIZE = INLINE_CAPACITY + 1, WORDS_BEFORE_TEXT = 2 };

static uint64_t string_size(const struct reader *reader)
{
	return WORDS_BEFORE_TEXT * (uint64_t)reader->word + INLINE_SIZE;
}

/* True if there is a 0 at address, as behind a string's text. */
static bool ends_at(struct reader *reader, uint64_t address)
{
	uint64_t size;
	const uint8_t *end = reader_bytes(reader, address, &size);

	return end && *end == 0;
}

static bool read_short(struct reader *reader, uint64_t address, const uint64_t *words,
		       struct cxx_string *ret)
{
	if (words[0] != address + WORDS_BEFORE_TEXT * (uint64_t)reader->word ||
	    words[1] > INLINE_CAPACITY || !ends_at(reader, words[0] + words[1]))
		return false;
	*ret = (struct cxx_string){
		.kind = STRING_SHORT,
		.size = string_size(reader),
		.text = words[0],
		.length = words[1],
		.capacity = INLINE_CAPACITY,
		.body = NO_ALLOCATION,
	};
	return true;
}

bool cxx_is_libcxx_body(struct reader *reader, struct memory_range body, uint64_t length,
			uint64_t capacity)
{
	return length <= capacity && capacity < range_size(body) &&
	       reader_fits(reader, body, capacity + 1) && ends_at(reader, body.start + length);
}

/* True if all eight bytes are ASCII, and no control character except for DEL. */
static bool is_plain(const uint8_t *bytes)
{
	const uint64_t each = 0x0101010101010101, high = 0x80 * each;
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	/* The subtraction borrows for bytes below a blank; the mask finds those from 0x80 on. */
	return !((word | (word - ' ' * each)) & high);
}

/* True if most of the first characters are text; a few may be anything. */
static bool is_text(struct reader *reader, uint64_t start, uint64_t length)
{
	enum { LOOKED_AT = 64, OTHERS = 8 };
	uint64_t size = 0, others = 0;
	const uint8_t *bytes = reader_bytes(reader, start, &size);
	size_t i = 0;

	if (!bytes)
		return false;
	size = MIN(size, length);
	size = MIN(size, LOOKED_AT);
	while (i + sizeof(uint64_t) <= size && is_plain(bytes + i))
		i += sizeof(uint64_t);
	while (i < size) {
		size_t step = literal_character(bytes + i, size - i);

		others += step == 0;
		i += step ? step : 1;
	}
	return others * OTHERS <= size;
}

/* True for the capacities of a string that grew by single characters: 30, 60, 120 ... */
static bool is_grown(uint64_t capacity)
{
	while (capacity > INLINE_CAPACITY && capacity % 2 == 0)
		capacity /= 2;
	return capacity == INLINE_CAPACITY;
}

/* struct v8::internal::BackingStore: | buffer | length | capacity, twice | */
static bool is_buffer_of_v8(struct reader *reader, uint64_t address, const uint64_t *words)
{
	struct memory_range range;

	return words[2] == words[1] && reader_start(reader, address, &range) != NO_ALLOCATION;
}

bool cxx_is_body(struct reader *reader, uint64_t address, struct memory_range body,
		 const uint64_t *words)
{
	uint64_t length = words[0], capacity = words[1];

	return capacity > INLINE_CAPACITY && cxx_is_libcxx_body(reader, body, length, capacity) &&
	       (is_grown(capacity) || is_text(reader, body.start, length)) &&
	       !is_buffer_of_v8(reader, address, words);
}

static bool read_long(struct reader *reader, uint64_t address, const uint64_t *words,
		      struct cxx_string *ret)
{
	struct memory_range range;

	*ret = (struct cxx_string){
		.kind = STRING_LONG,
		.size = string_size(reader),
		.text = words[0],
		.length = words[1],
		.capacity = words[2],
	};
	ret->body = reader_start(reader, ret->text, &range);
	return ret->body != NO_ALLOCATION && cxx_is_body(reader, address, range, words + 1);
}

/*
 * libc++, <string>: the lowest bit of the size of the buffer says that there is one. The size is a
 * multiple of 8, but for text just too long to be kept inside, whose buffer has 26 bytes from LLVM
 * 18 on.
 *
 *	| size, 1 | length | pointer |
 */
bool cxx_is_libcxx_size(uint64_t word)
{
	enum { INLINE = 22, LEAST = 26 + 1 };

	return word == LEAST || (word % 8 == 1 && word > INLINE);
}

static bool read_libcxx(struct reader *reader, const uint64_t *words, struct cxx_string *ret)
{
	struct memory_range range;

	*ret = (struct cxx_string){
		.kind = STRING_LONG,
		.size = 24,
		.text = words[2],
		.length = words[1],
		.capacity = words[0] - 2,
	};
	if (!cxx_is_libcxx_size(words[0]))
		return false;
	ret->body = reader_start(reader, ret->text, &range);
	return ret->body != NO_ALLOCATION &&
	       cxx_is_libcxx_body(reader, range, ret->length, ret->capacity);
}

/*
 * libstdc++ with _GLIBCXX_USE_CXX11_ABI=0, <bits/cow_string.h>: a string is a pointer to its text,
 * in front of which stands
 *
 *	| length | capacity | references less 1, or -1 | text ... 0
 *
 * A body without text is left out, though clear() may make one: MariaDB's my_malloc() puts the same
 * words, with the size for the capacity, in front of each block, and many begin with a zero.
 */
bool cxx_read_shared(struct reader *reader, struct memory_range body, uint64_t *ret_length,
		     uint64_t *ret_capacity)
{
	enum { MOST_REFERENCES = 1 << 24 };
	const uint64_t text = cxx_shared_text(reader);
	uint64_t words[3], length, capacity;
	int32_t references;

	if (range_size(body) <= text || !reader_words(reader, body.start, 3, words))
		return false;
	length = words[0];
	capacity = words[1];
	references = (int32_t)words[2];
	if (length == 0 || length > capacity || capacity >= range_size(body) - text ||
	    !reader_fits(reader, body, capacity + text + 1) || references < -1 ||
	    references > MOST_REFERENCES || !ends_at(reader, body.start + text + length))
		return false;
	*ret_length = length;
	*ret_capacity = capacity;
	return true;
}

static bool read_shared(struct reader *reader, uint64_t text, struct cxx_string *ret)
{
	struct memory_range range;

	*ret = (struct cxx_string){
		.kind = STRING_SHARED,
		.size = reader->word,
		.text = text,
		.body = reader_start(reader, text - cxx_shared_text(reader), &range),
	};
	return ret->body != NO_ALLOCATION &&
	       cxx_read_shared(reader, range, &ret->length, &ret->capacity);
}

bool cxx_string_read(struct reader *reader, uint64_t address, const uint64_t *words, size_t count,
		     struct cxx_string *ret)
{
	const size_t needed = string_size(reader) / reader->word;

	if (reader->cxx & LIBSTDCXX) {
		if (count >= needed && read_short(reader, address, words, ret))
			return true;
		if (heap_bounds_hold(&reader->bounds, words[0])) {
			if (count >= needed && read_long(reader, address, words, ret))
				return true;
			return read_shared(reader, words[0], ret);
		}
	}
	return (reader->cxx & LIBCXX) && count >= 3 && read_libcxx(reader, words, ret);
}
