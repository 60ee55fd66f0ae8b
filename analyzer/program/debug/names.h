/*
 * Names as people read them, each kept once.
 */
#pragma once

#include "analyzer/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct name_pool {
	void *names; /* a tree of tsearch(): demangling takes longer than searching it */
};

void name_pool_deinit(struct name_pool *pool);

/* The pool's copy of text, which is freed; NULL if memory is short. */
const char *name_pool_keep(struct name_pool *pool, char *text);

/* Intern the printed text. */
const char *name_pool_print(struct name_pool *pool, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The name as it was in the source: C++, Rust, D, Crystal. Falls back on the name as it stands,
 * which must live as long as the pool then.
 */
const char *name_demangle(struct name_pool *pool, const char *name);

/*
 * The name of C++ or Rust that the symbol stands for, to be freed. NULL: it is none such, memory is
 * short, or it is too long: a mangled name of 250 bytes can stand for one of 400 MB, as it may
 * refer to parts of itself again and again. No compiler makes these.
 */
char *demangle_symbol(const char *symbol);

/*
 * True if the function of that name, mangled or not, belongs to the C++ library. Its result type
 * does not matter: "std::string app::name<int>()" belongs to the program.
 */
bool name_is_of_library(const char *function);
