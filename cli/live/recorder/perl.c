/*
 * Perl 5.24 to 5.40 with threads: the contexts of this thread's interpreter, cop.h.
 *
 *	interpreter   ... | statement | stack | info | ...
 *	info          stack | contexts | previous info | next | i32 last context, i32 most | ...
 *	context       u8 kind | ... | the caller's statement | ... | next operation | ... | code |
 *...
 *
 * A context without a next operation was made by machine code: a loop of its own ends with it.
 */
#include "cli/live/recorder/language.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	WORD = 8,
	FIRST_INFO = 26, /* words of the interpreter where that of the info may be */
	LAST_INFO = 34,
	/* A context. */
	CONTEXT_SIZE = 104,
	CALLER = 16,
	NEXT_OPERATION = 48,
	CODE = 72,
	KIND_BITS = 0xf,
	SUB = 9,
	/* A statement. */
	LINE = 36,
	FILE_NAME = 48,
	/* In the body of a code, and of a glob. */
	NAME_OF_CODE = 56,
	CODE_FLAGS = 92,
	IS_NAMED = 0x8000, /* the name is a key, not a glob */
	NAME_OF_GLOB = 32,
	/* A key. */
	KEY_LENGTH = 4,
	KEY_TEXT = 8,
	TYPE = 12, /* of a value */
	TYPE_BITS = 0xff,
	TYPE_ARRAY = 11,
	MOST_CONTEXTS = 1 << 20,
};

struct info {
	const char *stack, *contexts;
	const struct info *previous, *next;
	int32_t last, most;
};

static const pthread_key_t *key_of_interpreter; /* there is one once there is an interpreter */
static const char *const *first_interpreter;
static size_t info_place; /* in the interpreter; 0: not found yet */

static bool perl_open(void)
{
	return FIND_EXPORTED(key_of_interpreter, "PL_thr_key") &&
	       FIND_EXPORTED(first_interpreter, "PL_curinterp");
}

/* Read what may be no memory. */
static bool read_any(const void *address, void *ret, size_t size)
{
	const struct iovec here = { ret, size }, there = { (void *)address, size };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

/* True if the word is the address of an info: its stack is an array, and it has contexts. */
static bool is_info(const char *word)
{
	struct info info;
	uint32_t flags;

	return word && (uintptr_t)word % WORD == 0 && read_any(word, &info, sizeof(info)) &&
	       info.last >= -1 && info.last <= info.most && info.most > 0 &&
	       info.most < MOST_CONTEXTS && info.stack && info.contexts &&
	       read_any(info.stack + TYPE, &flags, sizeof(flags)) &&
	       (flags & TYPE_BITS) == TYPE_ARRAY;
}

/* It is checked once for each info, as that takes as long as all else. */
static const struct info *find_info(const char *interpreter)
{
	static __thread const char *checked __attribute__((tls_model("initial-exec")));
	const char *info;

	for (size_t at = FIRST_INFO; !info_place && at <= LAST_INFO; at++)
		if (is_info(word_at(interpreter + WORD * at)))
			info_place = WORD * at;
	info = info_place ? word_at(interpreter + info_place) : NULL;
	if (info != checked)
		checked = is_info(info) ? info : NULL;
	return (const struct info *)checked;
}

/* The name of a subroutine, without its package. */
static void add_name(struct script_call *call, const char *code)
{
	const char *body = code ? word_at(code) : NULL,
		   *key = body ? word_at(body + NAME_OF_CODE) : NULL;

	if (key && !(int_at(body + CODE_FLAGS) & IS_NAMED)) {
		body = word_at(key);
		key = body ? word_at(body + NAME_OF_GLOB) : NULL;
	}
	if (key)
		script_call_add(call, key + KEY_TEXT, int_at(key + KEY_LENGTH), 0);
	else
		script_call_add(call, "__ANON__", strlen("__ANON__"), 0);
}

static bool visit_call(script_visitor *visit, void *data, const char *statement,
		       const char *context)
{
	const char *file = word_at(statement + FILE_NAME);
	struct script_call call;

	call.size = 0;
	call.line = int_at(statement + LINE);
	call.is_first = !context || !word_at(context + NEXT_OPERATION);
	script_call_add(&call, file, strlen(file), 0);
	if (context)
		add_name(&call, word_at(context + CODE));
	else
		script_call_add(&call, "main program", strlen("main program"), 0);
	return visit(data, &call);
}

static bool has_file(const char *statement)
{
	return statement && word_at(statement + FILE_NAME);
}

static void perl_visit(script_visitor *visit, void *data)
{
	const char *interpreter =
			   *first_interpreter ? pthread_getspecific(*key_of_interpreter) : NULL,
		   *statement;
	const struct info *info;

	info = interpreter ? find_info(interpreter) : NULL;
	if (!info)
		return;
	statement = word_at(interpreter + info_place - (size_t)2 * WORD);
	for (; info && has_file(statement); info = info->previous)
		for (int32_t i = info->last; i >= 0 && has_file(statement); i--) {
			const char *context = info->contexts + (size_t)CONTEXT_SIZE * (size_t)i;

			if ((*context & KIND_BITS) != SUB)
				continue;
			if (!visit_call(visit, data, statement, context))
				return;
			statement = word_at(context + CALLER);
		}
	if (has_file(statement))
		visit_call(visit, data, statement, NULL);
}

const struct language language_perl = {
	.loop = "Perl_runops_standard",
	.open = perl_open,
	.visit = perl_visit,
};
