/*
 * The facts that 'heapcore fleet' stores about a core: few rows even for a large core, with keys
 * that join with those of other hosts and builds. As ndjson, they are also the input of 'heapcore
 * fleet'.
 */
#include "analyzer/account/bill.h"
#include "analyzer/base/bytes.h"
#include "analyzer/base/text.h"
#include "analyzer/diff/census.h"
#include "analyzer/diff/diff.h"
#include "analyzer/gate/leak_kinds.h"
#include "analyzer/image/files.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/tally.h"
#include "analyzer/query/ending.h"
#include "analyzer/query/query.h"
#include "cli/command.h"
#include "cli/prompt/machine.h"

#include <elf.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* Write the rows with the most bytes; sum up the rest in one row. */
enum { MOST_KINDS = 100, MOST_HOLDERS = 30, MOST_LEAKS = 1000 };

/* So many kinds have the function that allocated them. */
enum { MOST_ALLOCATED_BY = 20 };

enum { BUILD_ID_SIZE = 2 * sizeof(((struct build_id *)0)->bytes) + 1 };

static void spell_build_id(const struct image *image, const struct module *module,
			   char ret[static BUILD_ID_SIZE])
{
	struct build_id id = build_id_of_image(image, module->start, module->end);

	ret[0] = '\0';
	for (size_t i = 0; i < id.size; i++)
		snprintf(ret + 2 * i, 3, "%02x", id.bytes[i]);
}

static const char *const time_sources[] = { [TIME_CORE] = "core", [TIME_FILE] = "file" };

/* The last row, whatever became of the core: which one it was, and how it ended. */
static void write_end(const char *path, const struct image *image, const char *identity,
		      const char *error, int status, struct report *report)
{
	static const struct table table = TABLE(
		"facts core", NULL, { "path", VALUE_TEXT }, { "name", VALUE_TEXT },
		{ "file size", VALUE_BYTES }, { "time", VALUE_SECONDS }, { "time of", VALUE_TEXT },
		{ "machine", VALUE_TEXT }, { "identity", VALUE_TEXT }, { "status", VALUE_NUMBER },
		{ "error", VALUE_TEXT }, { "version", VALUE_TEXT });
	struct lineage lineage = image ? lineage_of(image) : (struct lineage){ 0 };
	char whole[PATH_MAX];
	const char *slash;
	struct stat status_of_file = { 0 };

	if (strcmp(path, "-") == 0)
		path = NULL;
	else if (realpath(path, whole))
		path = whole;
	if (path && stat(path, &status_of_file) == 0 && lineage.source == TIME_UNKNOWN) {
		lineage.time = (uint64_t)status_of_file.st_mtim.tv_sec * UINT64_C(1000000000) +
			       (uint64_t)status_of_file.st_mtim.tv_nsec;
		lineage.source = TIME_FILE;
	}
	slash = path ? strrchr(path, '/') : NULL;
	report_single(report, &table, path, slash ? slash + 1 : path,
		      VALUE_IF(path, (uint64_t)status_of_file.st_size),
		      VALUE_IF(lineage.source != TIME_UNKNOWN, (double)lineage.time / 1e9),
		      time_sources[lineage.source], image ? image->arch->name : NULL, identity,
		      (uint64_t)status, error, VERSION);
}

/*
 * Hash a core so that all of its copies, packed and slim ones too, have one identity. Another core
 * of the process differs by what it uses. 0: it is not known.
 */
static uint64_t find_identity(struct analysis *analysis, const struct bill *bill)
{
	const struct image *image = analysis_image(analysis);
	const struct lineage lineage = lineage_of(image);
	const struct amount memory = ledger_total(bill->ledger);
	const struct set_total used = allocations_total(analysis_index(analysis),
							allocation_used(analysis_index(analysis)));
	const uint64_t words[] = { lineage.random,	image->missing, lineage.process,
				   lineage.program,	lineage.vdso,	image->origin.time,
				   image->thread_count, used.count,	used.bytes,
				   memory.mapped,	memory.resident };
	uint64_t hash = 0;

	for (size_t i = 0; i < COUNT_OF(words); i++)
		hash = hash_add(hash, words[i]);
	return lineage.random ? hash : 0;
}

