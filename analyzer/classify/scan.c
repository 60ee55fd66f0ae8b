#include "analyzer/classify/scan.h"

#include "analyzer/base/parallel.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/classify/identity.h"
#include "analyzer/heap/word_filter.h"
#include "analyzer/heap/work_chunks.h"

#include <assert.h>

enum {
	PIECE = 1 << 20, /* bytes of roots that are scanned in one go */
	OFFSETS = MOST_OFFSET + 1,
	MOST_CLASSIFIERS = 128,
	MOST_MATCHERS = 64, /* each has a bit of a word */
};

/* A stretch of a root; the words around it are in range. */
struct piece {
	struct memory_range range;
	uint64_t start, end;
	enum root_kind kind;
};

/* The filtered words of a row of memory. Small allocations beside each other share it. */
struct row {
	uint64_t start; /* a multiple of FILTER_WORDS words */
	uint64_t mask;
	bool known;
};

struct scanner {
	struct reader reader;
	struct view sources; /* the memory being scanned, in order; readers jump */
	struct row row;
	struct reference references[MOST_ADDRESSES];
	uint64_t words[MOST_ADDRESSES];
	uint64_t suspects[MOST_ADDRESSES]; /* the matchers that care */
	uint64_t suspected[MOST_MATCHERS]; /* the words, of those in the mask */
	bool counted[MOST_ADDRESSES];	   /* held by no stack */
	size_t count;
	size_t source_hint;
};

/* The classifiers that match references. */
struct matchers {
	uint8_t numbers[MOST_MATCHERS];
	uint64_t (*suspects[MOST_MATCHERS])(const struct reader *reader,
					    const struct reference *first, uint64_t mask);
	size_t count;
	uint64_t at[OFFSETS]; /* classifiers for that offset */
};

struct scan {
	const struct scan_input *input;
	const struct scan_task *task;
	struct split_work work;
	struct overview overview;
	struct word_filter filter;
	unsigned int word_shift; /* of bytes to words */
	struct module_bounds bounds;
	const struct bitmap *used;
	const struct bitmap *sources;	  /* the used ones to scan */
	const struct bitmap *pointerless; /* they refer to nothing; or NULL */
	struct scanner *scanners;	  /* one for each thread */
	_Atomic uint64_t steps;		  /* the budget of their readers */
	struct piece *pieces;
	size_t piece_count;
	struct work_chunks chunks;
	bool is_needed;
	struct matchers matchers;
	/* Numbers of classifiers, 0 at the end, by least_size. */
	uint8_t inspectors[MOST_CLASSIFIERS + 1];
	uint8_t plain_inspectors[MOST_CLASSIFIERS + 1]; /* of pointerless */
	uint8_t finishers[MOST_CLASSIFIERS + 1];
};

static void add_number(uint8_t *list, uint8_t number)
{
	uint64_t least_size = classifiers[number - 1]->least_size;

	while (*list && classifiers[*list - 1]->least_size <= least_size)
		list++;
	for (uint8_t next; number; number = next) {
		next = *list;
		*list++ = number;
	}
}

static void add_matcher(struct matchers *matchers, uint8_t number)
{
	const struct classifier *classifier = classifiers[number - 1];

	assert(matchers->count < MOST_MATCHERS);
	matchers->at[classifier->offset] |= UINT64_C(1) << matchers->count;
	matchers->suspects[matchers->count] = classifier->suspect;
	matchers->numbers[matchers->count++] = number;
}

/* True if the classifier may find anything in this program. */
static bool is_meant(const struct scan_input *input, const struct classifier *classifier)
{
	const struct runtime *runtime = classifier->runtime;

	if (!classifier->narrow && image_word_size(input->image) != sizeof(uint64_t))
		return false;
	if (classifier->for_cxx && !input->cxx)
		return false;
	if (input->numbered && !pattern_numbers_any(&classifier->numbers))
		return false;
	return !runtime || runtimes_space(input->runtimes, runtime);
}

bool scan_is_local(const struct scan_input *input)
{
	for (size_t i = 0; classifiers[i]; i++)
		if ((classifiers[i]->walks ||
		     (classifiers[i]->pointerless && !classifiers[i]->is_text) ||
		     classifiers[i]->runtime) &&
		    is_meant(input, classifiers[i]))
			return false;
	return true;
}

