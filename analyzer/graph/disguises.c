#include "analyzer/graph/disguises.h"

#include "analyzer/graph/xor_links.h"
#include "analyzer/heap/pass.h"
#include "analyzer/image/view.h"

#include <string.h>

enum {
	WORD = 8,
	PIECE = 1 << 16, /* bytes that are decoded in each way at once */
	LARGE = 1 << 20, /* what may have holes worth to be skipped */
};

struct finder {
	const struct disguises_input *input;
	struct disguises *result;
	struct bitmap wanted;  /* and not found yet */
	uint64_t first, span;  /* of their addresses */
	struct memory pending; /* allocation_id: reached, to be looked at */
	size_t pending_count;
	struct view view; /* for checks */
	struct error *error;
};

struct decoding {
	const char *name;
	bool is_end; /* the address is that of the last byte, not the first */
	/* Look at each word of the bytes, which stand at place. */
	void (*scan)(struct finder *finder, const uint8_t *bytes, size_t size,
		     uint64_t place);
	/* Whether what is around the word at place says so, too. */
	bool (*check)(struct finder *finder, uint64_t place, uint64_t address);
};

static const struct decoding decodings[DISGUISES];

static struct error *push(struct finder *finder, allocation_id id)
{
	struct error *error =
		memory_reserve(&finder->pending, (finder->pending_count + 1) *
							 sizeof(allocation_id));

	if (error)
		return error;
	bitmap_clear(&finder->wanted, id);
	bitmap_set(&finder->result->reached, id);
	((allocation_id *)finder->pending.bytes)[finder->pending_count++] = id;
	return NULL;
}

static struct error *keep(struct finder *finder, struct disguised disguised)
{
	struct disguises *result = finder->result;
	struct error *error = memory_reserve(
		&result->list, (result->count + 1) * sizeof(disguised));

	if (error)
		return error;
	((struct disguised *)result->list.bytes)[result->count++] = disguised;
	return push(finder, disguised.target);
}

/* The word at place may be the address in disguise. */
static void consider(struct finder *finder, enum disguise disguise,
		     uint64_t place, uint64_t address)
{
	const struct allocation_index *index = finder->input->index;
	allocation_id id = allocation_find(index, address);
	uint64_t edge;

	if (id == NO_ALLOCATION || !bitmap_get(&finder->wanted, id))
		return;
	edge = allocation_start(index, id);
	if (decodings[disguise].is_end)
		edge += allocation_size(index, id) - 1;
	if (edge != address ||
	    !decodings[disguise].check(finder, place, address) || finder->error)
		return;
	finder->error = keep(finder, (struct disguised){ place, id, disguise });
}

/* Made for each decoding, as it is called for every word there is. */
static inline __attribute__((always_inline)) void scan(
	struct finder *finder, const uint8_t *bytes, size_t size,
	uint64_t place, enum disguise disguise,
	uint64_t (*decode)(uint64_t word))
{
	for (size_t i = 0; i + WORD <= size; i += WORD) {
		uint64_t word, address;

		memcpy(&word, bytes + i, sizeof(word));
		address = decode(word);
		if (address - finder->first < finder->span)
			consider(finder, disguise, place + i, address);
	}
}

/* At every place but the aligned ones, whose words are references. */
static void scan_packed(struct finder *finder, const uint8_t *bytes,
			size_t size, uint64_t place)
{
	for (size_t i = 0; i + WORD <= size; i++) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (word - finder->first < finder->span &&
		    (place + i) % WORD != 0)
			consider(finder, DISGUISE_PACKED, place + i, word);
	}
}

static bool check_nothing(struct finder *finder, uint64_t place,
			  uint64_t address)
{
	return true;
}

/* 48 bits are the address; the others are none of a pointer's. */
static uint64_t decode_tagged(uint64_t word)
{
	return word >> 48 ? word & ((UINT64_C(1) << 48) - 1) : 0;
}

static void scan_tagged(struct finder *finder, const uint8_t *bytes,
			size_t size, uint64_t place)
{
	scan(finder, bytes, size, place, DISGUISE_TAGGED, decode_tagged);
}

static uint64_t decode_shifted(uint64_t word)
{
	return word >> 16;
}

/* With zeros behind it, it is a whole pointer, packed. */
static bool check_shifted(struct finder *finder, uint64_t place,
			  uint64_t address)
{
	uint16_t behind;

	return !view_read(&finder->view, place + WORD, &behind,
			  sizeof(behind)) ||
	       behind != 0;
}

