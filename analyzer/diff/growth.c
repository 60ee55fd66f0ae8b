#include "analyzer/diff/growth.h"

#include <string.h>

/* A group of the table of pairs. */
struct pair {
	const struct diff_group *group;
	char *holder; /* owned */
	const char *kind;
	enum census_holder by;
	uint32_t holder_number, kind_number; /* in the sums */
	uint32_t whole;			     /* of its kind, in the wholes */
	bool counts;			     /* it may be found to grow */
	bool is_covered;		     /* it is part of a growth */
};

/* Totals of the pairs of each holder, of each kind, and of all. */
struct sums {
	struct group_table holders, kinds, all;
};

struct finder {
	const struct group_table *held;
	size_t cores;
	ARRAY(struct pair) pairs;
	struct group_table wholes; /* of all pairs of a kind, but for garbage */
	struct sums sums;	   /* of pairs that count and are not covered */
	struct growths *growths;
};

static void sums_init(struct sums *sums, struct memory_account *account)
{
	group_table_init(&sums->holders, account);
	group_table_init(&sums->kinds, account);
	group_table_init(&sums->all, account);
}

static void sums_deinit(struct sums *sums)
{
	group_table_deinit(&sums->holders);
	group_table_deinit(&sums->kinds);
	group_table_deinit(&sums->all);
}

static void finder_deinit(struct finder *finder)
{
	array_for_each(pair, &finder->pairs)
		free(pair->holder);
	array_release(&finder->pairs);
	sums_deinit(&finder->sums);
	group_table_deinit(&finder->wholes);
}
DEFINE_DEINIT(finder_deinit, struct finder)

void growths_deinit(struct growths *growths)
{
	array_for_each(growth, growths)
		free(growth->holder);
	array_release(growths);
}

/* "(feedback)": what a runtime has for itself, and gives up when memory is short. */
static bool is_of_runtime(const char *name)
{
	const char *end = strchr(name, ')');

	return name[0] == '(' && end && !end[1];
}

static struct error *split(struct finder *finder)
{
	array_for_each(group, &finder->held->groups) {
		const char *end = strchr(group->text, HELD_BETWEEN);
		struct pair pair = { .group = group };
		struct error *error;

		if (!end || is_of_runtime(end + 1))
			continue;
		pair.holder = strndup(group->text, (size_t)(end - group->text));
		TRY_MEMORY(pair.holder);
		pair.kind = end + 1;
		pair.by = census_holder_of(pair.holder);
		pair.counts = *pair.holder && pair.by != HELD_AS_GARBAGE;
		error = array_append(&finder->pairs, pair);
		if (error) {
			free(pair.holder);
			return error;
		}
	}
	return NULL;
}

static struct error *find_wholes(struct finder *finder)
{
	array_for_each(pair, &finder->pairs) {
		const struct census_name kind = { .text = pair->kind, .size = pair->group->size };

		for (size_t i = 0; i < finder->cores && pair->by != HELD_AS_GARBAGE; i++)
			TRY(group_table_add(&finder->wholes, &kind, i,
					    group_total(finder->held, pair->group, i),
					    &pair->whole));
	}
	return NULL;
}

static struct error *add_pair(struct finder *finder, struct pair *pair)
{
	struct sums *sums = &finder->sums;
	const struct census_name holder = { .text = pair->holder };
	const struct census_name kind = { .text = pair->kind, .size = pair->group->size };
	const struct census_name all = { .text = "" };
	uint32_t number;

	for (size_t i = 0; i < finder->cores; i++) {
		struct set_total total = group_total(finder->held, pair->group, i);

		TRY(group_table_add(&sums->holders, &holder, i, total, &pair->holder_number));
		TRY(group_table_add(&sums->kinds, &kind, i, total, &pair->kind_number));
		TRY(group_table_add(&sums->all, &all, i, total, &number));
	}
	return NULL;
}

/* Sum up all that counts and is not covered. */
static struct error *sum_up(struct finder *finder)
{
	struct memory_account *account = finder->growths->memory.account;

