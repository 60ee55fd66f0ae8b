#include "analyzer/classify/scan.h"

#include "analyzer/base/parallel.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/heap/turns.h"
#include "analyzer/program/debug.h"

/* So many bytes of roots are looked at in one go. */
enum { PIECE = 1 << 20 };

enum { OFFSETS = MOST_OFFSET / 8 + 1, MOST_CLASSIFIERS = 128 };

/* A stretch of a root; the words around it are in range. */
struct piece {
	struct memory_range range;
	uint64_t start, end;
	enum root_kind kind;
};

struct scanner {
	struct reader reader;
	struct reference references[MOST_ADDRESSES];
	uint64_t words[MOST_ADDRESSES];
	bool counted[MOST_ADDRESSES]; /* held by no stack */
	size_t count;
	size_t source_hint;
};

struct scan {
	const struct scan_input *input;
	enum scan_aim aim;
	struct split_work work;
	struct overview overview;
	struct heap_bounds bounds;
	const struct bitmap *used;
	const struct bitmap *sources; /* of the used ones, those looked at */
	const struct bitmap *pointerless; /* they refer to nothing; or NULL */
	struct scanner *scanners;	  /* one for each thread */
	_Atomic uint64_t steps;		  /* the stock of their readers */
	struct piece *pieces;
	size_t piece_count;
	struct allocation_turns turns;
	bool is_needed;
	/* Numbers of classifiers, 0 at the end. */
	uint8_t matchers[OFFSETS][MOST_CLASSIFIERS + 1];
	uint8_t inspectors[MOST_CLASSIFIERS + 1];
	uint8_t plain_inspectors[MOST_CLASSIFIERS + 1]; /* of pointerless */
	uint8_t finishers[MOST_CLASSIFIERS + 1];
};

static void add_number(uint8_t *list, uint8_t number)
{
	while (*list)
		list++;
	*list = number;
}

static bool begins_module(const struct program *program, const char *name,
			  size_t length)
{
	for (size_t i = 0; i < program_module_count(program); i++)
		if (strncmp(module_name(program_module(program, i)), name,
			    length) == 0)
			return true;
	return false;
}

/* One of several, with | between them. */
static bool is_loaded(const struct program *program, const char *libraries)
{
	while (*libraries) {
		size_t length = strcspn(libraries, "|");

		if (begins_module(program, libraries, length))
			return true;
		libraries += length;
		libraries += *libraries == '|';
	}
	return false;
}

static bool is_meant(const struct scan *scan,
		     const struct classifier *classifier)
{
	const char *library = classifier->for_library;

	return (!classifier->for_cxx || scan->input->cxx) &&
	       (!classifier->for_crystal || scan->input->crystal) &&
	       (!library || is_loaded(scan->input->program, library) ||
		!program_knows_modules(scan->input->program));
}

static bool finds_patterns(const struct scan *scan)
{
	return scan->aim == SCAN_PATTERNS || scan->aim == SCAN_BOTH;
}

/*
 * The numbers of classifiers that may find anything: if only owners are looked
 * for, that of a pattern which some allocation has.
 */
static void find_present(const struct scan *scan, bool *ret)
{
	const struct scan_input *input = scan->input;
	size_t count =
		finds_patterns(scan) ? 0 : allocation_count(input->index);

	memset(ret, finds_patterns(scan), MOST_CLASSIFIERS + 1);
	for (size_t id = 0; id < count; id++)
		ret[input->patterns[id]] = true;
}

static void choose_classifiers(struct scan *scan)
{
	bool present[MOST_CLASSIFIERS + 1];

	find_present(scan, present);
	for (uint8_t i = 0; i < MOST_CLASSIFIERS && classifiers[i]; i++) {
		const struct classifier *classifier = classifiers[i];
		uint8_t number = (uint8_t)(i + 1);

		if (!present[number] || !is_meant(scan, classifier) ||
		    (scan->aim == SCAN_LATE_OWNERS &&
		     !classifier->owners_later))
			continue;
		scan->is_needed = true;
		if (classifier->match)
			add_number(scan->matchers[classifier->offset / 8],
				   number);
		if (classifier->inspect)
			add_number(scan->inspectors, number);
		if (classifier->inspect && classifier->pointerless)
			add_number(scan->plain_inspectors, number);
		if (classifier->finish)
			add_number(scan->finishers, number);
	}
}