static void scan_shifted(struct finder *finder, const uint8_t *bytes,
			 size_t size, uint64_t place)
{
	scan(finder, bytes, size, place, DISGUISE_SHIFTED, decode_shifted);
}

/* A pointer to what is in use there means that. */
static bool check_nowhere(struct finder *finder, uint64_t place,
			  uint64_t address)
{
	uint64_t word;

	return view_word(&finder->view, place, &word) &&
	       allocation_find(finder->input->index, word) == NO_ALLOCATION;
}

static uint64_t decode_past_end(uint64_t word)
{
	return word - 1;
}

static void scan_past_end(struct finder *finder, const uint8_t *bytes,
			  size_t size, uint64_t place)
{
	scan(finder, bytes, size, place, DISGUISE_PAST_END, decode_past_end);
}

/* As an array that begins with 1 is kept, of elements of up to 8 bytes. */
static uint64_t decode_before(uint64_t word)
{
	enum { ALIGNMENT = 16 };
	uint64_t before = ALIGNMENT - word % ALIGNMENT;

	return before <= WORD && (before & (before - 1)) == 0 ? word + before
							      : 0;
}

static void scan_before(struct finder *finder, const uint8_t *bytes,
			size_t size, uint64_t place)
{
	scan(finder, bytes, size, place, DISGUISE_BEFORE, decode_before);
}

/*
 * An int of CPython, up to 3.14:
 *
 *	u64 references, type *, u64 size, u32 digits[] of 30 bits each
 *
 * size is the number of digits, from 3.12 on shifted left by 3 beside the sign.
 * Of one digit, what is behind it means nothing.
 */
enum {
	DIGIT = 30,
	PYTHON_TYPE = 8,
	PYTHON_SIZE = 16,
	PYTHON_DIGITS = 24,
	TYPE_FLAGS = 168,
	INT_TYPE = 1 << 24, /* of its flags */
};

static const uint64_t DIGIT_MASK = (UINT64_C(1) << DIGIT) - 1;

static uint64_t decode_digit(uint64_t word)
{
	return word & DIGIT_MASK;
}

static uint64_t decode_digits(uint64_t word)
{
	return (word & DIGIT_MASK) | (word >> 32 & DIGIT_MASK) << DIGIT;
}

static bool is_int_type(struct finder *finder, uint64_t type)
{
	uint64_t flags;

	return type % WORD == 0 &&
	       view_word(&finder->view, type + TYPE_FLAGS, &flags) &&
	       (flags & INT_TYPE);
}

static bool check_python(struct finder *finder, uint64_t place,
			 uint64_t address)
{
	uint64_t object = place - PYTHON_DIGITS, references, type, size;
	uint64_t digits = address >> DIGIT ? 2 : 1;

	/* Where it was freed, the first word is a link of a list. */
	return place >= PYTHON_DIGITS &&
	       view_word(&finder->view, object, &references) &&
	       view_word(&finder->view, object + PYTHON_TYPE, &type) &&
	       view_word(&finder->view, object + PYTHON_SIZE, &size) &&
	       references > 0 && references <= UINT32_MAX &&
	       (size == digits || (size >> 3 == digits && size % 4 == 0)) &&
	       is_int_type(finder, type);
}

static void scan_python(struct finder *finder, const uint8_t *bytes,
			size_t size, uint64_t place)
{
	scan(finder, bytes, size, place, DISGUISE_PYTHON_INT, decode_digit);
	scan(finder, bytes, size, place, DISGUISE_PYTHON_INT, decode_digits);
}

/* A Fixnum of Ruby: 2n + 1. */
static uint64_t decode_ruby(uint64_t word)
{
	return word & 1 ? word >> 1 : 0;
}

/*
 * Ruby's objects are in slots of pages of 16 or 64 KiB, which begin with the
 * address of their struct heap_page (gc.c, 2.x to 3.4):
 *
 *	u16 slot_size (from 3.1 on), u16 total, ... , slot *start, ...
 */
struct ruby_page {
	uint64_t start, end, slot_size;
};

static bool read_ruby_page(struct finder *finder, uint64_t page,
			   struct ruby_page *ret)
{
	enum { FIELDS = 12, MOST_HEAD = 0x200, BASE_SLOT = 40 };
	uint64_t heap_page, fields[FIELDS], total;

