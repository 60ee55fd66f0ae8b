#include "analyzer/classify/first_words.h"

#include "analyzer/classify/address_map.h"

struct first_words {
	struct memory numbers;	  /* uint32_t by id; 0: no signature */
	struct bitmap identities; /* which have an identity word */
	struct memory signatures; /* uint64_t by number; the first is 0 */
	size_t count;
};

/* What is needed only until all are read. */
struct reader {
	const struct first_words_input *input;
	struct first_words *words;
	struct address_map map; /* of signatures to numbers */
	uint64_t last;		/* the one before, and its number */
	uint32_t last_number;
	const struct region *region; /* that was fetched from last, or NULL */
};

static struct error *add_signature(struct first_words *words,
				   uint64_t signature)
{
	struct error *error = memory_reserve(
		&words->signatures, (words->count + 1) * sizeof(signature));

	if (!error)
		((uint64_t *)words->signatures.bytes)[words->count++] =
			signature;
	return error;
}

static struct error *find_number(struct reader *reader, uint64_t signature,
				 uint32_t *ret)
{
	struct error *error = NULL;

	*ret = reader->last_number;
	if (signature == reader->last)
		return NULL;
	*ret = address_map_find(&reader->map, signature);
	if (*ret == NOT_IN_MAP) {
		*ret = (uint32_t)reader->words->count;
		error = add_signature(reader->words, signature);
		if (!error)
			error = address_map_add(&reader->map, signature, *ret);
	}
	reader->last = signature;
	reader->last_number = *ret;
	return error;
}

/* Let the first words of an allocation that comes soon be fetched. */
static void fetch(struct reader *reader, size_t id, size_t *hint)
{
	const struct region *region = reader->region;
	const uint8_t *bytes;
	uint64_t start;

	if (id >= allocation_count(reader->input->index))
		return;
	start = allocation_range_near(reader->input->index, (allocation_id)id,
				      hint)
			.start;
	if (!region || start - region->start >= region->end - region->start)
		region = image_find(reader->input->image, start);
	reader->region = region;
	if (!region || !region->bytes)
		return;
	bytes = region->bytes + (start - region->start);
	__builtin_prefetch(bytes);
	__builtin_prefetch(bytes + 63);
}

static struct error *read_all(struct reader *reader)
{
	enum { AHEAD = 16, BETWEEN_STEPS = 1 << 16 };
	const struct first_words_input *input = reader->input;
	uint32_t *numbers = reader->words->numbers.bytes;
	size_t hint = 0;

	for (size_t id = 0; id < allocation_count(input->index); id++) {
		uint64_t signature;
		struct error *error = NULL;

		fetch(reader, id + AHEAD, &hint);
		signature = input->read(input->data, (allocation_id)id);
		if (signature)
			error = find_number(reader, signature, &numbers[id]);
		else if (input->has_identity(input->data, (allocation_id)id))
			bitmap_set(&reader->words->identities, id);
		if (!error && id % BETWEEN_STEPS == 0 &&
		    !progress_step(input->progress, BETWEEN_STEPS))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
		if (error)
			return error;
	}
	return NULL;
}

struct error *first_words_create(const struct first_words_input *input,
				 struct first_words **ret)
{
	_cleanup_(first_words_destroy) struct first_words *words =
		calloc(1, sizeof(*words));
	struct reader reader = { .input = input, .words = words };
	size_t count = allocation_count(input->index);
	struct error *error;

	if (!words)
		return &error_no_memory;
	words->numbers.account = words->signatures.account = input->account;
	address_map_init(&reader.map, input->account);
	progress_begin(input->progress, "reading signatures", count);
	error = memory_resize(&words->numbers, count * sizeof(uint32_t));
	if (!error)
		error = bitmap_init(&words->identities, count, input->account);
	if (!error)
		error = add_signature(words, 0);
	if (!error)
		error = read_all(&reader);
	address_map_deinit(&reader.map);
	if (error)
		return error;
	*ret = take(words);
	return NULL;
}

void first_words_destroy(struct first_words *words)
{
	memory_release(&words->numbers);
	memory_release(&words->signatures);
	bitmap_deinit(&words->identities);
	free(words);
}

size_t first_words_count(const struct first_words *words)
{
	return words->count - 1;
}

uint64_t first_words_at(const struct first_words *words, allocation_id id)
{
	const uint64_t *signatures = words->signatures.bytes;

	return signatures[((uint32_t *)words->numbers.bytes)[id]];
}

bool first_words_has_identity(const struct first_words *words, allocation_id id)
{
	return bitmap_get(&words->identities, id);
}
