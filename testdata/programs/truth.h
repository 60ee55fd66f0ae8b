#pragma once

/*
 * A test program's record of the truth about its heap.
 *
 * A program says of each block, while it still holds the pointer, what will have become of it when
 * the core is taken. The last word on an address counts, and a freed one that was handed out again
 * is left out. In the end this is written to the file named by HEAPCORE_TRUTH, or to the standard
 * output, a line a block, the size being that of malloc_usable_size():
 *
 *	lost ADDRESS SIZE	used, and no root leads to it
 *	kept ADDRESS SIZE	used, and a root leads to it
 *	freed ADDRESS SIZE	no block that is used holds this address
 *	destroyed ADDRESS SIZE	the program overwrote what malloc knew of it
 *	damaged ADDRESS		the block where the damage came from
 *	ready
 *
 * Programs with a garbage collector also know these; only for them lost and kept ones may be the
 * collector's:
 *
 *	garbage ADDRESS SIZE	the collector will free it
 *	held ADDRESS SIZE	no root leads to it, but garbage does
 *	risk ADDRESS SIZE	kept, but the collector sees nothing lead to it
 *	dead ADDRESS SIZE	the collector knows that nothing leads to it
 *
 * After "ready" the program waits for ever. With HEAPCORE_TRUTH_EXIT in the environment it exits
 * instead, for checkers that look at the end of a run.
 *
 * A copy of a lost pointer in a live stack frame, a register or a static variable would make the
 * truth a lie. So the work is done in functions marked OUT_OF_LINE and called by the function that
 * then waits: truth_ready() and truth_rest() overwrite the dead stack below their caller, and the
 * registers that calls do not preserve. Blocks are filled when they are handed out, so that they do
 *not hold what their memory was used for before. And as nobody reads the variables that keep
 *blocks, compilers would do without: they are volatile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUT_OF_LINE __attribute__((noinline))

/* To be called first, before the program allocates. */
void truth_open(void);

/*
 * Have malloc allocate the calling thread's cache: from 2.43 on, it does so when the thread first
 * frees something, and may put the cache where something was that the program says is freed.
 */
void truth_warm_up(void);

/* Blocks of malloc() and aligned_alloc(), filled with what is no pointer. */
void *truth_block(size_t size);
void *truth_aligned_block(size_t alignment, size_t size);
/* Allocate by calloc(), which leaves pages untouched if they come fresh from mmap(). */
void *truth_zeroed_block(size_t size);
/* Fill the block from offset to its end. */
void truth_fill(void *block, size_t offset);

void truth_lost(const void *block);
void truth_kept(const void *block);
void truth_freed(uintptr_t address, size_t size);
void truth_destroyed(uintptr_t address, size_t size);
void truth_damaged(uintptr_t address);

/* Record another fact about a block: one of the words above. */
void truth_tell(const char *word, const void *block, size_t size);

/* Say that it is freed, and free it. */
void truth_free(void *block);

/* The last word that the block may hold: it ends where the block does. */
void **truth_last_word(void *block);

/* Write "WORD NUMBER" at once, a line that is about no block. */
void truth_number(const char *word, uint64_t number);

/* A number below bound; the same row of them for the same first state. */
uint32_t truth_random(uint32_t *state, uint32_t bound);

/* End the program, saying what it could not do. */
_Noreturn void truth_fail(const char *what);

/* Wait until so many threads are in truth_rest(). */
void truth_await(int thread_count);

/* Overwrite 64 KiB of stack below the caller, and registers. */
void truth_scrub(void);

/* The parts of truth_ready() and truth_rest(), not to be called alone. */
void truth_write(void);
_Noreturn void truth_announce(void);
_Noreturn void truth_sleep(void);

/* Write the truth down and wait for ever: the end of main(). */
static inline __attribute__((always_inline, noreturn)) void truth_ready(void)
{
	truth_write();
	truth_scrub();
	truth_announce();
}

/* Wait for ever: the end of any other thread that is to be seen alive. */
static inline __attribute__((always_inline, noreturn)) void truth_rest(void)
{
	truth_scrub();
	truth_sleep();
}
