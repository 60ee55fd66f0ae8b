/*
 * Walking stretches of heap in pieces, by several threads.
 *
 *	stretch   | piece            | piece            | piece         |
 *	front     |----------------->|=>|               |
 *	threads   |----------------->|  |------------------>|=>|-------->
 *	                                row
 *
 * Only the chunk below says where a chunk begins. So what a thread finds from the middle of a
 * stretch, behind a row of chunks that looks valid, is accepted once the walk from the front comes
 *to the same chunk: from there on both must find the same. Where it does not, or where anything
 *must be reported, the piece is walked from the front. So the answer is that of a walk by one
 *thread.
 */
#include "allocators/glibc/walk.h"

#include "analyzer/base/parallel.h"
#include "analyzer/heap/sink.h"

enum {
	PIECE = 4 << 20,     /* bytes, but for holes of the dump's file */
	ROW_STEPS = 1 << 12, /* chunks read to find a row in a piece */
	SMALL = 64 << 10,    /* bytes: walking takes less time than handing on */
};

/* The part of a stretch in which chunks begin at start and above, below end. */
struct piece {
	uint64_t start, end;
	size_t stretch;
};

/* The chunks that a thread found in a piece, from first to end. */
struct middle {
	struct walk walk;
	uint64_t first, end;
	struct block_sink *sink;
	struct number_list suspects;
	struct glibc_links links;
};

struct pieces {
	ARRAY(struct piece) list; /* by stretch and address */
	struct glibc_heap *heap;
	struct block_sink *sink;
	struct glibc_stretch *stretches;
	struct error *(*begin)(void *data, size_t number);
	void *data;
	struct walk walk; /* from the front, for one thread at a time */
	uint64_t chunk;	  /* where it is */
	struct relay relay;
	struct split_work work;
	unsigned int threads;
	struct middle *middles; /* one for each thread */
};

/* The piece's data may be followed by a hole of the dump's file, without chunks. */
static uint64_t piece_reach(const struct piece *piece)
{
	return piece->end - piece->start > PIECE ? piece->start + PIECE : piece->end;
}

/* The next place at or above address where a piece may begin: where the dump has data. */
static uint64_t next_start(const struct image *image, uint64_t address, uint64_t end)
{
	while (address < end) {
		const struct region *region = image_find(image, address);
		uint64_t data = address;

		if (!region)
			return end;
		if (region->bytes)
			data = image_next_data(image, address);
		if (region->bytes && data < region->end)
			return data < end ? data : end;
		address = region->end;
	}
	return end;
}

static struct error *cut(struct pieces *pieces, size_t number)
{
	const struct glibc_stretch *stretch = &pieces->stretches[number];
	const struct image *image = pieces->heap->context.image;
	uint64_t start = stretch->start;
	struct error *error = NULL;

	do {
		uint64_t end = stretch->end;

		if (end > start && end - start > PIECE)
			end = next_start(image, start + PIECE, end);
		error = array_append(&pieces->list, (struct piece){ start, end, number });
		start = end;
	} while (!error && start < stretch->end);
	return error;
}

static bool is_empty(const struct pieces *pieces, const struct glibc_stretch *stretch)
{
	return !glibc_may_be_chunk(pieces->heap, stretch->start) || stretch->start >= stretch->end;
}

static struct error *begin_stretch(struct pieces *pieces, size_t number)
{
	const struct glibc_stretch *stretch = &pieces->stretches[number];

	TRY(pieces->begin ? pieces->begin(pieces->data, number) : NULL);
	pieces->walk = glibc_walk_from(pieces->heap, pieces->sink, stretch, stretch->start);
	pieces->walk.in_pieces = pieces->threads > 1;
	pieces->chunk = stretch->start;
	if (is_empty(pieces, stretch))
		return NULL;
	return block_sink_region(pieces->sink, glibc_region_start(pieces->heap, stretch->start),
				 stretch->end, pieces->walk.number);
}

static struct error *walk_front(struct pieces *pieces, uint64_t end)
{
	return glibc_walk_on(&pieces->walk, &pieces->chunk, end);
}

static void end_stretch(struct pieces *pieces, size_t number)
{
	struct glibc_stretch *stretch = &pieces->stretches[number];
	struct walk *walk = &pieces->walk;

	if (is_empty(pieces, stretch))
		return;
	walk->arena->size += walk->end - stretch->start;
	stretch->end = walk->end;
}

/* Both walks are at the same chunk: take over what was found from the middle. */
static struct error *accept(struct pieces *pieces, const struct middle *middle)
{
	struct glibc_heap *heap = pieces->heap;

	TRY(block_sink_join(pieces->sink, middle->sink));
	for (size_t i = 0; i < middle->suspects.count; i++)
		TRY(array_append(&heap->suspects, middle->suspects.items[i]));
	heap->links.forth += middle->links.forth;
	heap->links.back += middle->links.back;
	pieces->walk.previous = middle->walk.previous;
	pieces->walk.previous_size = middle->walk.previous_size;
	pieces->chunk = middle->end;
	return NULL;
}