/* Whether the holder is an allocation that begins by a link to its like. */
static bool is_inner_link(const struct reference *reference)
{
	uint64_t target = range_size(reference->range);
	uint64_t source = range_size(reference->holder);

	return reference->source != NO_ALLOCATION &&
	       reference->address == reference->holder.start &&
	       target + 16 - source <= 32;
}

static void note_reference(struct scan *scan, const struct reference *reference,
			   bool counted)
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
			   const struct reference *reference, uint64_t offset,
			   bool counted)
{
	const uint8_t *number = scan->matchers[offset / 8];

	if (offset == 0 && scan->overview.held.words)
		note_reference(scan, reference, counted);
	for (; *number; number++) {
		scanner->reader.number = *number;
		classifiers[*number - 1]->match(&scanner->reader, reference);
	}
}

/* Look up the words collected so far. */
static void look_up(struct scan *scan, struct scanner *scanner)
{
	allocation_id targets[MOST_ADDRESSES];

	allocation_find_many(scan->input->index, scanner->words, scanner->count,
			     &scanner->reader.hint, targets);
	for (size_t i = 0; i < scanner->count; i++) {
		struct reference *reference = &scanner->references[i];
		uint64_t offset;

		if (targets[i] == NO_ALLOCATION ||
		    targets[i] == reference->source ||
		    !bitmap_get(scan->used, targets[i]))
			continue;
		reference->target = targets[i];
		reference->range = allocation_range_near(
			scan->input->index, targets[i], &scanner->reader.hint);
		offset = scanner->words[i] - reference->range.start;
		if (offset <= MOST_OFFSET)
			show_reference(scan, scanner, reference, offset,
				       scanner->counted[i]);
	}
	scanner->count = 0;
}

/*
 * Collect the words of [start, start + size) that may be references. bytes is
 * at start, and all of the holder is in a row with it.
 */
static void scan_words(struct scan *scan, struct scanner *scanner,
		       struct memory_range holder, uint64_t start,
		       const uint8_t *bytes, uint64_t size,
		       allocation_id source, bool counted)
{
	const struct heap_bounds bounds = scan->bounds;

	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (word % 8 != 0 || !heap_bounds_hold(&bounds, word))
			continue;
		scanner->words[scanner->count] = word;
		scanner->counted[scanner->count] = counted;
		scanner->references[scanner->count] = (struct reference){
			.address = start + i,
			.bytes = bytes + i,
			.holder = holder,
			.source = source,
		};
		if (++scanner->count == MOST_ADDRESSES)
			look_up(scan, scanner);
	}
}

static void inspect(const uint8_t *inspectors, struct scanner *scanner,
		    const struct subject *subject)
{
	for (const uint8_t *number = inspectors; *number; number++) {
		scanner->reader.number = *number;
		classifiers[*number - 1]->inspect(&scanner->reader, subject);
	}
}

/* Scan all of the holder, part of an allocation, but holes of the dump. */
static void scan_holder(struct scan *scan, struct scanner *scanner,
			struct memory_range holder, const uint8_t *bytes,
			allocation_id id)
{
	uint64_t start = holder.start;

	while (start < holder.end) {
		uint64_t size = holder.end - start;

		if (size > PIECE)
			size = PIECE;
		scan_words(scan, scanner, holder, start,
			   bytes + (start - holder.start), size, id, true);
		start += size;
		if (start < holder.end)
			start = image_next_data(scan->input->image, start);
	}
}

static void scan_allocation(struct scan *scan, struct scanner *scanner,
			    allocation_id id)
{
	struct memory_range range = allocation_range_near(
		scan->input->index, id, &scanner->source_hint);
	uint64_t start = range.start;

	while (start < range.end) {
		uint64_t size;
		const uint8_t *bytes =
			reader_bytes(&scanner->reader, start, &size);
		struct memory_range holder;

		if (!bytes)
			return;
		if (size > range.end - start)
			size = range.end - start;
		holder = (struct memory_range){ start, start + size };
		if (start == range.start && size >= sizeof(uint64_t))
			inspect(scan->inspectors, scanner,
				&(struct subject){ id, range, bytes, size });
		scan_holder(scan, scanner, holder, bytes, id);
		start += size;
	}
}

/* Its words are no references. */
static void inspect_pointerless(struct scan *scan, struct scanner *scanner,
				allocation_id id)
{
	struct memory_range range = allocation_range_near(
		scan->input->index, id, &scanner->source_hint);
	uint64_t size = 0;
	const uint8_t *bytes =
		reader_bytes(&scanner->reader, range.start, &size);

	if (size > range_size(range))
		size = range_size(range);
	if (bytes && size >= sizeof(uint64_t))
		inspect(scan->plain_inspectors, scanner,
			&(struct subject){ id, range, bytes, size });
}

