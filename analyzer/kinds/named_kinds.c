#include "analyzer/kinds/named_kinds.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/kinds/tally.h"

#include <string.h>

struct naming {
	struct analysis *analysis;
	struct named_kinds *kinds;
	struct tally_table keys;
	struct named_kind *list; /* a kind for each key */
	uint32_t *places;	 /* by number of the key */
};

static void naming_deinit(struct naming *naming)
{
	for (size_t i = 0; naming->list && i < naming->keys.count; i++)
		free(naming->list[i].name);
	free(naming->list);
	free(naming->places);
	table_release(&naming->keys);
}
DEFINE_DEINIT(naming_deinit, struct naming)

void named_kinds_deinit(struct named_kinds *kinds)
{
	array_for_each(kind, &kinds->list)
		free(kind->name);
	arrays_release(&kinds->list, &kinds->numbers, &kinds->order);
	kinds->known = false;
}

const char *kind_known_by(kind_key key)
{
	static const char *const words[] = {
		[BY_NOTHING] = "nothing",   [BY_SIZE] = "nothing",    [BY_SIGNATURE] = "signature",
		[BY_IDENTITY] = "identity", [BY_PATTERN] = "pattern", [BY_TYPE] = "type",
	};

	return kind_tag(key) < COUNT_OF(words) ? words[kind_tag(key)] : "nothing";
}

/* As 'summarize used' counts, but for sizes and holders. */
static struct error *number_all(struct naming *naming)
{
	struct analysis *analysis = naming->analysis;
	const struct bitmap *used = allocation_used(analysis_index(analysis));
	struct progress *progress = analysis_progress(analysis);
	uint64_t passed = 0;
	size_t hint = 0;

	progress_begin(progress, "naming allocations", used->count);
	bitmap_for_each(id, used) {
		struct memory_range range =
			allocation_range_near(analysis_index(analysis), (allocation_id)id, &hint);
		struct tally tally = {
			.key = kind_typed(analysis, analysis_patterns(analysis),
					  analysis_typing(analysis), (allocation_id)id),
			.count = 1,
			.bytes = range.end - range.start,
		};

		TRY(tally_add_numbered(&naming->keys, tally, &naming->kinds->numbers.items[id]));
		TRY(allocations_check(analysis_image(analysis), analysis_index(analysis), progress,
				      id, &passed));
	}
	return NULL;
}

static struct error *name_all(struct naming *naming)
{
	const struct analysis *analysis = naming->analysis;

	naming->list = calloc(naming->keys.count + 1, sizeof(*naming->list));
	naming->places = calloc(naming->keys.count + 1, sizeof(*naming->places));
	TRY_MEMORY(naming->list && naming->places);
	for (size_t i = 0; i < naming->keys.count; i++) {
		const struct tally *tally = &naming->keys.items[i];
		_cleanup_(free) char *name = tally->key == KIND_UNKNOWN
						     ? strdup("unrecognized")
						     : kind_text(analysis, tally->key);

		naming->list[i] = (struct named_kind){ tally->key, name ? text_as_is(name) : NULL,
						       tally->count, tally->bytes, (uint32_t)i };
		TRY_MEMORY(naming->list[i].name);
	}
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	const struct named_kind *kind = a, *other = b;

	return strcmp(kind->name, other->name);
}

/* Kinds of one name become one. Each one's `first` is the number of its key until here. */
static struct error *join_names(struct naming *naming)
{
	struct named_kinds *kinds = naming->kinds;
	struct named_kind *last = NULL;

	SORT(naming->list, naming->keys.count, compare_names);
	list_for_each(kind, naming->list, naming->keys.count) {
		if (!last || strcmp(last->name, kind->name) != 0) {
			TRY(array_append(&kinds->list,
					 (struct named_kind){ kind->key, take(kind->name) }));
			last = &kinds->list.items[kinds->list.count - 1];
		}
		last->count += kind->count;
		last->bytes += kind->bytes;
		naming->places[kind->first] = (uint32_t)kinds->list.count - 1;
	}
	return NULL;
}

/* Put all in order, the members of a kind by id. */
static struct error *order_all(struct naming *naming)
{
	struct named_kinds *kinds = naming->kinds;
	const struct bitmap *used = allocation_used(analysis_index(naming->analysis));
	_cleanup_(free) uint32_t *next = calloc(kinds->list.count + 1, sizeof(*next));
	uint32_t first = 0;

	TRY_MEMORY(next);
	for (size_t i = 0; i < kinds->list.count; i++) {
		kinds->list.items[i].first = next[i] = first;
		first += (uint32_t)kinds->list.items[i].count;
	}
	TRY(array_resize(&kinds->order, first));
	bitmap_for_each(id, used) {
		uint32_t place = naming->places[kinds->numbers.items[id]];

		kinds->numbers.items[id] = place;
		kinds->order.items[next[place]++] = (allocation_id)id;
	}
	return NULL;
}

static struct error *find(struct analysis *analysis, struct named_kinds *kinds)
{
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(naming_deinit) struct naming naming = {
		.analysis = analysis,
		.kinds = kinds,
		.keys.memory.account = account,
	};

	TRY(kind_need(analysis));
	TRY(analysis_need_types(analysis));
	arrays_use(account, &kinds->list, &kinds->numbers, &kinds->order);
	TRY(array_resize(&kinds->numbers, allocation_count(analysis_index(analysis))));
	TRY(number_all(&naming));
	TRY(name_all(&naming));
	TRY(join_names(&naming));
	return order_all(&naming);
}

struct error *named_kinds_find(struct analysis *analysis, struct named_kinds *kinds)
{
	struct error *error = NULL;

	if (kinds->known)
		return NULL;
	error = find(analysis, kinds);
	if (error)
		named_kinds_deinit(kinds);
	kinds->known = !error;
	return error;
}

size_t named_kinds_search(const struct named_kinds *kinds, const char *name)
{
	size_t place = BISECT(i, 0, kinds->list.count, strcmp(kinds->list.items[i].name, name) < 0);

	return place < kinds->list.count && strcmp(kinds->list.items[place].name, name) == 0
		       ? place
		       : kinds->list.count;
}
