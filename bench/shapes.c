/*
 * Heaps of one shape each, to see how heapcore's time grows with them.
 *
 *	shapes SHAPE COUNT
 *
 * It makes COUNT of the shape's parts, says "ready" and waits for its core to be taken. The shapes:
 *
 *	list		a list of COUNT nodes that stand anywhere
 *	lost		the same, but nobody holds its head
 *	wide		an array of pointers to COUNT blocks
 *	deep		a tree that is COUNT / 2 deep, each node with a leaf
 *	huge		one block of COUNT words of 8 bytes, no pointers
 *	anonymous	as much memory of mmap(), beside a small heap
 *	mappings	COUNT pieces of memory between which none is mapped
 *	threads		COUNT threads, each with a block of its own
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SCATTER = 7919, PAGE = 4096, SMALL_STACK = 64 << 10 };

struct node {
	struct node *next, *leaf;
	uint64_t value;
};

/* The root that holds the shape. */
static void *volatile held;

static void *check(void *memory)
{
	if (!memory || memory == MAP_FAILED) {
		perror("shapes");
		exit(1);
	}
	return memory;
}

static void *map(size_t bytes)
{
	return check(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* Pages of 2 MB at once would make the machine's state count. */
static void fill(uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		words[i] = i * 3 + 1;
}

static struct node **make_nodes(size_t count)
{
	struct node **nodes = map(count * sizeof(*nodes));

	for (size_t i = 0; i < count; i++) {
		nodes[i] = check(calloc(1, sizeof(**nodes)));
		nodes[i]->value = i;
	}
	return nodes;
}

static void make_list(size_t count)
{
	struct node **nodes = make_nodes(count);
	size_t at = 0;

	while (count % SCATTER == 0)
		count--;
	for (size_t i = 0; i + 1 < count; i++) {
		size_t next = (at + SCATTER) % count;

		nodes[at]->next = nodes[next];
		at = next;
	}
	held = nodes[0];
	munmap(nodes, count * sizeof(*nodes));
}

static void make_lost(size_t count)
{
	make_list(count);
	held = NULL;
}

static void make_wide(size_t count)
{
	struct node **array = check(malloc(count * sizeof(*array)));
	struct node **nodes = make_nodes(count);

	memcpy(array, nodes, count * sizeof(*array));
	held = array;
	munmap(nodes, count * sizeof(*nodes));
}

static void make_deep(size_t count)
{
	struct node **nodes = make_nodes(count);

	for (size_t i = 0; i + 2 < count; i += 2) {
		nodes[i]->next = nodes[i + 2];
		nodes[i]->leaf = nodes[i + 1];
	}
	held = nodes[0];
	munmap(nodes, count * sizeof(*nodes));
}

static void make_huge(size_t count)
{
	uint64_t *words = check(malloc(count * sizeof(*words)));

	fill(words, count);
	held = words;
}

static void make_anonymous(size_t count)
{
	uint64_t *words = map(count * sizeof(*words));

	fill(words, count);
	held = check(malloc(100));
}

static void make_mappings(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t *piece = map((size_t)2 * PAGE);

		*(void **)piece = held;
		held = piece;
		munmap(piece + PAGE, PAGE);
	}
}

static void *wait_in_thread(void *argument)
{
	void *volatile block = check(malloc(100));

	(void)block;
	pthread_barrier_wait(argument);
	for (;;)
		pause();
}

static void make_threads(size_t count)
{
	static pthread_barrier_t ready; /* who leaves it last still writes */
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, (unsigned int)count + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, SMALL_STACK);
	for (size_t i = 0; i < count; i++) {
		if (pthread_create(&thread, &attributes, wait_in_thread, &ready))
			check(NULL);
	}
	pthread_barrier_wait(&ready);
}

static const struct {
	const char *name;
	void (*make)(size_t count);
} SHAPES[] = {
	{ "list", make_list },	       { "lost", make_lost },	    { "wide", make_wide },
	{ "deep", make_deep },	       { "huge", make_huge },	    { "anonymous", make_anonymous },
	{ "mappings", make_mappings }, { "threads", make_threads },
};

int main(int argc, char **argv)
{
	size_t number = 0;

	while (argc == 3 && number < sizeof(SHAPES) / sizeof(*SHAPES) &&
	       strcmp(argv[1], SHAPES[number].name) != 0)
		number++;
	if (argc != 3 || number == sizeof(SHAPES) / sizeof(*SHAPES)) {
		fprintf(stderr, "usage: %s SHAPE COUNT\n", argv[0]);
		return 2;
	}
	SHAPES[number].make(strtoul(argv[2], NULL, 10));
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
