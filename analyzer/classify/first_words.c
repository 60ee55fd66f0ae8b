#include "analyzer/classify/first_words.h"

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/heap/index_side.h"

struct first_words {
	ARRAY(uint32_t) numbers;    /* by id; 0: no signature */
	struct bitmap identities;   /* which may have an identity word */
	ARRAY(uint64_t) signatures; /* by number; the first is 0 */
	ARRAY(uint64_t) shown;	    /* the same, 0 for those that are none */
};

enum { RECENT_NUMBERS = 32 };

/* State that is only needed while reading. */
struct reader {
	struct signature_reader signatures;
	const struct identities *identities;
	struct first_words *words;
	size_t hint;		/* of the index */
	struct address_map map; /* of signatures to numbers */
	struct {
		uint64_t signature;
		uint32_t number;
	} recent[RECENT_NUMBERS]; /* by signature; 0: none */
};

static void reader_deinit(struct reader *reader)
{
	table_release(&reader->map);
}
DEFINE_DEINIT(reader_deinit, struct reader)

static struct error *find_number(struct reader *reader, uint64_t signature, uint32_t *ret)
{
	size_t slot = signature / 8 % RECENT_NUMBERS;

	*ret = reader->recent[slot].number;
	if (signature == reader->recent[slot].signature)
		return NULL;
	*ret = address_map_find(&reader->map, signature);
	if (*ret == NOT_IN_MAP) {
		*ret = (uint32_t)reader->words->signatures.count;
		TRY(array_append(&reader->words->signatures, signature));
		TRY(address_map_add(&reader->map, signature, *ret));
	}
	reader->recent[slot].signature = signature;
	reader->recent[slot].number = *ret;
	return NULL;
}

/* Prefetch the first words of an allocation that is needed soon. */
static struct memory_range fetch(struct reader *reader, size_t id)
{
	struct memory_range range =
		allocation_range_near(reader->signatures.index, (allocation_id)id, &reader->hint);

	view_fetch(&reader->signatures.view, range.start);
	view_fetch(&reader->signatures.view, range.start + 63);
	return range;
}

/* This does not decide whether it has one, which depends on the debug information at hand. */
static bool may_have_identity(struct reader *reader, size_t id, struct memory_range range)
{
	struct signature_reader *signatures = &reader->signatures;

	if (!bitmap_get(allocation_used(signatures->index), id))
		return false;
	return (signatures->managed && bitmap_get(signatures->managed, id)) ||
	       identity_possible(reader->identities, &signatures->view, range);
}

static struct error *read_one(struct reader *reader, size_t id, struct memory_range range)
{
	uint32_t *numbers = reader->words->numbers.items;
	uint64_t signature = signature_candidate(&reader->signatures, (allocation_id)id, range);

	if (signature)
		return find_number(reader, signature, &numbers[id]);
	if (may_have_identity(reader, id, range))
		bitmap_set(&reader->words->identities, id);
	return NULL;
}

static struct error *read_all(struct reader *reader, struct progress *progress)
{
	enum { AHEAD = 16 };
	const struct allocation_index *index = reader->signatures.index;
	const struct image *image = reader->signatures.view.image;
	size_t count = allocation_count(index);
	struct memory_range ranges[AHEAD] = { 0 };
	uint64_t reported = 0;

	for (size_t next = 0; next < count + AHEAD; next++) {
		struct memory_range range = ranges[next % AHEAD];

		if (next < count)
			ranges[next % AHEAD] = fetch(reader, next);
		if (next < AHEAD)
			continue;
		TRY(read_one(reader, next - AHEAD, range));
		TRY(allocations_check(image, index, progress, next - AHEAD, &reported));
	}
	return NULL;
}

/* Decide which candidates are signatures. */
static struct error *judge_all(struct first_words *words, const struct signature_reader *reader,
			       struct memory_account *account)
{
	const uint64_t *signatures = words->signatures.items;
	uint64_t *shown;

