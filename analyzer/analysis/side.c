/* Saves stages in a side file and loads them; see struct recipe. */
#include "analyzer/analysis/parts.h"

#include <string.h>

/* In SIDE_STAGES, one for each stage. */
struct kept_stage {
	uint64_t is_kept;
	uint64_t first, size;		   /* of its findings in SIDE_FINDINGS, bytes */
	uint64_t weighed[FINDING_WEIGHTS]; /* including those left out */
};

/* In front of each finding's text. */
static const char WEIGHT_LETTERS[FINDING_WEIGHTS] = { 'n', 'i', 'c' };

static struct error *identify(const struct analysis *analysis, struct side_identity *ret)
{
	*ret = (struct side_identity){ .maker = side_maker() };
	return image_identify(analysis->image, ret);
}

/* The stages that are kept, and may be loaded. */
static struct error *check_stages(struct side_file *file)
{
	const void *stages;
	struct side_array findings;

	TRY(side_file_take(file, SIDE_STAGES, STAGES, sizeof(struct kept_stage), &stages));
	TRY(side_file_find(file, SIDE_FINDINGS, &findings));
	if (!findings.bytes)
		return error_create(ERROR_BAD_DUMP, "it is damaged");
	for (size_t i = 0; i < STAGES; i++) {
		const struct kept_stage *kept = (const struct kept_stage *)stages + i;

		if (kept->first > findings.size || kept->size > findings.size - kept->first)
			return error_create(ERROR_BAD_DUMP, "it is damaged");
	}
	return NULL;
}

struct error *analysis_use_side_file(struct analysis *analysis, const char *path)
{
	_cleanup_(side_file_close) struct side_file *file = NULL;
	struct side_identity identity;

	TRY(identify(analysis, &identity));
	TRY(side_file_open(path, &identity, &file));
	TRY(check_stages(file));
	analysis->side_file = take(file);
	return NULL;
}

static const struct kept_stage *find_stage(const struct analysis *analysis, enum stage stage)
{
	const void *stages;

	/* It was checked when the file was opened. */
	error_destroy(side_file_take(analysis->side_file, SIDE_STAGES, STAGES,
				     sizeof(struct kept_stage), &stages));
	return (const struct kept_stage *)stages + stage;
}

bool analysis_keeps_stage(const struct analysis *analysis, enum stage stage)
{
	return analysis->side_file && !analysis->side_file_spoilt && analysis_recipes[stage].load &&
	       find_stage(analysis, stage)->is_kept;
}

/* Say again what was said when the stage was built. */
static void repeat_findings(struct analysis *analysis, const struct kept_stage *kept)
{
	struct findings *findings = &analysis->findings;
	struct side_array array;
	size_t reported[FINDING_WEIGHTS] = { 0 };
	const char *text, *end;

	error_destroy(side_file_find(analysis->side_file, SIDE_FINDINGS, &array));
	text = (const char *)array.bytes + kept->first;
	end = text + kept->size;
	while (text < end) {
		const char *next = memchr(text, '\0', (size_t)(end - text));
		enum finding_weight weight = *text == WEIGHT_LETTERS[FINDING_NOTE] ? FINDING_NOTE
					     : *text == WEIGHT_LETTERS[FINDING_CAVEAT]
						     ? FINDING_CAVEAT
						     : FINDING_INCOMPLETE;

		if (!next || next == text)
			break;
		findings_add(findings, weight, "%s", text + 1);
		reported[weight]++;
		text = next + 1;
	}
	for (size_t i = 0; i < FINDING_WEIGHTS; i++)
		if (kept->weighed[i] > reported[i])
			findings->weighed[i] += kept->weighed[i] - reported[i];
}

struct error *analysis_load_stage(struct analysis *analysis, enum stage stage, bool *ret_loaded)
{
	const struct recipe *recipe = &analysis_recipes[stage];
	struct error *error;