/* All below the piece is walked: join what was found in it. */
static struct error *join(struct pieces *pieces, const struct piece *piece,
			  const struct middle *middle)
{
	struct glibc_stretch *stretch = &pieces->stretches[piece->stretch];
	bool is_last = piece->end == stretch->end;

	if (piece->start == stretch->start)
		TRY(begin_stretch(pieces, piece->stretch));
	if (is_empty(pieces, stretch))
		return NULL;
	if (block_sink_count(middle->sink) > 0) {
		TRY(walk_front(pieces, middle->first));
		if (pieces->chunk == middle->first && pieces->chunk < pieces->walk.end)
			TRY(accept(pieces, middle));
	}
	TRY(walk_front(pieces, piece->end));
	if (is_last)
		end_stretch(pieces, piece->stretch);
	return NULL;
}

/* Walk the piece on its own. */
static struct error *walk_middle(struct pieces *pieces, const struct piece *piece,
				 struct middle *middle)
{
	const struct glibc_stretch *stretch = &pieces->stretches[piece->stretch];
	uint64_t stop = piece_reach(piece);

	block_sink_clear(middle->sink);
	middle->suspects.count = 0;
	middle->links = (struct glibc_links){ pieces->heap->links.seed, pieces->heap->links.small };
	middle->walk = glibc_walk_from(pieces->heap, middle->sink, stretch, piece->start);
	middle->walk.links = &middle->links;
	middle->walk.suspects = &middle->suspects;
	middle->walk.steps.left = ROW_STEPS;
	middle->walk.in_pieces = middle->walk.from_the_middle = true;
	middle->first = piece->start;
	if (is_empty(pieces, stretch) || (piece->start != stretch->start &&
					  !glibc_find_row(&middle->walk, &middle->first, stop)))
		return NULL;
	TRY(block_sink_region(middle->sink, glibc_region_start(pieces->heap, middle->first),
			      stretch->end, middle->walk.number));
	middle->end = middle->first;
	return glibc_walk_on(&middle->walk, &middle->end, stop);
}

static struct error *take_chunk(void *data, size_t number, unsigned int thread)
{
	struct pieces *pieces = data;
	const struct piece *piece = &pieces->list.items[number];
	struct middle *middle = &pieces->middles[thread];
	struct error *error = walk_middle(pieces, piece, middle);

	/* The thread that ended the relay reports why. */
	if (!error && !relay_take(&pieces->relay, number))
		return NULL;
	if (!error)
		error = join(pieces, piece, middle);
	if (!error &&
	    !split_work_step(&pieces->work, number, thread, pieces->heap->context.progress,
			     piece_reach(piece) - piece->start))
		error = error_create(ERROR_INTERRUPTED, "interrupted");
	if (error)
		relay_end(&pieces->relay);
	else
		relay_pass(&pieces->relay);
	return error;
}

static struct error *make_middles(struct pieces *pieces)
{
	struct memory_account *account = pieces->heap->context.account;

	pieces->middles = calloc(pieces->threads, sizeof(*pieces->middles));
	TRY_MEMORY(pieces->middles);
	for (unsigned int i = 0; i < pieces->threads; i++) {
		pieces->middles[i].suspects.memory.account = account;
		TRY(block_sink_create(account, &pieces->middles[i].sink));
		block_sink_align(pieces->middles[i].sink, pieces->heap->grain);
	}
	return NULL;
}

static void free_middles(struct pieces *pieces)
{
	for (unsigned int i = 0; pieces->middles && i < pieces->threads; i++) {
		array_release(&pieces->middles[i].suspects);
		if (pieces->middles[i].sink)
			block_sink_destroy(pieces->middles[i].sink);
	}
	free(pieces->middles);
}

static struct error *walk_jointly(struct pieces *pieces)
{
	struct progress *progress = pieces->heap->context.progress;
	struct error *error = make_middles(pieces);

	relay_init(&pieces->relay);
	if (!error) {
		split_work_begin(&pieces->work, progress, pieces->list.count);
		error = parallel_for(pieces->list.count, pieces->threads, take_chunk, pieces);
		split_work_keep(&pieces->work, pieces->threads, progress);
	}
	relay_deinit(&pieces->relay);
	free_middles(pieces);
	return error;
}

static struct error *walk_alone(struct pieces *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		TRY(begin_stretch(pieces, i));
		if (!is_empty(pieces, &pieces->stretches[i]))
			TRY(walk_front(pieces, UINT64_MAX));
		end_stretch(pieces, i);
	}
	return NULL;
}

/*
 * One is enough where all stretches together, or most of them, are small. A dump that does not fit
 * into memory is read in order.
 */
static unsigned int threads_for(const struct glibc_heap *heap,
				const struct glibc_stretch *stretches, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += stretches[i].end - stretches[i].start;
	return bytes <= PIECE || bytes / SMALL < count || !image_fits(heap->context.image)
		       ? 1
		       : parallel_threads_for(heap->context.progress);
}

struct error *glibc_walk_stretches(struct glibc_heap *heap, struct block_sink *sink,
				   struct glibc_stretch *stretches, size_t count,
				   struct error *(*begin)(void *data, size_t number), void *data)
{
	_cleanup_(array_release) struct pieces pieces = {
		.heap = heap,
		.sink = sink,
		.stretches = stretches,
		.begin = begin,
		.data = data,
		.list = { .memory.account = heap->context.account },
		.threads = threads_for(heap, stretches, count),
	};

	if (pieces.threads == 1)
		return walk_alone(&pieces, count);
	for (size_t i = 0; i < count; i++)
		TRY(cut(&pieces, i));
	return walk_jointly(&pieces);
}
