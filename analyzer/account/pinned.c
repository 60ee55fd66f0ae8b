#include "analyzer/account/pinned.h"

struct error *pinned_begin(struct analysis *analysis, struct pinnings *pinnings,
			   struct pin_count *ret)
{
	struct memory_account *account = analysis_account(analysis);

	*ret = (struct pin_count){ .analysis = analysis, .pinnings = pinnings };
	pinnings->memory.account = account;
	TRY(kind_need(analysis));
	return bitmap_init(&ret->counted, allocation_count(analysis_index(analysis)), account);
}

void pinned_deinit(struct pin_count *count)
{
	bitmap_deinit(&count->counted);
}

/* The number of the pinning of the allocation, in which it is counted once. */
static struct error *count_pinner(struct pin_count *count, allocation_id id, size_t *ret)
{
	const struct analysis *analysis = count->analysis;
	uint64_t size = allocation_size(analysis_index(analysis), id);
	kind_key kind = kind_with_size(kind_of(analysis, analysis_patterns(analysis), id), size);
	struct pinnings *pinnings = count->pinnings;
	struct pinning *pinning = table_find(pinnings, kind, item, item->kind == kind);

	if (!pinning) {
		TRY(table_append(pinnings, kind, (struct pinning){ .kind = kind, .example = id }));
		pinning = pinnings->items + pinnings->count - 1;
	}
	*ret = (size_t)(pinning - pinnings->items);
	if (!bitmap_get(&count->counted, id)) {
		bitmap_set(&count->counted, id);
		pinning->count++;
		pinning->bytes += size;
	}
	return NULL;
}

/* If the bytes do not divide evenly, the first allocations get one more. */
struct error *pinned_add(struct pin_count *count, const allocation_id *ids, size_t id_count,
			 uint64_t free, bool only_these)
{
	size_t first = 0, number;

	for (size_t i = 0; i < id_count; i++) {
		TRY(count_pinner(count, ids[i], &number));
		if (i == 0)
			first = number;
		only_these = only_these && number == first;
		count->pinnings->items[number].pinned += free / id_count + (i < free % id_count);
	}
	if (only_these)
		count->pinnings->items[first].alone += free;
	return NULL;
}

struct search {
	struct pin_count *count;
	const arena_number *only_arena; /* NULL: all */
};

static struct error *pin_page(void *data, const struct heap_page *page)
{
	struct search *search = data;

	if (page->pinner_count == 0 || (search->only_arena && *search->only_arena != page->arena))
		return NULL;
	return pinned_add(search->count, page->pinners, page->pinner_count, page->free,
			  !page->foreign);
}

/* Kinds known by size or pattern only come last. */
static bool is_nameless(const struct pinning *pinning)
{
	return kind_tag(pinning->kind) != BY_SIGNATURE && kind_tag(pinning->kind) != BY_IDENTITY;
}

static int compare_pinnings(const void *a, const void *b)
{
	const struct pinning *left = a, *right = b;

	if (left->pinned != right->pinned)
		return left->pinned > right->pinned ? -1 : 1;
	if (is_nameless(left) != is_nameless(right))
		return is_nameless(left) - is_nameless(right);
	return (left->kind > right->kind) - (left->kind < right->kind);
}

void pinned_sort(struct pinnings *pinnings)
{
	array_sort(pinnings, compare_pinnings);
}

struct error *pinned_find(struct analysis *analysis, const arena_number *only_arena,
			  struct pinnings *ret_pinnings, struct fragments **ret_fragments)
{
	_cleanup_(pinned_deinit) struct pin_count count = { 0 };
	struct search search = { &count, only_arena };

	if (ret_pinnings)
		TRY(pinned_begin(analysis, ret_pinnings, &count));
	TRY(fragments_create(analysis_heaps(analysis), analysis_image(analysis),
			     analysis_progress(analysis), ret_pinnings ? pin_page : NULL, &search,
			     ret_fragments));
	if (ret_pinnings)
		pinned_sort(ret_pinnings);
	return NULL;
}

/* Sums over pages. */
struct total {
	uint64_t bytes, pinners;
	allocation_id last; /* counted */
};

static struct error *add_page(void *data, const struct heap_page *page)
{
	struct total *total = data;

	if (page->whole || page->pinner_count == 0)
		return NULL;
	total->bytes += page->free;
	total->pinners += page->pinner_count;
	/* One that reaches over from the page below is there already. */
	if (page->pinners[0] == total->last)
		total->pinners--;
	total->last = page->pinners[page->pinner_count - 1];
	return NULL;
}

struct error *pinned_total(struct analysis *analysis, uint64_t *ret_bytes, uint64_t *ret_pinners)
{
	struct total total = { .last = NO_ALLOCATION };

	TRY(heap_pages_visit(analysis_index(analysis), analysis_progress(analysis), add_page,
			     &total));
	*ret_bytes = total.bytes;
	*ret_pinners = total.pinners;
	return NULL;
}