bool scan_leads_on(const struct scan_input *input, struct reader *reader, allocation_id id)
{
	struct memory_range range = allocation_range_near(input->index, id, &reader->hint);

	for (size_t i = 0; classifiers[i]; i++)
		if (classifiers[i]->leads_on && is_meant(input, classifiers[i]) &&
		    classifiers[i]->leads_on(reader, range))
			return true;
	return false;
}

static bool finds_patterns(const struct scan *scan)
{
	return scan->task->aim == SCAN_PATTERNS || scan->task->aim == SCAN_BOTH;
}

/* How many items the arrays of the task have. */
static size_t place_count(const struct scan *scan)
{
	return scan->task->places ? scan->task->places->count
				  : allocation_count(scan->input->index);
}

/*
 * The numbers of classifiers that may find anything: if only owners are looked for, that of a
 * pattern which some allocation has.
 */
static void find_present(const struct scan *scan, bool *ret)
{
	size_t count = finds_patterns(scan) ? 0 : place_count(scan);

	memset(ret, finds_patterns(scan), MOST_CLASSIFIERS + 1);
	for (size_t i = 0; i < count; i++)
		ret[scan->task->patterns[i]] = true;
}

static void choose_classifiers(struct scan *scan)
{
	bool present[MOST_CLASSIFIERS + 1];

	find_present(scan, present);
	for (uint8_t i = 0; i < MOST_CLASSIFIERS && classifiers[i]; i++) {
		const struct classifier *classifier = classifiers[i];
		uint8_t number = (uint8_t)(i + 1);

		if (!present[number] || !is_meant(scan->input, classifier) ||
		    (classifier->is_text && !finds_patterns(scan)) ||
		    (scan->task->aim == SCAN_LATE_OWNERS && !classifier->owners_later))
			continue;
		scan->is_needed = true;
		if (classifier->match)
			add_matcher(&scan->matchers, number);
		if (classifier->inspect)
			add_number(scan->inspectors, number);
		if (classifier->inspect && classifier->pointerless)
			add_number(scan->plain_inspectors, number);
		if (classifier->finish)
			add_number(scan->finishers, number);
	}
}

/* True if the holder is an allocation that begins with a link to one of its own size. */
static bool is_inner_link(const struct reference *reference)
{
	uint64_t target = range_size(reference->range);
	uint64_t source = range_size(reference->holder);

	return reference->source != NO_ALLOCATION &&
	       reference->address == reference->holder.start && target + 16 - source <= 32;
}

static void note_reference(struct scan *scan, const struct reference *reference, bool counted)
{
	struct overview *overview = &scan->overview;
	allocation_id target = reference->target;

	if (!is_inner_link(reference))
		bitmap_set_atomic(&overview->held, target);
	if (!counted)
		return;
	if (bitmap_set_was_atomic(&overview->referred, target))
		bitmap_set_atomic(&overview->referred_twice, target);
}

static void show_reference(struct scan *scan, struct scanner *scanner,
			   const struct reference *reference, size_t offset, size_t place)
{
	const struct matchers *matchers = &scan->matchers;
	uint64_t suspects = scanner->suspects[place] & matchers->at[offset];

	if (offset == 0 && scan->overview.held.words)
		note_reference(scan, reference, scanner->counted[place]);
	for (; suspects; suspects &= suspects - 1) {
		uint8_t number = matchers->numbers[__builtin_ctzll(suspects)];

		scanner->reader.number = number;
		classifiers[number - 1]->match(&scanner->reader, reference);
	}
}

/* Look up the words collected so far, and show them to the classifiers that suspect them. */
static void look_up(struct scan *scan, struct scanner *scanner)
{
	allocation_id targets[MOST_ADDRESSES];

	allocation_find_many(scan->input->index, scanner->words, scanner->count,
			     &scanner->reader.hint, targets);
	for (size_t i = 0; i < scanner->count; i++) {
		struct reference *reference = &scanner->references[i];
		uint64_t offset;

		if (targets[i] == NO_ALLOCATION || targets[i] == reference->source ||
		    !bitmap_get(scan->used, targets[i]))
			continue;
		reference->target = targets[i];
		reference->range =
			allocation_range_around(scan->input->index, targets[i], scanner->words[i]);
		offset = scanner->words[i] - reference->range.start;
		if (offset >> scan->word_shift <= MOST_OFFSET)
			show_reference(scan, scanner, reference, offset >> scan->word_shift, i);
	}
	scanner->count = 0;
}

