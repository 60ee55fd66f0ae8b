#include "analyzer/account/bill_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/heap/word_filter.h"

enum { PIECES_LOOKED_AT = 1 << 10, MOST_GUARD = 1 << 16 };

static const char RESERVED[] = "reserved (PROT_NONE)";
static const char HELD_BY_MAPPED[] = "held by other memory";

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

/* Ask for each that has no guess yet; NULL is none. */
static void guess_each(struct guessing *guessing,
		       const char *(*judge)(const struct guessing *guessing,
					    const struct unknown *unknown))
{
	array_for_each(unknown, guessing->unknowns) {
		const char *guess = *unknown->guess ? NULL : judge(guessing, unknown);

		if (guess)
			set_guess(unknown, guess);
	}
}

static const char *guess_by_rights(const struct guessing *guessing, const struct unknown *unknown)
{
	uint8_t rights = unknown->region->rights;

	if (rights & RIGHT_EXECUTE)
		return rights & RIGHT_WRITE ? "code, writable (JIT?)" : "code, in no file (JIT?)";
	return rights & (RIGHT_READ | RIGHT_WRITE) ? NULL : RESERVED;
}

/*
 * True if most of the sampled places, at that distance, that are not empty are objects of one kind.
 */
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
			image_read_word(image, at + image_word_size(image) * i, &word);
		seen += word != 0;
		found += word != 0 && pages->measure(image, at) != 0;
	}
	return found > 0 && found >= seen / 2;
}

/* Pages of objects that runtimes are sure of only where there are many. */
static const char *guess_by_objects(const struct guessing *guessing, const struct unknown *unknown)
{
	const struct runtimes *runtimes = analysis_runtimes(guessing->analysis);

	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		const struct object_pages *pages = runtime_at(runtimes, i)->pages;

		if (!pages || pages->is_certain)
			continue;
		for (const uint64_t *distance = pages->alignment; *distance; distance++)
			if (is_made_of(guessing->image, unknown, pages, *distance))
				return pages->name;
	}
	return NULL;
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

/* The next bytes of the dump from *at on, below end, a step's worth at most; NULL: no more. */
static const uint8_t *next_bytes(const struct image *image, uint64_t *at, uint64_t end,
				 uint64_t *ret_size)
{
	enum { STEP = 1 << 20 };
	const uint8_t *bytes = NULL;

	for (uint64_t next; *at < end && (next = image_next_data(image, *at)) > *at;)
		*at = next;
	if (*at < end)
		bytes = image_bytes(image, *at, ret_size);
	if (bytes && *ret_size > end - *at)
		*ret_size = end - *at;
	if (bytes && *ret_size > STEP)
		*ret_size = STEP;
	return bytes;
}

/*
 * True if the upper end has an address of code, where a call returns to or a fiber begins; or an
 * address within itself, as frames have, or a stack that waits for a fiber.
 */
static bool ends_as_stack(const struct guessing *guessing, const struct unknown *unknown)
{
	enum { LOOKED_AT = 1 << 16 };
	const struct image *image = guessing->image;
	const unsigned int width = image_word_size(image);
	uint64_t at = unknown->end - unknown->start > LOOKED_AT ? unknown->end - LOOKED_AT
								: unknown->start;
	const uint8_t *bytes;
	uint64_t size;

	for (; (bytes = next_bytes(image, &at, unknown->end, &size)); at += size)
		for (uint64_t i = 0; i + width <= size; i += width) {
			uint64_t word = load_word(bytes + i, width);
			const struct region *region = image_find(image, word);

			if ((region && (region->rights & RIGHT_EXECUTE)) ||
			    word - unknown->start < unknown->end - unknown->start)
				return true;
		}
	return false;
}

/* Above guard pages: a stack that a program made, or a buffer. */
static const char *guess_by_guard(const struct guessing *guessing, const struct unknown *unknown)
{
	const struct region *region = unknown->region;
	const struct region *below = image_find(guessing->image, unknown->start - 1);

	if (is_guard(guessing->image, region))
		return RESERVED;
	return unknown->start == region->start && below && is_guard(guessing->image, below) &&
			       below->end - below->start < unknown->end - unknown->start &&
			       ends_as_stack(guessing, unknown)
		       ? "stacks, by guard pages"
		       : NULL;
}

/*
 * Memory that was never written has no references. Memory that is not in the core counts as zeros.
 */
static const char *guess_by_zeros(const struct guessing *guessing, const struct unknown *unknown)
{
	const uint8_t *bytes;
	uint64_t at = unknown->start, size;

	for (; (bytes = next_bytes(guessing->image, &at, unknown->end, &size)); at += size)
		if (!bytes_are_zero(bytes, size))
			return NULL;
	return "all zeros";
}

/* The one without a guess that holds address, or NULL. */
static struct unknown *find_unknown(const struct unknowns *unknowns, uint64_t address)
{
	size_t low = LIST_ABOVE(unknowns->items, unknowns->count, end, address);
	struct unknown *unknown = unknowns->items + low;

	return low < unknowns->count && unknown->start <= address && !*unknown->guess ? unknown
										      : NULL;
}

/* The range of all that is still without a guess; false if none is. */
static bool find_bounds(struct guessing *guessing)
{
	guessing->start = guessing->end = 0;
	array_for_each(unknown, guessing->unknowns) {
		if (*unknown->guess)
			continue;
		if (guessing->end == 0)
			guessing->start = unknown->start;
		guessing->end = unknown->end;
	}
	return guessing->end != 0;
}