	*ret_loaded = false;
	if (!analysis_keeps_stage(analysis, stage))
		return NULL;
	error = recipe->load(analysis, analysis->side_file);
	if (error && error_code(error) == ERROR_BAD_DUMP) {
		analysis->side_file_spoilt = true;
		findings_add(&analysis->findings, FINDING_NOTE,
			     "the side file is no longer used: %s", error_message(error));
		error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	repeat_findings(analysis, find_stage(analysis, stage));
	*ret_loaded = true;
	return NULL;
}

static struct error *build_all(struct analysis *analysis)
{
	for (enum stage stage = 0; stage < STAGES; stage++)
		if (analysis_recipes[stage].save)
			TRY(analysis_need(analysis, stage));
	return NULL;
}

/* Write what a stage said, and where that stands. */
static struct error *save_findings(const struct analysis *analysis, enum stage stage,
				   struct side_writer *writer, struct kept_stage *kept)
{
	const struct stage_findings *found = &analysis->found[stage];

	for (size_t i = 0; i < found->count; i++) {
		const struct finding *finding = &analysis->findings.list[found->first + i];
		size_t size = strlen(finding->message) + 1;

		TRY(side_writer_add(writer, &WEIGHT_LETTERS[finding->weight], 1));
		TRY(side_writer_add(writer, finding->message, size));
		kept->size += size + 1;
	}
	for (size_t i = 0; i < FINDING_WEIGHTS; i++)
		kept->weighed[i] = found->weighed[i];
	return NULL;
}

static struct error *save_stages(const struct analysis *analysis, struct side_writer *writer)
{
	struct kept_stage kept[STAGES] = { 0 };
	uint64_t size = 0;

	side_writer_begin(writer, SIDE_FINDINGS);
	for (enum stage stage = 0; stage < STAGES; stage++) {
		if (!analysis_recipes[stage].save)
			continue;
		kept[stage].is_kept = true;
		kept[stage].first = size;
		TRY(save_findings(analysis, stage, writer, &kept[stage]));
		size += kept[stage].size;
	}
	if (runtimes_have_objects(analysis->runtimes))
		kept[STAGE_LEAKED_PATTERNS].is_kept = kept[STAGE_SIGNATURES].is_kept = false;
	TRY(side_writer_array(writer, SIDE_STAGES, kept, sizeof(kept)));
	for (enum stage stage = 0; stage < STAGES; stage++)
		if (analysis_recipes[stage].save)
			TRY(analysis_recipes[stage].save(analysis, writer));
	return NULL;
}

/* Everything written but the header. */
static struct error *begin_file(struct analysis *analysis, const char *path,
				struct side_writer **ret)
{
	_cleanup_(side_writer_destroy) struct side_writer *writer = NULL;

	TRY(build_all(analysis));
	TRY(side_writer_create(path, &writer));
	TRY(save_stages(analysis, writer));
	*ret = take(writer);
	return NULL;
}

struct error *analysis_write_side_file(struct analysis *analysis, const char *path)
{
	_cleanup_(side_writer_destroy) struct side_writer *writer = NULL;
	struct side_identity identity;

	TRY(identify(analysis, &identity));
	TRY(begin_file(analysis, path, &writer));
	return side_writer_finish(writer, &identity);
}

struct error *analysis_verify_side_file(struct analysis *analysis, const char *path)
{
	_cleanup_(side_writer_destroy) struct side_writer *writer = NULL;
	_cleanup_(side_file_close) struct side_file *file = NULL;
	struct side_identity identity;

	TRY(identify(analysis, &identity));
	TRY(side_file_open(path, &identity, &file));
	TRY(side_file_check(file));
	TRY(begin_file(analysis, path, &writer));
	if (side_writer_compare(writer, file) != SIDE_SECTIONS)
		return error_create(ERROR_BAD_DUMP, "it does not agree with the core");
	return NULL;
}
