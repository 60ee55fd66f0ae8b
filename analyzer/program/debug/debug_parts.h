/*
 * The implementation of struct debug, for the files that answer from it.
 *
 *	modules.c    a libdwfl session of the dump's modules, each with its files (files.h)
 *	symbols.c    the symbols of a module
 *	units.c      the unit and the scopes of an address of code
 *	statics.c    the entry of a static or thread-local variable
 *	tls.c        whose thread-local variables an address is in
 *	frames.c     backtraces
 *	locals.c     which variable of which call is at an address of a stack
 *	build.c      which build of the program it is
 *	types.c      members and elements of a value, by the entry of its type
 *
 * libdwfl asks for files when it first needs them. It gets only those that files.h let through; a
 * module without a file at hand, but whose memory is in the dump as a whole, as the vdso's, is read
 * from there.
 */
#pragma once

#include "analyzer/base/side_file.h"
#include "analyzer/program/debug/files.h"
#include "analyzer/program/debug/lines.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/program/debug/types.h"

#include <elfutils/libdwfl.h>

/*
 * A table of symbols as it stands in a file. A handful of addresses is searched for there and costs
 * no memory. When more are asked for, an index by address is made.
 */
struct symbol_table {
	Elf *elf;
	const Elf64_Sym *symbols;
	size_t count;
	size_t strings;	   /* the number of the section with their names */
	uint32_t *ordered; /* numbers of symbols by value; NULL: not yet */
	size_t ordered_count;
	bool *apart;	      /* sections that are not loaded: no address is in them */
	size_t section_count; /* of those, 0 if it is not known */
	bool packed;	      /* a copy of libdwfl's table */
	bool copied;	      /* symbols are owned */
};

struct symbol_tables {
	bool opened;
	bool whole; /* the symbol table is complete, as linked */
	struct symbol_table list[2];
	size_t count;
	size_t lookups;
	uint64_t last_address; /* that was asked for, and its answer */
	struct symbol last;
};

/* Places in .debug_info that may be where a variable is, see statics.c. */
struct static_index {
	bool made;
	uint64_t start, end; /* of data, as the file has it */
	struct static_hit {
		uint32_t address; /* less start */
		uint32_t offset;  /* into .debug_info */
	} * hits;		  /* by address */
	size_t count;
};

struct debug_module {
	struct debug *debug;
	const struct module *module;
	Dwfl_Module *dwfl;
	struct build_id id;
	bool searched_main, searched_separate;
	bool names_missed; /* which was reported */
	bool has_dwarf;	   /* its debug information was opened */
	struct debug_file main, separate, shared;
	uint8_t *memory; /* a file in memory that main was opened on, if any */
	struct symbol_tables symbols;
	struct static_index static_variables, thread_local_variables;
};

/* A place on a stack that was named; the same few hold most of a heap. */
struct named_place {
	uint64_t address; /* 0: none yet */
	uint32_t thread;
	const char *name; /* NULL: nothing is known of it */
};

enum { NAMED_PLACES = 64 };

struct tls {
	bool made;
	struct tls_range *ranges; /* of all threads, by address */
	size_t range_count;
};

struct debug {
	const struct image *image;
	const struct program *program;
	struct debug_options options;
	struct findings *findings;
	struct name_pool names;
	Dwfl *dwfl;		      /* NULL: not begun */
	bool failed;		      /* it could not be begun */
	bool lacks_memory;	      /* which was reported */
	bool has_split;		      /* units that were split were met */
	size_t uses;		      /* of the session */
	struct debug_module *modules; /* of the program's, in order */
	size_t module_count;
	struct side_file *kept_types; /* names of types stand there; or NULL */
	struct tls tls;
	struct unwinder *unwinder;		/* NULL: not needed yet */
	struct named_place named[NAMED_PLACES]; /* by their addresses */
};

/* ---- modules.c */

/* The debug side of the module that holds address, or NULL. */
struct debug_module *debug_find_module(struct debug *debug, uint64_t address);

/* The module's own file, and its separate debug file; NULL: not at hand. */
Elf *debug_module_main(struct debug_module *module);
Elf *debug_module_separate(struct debug_module *module);

/* libdwfl's side of it, or NULL. The session begins with the first call. */
Dwfl_Module *debug_module_dwfl(struct debug_module *module);

/* Its debug information, and what to add to addresses in it; NULL: none. */
Dwarf *debug_module_dwarf(struct debug_module *module, uint64_t *ret_bias);

/* Report, once, that names and call stacks are missing for lack of memory. */
void debug_lacks_memory(struct debug *debug);

/* The session of libdwfl; NULL: there is none, or no memory to use it. */
Dwfl *debug_session(struct debug *debug);

void debug_modules_deinit(struct debug *debug);

