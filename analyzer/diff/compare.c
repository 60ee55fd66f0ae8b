#include "analyzer/diff/compare.h"

#include <errno.h>
#include <string.h>

/* What the user is to know of an older core, as of the newest. */
static void doubt(struct analysis *newest, const struct analysis *older)
{
	const struct findings *findings = analysis_findings(older);
	const char *path = image_path(analysis_image(older));
	size_t count = findings->weighed[FINDING_INCOMPLETE];
	char *text;

	for (size_t i = 0; i < findings->count; i++) {
		if (findings->list[i].weight != FINDING_INCOMPLETE)
			continue;
		if (asprintf(&text, "%s: %s%s", path, findings->list[i].message,
			     count > 1 ? " (and more like it)" : "") < 0)
			text = NULL;
		analysis_doubt(newest, text ? text : path);
		free(text);
		return;
	}
	if (count)
		analysis_doubt(newest, path);
}

static struct error *add_core(struct diff *diff, struct analysis *newest, const char *path,
			      struct error *(*visit)(void *data, struct analysis *older),
			      void *data)
{
	_cleanup_(analysis_destroy) struct analysis *older = NULL;
	struct error *error;

	if (access(path, R_OK) < 0)
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	error = analysis_open_beside(newest, path, &older);
	if (!error)
		error = diff_add(diff, older);
	if (!error && visit)
		error = visit(data, older);
	if (error)
		return analysis_explain_shortage(older ? older : newest, path, error);
	doubt(newest, older);
	return NULL;
}

/* Growth that was shrinkage is not to go unnoticed. */
static void check_order(struct analysis *newest, const struct diff *diff)
{
	for (size_t i = 0; i + 1 < diff_core_count(diff); i++) {
		const struct lineage *old = &diff_core(diff, i)->lineage;
		const struct lineage *now = &diff_core(diff, i + 1)->lineage;

		if (old->source == TIME_UNKNOWN || old->source != now->source ||
		    old->time <= now->time)
			continue;
		analysis_note(
			newest,
			"the cores are not in the order of their times; the oldest is to come first");
		return;
	}
}

struct error *compare_cores(struct analysis *newest, const char *const *paths, size_t count,
			    enum aspect aspect,
			    struct error *(*visit)(void *data, struct analysis *older), void *data,
			    struct diff **ret)
{
	_cleanup_(diff_destroy) struct diff *diff = NULL;
	struct error *error = diff_create(aspect, analysis_account(newest), &diff);

	for (size_t i = 0; !error && i < count; i++)
		error = add_core(diff, newest, paths[i], visit, data);
	if (!error)
		error = diff_finish(diff, newest);
	if (error)
		return error;
	check_order(newest, diff);
	*ret = take(diff);
	return NULL;
}