	sums_deinit(&finder->sums);
	sums_init(&finder->sums, account);
	array_for_each(pair, &finder->pairs)
		if (pair->counts && !pair->is_covered)
			TRY(add_pair(finder, pair));
	return NULL;
}

/* The fewest allocations that were more from a core to the next; 0: it does not always grow. */
static uint64_t least_step(const struct finder *finder, const struct group_table *table,
			   const struct diff_group *group)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i + 1 < finder->cores; i++) {
		uint64_t old = group_total(table, group, i).count;
		uint64_t now = group_total(table, group, i + 1).count;

		if (now <= old)
			return 0;
		least = now - old < least ? now - old : least;
	}
	return least;
}

/* True if there is more in the end, by one for each core. */
static bool ends_higher(const struct finder *finder, const struct group_table *table,
			const struct diff_group *group)
{
	size_t steps = finder->cores - 1;

	return group_total(table, group, steps).count >= group_total(table, group, 0).count + steps;
}

/* All of a kind grows, with and without what does not count. */
static bool kind_grows(const struct finder *finder, const struct pair *pair)
{
	const struct group_table *kinds = &finder->sums.kinds, *wholes = &finder->wholes;

	return least_step(finder, kinds, kinds->groups.items + pair->kind_number) &&
	       least_step(finder, wholes, wholes->groups.items + pair->whole);
}

/* Something else agrees that what the pair has does not grow by chance. */
static bool is_confirmed(const struct finder *finder, const struct pair *pair)
{
	const struct sums *sums = &finder->sums;
	const struct diff_group *holder = sums->holders.groups.items + pair->holder_number;
	const struct diff_group *kind = sums->kinds.groups.items + pair->kind_number;

	switch (pair->by) {
	case HELD_BY_NAME:
		return least_step(finder, &sums->holders, holder);
	case HELD_BY_NOBODY:
		return ends_higher(finder, &sums->kinds, kind);
	case HELD_BY_MANY:
		return kind_grows(finder, pair);
	default:
		return false;
	}
}

/* Add what the group has more in the newest core; nothing if it has fewer bytes then. */
static struct error *add(struct finder *finder, const struct group_table *table,
			 const struct diff_group *group, struct growth growth)
{
	struct set_total old = group_total(table, group, 0);
	struct set_total now = group_total(table, group, finder->cores - 1);
	struct error *error;

	growth.least = least_step(finder, table, group);
	growth.count = now.count - old.count;
	growth.bytes = now.bytes > old.bytes ? now.bytes - old.bytes : 0;
	growth.holder = strdup(growth.holder);
	error = growth.holder ? array_append(finder->growths, growth) : &error_no_memory;
	if (error)
		free(growth.holder);
	return error;
}

static struct error *find_pairs(struct finder *finder)
{
	TRY(sum_up(finder));
	array_for_each(pair, &finder->pairs) {
		pair->is_covered = pair->counts && least_step(finder, finder->held, pair->group) &&
				   is_confirmed(finder, pair);
		if (!pair->is_covered)
			continue;
		TRY(add(finder, finder->held, pair->group,
			(struct growth){ .holder = pair->holder,
					 .by = pair->by,
					 .kind = pair->kind,
					 .size = pair->group->size }));
	}
	return NULL;
}

/* All that a holder has may grow, though no kind of it does. */
static bool holder_grows(const struct finder *finder, const struct pair *pair)
{
	const struct sums *sums = &finder->sums;

	return pair->by != HELD_BY_MANY &&
	       least_step(finder, &sums->holders,
			  sums->holders.groups.items + pair->holder_number) &&
	       (pair->by != HELD_BY_NOBODY ||
		ends_higher(finder, &sums->all, sums->all.groups.items));
}

/* Sums are numbered as the pairs that they are of come first. */
static struct error *find_holders(struct finder *finder)
{
	uint32_t next = 0;

