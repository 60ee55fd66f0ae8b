/*
 * The methods and blocks of Ruby that threads and fibers are in.
 *
 * rb_thread_t and rb_execution_context_t, vm_core.h: the data of a Thread leads to the context of
 * the fiber that it runs, which leads back. That has a stack of values, which grows upwards, and of
 * frames, which grows downwards from its end. Each fiber has its context within its own data.
 *
 *	context | stack | words | frame | ... | thread |
 *	frame   | pc | sp | iseq | self | ep | ... |            6 to 8 words, by version
 *
 *	... local variables | method or class reference | ep around, or block | flags |
 *	                                                                       ep
 */
#pragma once

#include "analyzer/runtimes/ruby/iseqs.h"
#include "analyzer/runtimes/runtime.h"

struct ruby;

/* Facts learned once for all threads; all zeros at first. */
struct ruby_calls {
	bool is_learned;
	bool are_apart; /* threads of the system are named by a block of their own */
	struct ruby_iseqs iseqs;
	uint32_t frame_words;	 /* 0: no thread runs Ruby, or frames are unknown */
	ARRAY(uint64_t) threads; /* data of Threads */
	ARRAY(uint64_t) fibers;	 /* data of Fibers */
};

/* Learn it, unless it is. */
struct error *ruby_calls_learn(struct ruby *ruby);
void ruby_calls_deinit(struct ruby_calls *calls);

/* The value that the innermost rescue clause of the thread got; 0: it is in none. */
uint64_t ruby_find_rescued(struct ruby *ruby, struct view *view, uint32_t thread);

/*
 * Find the unused part of a stack, between the values and the frames, from the data of a Thread or
 * Fiber. Sets nothing if that is unknown.
 */
void ruby_find_stack(struct view *view, uint64_t data, uint64_t *ret_sp, uint64_t *ret_frame);

/* The calls of all fibers, those that run among them. */
struct error *ruby_visit_all_fibers(struct object_space *space,
				    const struct frame_visitor *visitor);

/* For cores without contents: visit the contexts of threads and fibers, and their frames. */
struct ruby_structure;
struct error *ruby_calls_keep(struct ruby_structure *structure);