/*
 * The words from address on that may be references, by bit; *ret_count is how many words that is,
 * most at most. bytes is at address, in the region of the sources read last.
 */
static inline __attribute__((always_inline)) uint64_t filter_words(
	const struct scan *scan, struct scanner *scanner, uint64_t address, const uint8_t *bytes,
	uint64_t most, unsigned int word, size_t *ret_count)
{
	const struct view *view = &scanner->sources;
	struct row *row = &scanner->row;
	const uint64_t filtered = (uint64_t)FILTER_WORDS * word;
	uint64_t start = address & -filtered;
	size_t first = (address - start) / word;
	size_t count = most < FILTER_WORDS - first ? most : FILTER_WORDS - first;

	*ret_count = count;
	if (!row->known || start != row->start) {
		if (address % word != 0 || start - view->start >= view->size ||
		    view->size - (start - view->start) < filtered)
			return word_filter_mask(&scan->filter, bytes, count);
		row->mask =
			word_filter_mask(&scan->filter, bytes - (address - start), FILTER_WORDS);
		row->start = start;
		row->known = true;
	}
	return row->mask >> first & ~UINT64_C(0) >> (FILTER_WORDS - count);
}

/* Put which words each matcher suspects into suspected; those of any? */
static uint64_t find_suspects(const struct scan *scan, struct scanner *scanner,
			      const struct reference *first, uint64_t mask)
{
	const struct matchers *matchers = &scan->matchers;
	uint64_t all = 0;

	for (size_t i = 0; i < matchers->count; i++) {
		uint64_t bits = mask;

		/* Classifiers of one container are neighbours and suspect the same words. */
		if (i > 0 && matchers->suspects[i] == matchers->suspects[i - 1])
			bits = scanner->suspected[i - 1];
		else if (matchers->suspects[i])
			bits = matchers->suspects[i](&scanner->reader, first, mask);
		scanner->suspected[i] = bits;
		all |= bits;
	}
	return all;
}

static uint64_t suspects_of(const struct scan *scan, const struct scanner *scanner,
			    unsigned int bit)
{
	uint64_t who = 0;

	for (size_t i = 0; i < scan->matchers.count; i++)
		who |= (scanner->suspected[i] >> bit & 1) << i;
	return who;
}

/* Collect those of the words that mask names, from the first reference on. */
static inline __attribute__((always_inline)) void collect_words(struct scan *scan,
								struct scanner *scanner,
								const struct reference *first,
								uint64_t mask, bool counted)
{
	const unsigned int size = first->word;
	uint64_t all = find_suspects(scan, scanner, first, mask);

	for (; all; all &= all - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(all);
		struct reference *reference = &scanner->references[scanner->count];
		size_t offset = (size_t)bit * size;
		uint64_t word = load_word(first->bytes + offset, size);

		if ((word & (size - 1)) != 0)
			continue;
		*reference = *first;
		reference->address += offset;
		reference->bytes += offset;
		scanner->words[scanner->count] = word;
		scanner->suspects[scanner->count] = suspects_of(scan, scanner, bit);
		scanner->counted[scanner->count] = counted;
		if (++scanner->count == MOST_ADDRESSES)
			look_up(scan, scanner);
	}
}

/*
 * Collect the words of [start, start + size) that may be references. bytes is at start, in the
 * region of the scanner's sources read last, and all of the holder is in a row with it.
 */
static inline __attribute__((always_inline)) void scan_words_of(
	struct scan *scan, struct scanner *scanner, struct memory_range holder, uint64_t start,
	const uint8_t *bytes, uint64_t size, allocation_id source, bool counted, unsigned int word)
{
	size_t count;

	for (uint64_t i = 0; i + word <= size; i += word * (uint64_t)count) {
		uint64_t mask = filter_words(scan, scanner, start + i, bytes + i, (size - i) / word,
					     word, &count);

		if (mask)
			collect_words(scan, scanner,
				      &(struct reference){
					      .address = start + i,
					      .bytes = bytes + i,
					      .word = word,
					      .holder = holder,
					      .source = source,
				      },
				      mask, counted);
	}
}

