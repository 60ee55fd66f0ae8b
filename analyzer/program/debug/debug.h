/*
 * Symbols, source lines, call frames and variables, from binaries and their debug files.
 *
 * All of it is read when first asked for, one module and one unit at a time: naming an address in a
 * program with hundreds of megabytes of debug information costs what that address costs. libdw
 * stays behind this header. Names are demangled. Strings live as long as struct debug.
 */
#pragma once

#include "analyzer/program/program.h"

/* Borrowed, outliving struct debug; all NULL or false by default. */
struct debug_options {
	const char *debug_directory;  /* where separate debug files are, too */
	const char *sysroot;	      /* where the files of the core's machine are */
	const char *temporary_folder; /* for what is unpacked; see temporary.h */
	const char *cache_folder;     /* for what is the same for other cores; see cache.h */
	bool debuginfod;	      /* ask the servers of $DEBUGINFOD_URLS */
	size_t memory;		      /* that the machine has; 0: not known */
	/*
	 * Called when libdw lacks memory, an error that it cannot return; must end the program.
	 * NULL: libdw exits with status 1.
	 */
	void (*give_up)(void) __attribute__((noreturn));
};

struct debug;

/*
 * A call of a function that has not returned. The innermost is the first; one that was inlined into
 * the next has the same stack.
 */
struct frame {
	uint64_t address;	     /* of the instruction, or where it returns to */
	uint64_t stack_pointer;	     /* its stack is [stack_pointer, end) */
	uint64_t end;		     /* 0: not known */
	const char *function;	     /* NULL: it has no name */
	const char *source;	     /* as "session.c:88", or NULL */
	const struct module *module; /* or NULL */
	bool inlined;
	bool is_script; /* in an interpreter's language: it has no address */
};

struct backtrace {
	struct frame *frames;
	size_t count;
	bool cut; /* there are more than are kept */
};

struct error *debug_create(const struct image *image, const struct program *program,
			   const struct debug_options *options, struct findings *findings,
			   struct debug **ret);
void debug_destroy(struct debug *debug);
DEFINE_CLEANUP(debug_destroy, struct debug *)

enum symbol_kind { SYMBOL_FUNCTION, SYMBOL_DATA, SYMBOL_OTHER };

struct symbol {
	const char *name;
	const char *raw; /* the same as the file has it */
	enum symbol_kind kind;
	uint64_t start, size; /* size 0: not known, up to the next symbol */
	const struct module *module;
};

/* The symbol that covers address. */
bool debug_symbol(struct debug *debug, uint64_t address, struct symbol *ret);

/*
 * True if the module at address has all of its symbols, so that an address without one is in no
 * function or variable.
 */
bool debug_has_all_symbols(struct debug *debug, uint64_t address);

/*
 * Call visit for each symbol of code or data of the module, in no order, its name as the file has
 * it, until it returns false.
 */
void debug_visit_symbols(struct debug *debug, const struct module *module,
			 bool (*visit)(void *data, const struct symbol *symbol), void *data);

/* A function that was inlined. */
struct inlined {
	const char *function;
	const char *source; /* where it is declared, as "session.c:88"; or NULL */
};

/*
 * The innermost function inlined at address that the test takes. *ret_known says whether the module
 * has debug information of the address at all.
 */
bool debug_find_inlined(struct debug *debug, uint64_t address, bool (*takes)(const char *function),
			struct inlined *ret, bool *ret_known);

/*
 * Among the functions inlined at address and the one around them, find the innermost that the test
 * does not skip; ret->source is the line in it. False: there is none, or it has no name.
 */
bool debug_find_around(struct debug *debug, uint64_t address, bool (*skips)(const char *function),
		       struct inlined *ret);

/* The source of the code at address, as "session.c:88"; NULL: unknown. */
const char *debug_source(struct debug *debug, uint64_t address);

/*
 * Say, once for each module, that the names of its classes need its file, if that is why there are
 * none, and why it is not used.
 */
void debug_miss_names(struct debug *debug, uint64_t address);

/* Say that the program has no debug information, if so. */
void debug_miss_types(struct debug *debug);

/*
 * An address in a module, as "cache+0x18 (libfoo.so)" or, by its debug information, "cache.entries
 * (libfoo.so)"; as "libfoo.so+0x4018" where nothing has a name. NULL: it is in no module.
 */
const char *debug_name(struct debug *debug, uint64_t address);

/* The calls that a thread is in; NULL only if memory is short. */
const struct backtrace *debug_backtrace(struct debug *debug, uint32_t thread);

/* Like debug_backtrace(), but names and inlined calls may be missing: they need debug information.
 */
const struct backtrace *debug_bare_backtrace(struct debug *debug, uint32_t thread);

/*
 * The function whose frame on the thread's stack the address is in, where that frame is, and how
 * many frames called it; NULL: it is in none. What has a symbol needs no debug information.
 */
const char *debug_function_around(struct debug *debug, uint32_t thread, uint64_t address,
				  struct memory_range *ret_frame, unsigned int *ret_depth);

/*
 * The calls that return to these addresses, the innermost first, with what is inlined there; the
 * frames are to be freed.
 */
struct error *debug_calls_at(struct debug *debug, const uint64_t *addresses, size_t count,
			     struct backtrace *ret);

/* Append frames to calls whose frames are to be freed, none at first. */
struct error *backtrace_append(struct backtrace *calls, const struct frame *frames, size_t count);

/* Keep the text, which is freed, as long as debug lives; NULL if memory is short. */
const char *debug_keep(struct debug *debug, char *text);

/* Registers in a frame, by their DWARF numbers. */
struct frame_state {
	uint64_t registers[MOST_UNWOUND];
	uint64_t known;	  /* a bit for each */
	uint64_t address; /* in the instruction that the frame is in */
};

/*
 * The calls of what waits on a stack of its own and saved these registers; NULL if memory is short.
 * They are kept until those of other ones are asked for.
 */
const struct backtrace *debug_backtrace_of(struct debug *debug, const struct frame_state *saved);

/*
 * The variable and frame on the thread's stack at the address, as "variable session.user of
 * serve(), frame 3 of thread 4711". NULL: in no frame.
 */
const char *debug_stack_place(struct debug *debug, uint32_t thread, uint64_t address);

/*
 * Like debug_stack_place(), on a stack with saved registers, which is called whose: "variable
 * session.user of serve(), frame 3 of WHOSE".
 */
const char *debug_saved_place(struct debug *debug, const struct frame_state *saved,
			      const char *whose, uint64_t address);

/*
 * The thread-local variable at address, as "errno_buffer of thread 4711 (libfoo.so)". NULL: there
 * is none.
 */
const char *debug_thread_local(struct debug *debug, uint64_t address);

/*
 * The function as it is shown, as "serve()"; without a name, "libfoo.so+0x18". NULL: it is in no
 * module.
 */
const char *debug_frame_function(struct debug *debug, const struct frame *frame);

/*
 * The members of a structure by its name, as the debug information of a module has them. There is
 * no index of that: each call goes over the types of all units.
 *
 * Call visit for each member, those of structures within it too, as "position.x", until it returns
 * false; a structure comes before what is in it. The name lives as long as debug.
 */
void debug_visit_members(struct debug *debug, const struct module *module, const char *type,
			 bool (*visit)(void *data, uint64_t offset, const char *name), void *data);
