/*
 * Modules and threads of the process.
 *
 * A module is an ELF file that is mapped: the program, its libraries, the loader, the vdso. A
 * thread has registers and, where it can be told for certain, a stack: the part of it below the
 * stack pointer's red zone is dead.
 */
#pragma once

#include "analyzer/base/ranges.h"
#include "analyzer/image/image.h"

#include <string.h>

struct module {
	const char *path;	/* as the dump names it (untrusted) */
	const char *started_as; /* the program's name, if a link to it has another; or NULL */
	uint64_t start, end;	/* from its header to the end of its data */
	uint64_t bias;		/* address less the file's virtual address */
	const struct image_file *file; /* NULL: see the state */
	enum file_state state;
	struct symbol_names *names; /* of the file; see symbols.h. NULL: there is none */
};

enum stack_kind {
	STACK_MAIN,	/* the kernel's: below the auxiliary vector */
	STACK_THREAD,	/* of a thread made by pthread_create() */
	STACK_FINISHED, /* of such a thread that has ended */
	STACK_UNJOINED, /* likewise, until somebody asks for its result */
	STACK_VANISHED, /* of one of the process that forked this one */
};

/* [start, end), of which [live, live_end) is in use. */
struct stack {
	enum stack_kind kind;
	uint64_t start, end;
	uint64_t live, live_end;
	uint32_t thread;     /* an index, or NO_THREAD for a finished one */
	uint64_t descriptor; /* the address of its struct pthread; 0: not known */
};

/* True if its thread is gone; glibc keeps stacks that vanished for later threads, too. */
static inline bool stack_has_ended(const struct stack *stack)
{
	return stack->kind >= STACK_FINISHED;
}

enum { NO_THREAD = UINT32_MAX };

/* The source of a thread's pointer. */
enum pointer_source {
	POINTER_UNKNOWN, /* as the dump has it: no control block begins there */
	POINTER_TOLD,	 /* the same, and the block there names itself */
	POINTER_FOUND,	 /* the block names itself and the thread's number */
	POINTER_LIKELY,	 /* the block names itself; by its place */
};

struct thread {
	uint32_t id; /* the kernel's */
	uint64_t instruction;
	enum system_call system_call; /* that it is in */
	uint64_t stack_pointer;
	uint64_t used_from;	 /* less the red zone */
	uint64_t thread_pointer; /* its control block */
	enum pointer_source pointer_source;
	uint32_t stack; /* an index, or NO_STACK */
	const struct image_thread *state;
	/* Registers that the program may still use, see system_calls.c; others are 0. */
	uint64_t registers[MOST_REGISTERS]; /* 0 where it does not */
	bool vectors_used;
	uint64_t live; /* where its frames begin, if it never returns; or 0 */
};

enum { NO_STACK = UINT32_MAX };

/* The program in an image: built by program_create(), constant afterwards. */
struct program {
	const struct image *image;
	struct module *modules; /* by address */
	size_t module_count;
	struct thread *threads; /* in the order of the dump */
	size_t thread_count;
	struct stack *stacks; /* by address */
	size_t stack_count;
	struct tls_module *tls_modules; /* modules with thread-local variables; see tls.h */
	size_t tls_module_count;
	/*
	 * Memory of the C library for threads: control blocks, tables of variables, and the
	 * variables next to them; for threads that ended, only what is live. By address, apart.
	 */
	struct memory_range *thread_memory;
	size_t thread_memory_count;
	/* The distance of the thread pointer from the start of struct pthread. */
	uint16_t pthread_pointer;
	/* Bits of a pointer that are no part of the address: of code, and of data. */
	uint64_t code_signature, ignored_bits;
};

struct error *program_create(const struct image *image, struct findings *findings,
			     struct program **ret);
void program_destroy(struct program *program);
DEFINE_CLEANUP(program_destroy, struct program *)

/* True if a thread waits for nothing: it may be in the midst of changing anything. */
bool program_is_at_work(const struct program *program);

/* The module that has address in one of its mappings, or NULL. */
const struct module *program_find_module(const struct program *program, uint64_t address);

/*
 * The module that the program itself is, or NULL: the one with the entry point or, where the dump
 * does not tell that, the lowest. Libraries are below it where mappings are made upwards, such as
 * with 'ulimit -s unlimited'.
 */
const struct module *program_main_module(const struct program *program);

/* The address in a module that the word is without a signature; otherwise the word. */
uint64_t program_unsigned(const struct program *program, uint64_t word);

/* The name by which the program was started, else that of the file. */
const char *module_name(const struct module *module);

/* The last part of its path. */
const char *module_file_name(const struct module *module);

/* True if it is glibc's libc, by its name. */
bool module_is_libc(const struct module *module);

/* True if it is a library of C or C++ itself, or the loader, rather than part of the program. */
bool module_is_of_language(const struct module *module);

/* True if the module has the bytes, in code or data. */
bool module_holds(const struct image *image, const struct module *module, const void *wanted,
		  size_t wanted_size);

/*
 * True if all of the module's constants are readable, including type names: only variables are
 * absent, or code in segments of its own.
 */
bool module_has_constants(const struct image *image, const struct module *module);

/* True if the dump says which modules there are; a static program has one. */
bool program_knows_modules(const struct program *program);

/*
 * Visit memory that the kernel is about to overwrite, because the thread waits in a call that reads
 * into it. An error ends the visit.
 */
typedef struct error *program_range_visitor(void *data, uint64_t start, uint64_t size);
struct error *thread_visit_outputs(const struct program *program, const struct thread *thread,
				   program_range_visitor *visit, void *data);

/* True if a module has part in its path: an interpreter, or its library. */
static inline bool program_has_module(const struct program *program, const char *part)
{
	for (size_t i = 0; i < program->module_count; i++)
		if (strstr(program->modules[i].path, part))
			return true;
	return false;
}

/* The struct pthread of a thread with that thread pointer; pthread_self() returns it. */
static inline uint64_t thread_descriptor(const struct program *program, uint64_t thread_pointer)
{
	return thread_pointer - program->pthread_pointer;
}

/* The start of the used part of a stack that begins at start, if the thread runs on it. */
static inline uint64_t thread_live(const struct thread *thread, uint64_t start)
{
	bool is_whole = thread->stack_pointer - start <= thread->stack_pointer - thread->used_from;

	return is_whole ? start : thread->used_from;
}

const struct stack *program_find_stack(const struct program *program, uint64_t address);

/* "main", "thread", "finished thread", "unjoined thread" or "vanished thread". */
const char *stack_kind_name(enum stack_kind kind);
