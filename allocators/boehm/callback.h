/*
 * Whether the program marks memory by functions of its own: by the one that the variable
 * GC_push_other_roots holds, which the collector calls at each collection, or by those that it has
 * for the objects of a kind, to look at what they lead to in their way (Guile marks the stack of
 * its machine so).
 */
#ifndef ALLOCATORS_BOEHM_CALLBACK_H
#define ALLOCATORS_BOEHM_CALLBACK_H

#include "allocators/boehm/boehm.h"

enum more_roots boehm_more_roots(const struct heap *heap);

#endif
