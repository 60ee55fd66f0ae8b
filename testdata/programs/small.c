/*
 * A little of everything, in so little memory that its cores can be kept.
 */

#include "truth.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 2, BLOCKS = 60, STACK_SIZE = 128 << 10 };

struct node {
	struct node *next;
	char payload[];
};

static void *volatile held[THREADS][BLOCKS];
static void *volatile held_mapped;

static OUT_OF_LINE void populate(size_t thread)
{
	void *freed[BLOCKS] = { NULL };

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = i % 10 ? truth_block(i * i / 2) : truth_aligned_block(128, 10 * i);

		switch (i % 3) {
		case 0:
			truth_lost(block);
			break;
		case 1:
			truth_kept(block);
			held[thread][i] = (char *)block + i / 4;
			break;
		default:
			freed[i] = block;
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (freed[i])
			truth_free(freed[i]);
}

static OUT_OF_LINE void lose_ring(void)
{
	struct node *first = truth_block(sizeof(*first) + 30);
	struct node *second = truth_block(sizeof(*second) + 300);

	first->next = second;
	second->next = first;
	truth_lost(first);
	truth_lost(second);
}

static OUT_OF_LINE void populate_mapped(void)
{
	void *kept = truth_block(140000);
	void *lost = truth_block(140000);

	truth_kept(kept);
	held_mapped = kept;
	truth_lost(lost);
}

static void *run(void *argument)
{
	truth_warm_up();
	populate(1);
	truth_rest();
	return argument;
}

static OUT_OF_LINE void start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	if (pthread_create(&thread, &attributes, run, NULL))
		truth_fail("create a thread");
	truth_await(1);
}

int main(void)
{
	truth_open();
	truth_warm_up();
	start_thread();
	lose_ring();
	populate_mapped();
	populate(0);
	truth_ready();
}