	if (!view_word(&finder->view, page, &heap_page) ||
	    heap_page % WORD != 0 ||
	    !view_read(&finder->view, heap_page, fields, sizeof(fields)))
		return false;
	ret->slot_size = (uint16_t)fields[0];
	total = (uint16_t)(fields[0] >> 16);
	switch (ret->slot_size) {
	case BASE_SLOT:
	case 2 * BASE_SLOT:
	case 4 * BASE_SLOT:
	case 8 * BASE_SLOT:
	case 16 * BASE_SLOT:
		break;
	default:
		total = ret->slot_size;
		ret->slot_size = BASE_SLOT;
	}
	for (size_t i = 1; i < FIELDS; i++) {
		if (fields[i] <= page || fields[i] - page > MOST_HEAD)
			continue;
		ret->start = fields[i];
		ret->end = fields[i] + total * ret->slot_size;
		return true;
	}
	return false;
}

/* Whether the word at place stands in a slot that holds no VALUE there. */
static bool is_in_valueless_slot(struct finder *finder, uint64_t place)
{
	enum { LEAST_LOG = 14, MOST_LOG = 16, TYPE = 0x1f };
	/* none, float, string, big number, zombie, moved */
	static const uint32_t valueless =
		1U << 0 | 1U << 4 | 1U << 5 | 1U << 10 | 1U << 29 | 1U << 30;
	struct ruby_page page;
	uint64_t flags;

	for (unsigned int i = LEAST_LOG; i <= MOST_LOG; i += 2) {
		uint64_t start = place >> i << i;

		if (!read_ruby_page(finder, start, &page) ||
		    place < page.start || place >= page.end)
			continue;
		place -= (place - page.start) % page.slot_size;
		return view_word(&finder->view, place, &flags) &&
		       valueless >> (flags & TYPE) & 1;
	}
	return false;
}

static bool check_ruby(struct finder *finder, uint64_t place, uint64_t address)
{
	return !is_in_valueless_slot(finder, place);
}

static void scan_ruby(struct finder *finder, const uint8_t *bytes, size_t size,
		      uint64_t place)
{
	scan(finder, bytes, size, place, DISGUISE_RUBY_INTEGER, decode_ruby);
}

static const struct decoding decodings[DISGUISES] = {
	[DISGUISE_PYTHON_INT] = { "Python int", false, scan_python,
				  check_python },
	[DISGUISE_RUBY_INTEGER] = { "Ruby Integer", false, scan_ruby,
				    check_ruby },
	[DISGUISE_TAGGED] = { "a tagged pointer", false, scan_tagged,
			      check_nothing },
	[DISGUISE_SHIFTED] = { "a pointer above a tag of 16 bits", false,
			       scan_shifted, check_shifted },
	[DISGUISE_PACKED] = { "a pointer packed at an odd address", false,
			      scan_packed, check_nothing },
	[DISGUISE_PAST_END] = { "a pointer one past its end", true,
				scan_past_end, check_nowhere },
	[DISGUISE_BEFORE] = { "a pointer just before its start", false,
			      scan_before, check_nowhere },
	[DISGUISE_XOR_LINK] = { "a link of a list, the XOR of two addresses" },
};

const char *disguise_name(enum disguise disguise)
{
	return decodings[disguise].name;
}

unsigned int disguises_of_interpreters(const struct program *program)
{
	static const struct {
		const char *file;
		enum disguise disguise;
	} interpreters[] = {
		{ "python", DISGUISE_PYTHON_INT },
		{ "libpython", DISGUISE_PYTHON_INT },
		{ "ruby", DISGUISE_RUBY_INTEGER },
		{ "libruby", DISGUISE_RUBY_INTEGER },
	};
	enum { INTERPRETERS = sizeof(interpreters) / sizeof(*interpreters) };
	unsigned int disguises = 0;

	for (size_t i = 0; i < program_module_count(program); i++) {
		const char *path = program_module(program, i)->path;
		const char *name = strrchr(path, '/');

		name = name ? name + 1 : path;
		for (size_t j = 0; j < INTERPRETERS; j++)
			if (strncmp(name, interpreters[j].file,
				    strlen(interpreters[j].file)) == 0)
				disguises |= 1U << interpreters[j].disguise;
	}
	return disguises;
}

/* All that the dump has of a row of bytes, in one region. */
static void scan_bytes(struct finder *finder, const uint8_t *bytes, size_t size,
		       uint64_t place)
{
	for (size_t done = 0; done < size; done += PIECE) {
		size_t piece = size - done < PIECE ? size - done : PIECE;

		/* A word that is not aligned may end in the next piece. */
		if (size - done - piece >= WORD)
			piece += WORD - 1;
		for (enum disguise i = 0; i < DISGUISES; i++)
			if (finder->input->disguises & 1U << i &&
			    decodings[i].scan)
				decodings[i].scan(finder, bytes + done, piece,
						  place + done);
	}
}

