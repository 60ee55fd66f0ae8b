#include "analyzer/heap/named_sets.h"

#include "analyzer/base/list.h"

#include <string.h>

struct named_set {
	char *name;
	struct bitmap members;
};

struct named_sets {
	struct named_set *list;
	size_t count;
};

struct error *named_sets_create(struct named_sets **ret)
{
	struct named_sets *sets = calloc(1, sizeof(*sets));

	TRY_MEMORY(sets);
	*ret = sets;
	return NULL;
}

void named_sets_destroy(struct named_sets *sets)
{
	for (size_t i = 0; i < sets->count; i++) {
		free(sets->list[i].name);
		bitmap_deinit(&sets->list[i].members);
	}
	free(sets->list);
	free(sets);
}

static struct named_set *find(const struct named_sets *sets, const char *name)
{
	for (size_t i = 0; i < sets->count; i++)
		if (strcmp(sets->list[i].name, name) == 0)
			return &sets->list[i];
	return NULL;
}

struct error *named_sets_assign(struct named_sets *sets, const char *name, struct bitmap *members)
{
	struct named_set *set = find(sets, name);
	char *copy;

	if (set) {
		bitmap_deinit(&set->members);
		set->members = *members;
		return NULL;
	}
	copy = strdup(name);
	if (!copy || !LIST_GROW(sets->list, sets->count)) {
		free(copy);
		bitmap_deinit(members);
		return &error_no_memory;
	}
	sets->list[sets->count++] = (struct named_set){ copy, *members };
	return NULL;
}

void named_sets_forget(struct named_sets *sets, const char *name)
{
	struct named_set *set = find(sets, name);

	if (!set)
		return;
	free(set->name);
	bitmap_deinit(&set->members);
	sets->count--;
	for (; set < sets->list + sets->count; set++)
		set[0] = set[1];
}

const struct bitmap *named_sets_find(const struct named_sets *sets, const char *name)
{
	const struct named_set *set = find(sets, name);

	return set ? &set->members : NULL;
}

const char *named_sets_name(const struct named_sets *sets, size_t number)
{
	return number < sets->count ? sets->list[number].name : NULL;
}