/* Scan part of an allocation, all of it in one region. */
static void scan_part(struct scan *scan, struct scanner *scanner,
		      allocation_id id, struct memory_range part)
{
	struct memory_range range = allocation_range_near(
		scan->input->index, id, &scanner->source_hint);
	const struct region *region =
		image_find(scan->input->image, part.start);
	struct memory_range holder = {
		region->start > range.start ? region->start : range.start,
		region->end < range.end ? region->end : range.end,
	};
	const uint8_t *bytes = region->bytes + (holder.start - region->start);

	if (part.start == range.start)
		inspect(scan->inspectors, scanner,
			&(struct subject){ id, range, bytes,
					   range_size(holder) });
	scan_words(scan, scanner, holder, part.start,
		   bytes + (part.start - holder.start), range_size(part), id,
		   true);
}

static void scan_run(struct scan *scan, struct scanner *scanner,
		     const struct allocation_turn *turn, uint64_t *ret_bytes)
{
	for (size_t id = bitmap_next(scan->sources, turn->first);
	     id < turn->end && id < scan->sources->count;
	     id = bitmap_next(scan->sources, id + 1)) {
		if (scan->pointerless && bitmap_get(scan->pointerless, id)) {
			if (*scan->plain_inspectors)
				inspect_pointerless(scan, scanner,
						    (allocation_id)id);
			continue;
		}
		scan_allocation(scan, scanner, (allocation_id)id);
		*ret_bytes +=
			allocation_size(scan->input->index, (allocation_id)id);
	}
}

static void scan_allocations(struct scan *scan, struct scanner *scanner,
			     const struct allocation_turn *turn,
			     uint64_t *ret_bytes)
{
	if (range_size(turn->part) == 0) {
		scan_run(scan, scanner, turn, ret_bytes);
		return;
	}
	scan_part(scan, scanner, turn->first, turn->part);
	*ret_bytes += range_size(turn->part);
}

static void scan_piece(struct scan *scan, struct scanner *scanner,
		       const struct piece *piece, uint64_t *ret_bytes)
{
	uint64_t size;
	const uint8_t *bytes =
		reader_bytes(&scanner->reader, piece->start, &size);

	if (bytes)
		scan_words(scan, scanner, piece->range, piece->start, bytes,
			   piece->end - piece->start, NO_ALLOCATION,
			   piece->kind == ROOT_STATIC);
	*ret_bytes += piece->end - piece->start;
}

/*
 * Walks of all turns together may go over all allocations a few times, and
 * over tables. No program comes near that, so what is found does not depend on
 * which thread is faster; but any number of hostile headers can share a table.
 */
static uint64_t most_steps(const struct scan *scan)
{
	return 4 * (uint64_t)allocation_count(scan->input->index) +
	       image_size(scan->input->image) / 4 + PIECE;
}

/*
 * The allocations whose turn it is; NULL: it is that of a piece of a root. What
 * is leaked was told by the references, for which the first allocations were
 * read last, and are still there: then they are the first here.
 */
static const struct allocation_turn *find_turn(const struct scan *scan,
					       size_t turn)
{
	size_t count = scan->turns.count;

	if (turn >= count)
		return NULL;
	return &scan->turns.turns[scan->input->only ? count - 1 - turn : turn];
}

static struct error *scan_turn(void *data, size_t turn, unsigned int thread)
{
	struct scan *scan = data;
	struct scanner *scanner = &scan->scanners[thread];
	const struct allocation_turn *allocations = find_turn(scan, turn);
	uint64_t bytes = 0;

	if (allocations)
		scan_allocations(scan, scanner, allocations, &bytes);
	else
		scan_piece(scan, scanner,
			   &scan->pieces[turn - scan->turns.count], &bytes);
	look_up(scan, scanner);
	if (allocations)
		allocation_turn_pass(allocations, scan->input->image,
				     scan->input->index);
	if (!split_work_step(&scan->work, turn, thread, scan->input->progress,
			     bytes))
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return NULL;
}

/*
 * Cut what is known of a root into pieces, holes of the dump left out; only
 * counted if pieces is NULL.
 */
static size_t cut_range(const struct scan *scan, struct root_range root,
			struct piece *pieces)
{
	uint64_t start = (root.start + 7) & ~UINT64_C(7);
	size_t count = 0;

