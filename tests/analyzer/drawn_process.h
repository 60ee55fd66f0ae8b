/*
 * A process of glibc's malloc whose heap is drawn as text (drawing.h): each letter is a chunk, in
 * order of address, and a capital one is in the thread's cache. Roots are words of libc's data.
 * The first allocation of all is the thread's cache itself.
 */
#pragma once

#include "analyzer/classify/classes.h"

#include "tests/allocators/glibc/process.h"
#include "tests/analyzer/drawing.h"

enum { DRAWN_SIZE = 0x68, DRAWN_CHUNK = 0x70 };

struct drawn {
	struct process process;
	uint64_t chunk[MOST_DRAWN]; /* sizes of the letters' chunks; 0: DRAWN_CHUNK */
	uint64_t at[MOST_DRAWN];    /* addresses of the letters */
};

static inline void drawn_deinit(struct drawn *drawn)
{
	process_deinit(&drawn->process);
}
DEFINE_DEINIT(drawn_deinit, struct drawn)

/* Only sizes are set before; what a test changes of the memory, it changes before drawn_open(). */
static inline void drawn_init(struct drawn *drawn, const char *text)
{
	const struct drawing drawing = draw(text);
	struct process *process = &drawn->process;
	struct core *core = &process->core;

	process_init(process, &GLIBC_2_36);
	for (size_t i = 0; i < drawing.count; i++)
		drawn->at[i] =
			process_allocate(process, drawn->chunk[i] ? drawn->chunk[i] : DRAWN_CHUNK);
	for (size_t i = 0; i < drawing.edge_count; i++)
		core_set(core, drawn->at[drawing.edges[i].from] + 8 * drawing.words[i],
			 drawn->at[drawing.edges[i].to]);
	for (size_t i = 0; i < drawing.count; i++) {
		if (drawing.roots >> i & 1)
			core_set(core, DATA + 0x100 + 8 * i, drawn->at[i]);
		if (drawing.is_free[i])
			process_cache(process, drawn->at[i]);
	}
	process_finish(process);
}

static inline struct analysis *drawn_open(struct drawn *drawn, enum stage stage)
{
	process_open(&drawn->process, stage);
	return drawn->process.analysis;
}

/* The letter's allocation. */
static inline allocation_id drawn_find(const struct drawn *drawn, char letter)
{
	return process_find(&drawn->process, drawn->at[drawn_id(letter)]);
}

/* The name of the letter's class, or "none"; with STAGE_CLASSES. */
static inline const char *drawn_class(const struct drawn *drawn, char letter)
{
	struct analysis *analysis = drawn->process.analysis;
	uint64_t signature = analysis_signature(analysis, drawn_find(drawn, letter));

	return signature ? classes_name(analysis_classes(analysis), signature) : "none";
}
