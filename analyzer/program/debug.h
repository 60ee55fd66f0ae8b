/*
 * What the binaries and their debug files tell of addresses: symbols, source
 * lines, call frames, variables.
 *
 * All of it is read when first asked for, one module and one unit at a time:
 * naming an address in a program with hundreds of megabytes of debug
 * information costs what that address costs. libdw stays behind this header.
 * Names are demangled. Strings live as long as struct debug.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_H
#define ANALYZER_PROGRAM_DEBUG_H

#include "analyzer/program/program.h"

/* Borrowed, outliving struct debug; all NULL or false by default. */
struct debug_options {
	const char *debug_directory; /* where separate debug files are, too */
	const char *sysroot; /* where the files of the core's machine are */
	bool debuginfod;     /* ask the servers of $DEBUGINFOD_URLS */
};

struct debug;

struct error *debug_create(const struct image *image,
			   const struct program *program,
			   const struct debug_options *options,
			   struct findings *findings, struct debug **ret);
void debug_destroy(struct debug *debug);
DEFINE_CLEANUP(debug_destroy, struct debug *)

enum symbol_kind { SYMBOL_FUNCTION, SYMBOL_DATA, SYMBOL_OTHER };

struct symbol {
	const char *name;
	enum symbol_kind kind;
	uint64_t start, size; /* size 0: not told, up to the next symbol */
	const struct module *module;
};

/* The symbol that covers address. */
bool debug_symbol(struct debug *debug, uint64_t address, struct symbol *ret);

/* Where the code at address comes from, as "session.c:88"; NULL: not told. */
const char *debug_source(struct debug *debug, uint64_t address);

/* The last part of its path. */
const char *module_name(const struct module *module);

/*
 * An address in a module, as "cache+0x18 (libfoo.so)" or, by its debug
 * information, "cache.entries (libfoo.so)"; as "libfoo.so+0x4018" where
 * nothing has a name. NULL: it is in no module.
 */
const char *debug_name(struct debug *debug, uint64_t address);

#endif