	while (start < root.end) {
		const struct region *region =
			image_find(scan->input->image, start);
		uint64_t end, stop;

		if (!region)
			break;
		stop = region->end < root.end ? region->end : root.end;
		for (uint64_t at = start; region->bytes && at < stop;
		     at = end) {
			at = image_next_data(scan->input->image, at);
			if (at >= stop)
				break;
			end = stop - at > PIECE ? at + PIECE : stop;
			if (pieces)
				pieces[count] = (struct piece){
					{ start, stop }, at, end, root.kind
				};
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

	for (size_t i = 0; !scan->input->only && i < root_range_count(roots);
	     i++)
		count += cut_range(scan, root_range(roots, i),
				   pieces ? pieces + count : NULL);
	return count;
}

static struct error *init_overview(struct scan *scan)
{
	struct overview *overview = &scan->overview;
	struct bitmap *bitmaps[] = {
		&overview->referred, &overview->referred_twice,
		&overview->held,     &overview->walked,
		&overview->noted,    &overview->ringed,
		&overview->foreign,
	};
	struct error *error = NULL;

	overview->program = scan->input->program;
	if (!scan->input->cxx)
		return NULL;
	for (size_t i = 0; !error && i < sizeof(bitmaps) / sizeof(*bitmaps);
	     i++)
		error = bitmap_init(bitmaps[i],
				    allocation_count(scan->input->index),
				    scan->input->account);
	return error;
}

static void deinit_overview(struct overview *overview)
{
	bitmap_deinit(&overview->referred);
	bitmap_deinit(&overview->referred_twice);
	bitmap_deinit(&overview->held);
	bitmap_deinit(&overview->walked);
	bitmap_deinit(&overview->noted);
	bitmap_deinit(&overview->ringed);
	bitmap_deinit(&overview->foreign);
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
	unsigned int threads = parallel_threads_for(input->progress);
	size_t turns;
	struct error *error = allocation_turns_init(
		&scan->turns, input->image, input->index, scan->sources,
		scan->pointerless, input->account);

	if (error)
		return error;
	scan->piece_count = cut_roots(scan, NULL);
	scan->pieces = calloc(scan->piece_count + 1, sizeof(*scan->pieces));
	scan->scanners = calloc(threads, sizeof(*scan->scanners));
	if (!scan->pieces || !scan->scanners)
		return &error_no_memory;
	cut_roots(scan, scan->pieces);
	atomic_store(&scan->steps, most_steps(scan));
	for (unsigned int i = 0; i < threads; i++) {
		struct reader *reader = &scan->scanners[i].reader;

		reader_init(reader, input->image, input->program, input->index);
		reader->cxx = input->cxx;
		reader->crystal = input->crystal;
		reader->overview = &scan->overview;
		reader->progress = input->progress;
		reader->stock = &scan->steps;
		reader->patterns = input->patterns;
		if (scan->aim == SCAN_BOTH)
			reader->claims = input->owners;
		else
			reader->owners = input->owners;
	}
	error = init_overview(scan);
	turns = scan->turns.count + scan->piece_count;
	split_work_begin(&scan->work, input->progress, turns);
	if (!error)
		error = parallel_for(turns, threads, scan_turn, scan);
	split_work_keep(&scan->work, threads, input->progress);
	if (!error)
		finish(scan);
	if (!error && scan->aim == SCAN_BOTH)
		reader_take_claims(input->owners,
				   allocation_count(input->index),
				   input->patterns);
	return error;
}

struct error *scan_memory(const struct scan_input *input, enum scan_aim aim)
{
	struct scan scan = {
		.input = input,
		.aim = aim,
		.bounds = allocation_bounds(input->index),
		.used = allocation_used(input->index),
		.sources = input->only ? input->only
				       : allocation_used(input->index),
		.pointerless =
			allocation_having(input->index, TRAIT_POINTERLESS),
	};
	struct error *error;

	/* An index of nothing has no regions to look in. */
	if (allocation_count(input->index) == 0)
		return NULL;
	choose_classifiers(&scan);
	if (!scan.is_needed)
		return NULL;
	progress_begin(input->progress, "recognizing containers",
		       image_size(input->image));
	error = run(&scan);
	deinit_overview(&scan.overview);
	allocation_turns_deinit(&scan.turns);
	free(scan.scanners);
	free(scan.pieces);
	return error;
}