static struct error *write_core(struct analysis *analysis, const struct bill *bill,
				struct report *report)
{
	static const struct table table = TABLE(
		"facts", NULL, { "program", VALUE_TEXT }, { "build id", VALUE_TEXT },
		{ "process", VALUE_NUMBER }, { "time", VALUE_SECONDS }, { "size", VALUE_BYTES },
		{ "threads", VALUE_COUNT }, { "used", VALUE_COUNT }, { "used bytes", VALUE_BYTES },
		{ "leaked", VALUE_COUNT }, { "leaked bytes", VALUE_BYTES },
		{ "mapped", VALUE_BYTES }, { "resident", VALUE_BYTES }, { "time of", VALUE_TEXT },
		{ "signal", VALUE_NUMBER }, { "in", VALUE_TEXT }, { "reason", VALUE_TEXT },
		{ "uptime", VALUE_SECONDS });
	const struct allocation_index *index = analysis_index(analysis);
	const struct image *image = analysis_image(analysis);
	const struct module *module =
		program_find_module(analysis_program(analysis), image_auxiliary(image, AT_PHDR, 0));
	struct set_total used = allocations_total(index, allocation_used(index));
	struct set_total leaked = allocations_total(index, analysis_leaked(analysis));
	struct amount memory = ledger_total(bill->ledger);
	const struct lineage lineage = lineage_of(image);
	_cleanup_(ending_deinit) struct ending ending = { 0 };
	char id[BUILD_ID_SIZE] = "";

	TRY(ending_find(analysis, &ending));
	if (module)
		spell_build_id(image, module, id);
	report_single(report, &table, module ? module_name(module) : NULL, *id ? id : NULL,
		      value_nonzero(image->origin.process),
		      VALUE_IF(lineage.source != TIME_UNKNOWN, (double)lineage.time / 1e9),
		      image->size, image->thread_count, used.count, used.bytes, leaked.count,
		      leaked.bytes, memory.mapped, memory.resident, time_sources[lineage.source],
		      value_nonzero((uint64_t)ending.signal), ending.place, ending.reason,
		      VALUE_IF(image->origin.age, (double)image->origin.age / 1e9));
	return NULL;
}

static void write_bill(const struct bill *bill, struct report *report)
{
	static const struct table table = TABLE(
		"facts use", NULL, { "memory", VALUE_TEXT }, { "use", VALUE_TEXT },
		{ "count", VALUE_COUNT }, { "mapped", VALUE_BYTES }, { "resident", VALUE_BYTES });

	report_begin_table(report, &table);
	for (size_t i = 0; i < ledger_row_count(bill->ledger); i++) {
		const struct ledger_row *row = ledger_row(bill->ledger, (row_number)i);

		if (row->amount.mapped || row->amount.count)
			report_row(report, row->group, row->name, value_nonzero(row->amount.count),
				   row->amount.mapped, row->amount.resident);
	}
	report_end_table(report);
}

static struct error *write_leaks(struct analysis *analysis, struct report *report)
{
	static const struct table table =
		TABLE("facts leak", NULL, { "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT },
		      { "size", VALUE_BYTES }, { "roots", VALUE_COUNT },
		      { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "address", VALUE_ADDRESS }, { "allocated by", VALUE_TEXT });
	_cleanup_(leak_kinds_deinit) struct leak_kinds kinds = { 0 };

	TRY(leak_kinds_find(analysis, LEAKS_CERTAIN, &kinds));
	TRY(leak_kinds_find_types(analysis, &kinds));
	report_begin_table(report, &table);
	for (size_t i = 0; i < kinds.count && i < MOST_LEAKS; i++) {
		const struct leak_kind *kind = &kinds.list[i];
		_cleanup_(free) char *label = leak_kind_label(kind);
		char fingerprint[FINGERPRINT_SIZE];

		if (kind->known_cause)
			continue;
		TRY_MEMORY(label);
		report_row(report, fingerprint_text(kind->fingerprint, fingerprint), label,
			   kind->size, kind->roots, kind->allocations, kind->bytes, kind->address,
			   kind->allocated_by);
	}
	report_end_table(report);
	return NULL;
}

struct kinds {
	struct tally_table tallies;
	ARRAY(allocation_id) examples; /* by number of the tally: the first one */
};

static void kinds_release(struct kinds *kinds)
{
	table_release(&kinds->tallies);
	array_release(&kinds->examples);
}
DEFINE_DEINIT(kinds_release, struct kinds)

static struct error *tally_kinds(struct analysis *analysis, struct kinds *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *used = allocation_used(index);
	struct progress *progress = analysis_progress(analysis);
	uint64_t passed = 0;

	progress_begin(progress, "naming allocations", used->count);
	bitmap_for_each(id, used) {
		allocation_id allocation = (allocation_id)id;
		struct tally tally = {
			.key = kind_typed(analysis, analysis_patterns(analysis),
					  analysis_typing(analysis), allocation),
			.count = 1,
			.bytes = allocation_size(index, allocation),
		};

		uint32_t number;

		TRY(tally_add_numbered(&ret->tallies, tally, &number));
		if (number == ret->examples.count)
			TRY(array_append(&ret->examples, allocation));
		TRY(allocations_check(analysis_image(analysis), index, progress, id, &passed));
	}
	return NULL;
}

static struct error *write_kinds(struct analysis *analysis, struct report *report)
{
	static const struct table table =
		TABLE("facts kind", NULL, { "kind", VALUE_TEXT }, { "count", VALUE_COUNT },
		      { "bytes", VALUE_BYTES }, { "allocated by", VALUE_TEXT });
	_cleanup_(kinds_release) struct kinds kinds = {
		.tallies.memory.account = analysis_account(analysis),
		.examples.memory.account = analysis_account(analysis),
	};
	struct set_total others = { 0 };

