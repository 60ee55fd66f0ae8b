#include "analyzer/query/string_users.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/parallel.h"
#include "analyzer/classify/cxx.h"
#include "analyzer/query/set.h"

#include <string.h>

enum { IDS_PER_CHUNK = 1 << 14 /* a multiple of 64 */ };

static void start_reading(struct analysis *analysis, unsigned int cxx, struct reader *ret)
{
	reader_init(ret, analysis_image(analysis), analysis_program(analysis),
		    analysis_index(analysis));
	ret->cxx = cxx;
}

/* Call found for the strings in the allocation, until it returns false. */
static void visit_strings(struct reader *reader, allocation_id id,
			  bool (*found)(void *data, uint64_t offset,
					const struct cxx_string *string),
			  void *data)
{
	uint64_t start = allocation_start(reader->index, id);
	uint64_t size = allocation_size(reader->index, id), known;
	const uint8_t *bytes = reader_bytes(reader, start, &known);
	const unsigned int word = reader->word;
	uint64_t words[STRING_WORDS];
	struct cxx_string string;

	if (!bytes)
		return;
	if (size > known)
		size = known;
	for (uint64_t at = 0; size - at >= word;) {
		uint64_t count = (size - at) / word;

		if (count > STRING_WORDS)
			count = STRING_WORDS;
		for (size_t i = 0; i < count; i++)
			words[i] = load_word(bytes + at + i * word, word);
		if (!cxx_string_read(reader, start + at, words, count, &string)) {
			at += word;
			continue;
		}
		if (!found(data, at, &string))
			return;
		at += string.size;
	}
}

struct selecting {
	struct analysis *analysis;
	unsigned int cxx;
	struct bitmap *ret;
};

static bool stop_at_first(void *data, uint64_t offset, const struct cxx_string *string)
{
	bool *found = data;

	*found = true;
	return false;
}

static struct error *select_chunk(void *data, size_t chunk, unsigned int thread)
{
	struct selecting *selecting = data;
	const struct bitmap *used = allocation_used(analysis_index(selecting->analysis));
	size_t end = (chunk + 1) * IDS_PER_CHUNK;
	struct reader reader;

	start_reading(selecting->analysis, selecting->cxx, &reader);
	for (size_t id = bitmap_next(used, chunk * IDS_PER_CHUNK); id < used->count && id < end;
	     id = bitmap_next(used, id + 1)) {
		bool found = false;

		visit_strings(&reader, (allocation_id)id, stop_at_first, &found);
		if (found)
			bitmap_set(selecting->ret, id);
	}
	return progress_check(analysis_progress(selecting->analysis), IDS_PER_CHUNK);
}

struct error *select_stringusers(struct analysis *analysis, const struct set_arguments *arguments,
				 struct members *ret)
{
	struct selecting selecting = {
		.analysis = analysis,
		.cxx = cxx_find(analysis_image(analysis), analysis_program(analysis)),
		.ret = &ret->set,
	};
	size_t count = allocation_count(analysis_index(analysis));

	if (!selecting.cxx)
		return NULL;
	progress_begin(analysis_progress(analysis), "finding strings", count);
	return parallel_for((count + IDS_PER_CHUNK - 1) / IDS_PER_CHUNK,
			    parallel_threads_for(analysis_progress(analysis)), select_chunk,
			    &selecting);
}

static bool is_same(const struct string_use *use, const struct string_use *key)
{
	return use->pattern == key->pattern && use->signature == key->signature &&
	       use->offset == key->offset;
}

static struct error *find_use(struct string_uses *uses, const struct string_use *key,
			      struct string_use **ret)
{
	uint64_t hash = hash_add(hash_add(secret_factor(), key->signature), key->offset);
	uint64_t number = hash_add(hash, key->pattern);
	struct error *error = NULL;

	*ret = table_find(uses, number, use, is_same(use, key));
	if (!*ret) {
		error = table_append(uses, number, *key);
		*ret = uses->items + uses->count - 1;
	}
	return error;
}

struct counting {
	const struct allocation_index *index;
	const struct patterns *patterns;
	allocation_id id; /* of the allocation that is looked at */
	struct string_uses *uses;
	struct string_use key; /* of it */
	bool is_array;	       /* it is one */
	pattern_number arrays[2];
	struct bitmap bodies; /* whose bytes were added */
	struct error *error;
};

