#include "analyzer/base/numbers.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/sort.h"

#include <stdlib.h>

/* Reverse the numbers if each is smaller than the one before. */
static bool reverse_falling(uint64_t *all, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (all[i] >= all[i - 1])
			return false;
	for (size_t i = 0; i < count / 2; i++) {
		uint64_t swap = all[i];

		all[i] = all[count - 1 - i];
		all[count - 1 - i] = swap;
	}
	return true;
}

static bool is_rising(const uint64_t *all, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (all[i] <= all[i - 1])
			return false;
	return true;
}

void number_list_sort(struct number_list *list)
{
	uint64_t *all = list->items;

	/* Programs that free in order leave lists in order, or in reverse. */
	if (list->count == 0 || is_rising(all, list->count) || reverse_falling(all, list->count))
		return;
	SORT(all, list->count, compare_u64);
	array_keep(list, number, last, !last || *number != *last);
}

bool number_list_has(const struct number_list *list, uint64_t number)
{
	return list->count > 0 &&
	       bsearch(&number, list->items, list->count, sizeof(number), compare_u64);
}

size_t number_list_below(const struct number_list *list, uint64_t number)
{
	return BISECT(i, 0, list->count, list->items[i] < number);
}