	TRY(sum_up(finder));
	array_for_each(pair, &finder->pairs) {
		uint32_t number = pair->holder_number;
		bool is_first = number == next;

		if (pair->is_covered || !pair->counts)
			continue;
		next += is_first;
		pair->is_covered = holder_grows(finder, pair);
		if (pair->is_covered && is_first)
			TRY(add(finder, &finder->sums.holders,
				finder->sums.holders.groups.items + number,
				(struct growth){
					.holder = pair->holder, .by = pair->by, .kind = "" }));
	}
	return NULL;
}

/* All of a kind may grow, though its holders change. */
static struct error *find_kinds(struct finder *finder)
{
	const struct group_table *table = &finder->sums.kinds;
	uint32_t next = 0;

	TRY(sum_up(finder));
	array_for_each(pair, &finder->pairs) {
		uint32_t number = pair->kind_number;

		if (pair->is_covered || !pair->counts || number != next)
			continue;
		next++;
		if (kind_grows(finder, pair))
			TRY(add(finder, table, table->groups.items + number,
				(struct growth){ .holder = "",
						 .by = HELD_BY_MANY,
						 .kind = pair->kind,
						 .size = pair->group->size }));
	}
	return NULL;
}

DEFINE_COMPARE(compare_growths, struct growth, DESCENDING(bytes), DESCENDING(count),
	       ALPHABETICAL(holder), ALPHABETICAL(kind), ASCENDING(size))

static void drop_behind(struct growths *growths, size_t count)
{
	while (growths->count > count)
		free(growths->items[--growths->count].holder);
}

/* Another growth of the kind that holds this one; NULL: there is none. */
static struct growth *find_above(const struct growths *growths, const struct growth *growth)
{
	array_for_each(other, growths)
		if (other != growth && strcmp(growth->holder, other->kind) == 0 &&
		    (strcmp(growth->holder, other->holder) != 0 ||
		     strcmp(growth->holder, growth->kind) != 0))
			return other;
	return NULL;
}

/* The topmost above it; itself, if they hold each other. */
static struct growth *find_top(const struct growths *growths, struct growth *growth)
{
	struct growth *top = growth, *above = top;

	for (size_t i = 0; above && i < growths->count; i++) {
		above = find_above(growths, top);
		top = above ? above : top;
	}
	return above ? growth : top;
}

/* Add what hangs on others to these. */
static struct error *join(struct growths *growths)
{
	ARRAY(struct growth *) tops = { .memory.account = growths->memory.account };
	struct error *error = NULL;
	size_t kept = 0;

	for (size_t i = 0; !error && i < growths->count; i++)
		error = array_append(&tops, find_top(growths, growths->items + i));
	for (size_t i = 0; !error && i < growths->count; i++) {
		if (tops.items[i] == growths->items + i || !growths->items[i].holder[0])
			continue;
		tops.items[i]->bytes += growths->items[i].bytes;
		tops.items[i]->has_more = true;
	}
	for (size_t i = 0; !error && i < growths->count; i++) {
		if (tops.items[i] == growths->items + i)
			growths->items[kept++] = growths->items[i];
		else
			free(growths->items[i].holder);
	}
	if (!error)
		growths->count = kept;
	array_release(&tops);
	return error;
}

struct error *growths_find(const struct group_table *held, size_t cores, struct growths *ret)
{
	enum { MOST = 256 };
	struct memory_account *account = held->names.memory.account;
	_cleanup_(finder_deinit) struct finder finder = {
		.held = held,
		.cores = cores,
		.pairs.memory.account = account,
		.growths = ret,
	};

	*ret = (struct growths){ .memory.account = account };
	sums_init(&finder.sums, account);
	group_table_init(&finder.wholes, account);
	TRY(split(&finder));
	TRY(find_wholes(&finder));
	TRY(find_pairs(&finder));
	TRY(find_holders(&finder));
	TRY(find_kinds(&finder));
	array_sort(ret, compare_growths);
	drop_behind(ret, MOST);
	TRY(join(ret));
	array_sort(ret, compare_growths);
	return NULL;
}