static struct error *scan_range(struct finder *finder, uint64_t place,
				uint64_t end)
{
	const struct image *image = finder->input->image;
	bool is_large = end - place > LARGE;

	place = (place + WORD - 1) & ~(uint64_t)(WORD - 1);
	while (place < end) {
		uint64_t size;
		const uint8_t *bytes;

		if (is_large)
			place = image_next_data(image, place);
		if (place >= end)
			break;
		bytes = image_bytes(image, place, &size);
		if (!bytes)
			break;
		if (size > end - place)
			size = end - place;
		if (is_large && size > LARGE)
			size = LARGE;
		scan_bytes(finder, bytes, size, place);
		finder->result->words += size / WORD;
		if (finder->error)
			return take(finder->error);
		if (is_large)
			image_pass(image, place, place + size);
		if (is_large && !progress_step(finder->input->progress, size))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		place += size;
	}
	return NULL;
}

static struct error *scan_roots(struct finder *finder)
{
	const struct roots *roots = finder->input->roots;
	struct error *error = NULL;

	for (size_t i = 0; i < root_range_count(roots) && !error; i++) {
		struct root_range range = root_range(roots, i);

		if (!range.is_code)
			error = scan_range(finder, range.start, range.end);
	}
	return error;
}

static struct error *scan_allocation(struct finder *finder, allocation_id id)
{
	uint64_t start = allocation_start(finder->input->index, id);

	return scan_range(finder, start,
			  start + allocation_size(finder->input->index, id));
}

static struct error *scan_in_use(struct finder *finder)
{
	const struct disguises_input *input = finder->input;
	uint64_t passed = 0;
	struct error *error;

	bitmap_for_each(id, input->in_use) {
		if (!allocations_step(input->image, input->index,
				      input->progress, id, &passed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		error = scan_allocation(finder, (allocation_id)id);
		if (error)
			return error;
	}
	return NULL;
}

/* What was reached leads on, by references and in disguise. */
static struct error *scan_reached(struct finder *finder)
{
	const struct graph *graph = finder->input->graph;
	struct error *error = NULL;

	while (finder->pending_count > 0 && !error) {
		const allocation_id *pending = finder->pending.bytes;
		allocation_id id = pending[--finder->pending_count];
		struct edges edges = graph_outgoing(graph, id);

		for (size_t i = 0; i < edges.count && !error; i++)
			if (bitmap_get(&finder->wanted, edges.targets[i]))
				error = push(finder, edges.targets[i]);
		if (!error)
			error = scan_allocation(finder, id);
	}
	return error;
}

static struct error *keep_link(void *data, uint64_t place, allocation_id target)
{
	struct finder *finder = data;

	if (!bitmap_get(&finder->wanted, target))
		return NULL;
	return keep(finder,
		    (struct disguised){ place, target, DISGUISE_XOR_LINK });
}

static struct error *find(struct finder *finder)
{
	const struct disguises_input *input = finder->input;
	size_t count = input->wanted->count;
	size_t first = bitmap_next(input->wanted, 0), last = first;
	struct error *error =
		bitmap_init(&finder->wanted, count, input->account);

	if (!error)
		error = bitmap_init(&finder->result->reached, count,
				    input->account);
	if (error || first == count || input->disguises == 0)
		return error;
	bitmap_copy(&finder->wanted, input->wanted);
	bitmap_for_each(id, input->wanted)
		last = id;
	finder->first = allocation_start(input->index, (allocation_id)first);
	finder->span = allocation_start(input->index, (allocation_id)last) +
		       allocation_size(input->index, (allocation_id)last) -
		       finder->first;
	progress_begin(input->progress, "looking for disguised addresses",
		       image_size(input->image));
	error = scan_roots(finder);
	if (!error)
		error = scan_in_use(finder);
	if (!error && (input->disguises & 1U << DISGUISE_XOR_LINK))
		error = xor_links_find(input, keep_link, finder);
	return error ? error : scan_reached(finder);
}

struct error *disguises_find(const struct disguises_input *input,
			     struct disguises *ret)
{
	struct disguises result = { .list.account = input->account };
	struct finder finder = {
		.input = input,
		.result = &result,
		.pending.account = input->account,
		.view = { input->image },
	};
	struct error *error = find(&finder);

	bitmap_deinit(&finder.wanted);
	memory_release(&finder.pending);
	if (error)
		disguises_deinit(&result);
	else
		*ret = result;
	return error;
}

void disguises_deinit(struct disguises *disguises)
{
	memory_release(&disguises->list);
	bitmap_deinit(&disguises->reached);
}
