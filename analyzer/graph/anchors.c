#include "analyzer/graph/anchors.h"

#include "analyzer/base/array.h"

struct kept {
	struct anchor anchor;
	uint64_t count; /* in the first of its kind: of all of the kind */
	uint32_t next;	/* of the same target; 0: none */
};

struct anchors {
	ARRAY(uint32_t) firsts;	 /* by id: its first kept one, or 0 */
	ARRAY(struct kept) kept; /* from 1 on */
	struct error *error;	 /* that ended the visit */
};

static struct kept *kept_at(const struct anchors *anchors, uint32_t number)
{
	return anchors->kept.items + number;
}

/*
 * Count the anchor, among those that its target has so far. Returns false if enough of its kind are
 * kept.
 */
static bool count_anchor(struct anchors *anchors, const struct anchor *anchor, uint32_t *ret_last)
{
	uint32_t number = anchors->firsts.items[anchor->target];
	size_t same = 0;

	*ret_last = 0;
	for (; number; number = kept_at(anchors, number)->next) {
		struct kept *kept = kept_at(anchors, number);

		*ret_last = number;
		if (kept->anchor.kind != anchor->kind)
			continue;
		if (same++ == 0)
			kept->count++;
	}
	return same < KEPT_ANCHORS;
}

static bool keep(void *data, const struct anchor *anchor)
{
	struct anchors *anchors = data;
	uint32_t last, number = (uint32_t)anchors->kept.count;

	if (!count_anchor(anchors, anchor, &last))
		return true;
	anchors->error = array_reserve(&anchors->kept, 1);
	if (anchors->error)
		return false;
	*kept_at(anchors, number) = (struct kept){ *anchor, 1, 0 };
	if (last)
		kept_at(anchors, last)->next = number;
	else
		anchors->firsts.items[anchor->target] = number;
	return ++anchors->kept.count < UINT32_MAX;
}

struct error *anchors_create(const struct roots *roots, size_t count,
			     struct memory_account *account, struct anchors **ret)
{
	_cleanup_(anchors_destroy) struct anchors *anchors = calloc(1, sizeof(*anchors));
	_cleanup_(bitmap_deinit) struct bitmap all = { 0 };

	TRY_MEMORY(anchors);
	arrays_use(account, &anchors->firsts, &anchors->kept);
	anchors->kept.count = 1;
	TRY(array_resize(&anchors->firsts, count));
	TRY(bitmap_init(&all, count, account));
	bitmap_fill(&all);
	roots_visit(roots, &all, keep, anchors);
	if (anchors->error)
		return take(anchors->error);
	*ret = take(anchors);
	return NULL;
}

void anchors_destroy(struct anchors *anchors)
{
	arrays_release(&anchors->firsts, &anchors->kept);
	error_destroy(anchors->error);
	free(anchors);
}

uint64_t anchors_find(const struct anchors *anchors, allocation_id target, enum root_kind kind,
		      struct anchor ret[static KEPT_ANCHORS])
{
	uint32_t number = anchors->firsts.items[target];
	enum root_kind last = ROOT_KINDS;
	uint64_t total = 0;
	size_t count = 0;

	for (; number; number = kept_at(anchors, number)->next) {
		const struct kept *kept = kept_at(anchors, number);

		if (kind != ROOT_KINDS && kept->anchor.kind != kind)
			continue;
		if (kept->anchor.kind != last)
			total += kept->count;
		last = kept->anchor.kind;
		if (count < KEPT_ANCHORS)
			ret[count++] = kept->anchor;
	}
	return total;
}
