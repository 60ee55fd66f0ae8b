/*
 * A program with a collector that writes down the truth about its objects.
 *
 * Four threads make objects of all kinds and sizes. Some are kept, half of them by a pointer into
 * their middle, some are freed, and the rest are dropped: that those are collected is known by
 * disappearing links, which the collector clears. In the end this is written to the file named by
 * HEAPCORE_TRUTH, a line an object, the size being that of GC_size():
 *
 *	live ADDRESS SIZE KIND		the program uses it
 *	freed ADDRESS SIZE KIND		the program freed it
 *	collected ADDRESS SIZE KIND	the collector cleared its link
 *	debug ADDRESS LINE		where a live one was made, in this file
 *	malloc ADDRESS SIZE		a block of malloc() that is used
 *	cycle NUMBER			GC_get_gc_no()
 *	ready
 *
 * Addresses that were handed out again are left out. The argument says when the core is taken:
 * before any collection ("early"), right after one ("collected"), or after objects were made again
 * behind it ("reused").
 */
#define GC_THREADS
#define GC_DEBUG /* for GC_MALLOC(); the functions are as they are */
#include <gc/gc.h>
#include <gc/gc_mark.h>
#include <gc/gc_typed.h>

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many of each thread, and of malloc(). */
#ifndef OBJECTS
#define OBJECTS 6000
#define BLOCKS	1000
#endif

enum {
	THREADS = 4,
	LARGEST = 1 << 16,
	SCRUBBED = 65536,
	BLOCK = 3000,
	LASTING = 9000, /* links: half of all that there may be */
	OWN_WORDS = 2,
	TYPED_WORDS = 8,
};

enum kind {
	NORMAL,
	ATOMIC,
	UNCOLLECTABLE,
	ATOMIC_UNCOLLECTABLE,
	LARGE_NORMAL, /* ..._ignore_off_page() */
	LARGE_ATOMIC,
	TYPED,
	OWN,
	DEBUG,
	KINDS,
};

static const char *const kind_names[] = {
	"normal", "atomic", "uncollectable", "atomic-uncollectable", "normal", "atomic",
	"own",	  "own",    "normal",
};

enum fate { KEPT, FREED, DROPPED };

/* The state of an object at the end. */
enum word { LIVE, GONE_FREED, GONE_COLLECTED, UNKNOWN };

static const char *const words[] = { "live", "freed", "collected" };

/* Kept in memory that the collector does not look at. */
struct record {
	uintptr_t address, size;
	enum kind kind;
	enum fate fate;
	int line;   /* of a debug object */
	void *link; /* cleared with the object */
	bool held;  /* but the collector kept it */
};

static void *kept[THREADS][OBJECTS];
static struct record *records;
static void *blocks[BLOCKS], *beside[BLOCKS];
static void *lasting_links[LASTING];
static int finalized;
static unsigned int own_kind;
static GC_descr descriptor;
static pthread_barrier_t barrier;
static bool collects, reuses;

#ifdef WITH_SBRK
/*
 * The collector's memory comes from sbrk(), as before 8.0: linked with --wrap=GC_unix_get_mem, this
 * takes the place of its own function.
 */
void *__wrap_GC_unix_get_mem(size_t size);

void *__wrap_GC_unix_get_mem(size_t size)
{
	uintptr_t end = (uintptr_t)sbrk(0), page = 4096;
	uintptr_t start = (end + page - 1) & ~(page - 1);

	return sbrk((intptr_t)(start - end + size)) == (void *)-1 ? NULL : (void *)start;
}
#endif

static uint32_t next_random(uint32_t *state, uint32_t bound)
{
	*state = *state * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)*state * bound) >> 32);
}

/* Most objects are small, some are larger than a block. */
static size_t choose_size(uint32_t *state)
{
	switch (next_random(state, 20)) {
	case 0:
		return 2000 + next_random(state, 48000);
	case 1:
	case 2:
		return 200 + next_random(state, 3000);
	default:
		return 1 + next_random(state, 300);
	}
}