	TRY(kind_need(analysis));
	TRY(tally_kinds(analysis, &kinds));
	array_sort(&kinds.tallies, tally_compare_bytes);
	report_begin_table(report, &table);
	for (size_t i = 0; i < kinds.tallies.count; i++) {
		const struct tally *tally = &kinds.tallies.items[i];
		_cleanup_(free) char *name = NULL, *function = NULL;

		if (i >= MOST_KINDS) {
			others.count += tally->count;
			others.bytes += tally->bytes;
			continue;
		}
		name = tally->key == KIND_UNKNOWN ? strdup("unrecognized")
						  : kind_text(analysis, tally->key);
		TRY_MEMORY(name);
		if (i < MOST_ALLOCATED_BY && tally->key != KIND_UNKNOWN)
			TRY(allocated_by_find_soon(analysis, &kinds.examples.items[tally->number],
						   1, &function));
		report_row(report, name, tally->count, tally->bytes, function);
	}
	if (others.count)
		report_row(report, "(other kinds)", others.count, others.bytes, ABSENT);
	report_end_table(report);
	return NULL;
}

/* Names that one holder alone keeps: what several hold, leaked or is garbage has none. */
static struct error *write_holders(struct analysis *analysis, struct report *report)
{
	static const struct table table = TABLE("facts holder", NULL, { "holder", VALUE_TEXT },
						{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	_cleanup_(census_deinit) struct census census = { 0 };
	size_t written = 0;

	TRY(census_need(analysis, ASPECT_OWNER));
	TRY(census_take(analysis, ASPECT_OWNER, NULL, NULL, &census));
	array_sort(&census.keys, tally_compare_bytes);
	report_begin_table(report, &table);
	for (size_t i = 0; i < census.keys.count && written < MOST_HOLDERS; i++) {
		const struct tally *tally = &census.keys.items[i];
		const char *name = census_name(&census, tally->key).text;

		if (census_holder_of(name) != HELD_BY_NAME)
			continue;
		report_row(report, name, tally->count, tally->bytes);
		written++;
	}
	report_end_table(report);
	return NULL;
}

struct facts_arguments {
	bool holders;
};

static const struct argp_option options[] = {
	{ "holders", KEEP(FLAG, struct facts_arguments, holders), NULL, 0,
	  "Also write the 30 that alone hold most, which takes longer", 0 },
	{ 0 },
};

static struct error *facts_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct facts_arguments *arguments = input;
	_cleanup_(bill_destroy) struct bill *bill = NULL;
	char text[FINGERPRINT_SIZE];
	uint64_t identity;
	bool is_incomplete;

	TRY(bill_create(analysis, BILL_GUESSES, &bill));
	TRY(write_core(analysis, bill, report));
	write_bill(bill, report);
	/* Kinds ask for all types: a part of these, for leaks alone, would be found twice. */
	TRY(analysis_need_types(analysis));
	TRY(write_leaks(analysis, report));
	TRY(write_kinds(analysis, report));
	if (arguments->holders)
		TRY(write_holders(analysis, report));
	is_incomplete = findings_incomplete(analysis_findings(analysis));
	identity = find_identity(analysis, bill);
	write_end(analysis_image(analysis)->path, analysis_image(analysis),
		  identity ? fingerprint_text(identity, text) : NULL, NULL,
		  is_incomplete ? EXIT_NOT_ANALYSED : EXIT_FINE, report);
	return NULL;
}

static void facts_fail(const char *path, const struct error *why, struct report *report)
{
	size_t length = strlen(path);
	const char *message = error_message(why);

	/* The row has the path already. */
	if (strncmp(message, path, length) == 0 && strncmp(message + length, ": ", 2) == 0)
		message += length + 2;
	write_end(path, NULL, NULL, message,
		  error_code(why) == ERROR_USAGE ? EXIT_WRONG_USAGE : EXIT_NOT_ANALYSED, report);
}

const struct command command_facts = {
	.name = "facts",
	.summary = "Print what 'heapcore fleet' stores for a core",
	.example = "facts",
	.description =
		"The program and its build-id, totals, the bill, leaks with their fingerprints, and the 100 kinds with the most bytes. With '--format ndjson' the rows can be made on one machine and loaded on another, by 'heapcore fleet ROWS.ndjson'.",
	.options = options,
	.arguments_size = sizeof(struct facts_arguments),
	.needs = STAGE_REACHABILITY,
	.run = facts_run,
	.fail = facts_fail,
};
