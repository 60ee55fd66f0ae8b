/*
 * Coroutines on stacks of malloc(): one that is suspended and kept, one that is suspended and lost
 * with all it holds, and one that the main thread is in when the core is taken, so that no thread
 * owns the process's first stack.
 */

#include "truth.h"

#include <stdlib.h>
#include <ucontext.h>

enum { STACK_SIZE = 256 << 10, ON_STACK = 12 };

typedef void (*verdict_function)(const void *block);

static ucontext_t main_context;
static ucontext_t *volatile kept_context;
static ucontext_t running_context;
/* makecontext() passes only int, so the pointer is here. */
static ucontext_t *starting_context;

static OUT_OF_LINE void populate_frame(void *volatile *frame, verdict_function verdict)
{
	for (size_t i = 0; i < ON_STACK; i++) {
		frame[i] = truth_block(100 + i);
		verdict(frame[i]);
		truth_lost(truth_block(100 + i));
		truth_free(truth_block(1500));
	}
}

static void suspend(void)
{
	ucontext_t *context = starting_context;

	starting_context = NULL;
	swapcontext(context, &main_context);
}

static void kept_coroutine(void)
{
	void *volatile frame[ON_STACK];

	populate_frame(frame, truth_kept);
	truth_scrub();
	suspend();
	truth_fail("be here: nobody resumes this");
}

static void lost_coroutine(void)
{
	void *volatile frame[ON_STACK];

	populate_frame(frame, truth_lost);
	truth_scrub();
	suspend();
	truth_fail("be here: nobody resumes this");
}

static void running_coroutine(void)
{
	void *volatile frame[ON_STACK];

	populate_frame(frame, truth_kept);
	truth_ready();
}

static void prepare(ucontext_t *context, void (*run)(void), verdict_function verdict)
{
	void *stack = truth_zeroed_block(STACK_SIZE);

	verdict(stack);
	if (getcontext(context))
		truth_fail("get the context");
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_SIZE;
	context->uc_link = NULL;
	makecontext(context, run, 0);
}

static OUT_OF_LINE void enter(ucontext_t *context)
{
	starting_context = context;
	swapcontext(&main_context, context);
}

/* First, as the last to be entered leaves its traces in main_context. */
static OUT_OF_LINE void lose(void)
{
	ucontext_t *context = truth_block(sizeof(*context));

	truth_lost(context);
	prepare(context, lost_coroutine, truth_lost);
	enter(context);
}

static OUT_OF_LINE void keep(void)
{
	kept_context = truth_block(sizeof(*kept_context));
	truth_kept(kept_context);
	prepare(kept_context, kept_coroutine, truth_kept);
	enter(kept_context);
}

int main(void)
{
	void *volatile frame[ON_STACK];

	truth_open();
	truth_warm_up();
	populate_frame(frame, truth_kept);
	lose();
	keep();
	prepare(&running_context, running_coroutine, truth_kept);
	truth_scrub();
	enter(&running_context);
}
