#include "analyzer/account/bill_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"

#include <string.h>

enum { PIECES_LOOKED_AT = 1 << 10, MOST_GUARD = 1 << 16 };

struct guessing {
	struct unknowns *unknowns;
	struct analysis *analysis;
	const struct image *image;
	uint64_t start, end; /* of all that has no guess yet */
};

static void set_guess(struct unknown *unknown, const char *guess)
{
	snprintf(unknown->guess, sizeof(unknown->guess), "%s", guess);
}

/* Call judge for each that has no guess yet. */
static void guess_each(struct guessing *guessing,
		       void (*judge)(struct guessing *guessing, struct unknown *unknown))
{
	for (size_t i = 0; i < guessing->unknowns->count; i++)
		if (!*guessing->unknowns->list[i].guess)
			judge(guessing, &guessing->unknowns->list[i]);
}

/* By its rights. */
static void judge_rights(struct guessing *guessing, struct unknown *unknown)
{
	uint8_t rights = unknown->region->rights;

	if (rights & RIGHT_EXECUTE)
		set_guess(unknown, rights & RIGHT_WRITE ? "code, writable (JIT?)"
							: "code, in no file (JIT?)");
	else if (!(rights & (RIGHT_READ | RIGHT_WRITE)))
		set_guess(unknown, "no access: reserved");
}

/* Whether most of the places in it, so far apart, that are not empty are of a kind. */
static bool is_made_of(const struct image *image, const struct unknown *unknown,
		       const struct object_pages *pages, uint64_t distance)
{
	uint64_t first = (unknown->start + distance - 1) & ~(distance - 1);
	size_t seen = 0, found = 0;

	/* It may be larger than any file. */
	if (!unknown->region->bytes)
		return false;
	for (uint64_t at = first; at < unknown->end && seen < PIECES_LOOKED_AT; at += distance) {
		uint64_t data = image_next_data(image, at), word = 0;

		if (data - at >= distance) {
			at = (data - distance) & ~(distance - 1);
			continue;
		}
		for (uint64_t i = 0; i < 6 && word == 0; i++)
			image_read_u64(image, at + 8 * i, &word);
		seen += word != 0;
		found += word != 0 && pages->measure(image, at) != 0;
	}
	return found > 0 && found >= seen / 2;
}

/* Pages of objects that runtimes are sure of only where there are many. */
static void judge_objects(struct guessing *guessing, struct unknown *unknown)
{
	const struct runtimes *runtimes = analysis_runtimes(guessing->analysis);

	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		const struct object_pages *pages = runtime_at(runtimes, i)->pages;

		if (!pages || pages->is_certain)
			continue;
		for (const uint64_t *distance = pages->alignment; *distance; distance++)
			if (is_made_of(guessing->image, unknown, pages, *distance)) {
				set_guess(unknown, pages->name);
				return;
			}
	}
}

/* The one without a guess that holds address, or NULL. */
static struct unknown *find_unknown(const struct unknowns *unknowns, uint64_t address)
{
	size_t low = LIST_ABOVE(unknowns->list, unknowns->count, end, address);

	return low < unknowns->count && unknowns->list[low].start <= address &&
			       !*unknowns->list[low].guess
		       ? &unknowns->list[low]
		       : NULL;
}

/* The range of all that is still without a guess; false if none is. */
static bool find_bounds(struct guessing *guessing)
{
	guessing->start = guessing->end = 0;
	for (size_t i = 0; i < guessing->unknowns->count; i++) {
		const struct unknown *unknown = &guessing->unknowns->list[i];

		if (*unknown->guess)
			continue;
		if (guessing->end == 0)
			guessing->start = unknown->start;
		guessing->end = unknown->end;
	}
	return guessing->end != 0;
}

