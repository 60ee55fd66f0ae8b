/*
 * The pass that finds references.
 *
 * Turns of bytes (analyzer/heap/turns.h) are handed out to threads. A share
 * that is one turn gets its rows from that, in the array of the thread. A share
 * that is cut gets them from several threads, in order: what a turn has found,
 * still in the processor's cache, is put behind what the turns before it have.
 * All of these are in one array, which does not move while it grows.
 */
#include "analyzer/base/parallel.h"
#include "analyzer/base/relay.h"
#include "analyzer/graph/graph_parts.h"
#include "analyzer/image/view.h"

#include <string.h>

struct edge_list {
	struct memory *memory; /* allocation_id */
	size_t count;	       /* in it */
};

/* What a thread needs to scan. */
struct scanner {
	struct edge_list edges;
	struct memory found; /* of a turn, to be joined to what others found */
	bool is_part; /* of an allocation, whose edges are counted later */
	size_t target_hint, source_hint;
	uint64_t words[MOST_ADDRESSES]; /* to be looked up together */
	allocation_id sources[MOST_ADDRESSES];
	size_t word_count;
	allocation_id last_source, last_target; /* of the edge added last */
	struct view view;
};

/* The edges of shares that are cut. Whoever has the baton may change it. */
struct joint {
	struct relay relay;
	unsigned int array; /* of the graph */
	size_t count;	    /* in it */
	allocation_id last_source, last_target;
};

struct scan {
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *used;
	const struct bitmap *pointerless; /* NULL: none is */
	struct heap_bounds bounds;
	struct progress *progress;
	struct graph *graph;
	struct allocation_turns turns;
	struct scanner *scanners; /* one for each thread */
	unsigned int threads;
	struct joint joint;
	struct split_work work;
};

/*
 * Add an edge, unless it is one to itself or the same as the one before. Until
 * its share is done, a row's offset counts its edges.
 */
static void add_edge(struct scanner *scanner, uint32_t *offsets,
		     allocation_id source, allocation_id target)
{
	struct edge_list *edges = &scanner->edges;

	if (target == NO_ALLOCATION || target == source ||
	    (target == scanner->last_target && source == scanner->last_source))
		return;
	scanner->last_source = source;
	scanner->last_target = target;
	((allocation_id *)edges->memory->bytes)[edges->count++] = target;
	if (!scanner->is_part)
		offsets[source]++;
}

/* Look up the words collected so far, and add an edge for each reference. */
static struct error *look_up(const struct scan *scan, struct scanner *scanner)
{
	allocation_id targets[MOST_ADDRESSES];
	size_t count = scanner->word_count;
	struct error *error = memory_reserve(scanner->edges.memory,
					     (scanner->edges.count + count) *
						     sizeof(*targets));

	if (error)
		return error;
	scanner->word_count = 0;
	allocation_find_many(scan->index, scanner->words, count,
			     &scanner->target_hint, targets);
	for (size_t i = 0; i < count; i++)
		add_edge(scanner, scan->graph->offsets.bytes,
			 scanner->sources[i], targets[i]);
	return NULL;
}

/* Where in the range the dump has something again, at the earliest. */
static uint64_t end_of_absence(const struct scan *scan,
			       struct memory_range range)
{
	const struct region *region = image_find(scan->image, range.start);
	uint64_t end = region ? region->end : range.end;

	return end < range.end ? end : range.end;
}

/* Collect the words that may be references. */
static struct error *scan_words(const struct scan *scan,
				struct scanner *scanner, allocation_id source,
				const uint8_t *bytes, uint64_t size)
{
	const struct heap_bounds bounds = scan->bounds;

	for (uint64_t i = 0; i + 8 <= size; i += 8) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (!heap_bounds_hold(&bounds, word))
			continue;
		scanner->sources[scanner->word_count] = source;
		scanner->words[scanner->word_count++] = word;
		if (scanner->word_count == MOST_ADDRESSES) {
			struct error *error = look_up(scan, scanner);

			if (error)
				return error;
		}
	}
	return NULL;
}

enum { FIRST_WORDS = 4, PIECE = 1 << 20 /* bytes scanned at a time */ };

/*
 * The first words of an allocation that are not links which the allocator left
 * there. *ret_size is how many bytes that settles.
 */
static struct error *scan_first_words(const struct scan *scan,
				      struct scanner *scanner,
				      struct memory_range range,
				      allocation_id source,
				      const uint8_t *bytes, uint64_t size,
				      uint64_t *ret_size)
{
	uint64_t words[FIRST_WORDS] = { 0 };
	unsigned int leftovers;

	*ret_size = 0;
	size = size < sizeof(words) ? size & ~UINT64_C(7) : sizeof(words);
	memcpy(words, bytes, size);
	leftovers = allocation_leftovers(scan->index, range.start, words);
	if (!leftovers)
		return NULL;
	for (unsigned int i = 0; i < size / 8; i++) {
		struct error *error = NULL;

		if (!(leftovers >> i & 1))
			error = scan_words(scan, scanner, source, bytes + 8 * i,
					   8);
		if (error)
			return error;
	}
	*ret_size = size;
	return NULL;
}

