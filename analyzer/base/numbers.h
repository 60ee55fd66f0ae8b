/*
 * A list of numbers, such as addresses: sorted, it is a set.
 */
#pragma once

#include "analyzer/base/array.h"

#include <stdbool.h>

struct number_list {
	ARRAY(uint64_t);
};

/* Sort, and drop repeats. The others take a sorted list. */
void number_list_sort(struct number_list *list);
bool number_list_has(const struct number_list *list, uint64_t number);
/* How many are below that number. */
size_t number_list_below(const struct number_list *list, uint64_t number);