static void scan_words(struct scan *scan, struct scanner *scanner, struct memory_range holder,
		       uint64_t start, const uint8_t *bytes, uint64_t size, allocation_id source,
		       bool counted)
{
	if (scan->filter.word_size == sizeof(uint64_t))
		scan_words_of(scan, scanner, holder, start, bytes, size, source, counted,
			      sizeof(uint64_t));
	else
		scan_words_of(scan, scanner, holder, start, bytes, size, source, counted,
			      sizeof(uint32_t));
}

static void inspect(const uint8_t *inspectors, struct scanner *scanner,
		    const struct subject *subject)
{
	for (const uint8_t *number = inspectors; *number; number++) {
		const struct classifier *classifier = classifiers[*number - 1];

		if (subject->size < classifier->least_size)
			return;
		scanner->reader.number = *number;
		classifier->inspect(&scanner->reader, subject);
	}
}

/* Scan all of the holder, part of an allocation, but holes of the dump. */
static void scan_holder(struct scan *scan, struct scanner *scanner, struct memory_range holder,
			const uint8_t *bytes, allocation_id id)
{
	uint64_t start = holder.start;

	while (start < holder.end) {
		uint64_t size = holder.end - start;

		size = MIN(size, PIECE);
		scan_words(scan, scanner, holder, start, bytes + (start - holder.start), size, id,
			   true);
		start += size;
		if (start < holder.end)
			start = image_next_data(scan->input->image, start);
	}
}

/* Keep the first words of an allocation that is scanned. */
static void keep_words(struct scan *scan, struct scanner *scanner, allocation_id id,
		       struct memory_range range)
{
	uint64_t words[EARLY_WORDS], first = 0;
	size_t count = early_words_read(&scanner->sources, range, words);

	if (range_size(range) >= scan->filter.word_size)
		view_word(&scanner->sources, range.start, &first);
	kept_words_add(scan->input->kept, id, first,
		       module_bounds_meet(&scan->bounds, words, count));
}

/* Returns the allocation's size. */
static uint64_t scan_allocation(struct scan *scan, struct scanner *scanner, allocation_id id)
{
	const struct memory_range range =
		allocation_range_near(scan->input->index, id, &scanner->source_hint);
	const uint64_t first = range.start, end = range.end;
	uint64_t size;

	if (scan->input->kept)
		keep_words(scan, scanner, id, range);
	for (uint64_t start = first; start < end; start += size) {
		const uint8_t *bytes = view_bytes(&scanner->sources, start, &size);

		if (!bytes)
			break;
		size = MIN(size, end - start);
		/*
		 * Do not use range here, which the processor would wait for: it was just returned
		 * in halves.
		 */
		if (start == first && size >= sizeof(uint64_t))
			inspect(scan->inspectors, scanner,
				&(struct subject){ id, { first, end }, bytes, size });
		scan_holder(scan, scanner, (struct memory_range){ start, start + size }, bytes, id);
	}
	return end - first;
}

/* Its words are no references. */
static void inspect_pointerless(struct scan *scan, struct scanner *scanner, allocation_id id)
{
	struct memory_range range =
		allocation_range_near(scan->input->index, id, &scanner->source_hint);
	uint64_t size = 0;
	const uint8_t *bytes = view_bytes(&scanner->sources, range.start, &size);

	if (scan->input->kept)
		keep_words(scan, scanner, id, range);
	size = MIN(size, range_size(range));
	if (bytes && size >= sizeof(uint64_t))
		inspect(scan->plain_inspectors, scanner,
			&(struct subject){ id, range, bytes, size });
}

/* Scan part of an allocation, all of it in one region. */
static void scan_part(struct scan *scan, struct scanner *scanner, allocation_id id,
		      struct memory_range part)
{
	struct memory_range range =
		allocation_range_near(scan->input->index, id, &scanner->source_hint);
	const struct view *view = &scanner->sources;
	struct memory_range holder = range;
	const uint8_t *bytes;

	if (scan->input->kept && part.start == range.start)
		keep_words(scan, scanner, id, range);
	if (!view_move(&scanner->sources, part.start))
		return;
	holder.start = MAX(holder.start, view->start);
	if (holder.end - view->start > view->size)
		holder.end = view->start + view->size;
	bytes = view->bytes + (holder.start - view->start);
	if (part.start == range.start)
		inspect(scan->inspectors, scanner,
			&(struct subject){ id, range, bytes, range_size(holder) });
	scan_words(scan, scanner, holder, part.start, bytes + (part.start - holder.start),
		   range_size(part), id, true);
}

