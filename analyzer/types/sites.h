/*
 * Which functions may have allocated a value of a type.
 *
 *	static struct conn *conn_open(int socket)
 *	{
 *		struct conn *conn = xmalloc(sizeof(*conn));	a site of struct conn, in
 *conn_open()
 *
 * A site is a call whose result may be a new allocation: of malloc() and its kind, of a function
 * that returns what such a call gave it as "void *" or "char *" (a wrapper, whose callers are sites
 * in its place), or of one that nothing is known of, as through a pointer. What the result becomes
 * tells the type, as for casts (casts.h), and arguments that are constants tell the size.
 *
 * A site counts unless something speaks against it: its result becomes a pointer to another type,
 * or its size is a constant that does not fit. Where neither is known, it counts if its function
 * has a variable that leads to the type in up to three steps. So the function that allocated the
 * value is among those named, unless code without debug information did, or code that names the
 * type nowhere. A site in a function of the C++ library, such as std::make_unique(), stands for
 * those of the program's that call it.
 *
 * Where no type is known, the size may tell: sites whose size is a constant are kept by it.
 */
#pragma once

#include "analyzer/types/typing.h"

struct sites;

/* Reads all code that has debug information. What the input borrows outlives it. */
struct error *sites_create(const struct typing_input *input, const struct program *program,
			   struct sites **ret);
void sites_destroy(struct sites *sites);
DEFINE_CLEANUP(sites_destroy, struct sites *)

enum { MOST_MAKERS_NAMED = 3 };

/* The functions that may have made a value. */
struct site_functions {
	const char *names[MOST_MAKERS_NAMED];
	const char *source; /* of one function's only site, as "conn.c:41"; or NULL */
	size_t count;	    /* 0: not known, or too many */
	bool may_vary;	    /* by size: a call whose size is not known may have made it, too */
	type_number type;   /* by size: all that they make of that size; NO_TYPE: not known */
};

/*
 * The functions that may have allocated one value of that type, which is in that allocation. Names
 * live as long as struct debug.
 */
struct error *sites_find(struct sites *sites, allocation_id id, type_number type,
			 struct site_functions *ret);

/*
 * Like sites_find(), for an allocation without a type: functions that request a constant size that
 * malloc rounds to the allocation's, directly or through wrappers. The typing says which words
 * these functions did not write, and what calls of other sizes make; NULL: words are not compared.
 */
struct error *sites_find_by_size(struct sites *sites, struct typing *typing, allocation_id id,
				 struct site_functions *ret);

/* How many calls may give an allocation. */
size_t sites_count(const struct sites *sites);