static void add_body(struct counting *counting, struct string_use *use,
		     const struct cxx_string *string)
{
	use->length += string->length;
	use->capacity += string->capacity;
	if (bitmap_get(&counting->bodies, string->body))
		return;
	bitmap_set(&counting->bodies, string->body);
	use->bytes += allocation_size(counting->index, string->body);
}

static bool count_string(void *data, uint64_t offset, const struct cxx_string *string)
{
	/* Classes are not that large. */
	enum { FAR = 0x1000 };
	struct counting *counting = data;
	struct string_use *use;

	/* A string in a vector's spare room is stale. */
	if (counting->key.pattern != NO_PATTERN &&
	    patterns_is_tainted(counting->patterns, counting->id, offset, NULL))
		return true;
	counting->key.offset = counting->is_array || offset >= FAR ? ANY_OFFSET : offset;
	counting->error = find_use(counting->uses, &counting->key, &use);
	if (counting->error)
		return false;
	use->count++;
	use->empty_count += string->length == 0;
	use->short_count += string->length && string->kind == STRING_SHORT;
	use->long_count += string->length && string->kind == STRING_LONG;
	use->shared_count += string->length && string->kind == STRING_SHARED;
	if (string->kind != STRING_SHORT)
		add_body(counting, use, string);
	return true;
}

static void begin_allocation(struct counting *counting, struct analysis *analysis, allocation_id id)
{
	pattern_number pattern = patterns_of(analysis_patterns(analysis), id);

	counting->id = id;
	counting->key = (struct string_use){ .pattern = pattern };
	if (pattern == NO_PATTERN)
		counting->key.signature = analysis_signature(analysis, id);
	counting->is_array = pattern != NO_PATTERN &&
			     (pattern == counting->arrays[0] || pattern == counting->arrays[1]);
}

static struct error *count_members(struct analysis *analysis, const struct bitmap *members,
				   struct counting *counting)
{
	enum { BETWEEN_LOOKS = 1 << 14 };
	struct progress *progress = analysis_progress(analysis);
	struct reader reader;
	size_t done = 0;

	start_reading(analysis, cxx_find(analysis_image(analysis), analysis_program(analysis)),
		      &reader);
	progress_begin(progress, "counting strings", bitmap_weight(members));
	bitmap_for_each(id, members) {
		begin_allocation(counting, analysis, (allocation_id)id);
		visit_strings(&reader, (allocation_id)id, count_string, counting);
		if (counting->error)
			return counting->error;
		if (++done % BETWEEN_LOOKS == 0)
			TRY(progress_check(progress, BETWEEN_LOOKS));
	}
	return NULL;
}

struct error *string_uses_count(struct analysis *analysis, const struct bitmap *members,
				struct string_uses *ret)
{
	struct counting counting = {
		.uses = ret,
		.arrays = { pattern_find("VectorBody"), pattern_find("DequeBlock") },
	};
	struct error *error = analysis_need(analysis, STAGE_CLASSES);

	if (!error)
		error = analysis_need(analysis, STAGE_OWNERS);
	if (error)
		return error;
	ret->memory.account = analysis_account(analysis);
	counting.index = analysis_index(analysis);
	counting.patterns = analysis_patterns(analysis);
	error = bitmap_init(&counting.bodies, members->count, analysis_account(analysis));
	if (!error)
		error = count_members(analysis, members, &counting);
	bitmap_deinit(&counting.bodies);
	return error;
}

DEFINE_COMPARE(compare_places, struct string_use, ASCENDING(signature), ASCENDING(pattern),
	       ASCENDING(offset))

DEFINE_COMPARE(compare_counts, struct string_use, DESCENDING(count), AS_BY(compare_places))

DEFINE_COMPARE(compare_bytes, struct string_use, DESCENDING(bytes), AS_BY(compare_counts))

void string_uses_sort(struct string_uses *uses, enum sort_key key)
{
	array_sort(uses, key == SORT_ADDRESS ? compare_places
			 : key == SORT_BYTES ? compare_bytes
					     : compare_counts);
}
