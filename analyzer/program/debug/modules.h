/*
 * What is behind struct debug: a libdwfl session of the modules of the dump, and what was found out
 * about each so far.
 *
 * libdwfl asks for files when it first needs them. It gets only such that debug_files.h let
 * through; a module whose file is not at hand, but whose memory is in the dump as a whole, as the
 * vdso's, is read from there.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_MODULES_H
#define ANALYZER_PROGRAM_DEBUG_MODULES_H

#include "analyzer/program/debug/files.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/program/debug/statics.h"
#include "analyzer/program/debug/symbols.h"
#include "analyzer/program/debug/tls.h"

#include <elfutils/libdwfl.h>

struct debug_module {
	struct debug *debug;
	const struct module *module;
	Dwfl_Module *dwfl;
	struct build_id id;
	bool searched_main, searched_separate;
	bool names_missed; /* which was reported */
	struct debug_file main, separate, shared;
	uint8_t *memory; /* what main was made of, if not of a file */
	struct symbol_tables symbols;
	struct static_index static_variables, thread_local_variables;
};

/* What was said of a place on a stack; the same few hold most of a heap. */
struct named_place {
	uint64_t address; /* 0: none yet */
	uint32_t thread;
	const char *name; /* NULL: nothing is known of it */
};

enum { NAMED_PLACES = 64 };

struct debug {
	const struct image *image;
	const struct program *program;
	struct debug_options options;
	struct findings *findings;
	struct name_pool names;
	Dwfl *dwfl;		      /* NULL: not begun */
	bool failed;		      /* it could not be begun */
	bool lacks_memory;	      /* which was reported */
	size_t uses;		      /* of the session */
	struct debug_module *modules; /* of the program's, in order */
	size_t module_count;
	struct tls tls;
	struct unwinder *unwinder;		/* NULL: not needed yet */
	struct named_place named[NAMED_PLACES]; /* by their addresses */
};

/* The debug side of the module that holds address, or NULL. */
struct debug_module *debug_find_module(struct debug *debug, uint64_t address);

/* The module's own file, NULL if there is none at hand. */
Elf *debug_module_main(struct debug_module *module);

/* Its separate debug file, or NULL. */
Elf *debug_module_separate(struct debug_module *module);

/* libdwfl's side of it, or NULL. The session begins with the first call. */
Dwfl_Module *debug_module_dwfl(struct debug_module *module);

/* Its debug information, and what to add to addresses in it; NULL: none. */
Dwarf *debug_module_dwarf(struct debug_module *module, uint64_t *ret_bias);

/* Tell, once, that names and call stacks are missing for lack of memory. */
void debug_lacks_memory(struct debug *debug);

/* The session of libdwfl; NULL: there is none, or no memory to use it. */
Dwfl *debug_session(struct debug *debug);

void debug_modules_deinit(struct debug *debug);

#endif
