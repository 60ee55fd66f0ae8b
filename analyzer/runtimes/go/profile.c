/*
 * The heap profile of Go, src/runtime/mprof.go of 1.18 to 1.24. A variable of the runtime is the
 * last of a list of buckets, one for each size and calls of sampled objects:
 *
 *	bucket  | next of its hash | next | kind, 1 for memory | hash | bytes of an object | calls |
 *	        | return addresses, the innermost first | objects: made, freed, bytes of these |
 *	        | three times the same, of collections that have not ended |
 *
 * What the last collection left counts, as runtime.MemProfile() has it before it scales that.
 */
#include "analyzer/runtimes/go/profile.h"

#include "analyzer/heap/cycle.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/runtime.h"

enum {
	WORD = 8,
	NEXT = 1, /* words of a bucket: */
	KIND,
	HASH,
	SIZE,
	CALLS,
	BUCKET_WORDS,
	KIND_MEMORY = 1,
	MOST_CALLS = 1 << 10,
};

struct bucket {
	uint64_t words[BUCKET_WORDS];
	uint64_t made, freed, bytes_made, bytes_freed;
};

static bool read_bucket(struct view *view, uint64_t address, struct bucket *ret)
{
	uint64_t calls;

	if (!address || address % WORD ||
	    !view_read(view, address, ret->words, sizeof(ret->words)) ||
	    ret->words[KIND] != KIND_MEMORY || ret->words[SIZE] == 0 || ret->words[CALLS] == 0 ||
	    ret->words[CALLS] > MOST_CALLS)
		return false;
	calls = ret->words[CALLS];
	return view_read(view, address + (BUCKET_WORDS + calls) * WORD, &ret->made, 4 * WORD) &&
	       ret->freed <= ret->made && ret->bytes_freed <= ret->bytes_made;
}

static bool is_list(struct view *view, uint64_t place, uint64_t word, void *data)
{
	const struct object_space *space = data;
	struct bucket bucket, next;
	uint64_t call;

	if (!read_bucket(view, word, &bucket))
		return false;
	for (uint64_t i = 0; i < bucket.words[CALLS]; i++)
		if (!view_word(view, word + (BUCKET_WORDS + i) * WORD, &call) ||
		    !program_find_module(space->program, call))
			return false;
	return !bucket.words[NEXT] || read_bucket(view, bucket.words[NEXT], &next);
}

static struct error *visit_buckets(void *owner, noted_visitor *visit, void *data)
{
	struct object_space *space = owner;
	struct view view = { space->image };
	struct budget steps = { .left = space->image->size / (BUCKET_WORDS * WORD) };
	struct cycle_search search = { .power = 1 };
	uint64_t place = module_data_search(space->image, space->program, is_list, space);
	uint64_t address = 0;
	struct bucket bucket;

	if (!place || !view_word(&view, place, &address))
		return NULL;
	for (; budget_take(&steps) && !cycle_closes(&search, address) &&
	       read_bucket(&view, address, &bucket);
	     address = bucket.words[NEXT]) {
		const struct noted_blocks noted = {
			.count = bucket.made - bucket.freed,
			.bytes = bucket.bytes_made - bucket.bytes_freed,
			.calls = address,
		};

		if (noted.count)
			TRY(visit(data, &noted));
	}
	return NULL;
}

static size_t read_calls(void *owner, uint64_t calls, uint64_t *ret, size_t most)
{
	const struct object_space *space = owner;
	struct view view = { space->image };
	struct bucket bucket;
	size_t count;

	if (!read_bucket(&view, calls, &bucket))
		return 0;
	count = bucket.words[CALLS] < most ? (size_t)bucket.words[CALLS] : most;
	return view_read(&view, calls + BUCKET_WORDS * WORD, ret, count * sizeof(*ret)) ? count : 0;
}

const struct noting go_noting = {
	.name = "Go's profile",
	.is_sampled = true,
	.visit = visit_buckets,
	.read_calls = read_calls,
};
