#include "allocators/glibc/pieces.h"

#include "analyzer/base/parallel.h"
#include "analyzer/base/relay.h"
#include "analyzer/heap/sink.h"

enum {
	PIECE = 4 << 20,     /* bytes, but for holes of the dump's file */
	ROW_STEPS = 1 << 12, /* chunks looked at to find a row in a piece */
	SMALL = 64 << 10,    /* bytes, walked sooner than handed on */
};

/* The part of a stretch in which chunks begin at start and above, below end. */
struct piece {
	uint64_t start, end;
	size_t stretch;
};

/* The walk from the front, for one thread at a time. */
struct front {
	struct walk walk;
	uint64_t chunk; /* where it is */
};

/* What a thread finds in a piece: from the chunk first on, up to end. */
struct middle {
	struct walk walk;
	uint64_t first, end;
	struct block_sink *sink;
	struct number_list suspects;
	struct glibc_links links;
};

struct pieces {
	struct glibc_heap *heap;
	struct block_sink *sink;
	struct glibc_stretch *stretches;
	struct error *(*begin)(void *data, size_t number);
	void *data;
	struct memory memory; /* struct piece, by stretch and address */
	size_t count;
	struct front front;
	struct relay relay;
	struct split_work work;
	unsigned int threads;
	struct middle *middles; /* one for each thread */
};

static const struct piece *pieces_list(const struct pieces *pieces)
{
	return pieces->memory.bytes;
}

/* A hole of the dump's file may follow: there are no chunks in it. */
static uint64_t piece_reach(const struct piece *piece)
{
	return piece->end - piece->start > PIECE ? piece->start + PIECE : piece->end;
}

static struct error *add_piece(struct pieces *pieces, struct piece piece)
{
	struct error *error = memory_reserve(&pieces->memory, (pieces->count + 1) * sizeof(piece));

	if (!error)
		((struct piece *)pieces->memory.bytes)[pieces->count++] = piece;
	return error;
}

/* Where a piece may begin at or above address: where the dump has data. */
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
		error = add_piece(pieces, (struct piece){ start, end, number });
		start = end;
	} while (!error && start < stretch->end);
	return error;
}

static bool is_empty(const struct glibc_stretch *stretch)
{
	return stretch->start % 16 != 0 || stretch->start >= stretch->end;
}

static struct error *begin_stretch(struct pieces *pieces, size_t number)
{
	const struct glibc_stretch *stretch = &pieces->stretches[number];
	struct front *front = &pieces->front;
	struct error *error = pieces->begin ? pieces->begin(pieces->data, number) : NULL;

	front->walk = glibc_walk_from(pieces->heap, pieces->sink, stretch, stretch->start);
	front->walk.in_pieces = pieces->threads > 1;
	front->chunk = stretch->start;
	if (error || is_empty(stretch))
		return error;
	return block_sink_region(pieces->sink, stretch->start, stretch->end, front->walk.number);
}

static struct error *walk_front(struct pieces *pieces, uint64_t end)
{
	struct front *front = &pieces->front;

	return glibc_walk_on(&front->walk, &front->chunk, end);
}

static void end_stretch(struct pieces *pieces, size_t number)
{
	struct glibc_stretch *stretch = &pieces->stretches[number];
	struct walk *walk = &pieces->front.walk;

	if (is_empty(stretch))
		return;
	walk->arena->size += walk->end - stretch->start;
	stretch->end = walk->end;
}

/* What was found from the middle is what the front would find from there on. */
static struct error *believe(struct pieces *pieces, const struct middle *middle)
{
	struct glibc_heap *heap = pieces->heap;
	struct front *front = &pieces->front;
	struct error *error = block_sink_join(pieces->sink, middle->sink);

	for (size_t i = 0; i < middle->suspects.count && !error; i++)
		error = number_list_add(&heap->suspects, numbers(&middle->suspects)[i]);
	heap->links.forth += middle->links.forth;
	heap->links.back += middle->links.back;
	front->walk.previous = middle->walk.previous;
	front->walk.previous_size = middle->walk.previous_size;
	front->chunk = middle->end;
	return error;
}

/* Whether the front is where the middle began, and goes on. */
static bool meets(const struct front *front, const struct middle *middle)
{
	return front->chunk == middle->first && front->chunk < front->walk.end;
}

