/*
 * Which functions of a program in Crystal make the objects of a class.
 *
 *	make_orders()  ->  Order::new  ->  GC_malloc(24), and 0x112 into its first word
 *
 * A constructor says nothing that the class does not, so its callers are shown instead. They are
 *read from the code of the whole program, in which each four bytes behind a call, jump or lea that
 *are the distance to the start of a constructor count. What is missed is a constructor whose
 *address stands in data.
 */
#pragma once

#include "analyzer/runtimes/crystal/types.h"
#include "analyzer/runtimes/runtime.h"

struct crystal_callers;

/* All are borrowed. */
struct error *crystal_callers_create(const struct crystal_types *types, const struct image *image,
				     struct debug *debug, struct memory_account *account,
				     struct crystal_callers **ret);
void crystal_callers_destroy(struct crystal_callers *callers);
DEFINE_CLEANUP(crystal_callers_destroy, struct crystal_callers *)

/*
 * One of these made each object of that type, as "make_orders() at shop.cr:12"; returns how many.
 * 0: there are more, or not all are known. They live as long as debug and callers.
 */
size_t crystal_callers_find(struct crystal_callers *callers, uint32_t type,
			    const char *ret[static MOST_OBJECT_MAKERS]);