static void scan_run(struct scan *scan, struct scanner *scanner, const struct work_chunk *chunk,
		     uint64_t *ret_bytes)
{
	/* With few sources, the next one may be far beyond the chunk. */
	struct bitmap sources = *scan->sources;

	if (chunk->end < sources.count)
		sources.count = chunk->end;
	for (size_t id = bitmap_next(&sources, chunk->first); id < sources.count;
	     id = bitmap_next(&sources, id + 1)) {
		if (scan->pointerless && bitmap_get(scan->pointerless, id)) {
			if (*scan->plain_inspectors || scan->input->kept)
				inspect_pointerless(scan, scanner, (allocation_id)id);
			continue;
		}
		*ret_bytes += scan_allocation(scan, scanner, (allocation_id)id);
	}
}

static void scan_allocations(struct scan *scan, struct scanner *scanner,
			     const struct work_chunk *chunk, uint64_t *ret_bytes)
{
	if (range_size(chunk->part) == 0) {
		scan_run(scan, scanner, chunk, ret_bytes);
		return;
	}
	scan_part(scan, scanner, chunk->first, chunk->part);
	*ret_bytes += range_size(chunk->part);
}

static void scan_piece(struct scan *scan, struct scanner *scanner, const struct piece *piece,
		       uint64_t *ret_bytes)
{
	uint64_t size;
	const uint8_t *bytes = view_bytes(&scanner->sources, piece->start, &size);

	if (bytes)
		scan_words(scan, scanner, piece->range, piece->start, bytes,
			   piece->end - piece->start, NO_ALLOCATION, piece->kind == ROOT_STATIC);
	*ret_bytes += piece->end - piece->start;
}

/*
 * Walks of all chunks together may go over all allocations a few times, and over tables. No program
 * comes near that, so what is found does not depend on which thread is faster; but any number of
 * hostile headers can share a table.
 */
static uint64_t most_steps(const struct scan *scan)
{
	return 4 * (uint64_t)allocation_count(scan->input->index) + scan->input->image->size / 4 +
	       PIECE;
}

/* Scan a chunk of allocations, or a piece of a root. */
static struct error *scan_chunk(void *data, size_t turn, unsigned int thread)
{
	struct scan *scan = data;
	struct scanner *scanner = &scan->scanners[thread];
	const struct work_chunk *chunk =
		turn < scan->chunks.count ? work_chunks_take(&scan->chunks, turn) : NULL;
	uint64_t bytes = 0;

	if (chunk)
		scan_allocations(scan, scanner, chunk, &bytes);
	else
		scan_piece(scan, scanner, &scan->pieces[turn - scan->chunks.count], &bytes);
	look_up(scan, scanner);
	if (chunk)
		work_chunk_release(&scan->chunks, chunk);
	return split_work_check(&scan->work, turn, thread, scan->input->progress, bytes);
}

/*
 * Cut what is known of a root into pieces, holes of the dump left out; only counted if pieces is
 * NULL.
 */
static size_t cut_range(const struct scan *scan, struct root_range root, struct piece *pieces)
{
	const uint64_t word = scan->filter.word_size;
	uint64_t start = (root.start + word - 1) & -word;
	size_t count = 0;

	while (start < root.end) {
		const struct region *region = image_find(scan->input->image, start);
		uint64_t end, stop;

		if (!region)
			break;
		stop = region->end < root.end ? region->end : root.end;
		for (uint64_t at = start; region->bytes && at < stop; at = end) {
			at = image_next_data(scan->input->image, at);
			if (at >= stop)
				break;
			end = stop - at > PIECE ? at + PIECE : stop;
			if (pieces)
				pieces[count] =
					(struct piece){ { start, stop }, at, end, root.kind };
			count++;
		}
		start = stop;
	}
	return count;
}

static size_t cut_roots(const struct scan *scan, struct piece *pieces)
{
	const struct roots *roots = scan->input->roots;
	size_t count = 0;

	for (size_t i = 0; !scan->input->only && i < root_range_count(roots); i++)
		count += cut_range(scan, root_range(roots, i), pieces ? pieces + count : NULL);
	return count;
}

/* If most allocations may be chained, a filter would not pay. */
static struct error *find_chained(struct scan *scan)
{
	const struct allocation_index *index = scan->input->index;
	struct address_filter *chained = &scan->overview.chained;
	size_t count = 0, hint = 0;

