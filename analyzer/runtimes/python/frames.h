/*
 * The Python functions that a thread is in, and their variables, of CPython 3.6 to 3.14.
 */
#pragma once

#include "analyzer/program/program.h"
#include "analyzer/runtimes/python/types.h"
#include "analyzer/runtimes/runtime.h"

struct python_layout;
struct structure_visitor;

/* The interpreter's list of threads; all zeros: not searched for yet. */
struct python_threads {
	bool is_searched;
	const struct python_layout *layout; /* NULL: not found */
	uint64_t state;			    /* the address of one */
};

/* Call visit with the address of the state of each thread, as far as they are found. */
struct error *python_threads_visit(struct python_threads *threads, struct python_types *types,
				   const struct program *program,
				   struct error *(*visit)(uint64_t state, void *data), void *data);

/* The index of the thread that the state belongs to; NO_THREAD: none is known. */
uint32_t python_threads_owner(const struct program *program, const struct image *image,
			      uint64_t state);

struct error *python_frames_visit(struct python_threads *threads, struct python_types *types,
				  const struct program *program, uint32_t thread,
				  const struct frame_visitor *visitor);

/* Visit the heads of frames of all threads. */
struct error *python_frames_visit_structure(struct python_threads *threads,
					    struct python_types *types,
					    const struct program *program,
					    const struct structure_visitor *visitor);

/* See the runtime's slot; after python_frames_visit(). */
struct error *python_frames_exception(struct python_threads *threads, struct python_types *types,
				      const struct program *program, uint32_t thread,
				      const struct frame_visitor *visitor,
				      struct runtime_exception *ret);

/*
 * Visit the variables of a generator or coroutine that waits, an object of so many bytes; nothing
 * if it runs or has ended. After python_frames_visit(), which finds out how frames are laid out.
 */
struct error *python_frames_visit_suspended(const struct python_threads *threads,
					    struct python_types *types, uint64_t object,
					    uint64_t size, const struct frame_visitor *visitor);

/* Visit the variables of a frame object; likewise. */
struct error *python_frames_visit_object(const struct python_threads *threads,
					 struct python_types *types, uint64_t object,
					 const struct frame_visitor *visitor);

/* The state of the frame of a generator or coroutine. */
enum python_frame_state { PYTHON_FRAME_WAITS, PYTHON_FRAME_RUNS, PYTHON_FRAME_ENDED };
enum python_frame_state python_frames_state(const struct python_threads *threads,
					    struct python_types *types, uint64_t object,
					    uint64_t size);

/* Visit its call, which gets that number, and its variables; likewise. */
struct error *python_frames_visit_coroutine(const struct python_threads *threads,
					    struct python_types *types, uint64_t object,
					    uint64_t size, uint64_t number,
					    const struct frame_visitor *visitor);

/* Visit the calls of a greenlet, from the frame object on that it waits in; likewise. */
struct error *python_frames_visit_greenlet(const struct python_threads *threads,
					   struct python_types *types,
					   const struct program *program, uint64_t object,
					   const struct frame_visitor *visitor);

/* The object that a coroutine waits for; 0: none, or it is not known. Otherwise likewise. */
uint64_t python_frames_awaited(const struct python_threads *threads, struct python_types *types,
			       uint64_t object, uint64_t size);

/*
 * True if the word at that offset of a generator, coroutine or frame object of the type belongs to
 * a frame that has ended, or is above the top of its stack. Needs python_threads_visit().
 */
bool python_frames_are_stale(const struct python_threads *threads, const struct image *image,
			     const struct python_type *type, uint64_t object, uint64_t at);

/* The offset of the frame in a generator or coroutine of the type; its size: it has none. */
uint64_t python_frames_start(const struct python_threads *threads, const struct python_type *type);

/* The offset of instructions in a code object, with their caches; 0: elsewhere, or unknown. */
uint64_t python_frames_code_start(const struct python_threads *threads);
