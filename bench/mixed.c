/*
 * A program with a second large heap of which the truth is known, unlike that of heap.c.
 *
 *	mixed [COUNT]
 *
 * It makes COUNT allocations (ten million if not said), all of them struct node, of any size: a
 * node ends with a text. Nine in ten are in lists, whose heads are in a table; so neighbours in a
 * list are seldom neighbours in memory. One in ten, anywhere between them, is lost, in lists of up
 * to eight. About half of them refer to another one that is in a list of the table.
 *
 * It tells the truth as heap.c does, then "ready", and waits for its core to be taken. Addresses
 * that it needs on the way are masked, and in mappings that are gone before it is ready.
 */

#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LISTS = 4096,
	ONE_LOST_IN = 10,
	LONGEST_LOST = 8,
	LEAST_TEXT = 8,
	MOST_TEXT = 360,
	SCRUBBED_BYTES = 1 << 20,
};

static const uint64_t MASK = 0xa5a5a5a5a5a5a5a5;

struct node {
	struct node *next;
	struct node *friend;
	uint64_t number;
	char text[];
};

static struct node *lists[LISTS];

struct truth {
	uint64_t used_count, used_bytes;
	uint64_t lost_count, lost_bytes, lost_lists;
	uint64_t references;
};

/* A random number which depends on nothing but its arguments (splitmix64). */
static uint64_t random_of(uint64_t purpose, uint64_t number)
{
	uint64_t x = (number * 8 + purpose + 1) * 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static struct node *make_node(uint64_t number)
{
	size_t length = LEAST_TEXT + random_of(0, number) % (MOST_TEXT - LEAST_TEXT);
	struct node *node = calloc(1, sizeof(*node) + length + 1);

	if (!node) {
		perror("calloc");
		exit(1);
	}
	node->number = number;
	memset(node->text, 'a' + (int)(number % 26), length);
	return node;
}

static void link_node(struct node *node, struct node **list, struct truth *truth)
{
	node->next = *list;
	truth->references += node->next != NULL;
	*list = node;
}

__attribute__((noinline)) static struct truth build(uint64_t count)
{
	uint64_t *held = mmap(NULL, count * sizeof(*held), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t held_count = 0, lost = MASK, in_list = 0;
	struct truth truth = { .used_count = count };

	if (held == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	for (uint64_t number = 0; number < count; number++) {
		struct node *node = make_node(number);
		bool is_lost = random_of(1, number) % ONE_LOST_IN == 0;

		truth.used_bytes += malloc_usable_size(node);
		if (held_count > 0 && random_of(2, number) % 2 == 0) {
			node->friend =
				(struct node *)(held[random_of(3, number) % held_count] ^ MASK);
			truth.references++;
		}
		if (is_lost) {
			struct node *list = (struct node *)(lost ^ MASK);

			if (in_list == 0) {
				list = NULL;
				in_list = 1 + random_of(4, number) % LONGEST_LOST;
				truth.lost_lists++;
			}
			in_list--;
			link_node(node, &list, &truth);
			lost = (uintptr_t)list ^ MASK;
			truth.lost_count++;
			truth.lost_bytes += malloc_usable_size(node);
		} else {
			link_node(node, &lists[random_of(5, number) % LISTS], &truth);
			held[held_count++] = (uintptr_t)node ^ MASK;
		}
	}
	munmap(held, count * sizeof(*held));
	return truth;
}

/* Overwrite the stack below: stale words from build() are no references of the program. */
__attribute__((noinline)) static void scrub_stack(void)
{
	char scrubbed[SCRUBBED_BYTES];

	memset(scrubbed, 0, sizeof(scrubbed));
	__asm__ volatile("" : : "r"(scrubbed) : "memory");
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	struct truth truth = build(count);

	scrub_stack();
	/* Not by stdio, which would allocate a buffer. */
	dprintf(STDOUT_FILENO,
		"used %" PRIu64 " %" PRIu64 "\nleaked %" PRIu64 " %" PRIu64 "\n"
		"leakroots %" PRIu64 "\nreferences %" PRIu64 "\nready\n",
		truth.used_count, truth.used_bytes, truth.lost_count, truth.lost_bytes,
		truth.lost_lists, truth.references);
	pause();
	return 0;
}
