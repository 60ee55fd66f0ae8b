/*
 * The types of a program, and the variables that have them, as the debug information of all its
 * modules tells.
 *
 * A type is a number. Each unit declares its own copy of what it includes: copies of one name,
 * kind, size and line of declaration are one type, and a pointer to it is one type, too. What is
 * only declared stands for the definition of that name, if there is one. Names of types that others
 * are made from, such as const and typedef, are left out; a structure without a name has that of
 * its typedef.
 *
 * All of it is read at once, in some seconds for 100 MB, and only when asked for; or it was kept
 * when another core of the build was read (build.h). libdw stays behind this header. Strings live
 * as long as struct debug.
 */
#pragma once

#include "analyzer/base/memory.h"
#include "analyzer/base/progress.h"
#include "analyzer/program/debug/data_type.h"
#include "analyzer/program/debug/debug.h"

struct type_table;

/* All are borrowed; debug outlives the table. */
struct error *type_table_create(struct debug *debug, struct memory_account *account,
				struct progress *progress, struct type_table **ret);
void type_table_destroy(struct type_table *table);
DEFINE_CLEANUP(type_table_destroy, struct type_table *)

/* Bytes of a word of the process, and so of a pointer. */
unsigned int type_word_size(const struct type_table *table);

/* Types are the numbers from 1 to the count less 1. */
size_t type_count(const struct type_table *table);
const struct data_type *type_get(const struct type_table *table, type_number number);

/* The members of a structure or union, type->member_count of them, by offset as declared. */
const struct type_member *type_members(const struct type_table *table,
				       const struct data_type *type);

/* When a member that is a variant stands in its structure; NULL: that is not told. */
const struct type_variant *type_variant(const struct type_table *table,
					const struct type_member *member);

/* The variant of that number, from 0 on, as first_other means it. */
const struct type_variant *type_variants(const struct type_table *table, uint32_t number);

/* The elements of each of an array's dimensions, type->bound_count of them; 0: not told. */
const uint64_t *type_bounds(const struct type_table *table, const struct data_type *type);

/*
 * The type's name, as "struct conn", "struct row *[8]", with texts before and behind it; lives as
 * long as struct debug. NULL: memory is short.
 */
const char *type_text(const struct type_table *table, type_number number, const char *before,
		      const char *behind);

size_t type_variable_count(const struct type_table *table);
const struct type_variable *type_variables(const struct type_table *table);

/* The type whose entry stands at that address of its section in memory, or NO_TYPE. */
type_number type_of_entry(const struct type_table *table, const void *entry);

/* The structure or union of that name, as "conn" or "struct conn"; NO_TYPE: there is none. */
type_number type_find(const struct type_table *table, const char *name);

/* True if a structure or union has a name that begins with start. */
bool type_begins(const struct type_table *table, const char *start);

/* A copy of text, which is freed, that lives as long as struct debug; NULL if it is, too. */
const char *type_keep(const struct type_table *table, char *text);