static void *make(enum kind kind, size_t size, struct record *record)
{
	switch (kind) {
	case NORMAL:
		return GC_malloc(size);
	case ATOMIC:
		return GC_malloc_atomic(size);
	case UNCOLLECTABLE:
		return GC_malloc_uncollectable(size);
	case ATOMIC_UNCOLLECTABLE:
		return GC_malloc_atomic_uncollectable(size);
	case LARGE_NORMAL:
		return GC_malloc_ignore_off_page(size);
	case LARGE_ATOMIC:
		return GC_malloc_atomic_ignore_off_page(size);
	case TYPED:
		return GC_malloc_explicitly_typed(size + TYPED_WORDS * sizeof(void *), descriptor);
	case OWN:
		return GC_generic_malloc(size + OWN_WORDS * sizeof(void *), (int)own_kind);
	case DEBUG:
		record->line = __LINE__ + 1;
		return GC_MALLOC(size);
	case KINDS:
		break;
	}
	abort();
}

static void release(enum kind kind, void *object)
{
	if (kind == DEBUG)
		GC_FREE(object);
	else
		GC_free(object);
}

/* Contents that are no pointers. */
static void fill(void *object, enum kind kind, size_t size)
{
	/* Its last word describes a typed one. */
	if (kind != TYPED && kind != OWN)
		memset(object, 0x5a, size);
}

static enum fate choose_fate(enum kind kind, uint32_t *state)
{
	uint32_t number = next_random(state, 100);

	if (kind == UNCOLLECTABLE || kind == ATOMIC_UNCOLLECTABLE)
		return number < 70 ? KEPT : FREED;
	/* GC_debug_free() frees a small one at the next collection only. */
	if (kind == DEBUG)
		return number < 60 ? KEPT : DROPPED;
	return number < 55 ? KEPT : number < 70 ? FREED : DROPPED;
}

static void finalize(void *object, void *data)
{
	(void)object;
	++*(volatile int *)data;
}

/* Make one object and record it. The stack holds nothing of it afterwards. */
static __attribute__((noinline)) void make_one(struct record *record, void **holder,
					       uint32_t *state)
{
	enum kind kind = (enum kind)next_random(state, KINDS);
	size_t size = choose_size(state);
	void *object, *base;

	object = make(kind, size, record);
	if (!object)
		abort();
	base = GC_base(object);
	fill(object, kind, size);
	record->kind = kind;
	record->fate = choose_fate(kind, state);
	record->address = (uintptr_t)base;
	record->size = GC_size(base);
	if (record->fate == KEPT) {
		/* One that ignores pointers behind its first page has none. */
		bool middle = size > 1 && size < 2000 && next_random(state, 2) == 0;

		*holder = (char *)object + (middle ? size / 2 : 0);
	} else if (record->fate == FREED) {
		release(kind, object);
	} else {
		record->link = object;
		if (GC_general_register_disappearing_link(&record->link, object))
			abort();
		if (next_random(state, 10) == 0 && kind != DEBUG)
			GC_register_finalizer_no_order(object, finalize, &finalized, NULL, NULL);
	}
}

static __attribute__((noinline)) void scrub(void)
{
	volatile char bytes[SCRUBBED];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
}

static void make_many(size_t thread, size_t from, size_t to, uint32_t *state)
{
	for (size_t i = from; i < to; i++)
		make_one(&records[thread * OBJECTS + i], &kept[thread][i], state);
	scrub();
}

static void *work(void *argument)
{
	size_t thread = (size_t)argument;
	uint32_t state = (uint32_t)thread + 1;

	/* To make a thread, the collector makes objects: have them all first.
	 */
	pthread_barrier_wait(&barrier);
	make_many(thread, 0, OBJECTS / 2, &state);
	pthread_barrier_wait(&barrier); /* all have made theirs */
	pthread_barrier_wait(&barrier); /* they were collected */
	if (reuses)
		make_many(thread, OBJECTS / 2, OBJECTS, &state);
	pthread_barrier_wait(&barrier); /* all is done */
	pthread_barrier_wait(&barrier); /* for ever */
	return NULL;
}

/*
 * Have malloc() get memory from the system in turns with the collector: where both use sbrk(),
 * their memory is mixed.
 */
static void make_blocks(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK);
		beside[i] = GC_malloc_atomic(BLOCK);
		if (!blocks[i] || !beside[i])
			abort();
	}
	/*
	 * The collector's tables of links and finalizers are never empty, and so can be recognised.
	 * They double at most once more: a table that was outgrown is in use until the next
	 * collection, and nobody knows where it was.
	 */
	for (size_t i = 0; i < LASTING; i++)
		if (GC_general_register_disappearing_link(&lasting_links[i], beside[0]))
			abort();
	for (size_t i = 0; i < BLOCKS; i++)
		GC_register_finalizer_no_order(beside[i], finalize, &finalized, NULL, NULL);
}