	bitmap_for_each(id, scan->used)
		count += allocation_size(index, (allocation_id)id) <= MOST_CHAINED;
	if (count > allocation_count(index) / 2)
		return NULL;
	TRY(address_filter_init(chained, count, scan->input->account));
	bitmap_for_each(id, scan->used) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		if (range_size(range) <= MOST_CHAINED)
			address_filter_add(chained, range.start);
	}
	return NULL;
}

static struct error *init_overview(struct scan *scan)
{
	struct overview *overview = &scan->overview;

	overview->program = scan->input->program;
	for (size_t i = 0; scan->input->cxx && i < OVERVIEW_BITMAPS; i++)
		TRY(bitmap_init(&overview->all[i], allocation_count(scan->input->index),
				scan->input->account));
	return scan->input->cxx ? find_chained(scan) : NULL;
}

static void finish(struct scan *scan)
{
	struct reader *reader = &scan->scanners[0].reader;

	for (const uint8_t *number = scan->finishers; *number; number++) {
		reader->number = *number;
		reader->steps = 0;
		atomic_store(&scan->steps, most_steps(scan));
		classifiers[*number - 1]->finish(reader, &scan->overview);
	}
}

static struct error *run(struct scan *scan)
{
	const struct scan_input *input = scan->input;
	const struct scan_task *task = scan->task;
	unsigned int threads = parallel_threads_for(input->progress);
	size_t chunks;

	TRY(work_chunks_init(&scan->chunks, input->image, input->index, scan->sources,
			     scan->pointerless, input->account));
	scan->chunks.upwards = input->only;
	scan->piece_count = cut_roots(scan, NULL);
	scan->pieces = calloc(scan->piece_count + 1, sizeof(*scan->pieces));
	scan->scanners = calloc(threads, sizeof(*scan->scanners));
	TRY_MEMORY(scan->pieces && scan->scanners);
	cut_roots(scan, scan->pieces);
	atomic_store(&scan->steps, most_steps(scan));
	for (unsigned int i = 0; i < threads; i++) {
		struct reader *reader = &scan->scanners[i].reader;

		scan->scanners[i].sources.image = input->image;
		reader_init(reader, input->image, input->program, input->index);
		reader->cxx = input->cxx;
		reader->runtimes = input->runtimes;
		reader->overview = &scan->overview;
		reader->progress = input->progress;
		reader->budget = &scan->steps;
		reader->few = task->few;
		reader->patterns = task->patterns;
		reader->places = task->places;
		if (task->aim == SCAN_BOTH)
			reader->claims = task->owners;
		else
			reader->owners = task->owners;
	}
	TRY(init_overview(scan));
	chunks = scan->chunks.count + scan->piece_count;
	TRY(split_work_run(&scan->work, input->progress, chunks, threads, scan_chunk, scan));
	finish(scan);
	if (task->aim == SCAN_BOTH && !task->few)
		reader_take_claims(task->owners, place_count(scan), task->patterns);
	return NULL;
}

static void scan_deinit(struct scan *scan)
{
	for (size_t i = 0; i < OVERVIEW_BITMAPS; i++)
		bitmap_deinit(&scan->overview.all[i]);
	address_filter_deinit(&scan->overview.chained);
	array_release(&scan->chunks);
	free(scan->scanners);
	free(scan->pieces);
}
DEFINE_DEINIT(scan_deinit, struct scan)

struct error *scan_memory(const struct scan_input *input, const struct scan_task *task)
{
	const unsigned int word = image_word_size(input->image);
	_cleanup_(scan_deinit) struct scan scan = {
		.input = input,
		.task = task,
		.filter = word_filter_for(allocation_bounds(input->index), word),
		.word_shift = word == sizeof(uint64_t) ? 3 : 2,
		.bounds = module_bounds_find(input->program),
		.used = allocation_used(input->index),
		.sources = task->sources ? task->sources
			   : input->only ? input->only
					 : allocation_used(input->index),
		.pointerless = allocation_having(input->index, TRAIT_POINTERLESS),
	};

	/* An index of nothing has no regions to look in. */
	if (allocation_count(input->index) == 0)
		return NULL;
	choose_classifiers(&scan);
	if (!scan.is_needed && !input->kept)
		return NULL;
	progress_begin(input->progress, "recognizing containers", input->image->size);
	return run(&scan);
}
