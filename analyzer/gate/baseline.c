#include "analyzer/gate/baseline.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/baseline_file.h"

#include <inttypes.h>
#include <string.h>

static void entry_deinit(struct baseline_entry *entry)
{
	free(entry->kind);
	free(entry->reason);
}

void baseline_deinit(struct baseline *baseline)
{
	for (size_t i = 0; i < baseline->count; i++)
		entry_deinit(&baseline->list[i]);
	free(baseline->list);
}

DEFINE_COMPARE(compare, struct baseline_entry, ASCENDING(fingerprint))

static void sort(struct baseline *baseline)
{
	if (baseline->count > 1)
		SORT(baseline->list, baseline->count, compare);
}

struct baseline_entry *baseline_find(const struct baseline *baseline, uint64_t fingerprint)
{
	struct baseline_entry key = { .fingerprint = fingerprint };

	if (baseline->count == 0)
		return NULL;
	return bsearch(&key, baseline->list, baseline->count, sizeof(*baseline->list), compare);
}

/* The same fingerprint twice would leave open which one counts. */
static struct error *check_unique(const struct baseline *baseline, const char *name)
{
	for (size_t i = 1; i < baseline->count; i++)
		if (baseline->list[i].fingerprint == baseline->list[i - 1].fingerprint)
			return error_create(ERROR_USAGE,
					    "%s: the fingerprint %016" PRIx64 " is there twice",
					    name, baseline->list[i].fingerprint);
	return NULL;
}

struct error *baseline_parse(const char *text, size_t size, const char *name, struct baseline *ret)
{
	struct error *error = baseline_parse_json(text, size, name, ret);

	if (error)
		return error;
	sort(ret);
	return check_unique(ret, name);
}

struct error *baseline_read(const char *path, struct baseline *ret)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = read_small_file(path, &text, &size);

	return error ? error : baseline_parse(text, size, path, ret);
}

static struct error *accept_kind(const struct baseline *old, const struct leak_kind *kind,
				 struct baseline *ret)
{
	const struct baseline_entry *former = baseline_find(old, kind->fingerprint);
	struct baseline_entry entry = {
		.fingerprint = kind->fingerprint,
		.kind = strdup(kind->name),
		.size = kind->size,
		.roots = kind->roots,
		.bytes = kind->bytes,
		.matched = true,
	};

	if (former && former->reason)
		entry.reason = strdup(former->reason);
	if (!entry.kind || (former && former->reason && !entry.reason) ||
	    !LIST_GROW(ret->list, ret->count)) {
		entry_deinit(&entry);
		return &error_no_memory;
	}
	ret->list[ret->count++] = entry;
	return NULL;
}

struct error *baseline_accept(const struct baseline *old, const struct leak_kinds *kinds,
			      struct baseline *ret)
{
	struct error *error = NULL;

	for (size_t i = 0; !error && i < kinds->count; i++)
		if (kinds->list[i].state != LEAK_SUPPRESSED)
			error = accept_kind(old, &kinds->list[i], ret);
	sort(ret);
	return error;
}

static bool lower(struct baseline *baseline, const struct leak_kind *kind)
{
	struct baseline_entry *entry = baseline_find(baseline, kind->fingerprint);

	if (!entry || kind->state == LEAK_SUPPRESSED || kind->roots >= entry->roots)
		return false;
	entry->roots = kind->roots;
	entry->bytes = kind->bytes;
	return true;
}

bool baseline_ratchet(struct baseline *baseline, const struct leak_kinds *kinds)
{
	bool lowered = false;
	size_t kept = 0;

	for (size_t i = 0; i < kinds->count; i++)
		lowered |= lower(baseline, &kinds->list[i]);
	for (size_t i = 0; i < baseline->count; i++) {
		if (baseline->list[i].matched)
			baseline->list[kept++] = baseline->list[i];
		else
			entry_deinit(&baseline->list[i]);
	}
	lowered |= kept != baseline->count;
	baseline->count = kept;
	return lowered;
}

struct error *baseline_write(const struct baseline *baseline, const char *path)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	struct error *error = baseline_print_json(baseline, &text, &size);

	return error ? error : replace_file(path, text, size);
}