/* What [start, end) refers to is guess's. */
static struct error *scan(struct guessing *guessing, uint64_t start, uint64_t end,
			  const char *guess)
{
	enum { STEP = 1 << 20 };
	struct progress *progress = analysis_progress(guessing->analysis);
	uint64_t bounds = guessing->end - guessing->start;

	while (start < end) {
		uint64_t size, next = image_next_data(guessing->image, start);
		const uint8_t *bytes;

		if (next > start) {
			start = next;
			continue;
		}
		bytes = image_bytes(guessing->image, start, &size);
		if (!bytes)
			return NULL;
		if (size > end - start)
			size = end - start;
		if (size > STEP)
			size = STEP;
		for (uint64_t i = 0; i + 8 <= size; i += 8) {
			struct unknown *unknown;
			uint64_t word;

			memcpy(&word, bytes + i, sizeof(word));
			if (word - guessing->start >= bounds)
				continue;
			unknown = find_unknown(guessing->unknowns, word);
			if (unknown)
				set_guess(unknown, guess);
		}
		image_advance(guessing->image, start, start + size);
		start += size;
		if (!progress_step(progress, size))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

/* Variables of modules: the module has what they refer to. */
static struct error *guess_by_modules(struct guessing *guessing)
{
	const struct program *program = analysis_program(guessing->analysis);
	struct error *error = NULL;

	for (size_t i = 0; i < image_region_count(guessing->image) && !error; i++) {
		const struct region *region = image_region(guessing->image, i);
		const struct module *module = program_find_module(program, region->start);
		uint64_t end = region->end;
		char guess[GUESS_SIZE];
		const char *slash;

		if (!module || !(region->rights & RIGHT_WRITE) || !region->bytes)
			continue;
		if (end > module->end)
			end = module->end;
		slash = strrchr(module->path, '/');
		snprintf(guess, sizeof(guess), "of %.20s", slash ? slash + 1 : module->path);
		error = scan(guessing, region->start, end, guess);
	}
	return error;
}

static struct error *guess_by_stacks(struct guessing *guessing)
{
	const struct program *program = analysis_program(guessing->analysis);
	struct error *error = NULL;

	for (size_t i = 0; i < program_stack_count(program) && !error; i++) {
		const struct stack *stack = program_stack(program, i);

		error = scan(guessing, stack->live, stack->live_end, "held by a stack");
	}
	return error;
}

static struct error *guess_by_heap(struct guessing *guessing)
{
	const struct allocation_index *index = analysis_index(guessing->analysis);
	struct error *error = NULL;
	uint64_t total = 0;

	for (size_t i = 0; i < heap_claim_count(index); i++)
		total += heap_claim(index, i).end - heap_claim(index, i).start;
	progress_begin(analysis_progress(guessing->analysis), "guessing whose memory is", total);
	for (size_t i = 0; i < heap_claim_count(index) && !error; i++) {
		struct memory_range claim = heap_claim(index, i);

		error = scan(guessing, claim.start, claim.end, "held by the heap");
	}
	return error;
}

/*
 * A few pages that nobody may access, which catch what overflows. gdb says of such that they can be
 * read, and writes zeros.
 */
static bool is_guard(const struct image *image, const struct region *region)
{
	uint64_t size = region->end - region->start;

	if (region->mapping || size > MOST_GUARD)
		return false;
	return region->rights == 0 || (region->rights == RIGHT_READ && region->bytes &&
				       bytes_are_zero(region->bytes, size));
}

static void judge_guard(struct guessing *guessing, struct unknown *unknown)
{
	if (is_guard(guessing->image, unknown->region))
		set_guess(unknown, "no access: reserved");
}

/* Above such pages: a stack that a program made, in use or not. */
static void judge_guarded(struct guessing *guessing, struct unknown *unknown)
{
	const struct region *region = unknown->region;
	const struct region *below = image_find(guessing->image, unknown->start - 1);

	if (unknown->start == region->start && below && is_guard(guessing->image, below) &&
	    below->end - below->start < unknown->end - unknown->start)
		set_guess(unknown, "stacks, by guard pages");
}

/* Memory that is not in the core counts as such. */
static bool is_zero(const struct image *image, const struct unknown *unknown)
{
	enum { STEP = 1 << 20 };
	uint64_t at = unknown->start;

	while (at < unknown->end) {
		uint64_t size, next = image_next_data(image, at);
		const uint8_t *bytes;

		if (next > at) {
			at = next;
			continue;
		}
		bytes = image_bytes(image, at, &size);
		if (!bytes)
			break;
		if (size > unknown->end - at)
			size = unknown->end - at;
		if (size > STEP)
			size = STEP;
		if (!bytes_are_zero(bytes, size))
			return false;
		at += size;
	}
	return true;
}

/* What was never written, and so refers to nothing. */
static void judge_untouched(struct guessing *guessing, struct unknown *unknown)
{
	if (is_zero(guessing->image, unknown))
		set_guess(unknown, "all zeros");
}

struct error *bill_guess(struct unknowns *unknowns, struct analysis *analysis)
{
	struct guessing guessing = {
		.unknowns = unknowns,
		.analysis = analysis,
		.image = analysis_image(analysis),
	};
	struct error *error = NULL;

	guess_each(&guessing, judge_rights);
	guess_each(&guessing, judge_objects);
	if (find_bounds(&guessing))
		error = guess_by_modules(&guessing);
	guess_each(&guessing, judge_guard);
	guess_each(&guessing, judge_guarded);
	if (!error && find_bounds(&guessing))
		error = guess_by_stacks(&guessing);
	/* That reads all of the heap: there may be nothing left to guess. */
	if (!error && find_bounds(&guessing))
		error = guess_by_heap(&guessing);
	guess_each(&guessing, judge_untouched);
	return error;
}