	words->shown.memory.account = account;
	TRY(array_resize(&words->shown, words->signatures.count));
	shown = words->shown.items;
	for (size_t i = 0; i < words->signatures.count; i++)
		shown[i] = signatures[i] && signature_is_right(reader, signatures[i])
				   ? signatures[i]
				   : 0;
	return NULL;
}

struct error *first_words_create(const struct first_words_input *input, struct first_words **ret)
{
	_cleanup_(first_words_destroy) struct first_words *words = calloc(1, sizeof(*words));
	_cleanup_(reader_deinit) struct reader reader = { .signatures = input->signatures,
							  .identities = input->identities,
							  .words = words };
	size_t count = allocation_count(input->signatures.index);

	TRY_MEMORY(words);
	arrays_use(input->account, &words->numbers, &words->signatures, &reader.map);
	progress_begin(input->progress, "reading signatures", count);
	TRY(array_resize(&words->numbers, count));
	TRY(bitmap_init(&words->identities, count, input->account));
	TRY(array_append(&words->signatures, 0));
	TRY(read_all(&reader, input->progress));
	TRY(judge_all(words, &input->signatures, input->account));
	*ret = take(words);
	return NULL;
}

void first_words_destroy(struct first_words *words)
{
	arrays_release(&words->numbers, &words->signatures, &words->shown);
	bitmap_deinit(&words->identities);
	free(words);
}

struct error *first_words_save(const struct first_words *words, struct side_writer *writer)
{
	size_t count = words->identities.count;

	TRY(side_writer_array(writer, SIDE_SIGNATURES, words->signatures.items,
			      words->signatures.count * sizeof(uint64_t)));
	TRY(side_writer_array(writer, SIDE_SIGNATURE_NUMBERS, words->numbers.items,
			      count * sizeof(uint32_t)));
	return allocation_set_save(&words->identities, writer, SIDE_IDENTITIES);
}

/* True if each number is that of a signature; the first means none. */
static bool check_numbers(const struct side_array *signatures, const uint32_t *numbers,
			  size_t count)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < count; i++)
		if (numbers[i] > highest)
			highest = numbers[i];
	return highest < signatures->size / sizeof(uint64_t) &&
	       *(const uint64_t *)signatures->bytes == 0;
}

struct error *first_words_load(struct side_file *file, size_t count,
			       const struct signature_reader *reader,
			       struct memory_account *account, struct first_words **ret)
{
	_cleanup_(first_words_destroy) struct first_words *words = calloc(1, sizeof(*words));
	struct side_array signatures;
	const void *numbers;

	TRY_MEMORY(words);
	TRY(side_file_find(file, SIDE_SIGNATURES, &signatures));
	TRY(side_file_take(file, SIDE_SIGNATURE_NUMBERS, count, sizeof(uint32_t), &numbers));
	TRY(allocation_set_load(file, SIDE_IDENTITIES, count, &words->identities));
	if (!check_numbers(&signatures, numbers, count))
		return error_create(ERROR_BAD_DUMP, "it is damaged");
	words->numbers.memory = side_memory(numbers, count * sizeof(uint32_t));
	words->signatures.memory = side_memory(signatures.bytes, signatures.size);
	words->signatures.count = signatures.size / sizeof(uint64_t);
	TRY(judge_all(words, reader, account));
	*ret = take(words);
	return NULL;
}

size_t first_words_count(const struct first_words *words)
{
	return words->signatures.count - 1;
}

uint64_t first_words_at(const struct first_words *words, allocation_id id)
{
	const uint64_t *shown = words->shown.items;

	return shown[words->numbers.items[id]];
}

void first_words_fetch(const struct first_words *words, allocation_id id)
{
	__builtin_prefetch(&words->numbers.items[id]);
}

bool first_words_may_have_identity(const struct first_words *words, allocation_id id)
{
	uint32_t number = words->numbers.items[id];

	/* A candidate that turned out to be none refers to something. */
	return bitmap_get(&words->identities, id) || (number && first_words_at(words, id) == 0);
}