/*
 * The collector keeps what its last collection marked, whatever became of it before: a stale word,
 * such as one where its own stack frames were, may lead to an object whose link the collection
 * before had cleared, or to a freed one that was on no list any more. Of objects on lists it clears
 * the marks, but not of those on lists of threads.
 */
static void note_held(void)
{
	for (size_t i = 0; i < (size_t)THREADS * OBJECTS; i++) {
		struct record *record = &records[i];
		void *object = (void *)record->address;

		record->held = object && record->fate != KEPT && GC_base(object) == object &&
			       GC_is_marked(object);
	}
}

static int compare(const void *a, const void *b)
{
	const struct record *left = a, *right = b;

	return left->address < right->address ? -1 : left->address > right->address;
}

/* Nobody knows of a dropped one whether it is in use, before it is gone. */
static enum word word_of(const struct record *record)
{
	switch (record->fate) {
	case KEPT:
		return LIVE;
	case FREED:
		return record->held ? UNKNOWN : GONE_FREED;
	case DROPPED:
		break;
	}
	return record->link || record->held ? UNKNOWN : GONE_COLLECTED;
}

static bool may_be_used(const struct record *record)
{
	return word_of(record) == LIVE || word_of(record) == UNKNOWN;
}

/* True if the memory of the number-th record may have been reused. */
static bool is_reused(size_t number, size_t count)
{
	const struct record *record = &records[number];
	size_t i = number;

	/* No object is larger than that. */
	while (i > 0 && record->address - records[i - 1].address < LARGEST) {
		i--;
		if (may_be_used(&records[i]) &&
		    records[i].address + records[i].size > record->address)
			return true;
	}
	for (i = number + 1; i < count; i++) {
		if (records[i].address >= record->address + record->size)
			break;
		if (may_be_used(&records[i]))
			return true;
	}
	return false;
}

static void print(FILE *file, const struct record *record)
{
	fprintf(file, "%s %lx %zu %s\n", words[word_of(record)], (unsigned long)record->address,
		(size_t)record->size, kind_names[record->kind]);
	if (record->fate == KEPT && record->line)
		fprintf(file, "debug %lx %d\n", (unsigned long)record->address, record->line);
}

static void write_truth(void)
{
	const char *path = getenv("HEAPCORE_TRUTH");
	FILE *file = path ? fopen(path, "w") : stdout;
	size_t count = 0;

	if (!file)
		abort();
	for (size_t i = 0; i < (size_t)THREADS * OBJECTS; i++)
		if (records[i].address)
			records[count++] = records[i];
	qsort(records, count, sizeof(*records), compare);
	for (size_t i = 0; i < count; i++)
		if (word_of(&records[i]) == LIVE ||
		    (!may_be_used(&records[i]) && !is_reused(i, count)))
			print(file, &records[i]);
	for (size_t i = 0; i < BLOCKS; i++)
		fprintf(file, "malloc %lx %zu\n", (unsigned long)blocks[i],
			malloc_usable_size(blocks[i]));
	fprintf(file, "cycle %lu\nready\n", (unsigned long)GC_get_gc_no());
	fflush(file);
}

int main(int argument_count, char **arguments)
{
	const char *when = argument_count > 1 ? arguments[1] : "reused";
	GC_word bitmap = 5; /* the first and the third word are pointers */
	pthread_t threads[THREADS];

	reuses = strcmp(when, "reused") == 0;
	collects = reuses || strcmp(when, "collected") == 0;
	GC_INIT();
	GC_set_warn_proc(GC_ignore_warn_proc);
	/* Nothing is collected except on request. */
	GC_set_free_space_divisor(1);
	GC_disable();
	own_kind = GC_new_kind(GC_new_free_list(), OWN_WORDS * sizeof(void *) | GC_DS_LENGTH, 0, 1);
	descriptor = GC_make_descriptor(&bitmap, TYPED_WORDS);
	records = calloc((size_t)THREADS * OBJECTS, sizeof(*records));
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	make_blocks();
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	if (collects) {
		GC_enable();
		GC_gcollect();
		/* Objects with finalizers are freed only after these ran. */
		GC_invoke_finalizers();
		scrub();
		GC_gcollect();
		note_held();
		GC_disable();
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	write_truth();
	for (;;)
		pause();
}