/* Scan the range of the allocation, which begins at first. */
static struct error *scan_allocation(const struct scan *scan,
				     struct scanner *scanner, uint64_t first,
				     struct memory_range range,
				     allocation_id source)
{
	uint64_t done = 0;

	while (range.start < range.end) {
		struct error *error = NULL;
		uint64_t size;
		const uint8_t *bytes =
			view_bytes(&scanner->view, range.start, &size);

		/* What is absent refers to nothing; findings tell of it. */
		if (!bytes) {
			range.start = end_of_absence(scan, range);
			continue;
		}
		if (size > range.end - range.start)
			size = range.end - range.start;
		if (size > PIECE)
			size = PIECE;
		if (range.start == first)
			error = scan_first_words(scan, scanner, range, source,
						 bytes, size, &done);
		if (!error)
			error = scan_words(scan, scanner, source, bytes + done,
					   size - done);
		if (error)
			return error;
		done = 0;
		range.start += size;
		/* What was never touched is a hole of the dump. */
		if (size == PIECE && range.start < range.end)
			range.start = image_next_data(scan->image, range.start);
	}
	return NULL;
}

/* Whether what the allocation holds can refer to anything. */
static bool is_source(const struct scan *scan, size_t id)
{
	return bitmap_get(scan->used, id) &&
	       !(scan->pointerless && bitmap_get(scan->pointerless, id));
}

/* Scan all of the turn; *bytes counts up what that was. */
static struct error *scan_turn(const struct scan *scan, struct scanner *scanner,
			       const struct allocation_turn *turn,
			       uint64_t *bytes)
{
	bool is_part = turn->part.start < turn->part.end;
	struct error *error = NULL;

	for (size_t id = turn->first; id < turn->end && !error; id++) {
		struct memory_range range, whole;

		if (!is_source(scan, id))
			continue;
		whole = allocation_range_near(scan->index, (allocation_id)id,
					      &scanner->source_hint);
		range = is_part ? turn->part : whole;
		error = scan_allocation(scan, scanner, whole.start, range,
					(allocation_id)id);
		*bytes += range.end - range.start;
	}
	return error ? error : look_up(scan, scanner);
}

/* The rows of a share begin behind so many edges of an array. */
static void begin_share(struct graph *graph, size_t number, unsigned int array,
			size_t begin)
{
	graph->shares[number].array = array;
	graph->shares[number].begin = begin;
}

/* All turns of the share fall to this thread. */
static struct error *scan_alone(struct scan *scan, size_t number,
				unsigned int thread, uint64_t *bytes)
{
	const struct allocation_turn *turn = &scan->turns.turns[number];
	struct scanner *scanner = &scan->scanners[thread];
	size_t share = allocation_turn_share(turn);
	struct error *error;

	if (allocation_turn_begins(&scan->turns, number)) {
		begin_share(scan->graph, share, thread, scanner->edges.count);
		scanner->last_source = NO_ALLOCATION;
	}
	error = scan_turn(scan, scanner, turn, bytes);
	if (!error && allocation_turn_ends(&scan->turns, number))
		error = graph_lay_out_share(scan->graph, share);
	return error;
}

/* A place behind what was joined already. */
static struct error *find_place(struct scan *scan, struct scanner *scanner,
				size_t number, size_t count, size_t *ret_place)
{
	const struct allocation_turn *turn = &scan->turns.turns[number];
	struct joint *joint = &scan->joint;
	struct graph *graph = scan->graph;
	size_t share = allocation_turn_share(turn);
	struct error *error = memory_fill_room(&graph->arrays[joint->array],
					       (joint->count + count) *
						       sizeof(allocation_id));

	if (error)
		return error;
	if (allocation_turn_begins(&scan->turns, number))
		begin_share(graph, share, joint->array, joint->count);
	if (scanner->is_part)
		((uint32_t *)graph->offsets.bytes)[turn->first] +=
			(uint32_t)count;
	if (count > 0) {
		joint->last_source = scanner->last_source;
		joint->last_target = scanner->last_target;
	}
	*ret_place = joint->count;
	joint->count += count;
	return allocation_turn_ends(&scan->turns, number)
		       ? graph_lay_out_share(graph, share)
		       : NULL;
}

/* Put the edges that a turn has found behind those of the turns before. */
static struct error *join(struct scan *scan, struct scanner *scanner,
			  size_t number, size_t count)
{
	const struct allocation_turn *turn = &scan->turns.turns[number];
	const allocation_id *found = scanner->found.bytes;
	struct joint *joint = &scan->joint;
	allocation_id *edges;
	struct error *error;
	size_t place;

	/* Whoever ended it says why. */
	if (!relay_take(&joint->relay, turn->number))
		return NULL;
	/* The same target may stand at both sides of a seam. */
	if (count > 0 && joint->last_source == turn->first &&
	    joint->last_target == *found) {
		found++;
		count--;
	}
	error = find_place(scan, scanner, number, count, &place);
	if (error)
		return error;
	edges = scan->graph->arrays[joint->array].bytes;
	relay_pass(&joint->relay);
	if (count > 0)
		memcpy(edges + place, found, count * sizeof(*found));
	return NULL;
}