/* Give what the words that have a bit refer to that guess. */
static void set_guesses(const struct guessing *guessing, const uint8_t *bytes, uint64_t bits,
			const char *guess)
{
	const unsigned int width = image_word_size(guessing->image);

	for (; bits; bits &= bits - 1) {
		uint64_t word = load_word(bytes + (uint64_t)__builtin_ctzll(bits) * width, width);
		struct unknown *unknown = find_unknown(guessing->unknowns, word);

		if (unknown)
			set_guess(unknown, guess);
	}
}

/* Give what [start, end) refers to that guess. */
static struct error *scan(struct guessing *guessing, uint64_t start, uint64_t end,
			  const char *guess)
{
	const uint64_t width = image_word_size(guessing->image);
	const struct word_filter filter =
		word_filter_for((struct heap_bounds){ { guessing->start, guessing->start },
						      { guessing->end - guessing->start, 0 } },
				(unsigned int)width);
	const uint8_t *bytes;
	uint64_t size;

	for (; (bytes = next_bytes(guessing->image, &start, end, &size)); start += size) {
		for (uint64_t i = 0; i + width <= size; i += FILTER_WORDS * width) {
			uint64_t words = (size - i) / width;

			words = MIN(words, FILTER_WORDS);
			set_guesses(guessing, bytes + i,
				    word_filter_mask(&filter, bytes + i, words), guess);
		}
		image_advance(guessing->image, start, start + size);
		TRY(progress_check(analysis_progress(guessing->analysis), size));
	}
	return NULL;
}

/* Variables of the loader, or of other modules: the module has what they refer to. */
static struct error *guess_by_variables(struct guessing *guessing, bool of_loader)
{
	const struct program *program = analysis_program(guessing->analysis);
	const char *loader = guessing->image->arch->loader;

	list_for_each(region, guessing->image->regions, guessing->image->region_count) {
		const struct module *module = program_find_module(program, region->start);
		uint64_t end = region->end;
		char guess[GUESS_SIZE];

		if (!module || !(region->rights & RIGHT_WRITE) || !region->bytes)
			continue;
		end = MIN(end, module->end);
		if ((strcmp(module_file_name(module), loader) == 0) != of_loader)
			continue;
		snprintf(guess, sizeof(guess), "of %.20s", module_name(module));
		TRY(scan(guessing, region->start, end, guess));
	}
	return NULL;
}

/*
 * The loader comes last: it also refers to where other modules end, and that may be another's
 * memory.
 */
static struct error *guess_by_modules(struct guessing *guessing)
{
	TRY(guess_by_variables(guessing, false));
	return guess_by_variables(guessing, true);
}

static struct error *guess_by_stacks(struct guessing *guessing)
{
	const struct program *program = analysis_program(guessing->analysis);

	list_for_each(stack, program->stacks, program->stack_count) {
		TRY(scan(guessing, stack->live, stack->live_end, "held by a stack"));
	}
	return NULL;
}

static struct error *guess_by_heap(struct guessing *guessing)
{
	const struct allocation_index *index = analysis_index(guessing->analysis);
	uint64_t total = 0;

	for (size_t i = 0; i < heap_claim_count(index); i++)
		total += heap_claim(index, i).end - heap_claim(index, i).start;
	progress_begin(analysis_progress(guessing->analysis), "finding owners of memory", total);
	for (size_t i = 0; i < heap_claim_count(index); i++) {
		struct memory_range claim = heap_claim(index, i);

		TRY(scan(guessing, claim.start, claim.end, "held by the heap"));
	}
	return NULL;
}

static void guess_by_registers(struct guessing *guessing)
{
	const struct image *image = guessing->image;

	for (uint32_t i = 0; i < image->thread_count; i++)
		for (size_t j = 0; j < MOST_REGISTERS; j++) {
			struct unknown *unknown =
				find_unknown(guessing->unknowns, image->threads[i].registers[j]);

			if (unknown)
				set_guess(unknown, "held by a stack");
		}
}

static struct error *scan_shared(struct guessing *guessing)
{
	const struct program *program = analysis_program(guessing->analysis);

	list_for_each(region, guessing->image->regions, guessing->image->region_count)
		if (region->mapping && region->bytes &&
		    !program_find_module(program, region->start))
			TRY(scan(guessing, region->start, region->end, HELD_BY_MAPPED));
	return NULL;
}

/* Guess by memory that has a guess itself, and refers to it directly or not. */
static struct error *guess_by_others(struct guessing *guessing)
{
	bool is_over = false;

	guess_by_registers(guessing);
	TRY(scan_shared(guessing));
	while (!is_over) {
		is_over = true;
		array_for_each(unknown, guessing->unknowns) {
			if (!*unknown->guess || unknown->is_scanned)
				continue;
			unknown->is_scanned = true;
			is_over = false;
			TRY(scan(guessing, unknown->start, unknown->end, HELD_BY_MAPPED));
		}
	}
	return NULL;
}

struct error *bill_guess(struct unknowns *unknowns, struct analysis *analysis)
{
	struct guessing guessing = {
		.unknowns = unknowns,
		.analysis = analysis,
		.image = analysis_image(analysis),
	};
	struct error *error = NULL;

	guess_each(&guessing, guess_by_rights);
	guess_each(&guessing, guess_by_objects);
	if (find_bounds(&guessing))
		error = guess_by_modules(&guessing);
	guess_each(&guessing, guess_by_guard);
	if (!error && find_bounds(&guessing))
		error = guess_by_stacks(&guessing);
	/*
	 * Do this last, and only if something is left to guess, because it reads all of the heap.
	 */
	if (!error && find_bounds(&guessing))
		error = guess_by_heap(&guessing);
	guess_each(&guessing, guess_by_zeros);
	if (!error && find_bounds(&guessing))
		error = guess_by_others(&guessing);
	return error;
}