/* ---- symbols.c: names are mangled, as the file has them */

void symbol_tables_deinit(struct symbol_tables *tables);

/* The symbol that covers address. */
bool symbol_tables_find(struct debug_module *module, uint64_t address, struct symbol *ret);

/* True if a function or variable of the module without a symbol has no name. */
bool symbol_tables_are_whole(struct debug_module *module);

/* Call visit for each symbol of an address until it returns false. */
void symbol_tables_visit(struct debug_module *module,
			 bool (*visit)(void *data, const struct symbol *symbol), void *data);

/*
 * True if the source may have a variable of that name. The symbols "count.1234", "serve.count" and
 * "_ZN4shop5countE" all allow "count".
 */
bool symbol_tables_may_have(struct debug_module *module, const char *name);

/* The thread-local variable that covers offset in the module's TLS, from where it starts. */
bool symbol_tables_find_thread_local(struct debug_module *module, uint64_t offset,
				     struct symbol *ret);

/* ---- units.c */

/* An address of code, as the debug information of its module has it. */
struct code_place {
	struct debug_module *module;
	Dwarf *dwarf;
	uint64_t address; /* less the bias */
	Dwarf_Die unit;
	Dwarf_Die lines; /* the same, or what it was split from */
};

bool code_place_find(struct debug *debug, uint64_t address, struct code_place *ret);

/* Replace the unit of a split file by its split-off part (.dwo), if that is at hand. */
void debug_enter_split(const struct debug_module *module, Dwarf_Die *unit);

/* The name of a function or variable, demangled; NULL: it has none. */
const char *debug_entry_name(struct debug *debug, Dwarf_Die *entry);

/* The way into a variable to the offset, as ".entries[3].key"; or NULL. */
const char *debug_path_into(struct debug *debug, Dwarf_Die *variable, uint64_t offset);

/* "session.c:88" */
const char *source_line_text(struct debug *debug, const struct source_line *line);

/* Find the line in the surrounding function that called the inlined one. */
bool inlined_call_find(struct code_place *place, Dwarf_Die *inlined, struct source_line *ret);

/* The deepest nesting of scopes that is read. */
enum { MOST_SCOPES = 64 };

/*
 * Scopes around the place, from the innermost block out to the function. Returns their number, at
 * most MOST_SCOPES.
 */
size_t code_scopes(const struct code_place *place, Dwarf_Die *scopes);

/* ---- statics.c */

void static_index_deinit(struct static_index *index);

/* The variable that begins at address (less the bias) in the module. */
bool static_variable_find(struct debug_module *module, uint64_t address, Dwarf_Die *ret);

/* The thread-local variable that begins at offset in those of the module. */
bool thread_local_variable_find(struct debug_module *module, uint64_t offset, Dwarf_Die *ret);

/* ---- tls.c */

/* The thread-local variables at an address. */
struct tls_place {
	uint32_t thread;
	const struct module *module; /* NULL: in nobody's variables */
	bool in_table;		     /* and not in the control block */
	uint64_t offset;	     /* in the module's block */
};

void tls_deinit(struct tls *tls);

bool tls_find(struct debug *debug, uint64_t address, struct tls_place *ret);

/* Call visit with where each thread has that offset in the module's variables, until false. */
bool tls_visit(struct debug *debug, const struct module *module, uint64_t offset,
	       bool (*visit)(void *data, uint64_t address), void *data);

/* The address of that offset in the thread's copy of the module's variables. */
bool tls_address(struct debug *debug, uint32_t thread, const struct module *module, uint64_t offset,
		 uint64_t *ret);

/* ---- locals.c */

/* A variable's address, or the value of its register. */
struct local_value {
	bool is_in_memory;
	uint64_t address, value;
};

/*
 * Call visit for each variable of the frame's function, and of those inlined into it there, that
 * has a place now, until it returns false; returns whether it never did.
 */
bool locals_visit(struct debug *debug, const struct frame *frame, const struct frame_state *state,
		  bool (*visit)(void *data, const struct local_value *value, Dwarf_Die *type),
		  void *data);

/* ---- frames.c */

struct trace {
	bool done;
	bool is_named; /* else it has no names, and nothing that was inlined */
	struct backtrace trace;
	struct frame_state *states; /* of each of its frames */
};

void unwinder_destroy(struct unwinder *unwinder);

/* The frames of the thread, which may have no names yet: those take debug information. Or NULL. */
const struct trace *debug_frames(struct debug *debug, uint32_t thread);

/* The calls of the thread, and of what saved these registers; NULL if memory is short. */
const struct trace *debug_trace(struct debug *debug, uint32_t thread);
const struct trace *debug_trace_of(struct debug *debug, const struct frame_state *saved);
