#include "analyzer/gate/judge.h"

void judge_suppress(struct leak_kinds *kinds, struct suppressions *suppressions)
{
	for (size_t i = 0; i < kinds->count; i++) {
		struct leak_kind *kind = &kinds->list[i];

		kind->rule = suppressions_find(suppressions, kind);
		if (kind->rule)
			kind->state = LEAK_SUPPRESSED;
	}
}

static enum leak_state compare(const struct leak_kind *kind, const struct baseline_entry *entry)
{
	if (kind->rule)
		return LEAK_SUPPRESSED;
	if (!entry)
		return LEAK_NEW;
	return kind->roots > entry->roots ? LEAK_MORE : LEAK_KNOWN;
}

void judge_compare(struct leak_kinds *kinds, struct baseline *baseline)
{
	for (size_t i = 0; i < kinds->count; i++) {
		struct leak_kind *kind = &kinds->list[i];
		struct baseline_entry *entry = baseline_find(baseline, kind->fingerprint);

		kind->state = compare(kind, entry);
		kind->is_allowed = entry != NULL;
		kind->allowed = entry ? entry->roots : 0;
		if (entry)
			entry->matched = true;
	}
}

const char *leak_state_name(enum leak_state state)
{
	static const char *const names[] = {
		[LEAK_NEW] = "new",
		[LEAK_KNOWN] = "known",
		[LEAK_MORE] = "more",
		[LEAK_SUPPRESSED] = "suppressed",
	};

	return names[state];
}

bool leak_counts(const struct leak_kind *kind)
{
	return kind->state == LEAK_NEW || kind->state == LEAK_MORE;
}

/* amount * part / whole, rounded up; part is not more than whole. */
static uint64_t share(uint64_t amount, uint64_t part, uint64_t whole)
{
	return (uint64_t)(((unsigned __int128)amount * part + whole - 1) / whole);
}

struct leak_total leak_counted(const struct leak_kind *kind)
{
	uint64_t excess = kind->roots - kind->allowed;

	switch (kind->state) {
	case LEAK_KNOWN:
	case LEAK_SUPPRESSED:
		return (struct leak_total){ 0 };
	case LEAK_NEW:
		break;
	case LEAK_MORE:
		return (struct leak_total){
			share(kind->allocations, excess, kind->roots),
			share(kind->bytes, excess, kind->roots),
		};
	}
	return (struct leak_total){ kind->allocations, kind->bytes };
}

struct error *judge_total(struct analysis *analysis, const struct leak_kinds *kinds,
			  struct leak_total *ret)
{
	struct leak_total total;
	struct error *error = leak_kinds_count_shared(analysis, kinds, leak_counts, &total);

	if (error)
		return error;
	for (size_t i = 0; i < kinds->count; i++) {
		struct leak_total counted = leak_counted(&kinds->list[i]);

		total.count += counted.count;
		total.bytes += counted.bytes;
	}
	*ret = total;
	return NULL;
}