/* The piece's turn has come: all below it is walked. */
static struct error *join(struct pieces *pieces, const struct piece *piece,
			  const struct middle *middle)
{
	struct glibc_stretch *stretch = &pieces->stretches[piece->stretch];
	bool is_last = piece->end == stretch->end;
	struct error *error = NULL;

	if (piece->start == stretch->start)
		error = begin_stretch(pieces, piece->stretch);
	if (!error && is_empty(stretch))
		return NULL;
	if (!error && block_sink_count(middle->sink) > 0) {
		error = walk_front(pieces, middle->first);
		if (!error && meets(&pieces->front, middle))
			error = believe(pieces, middle);
	}
	if (!error)
		error = walk_front(pieces, piece->end);
	if (!error && is_last)
		end_stretch(pieces, piece->stretch);
	return error;
}

/* Walk the piece, wherever the front will come to it. */
static struct error *walk_middle(struct pieces *pieces, const struct piece *piece,
				 struct middle *middle)
{
	const struct glibc_stretch *stretch = &pieces->stretches[piece->stretch];
	uint64_t stop = piece_reach(piece);
	struct error *error;

	block_sink_clear(middle->sink);
	middle->suspects.count = 0;
	middle->links = (struct glibc_links){ pieces->heap->links.seed };
	middle->walk = glibc_walk_from(pieces->heap, middle->sink, stretch, piece->start);
	middle->walk.links = &middle->links;
	middle->walk.suspects = &middle->suspects;
	middle->walk.steps = ROW_STEPS;
	middle->walk.in_pieces = middle->walk.from_the_middle = true;
	middle->first = piece->start;
	if (is_empty(stretch) || (piece->start != stretch->start &&
				  !glibc_find_row(&middle->walk, &middle->first, stop)))
		return NULL;
	error = block_sink_region(middle->sink, middle->first, stretch->end, middle->walk.number);
	middle->end = middle->first;
	return error ? error : glibc_walk_on(&middle->walk, &middle->end, stop);
}

static struct error *take_chunk(void *data, size_t number, unsigned int thread)
{
	struct pieces *pieces = data;
	const struct piece *piece = &pieces_list(pieces)[number];
	struct middle *middle = &pieces->middles[thread];
	struct error *error = walk_middle(pieces, piece, middle);

	/* The one that ended it reports why. */
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
	struct error *error = NULL;

	pieces->middles = calloc(pieces->threads, sizeof(*pieces->middles));
	if (!pieces->middles)
		return &error_no_memory;
	for (unsigned int i = 0; i < pieces->threads && !error; i++) {
		pieces->middles[i].suspects.memory.account = account;
		error = block_sink_create(account, &pieces->middles[i].sink);
	}
	return error;
}

static void free_middles(struct pieces *pieces)
{
	for (unsigned int i = 0; pieces->middles && i < pieces->threads; i++) {
		memory_release(&pieces->middles[i].suspects.memory);
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
		split_work_begin(&pieces->work, progress, pieces->count);
		error = parallel_for(pieces->count, pieces->threads, take_chunk, pieces);
		split_work_keep(&pieces->work, pieces->threads, progress);
	}
	relay_deinit(&pieces->relay);
	free_middles(pieces);
	return error;
}

static struct error *walk_alone(struct pieces *pieces, size_t count)
{
	struct error *error = NULL;

	for (size_t i = 0; i < count && !error; i++) {
		error = begin_stretch(pieces, i);
		if (!error && !is_empty(&pieces->stretches[i]))
			error = walk_front(pieces, UINT64_MAX);
		if (!error)
			end_stretch(pieces, i);
	}
	return error;
}

/*
 * One is enough where there is little in all, or in each as a rule, and what does not fit into
 * memory is read in order.
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
	struct pieces pieces = {
		.heap = heap,
		.sink = sink,
		.stretches = stretches,
		.begin = begin,
		.data = data,
		.memory.account = heap->context.account,
		.threads = threads_for(heap, stretches, count),
	};
	struct error *error = NULL;

	if (pieces.threads == 1)
		return walk_alone(&pieces, count);
	for (size_t i = 0; i < count && !error; i++)
		error = cut(&pieces, i);
	if (!error)
		error = walk_jointly(&pieces);
	memory_release(&pieces.memory);
	return error;
}