/* Others scan other turns of the share. */
static struct error *scan_jointly(struct scan *scan, size_t number,
				  unsigned int thread, uint64_t *bytes)
{
	const struct allocation_turn *turn = &scan->turns.turns[number];
	struct scanner *scanner = &scan->scanners[thread];
	struct edge_list own = scanner->edges;
	struct error *error;
	size_t count;

	scanner->edges = (struct edge_list){ .memory = &scanner->found };
	scanner->last_source = NO_ALLOCATION;
	scanner->is_part = turn->part.start < turn->part.end;
	error = scan_turn(scan, scanner, turn, bytes);
	count = scanner->edges.count;
	scanner->edges = own;
	if (!error)
		error = join(scan, scanner, number, count);
	if (error)
		relay_end(&scan->joint.relay);
	scanner->is_part = false;
	return error;
}

static struct error *take_turn(void *data, size_t number, unsigned int thread)
{
	struct scan *scan = data;
	bool is_cut = scan->turns.turns[number].number != NOT_CUT;
	uint64_t bytes = 0;
	struct error *error =
		is_cut && scan->threads > 1
			? scan_jointly(scan, number, thread, &bytes)
			: scan_alone(scan, number, thread, &bytes);

	allocation_turn_pass(&scan->turns.turns[number], scan->image,
			     scan->index);
	if (!error && !split_work_step(&scan->work, number, thread,
				       scan->progress, bytes))
		error = error_create(ERROR_INTERRUPTED, "interrupted");
	return error;
}

static struct error *run(struct scan *scan)
{
	struct graph *graph = scan->graph;
	_cleanup_(free) size_t *counts =
		calloc(graph->array_count, sizeof(*counts));
	struct error *error;

	if (!counts)
		return &error_no_memory;
	for (unsigned int i = 0; i < scan->threads; i++) {
		scan->scanners[i].view.image = scan->image;
		scan->scanners[i].edges.memory = &graph->arrays[i];
		scan->scanners[i].found.account = graph->offsets.account;
	}
	split_work_begin(&scan->work, scan->progress, scan->turns.count);
	error = parallel_for(scan->turns.count, scan->threads, take_turn, scan);
	for (unsigned int i = 0; i < scan->threads; i++) {
		counts[i] = scan->scanners[i].edges.count;
		memory_release(&scan->scanners[i].found);
	}
	counts[scan->joint.array] = scan->joint.count;
	split_work_keep(&scan->work, scan->threads, scan->progress);
	return error ? error : graph_place_shares(graph, counts);
}

/* Where the system has no addresses to join in, one thread scans. */
static void keep_room(struct scan *scan)
{
	uint64_t most = scan->turns.cut_bytes / sizeof(uint64_t);
	struct error *error;

	if (scan->threads == 1)
		return;
	error = memory_keep_room(&scan->graph->arrays[scan->joint.array],
				 most * sizeof(allocation_id));
	if (error) {
		error_destroy(error);
		scan->threads = 1;
	}
}

static struct error *scan_all(struct scan *scan)
{
	struct error *error;

	relay_init(&scan->joint.relay);
	keep_room(scan);
	scan->scanners = calloc(scan->threads, sizeof(*scan->scanners));
	error = scan->scanners ? run(scan) : &error_no_memory;
	free(scan->scanners);
	relay_deinit(&scan->joint.relay);
	return error;
}

struct error *graph_create(const struct image *image,
			   const struct allocation_index *index,
			   struct memory_account *account,
			   struct progress *progress, struct graph **ret)
{
	_cleanup_(graph_destroy) struct graph *graph = NULL;
	struct scan scan = {
		.image = image,
		.index = index,
		.used = allocation_used(index),
		.pointerless = allocation_having(index, TRAIT_POINTERLESS),
		.bounds = allocation_bounds(index),
		.progress = progress,
		.threads = parallel_threads_for(progress),
		.joint.last_source = NO_ALLOCATION,
	};
	struct error *error = graph_create_rows(
		allocation_count(index), scan.threads + 1, account, &graph);

	if (error)
		return error;
	progress_begin(progress, "scanning for references", image_size(image));
	scan.graph = graph;
	scan.joint.array = scan.threads;
	error = allocation_turns_init(&scan.turns, image, index, scan.used,
				      scan.pointerless, account);
	if (!error)
		error = scan_all(&scan);
	allocation_turns_deinit(&scan.turns);
	if (error)
		return error;
	*ret = take(graph);
	return NULL;
}
