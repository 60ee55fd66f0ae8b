/*
 * Threads on stacks that the program supplies: in the middle of a mapping whose other parts hold
 * data, in a block of malloc(), and in static memory.
 */

#include "truth.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_SIZE = 256 << 10, DATA_SIZE = 64 << 10, ON_STACK = 10 };
enum { BLOCKS = 100 };

static char static_stack[STACK_SIZE] __attribute__((aligned(4096)));
static void *volatile held[BLOCKS];

static OUT_OF_LINE void populate_frame(void *volatile *frame)
{
	for (size_t i = 0; i < ON_STACK; i++) {
		frame[i] = truth_block(64 * i);
		truth_kept(frame[i]);
		truth_lost(truth_block(64 * i));
	}
}

static void *run(void *argument)
{
	void *volatile frame[ON_STACK];

	populate_frame(frame);
	truth_rest();
	return argument;
}

static void start_thread(void *stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (pthread_attr_setstack(&attributes, stack, STACK_SIZE) ||
	    pthread_create(&thread, &attributes, run, NULL))
		truth_fail("create a thread");
	pthread_attr_destroy(&attributes);
}

static void populate_data(void **words)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		words[i * 5] = truth_block(10 * i);
		truth_kept(words[i * 5]);
	}
}

/* Data below and above the stack are no part of it. */
static OUT_OF_LINE void start_in_mapping(void)
{
	char *region = mmap(NULL, DATA_SIZE + STACK_SIZE + DATA_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (region == MAP_FAILED)
		truth_fail("map a region");
	populate_data((void **)region);
	populate_data((void **)(region + DATA_SIZE + STACK_SIZE));
	start_thread(region + DATA_SIZE);
}

static OUT_OF_LINE void start_in_block(void)
{
	char *stack = truth_aligned_block(4096, STACK_SIZE);

	truth_kept(stack);
	start_thread(stack);
}

static OUT_OF_LINE void populate(void)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(90);

		if (i % 2) {
			truth_lost(block);
		} else {
			truth_kept(block);
			held[i] = block;
		}
	}
}

int main(void)
{
	truth_open();
	start_in_mapping();
	start_in_block();
	start_thread(static_stack);
	truth_await(3);
	populate();
	truth_ready();
}
