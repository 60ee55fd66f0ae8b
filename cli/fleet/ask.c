/*
 * Queries of a fleet's database. A table of the report is one of docs/fleet/report.sql.
 *
 * The cores that are asked for are copied to a temporary table 'core', which hides that of the
 * file, and those of a baseline to 'accepted'.
 */
#include "analyzer/base/text.h"
#include "cli/fleet/fleet.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

/* True if a core's NAME fits PATTERN. */
#define FITS                                                                                      \
	"CASE ?1 WHEN 'host' THEN host GLOB ?2 WHEN 'program' THEN program GLOB ?2"               \
	" WHEN 'build' THEN build GLOB ?2 OR build_id GLOB ?2 OR substr(build_id, 1, 12) GLOB ?2" \
	" ELSE EXISTS (SELECT 1 FROM tag WHERE tag.core = id AND name = ?1 AND value GLOB ?2) END"

/* The cores that fit all of the patterns, as a table. */
static struct error *choose(struct store *store, const char *table, const char *const *patterns,
			    size_t count)
{
	_cleanup_(free) char *make =
		format_text("CREATE TEMP TABLE %s AS SELECT * FROM main.core", table);
	_cleanup_(free) char *narrow =
		format_text("DELETE FROM %s WHERE NOT ifnull(%s, 0)", table, FITS);

	TRY_MEMORY(make && narrow);
	TRY(store_run(store, make));
	for (size_t i = 0; i < count; i++) {
		size_t size = strcspn(patterns[i], "=");
		_cleanup_(free) char *name = strndup(patterns[i], size);
		const char *const values[] = { name, patterns[i] + size + 1 };

		TRY_MEMORY(name);
		TRY(store_change(store, narrow, values, COUNT_OF(values)));
	}
	return NULL;
}

/* Fail if there are none: a mistyped name must not pass as a clean result. */
static struct error *check_some(struct store *store, const char *table, const char *what)
{
	_cleanup_(free) char *query = format_text("SELECT count(*) FROM %s", table);
	int64_t count = 0;

	TRY_MEMORY(query);
	TRY(store_number(store, query, NULL, 0, &count));
	return count ? NULL : error_create(ERROR_USAGE, "no core %s", what);
}

/* A section of the report: each has one table. ?1 is the limit. */
static const struct part {
	const char *title, *text;
	struct table table;
	const char *query;
} parts[] = {
	{ "Fleet", NULL,
	  TABLE("fleet",
		"{cores,} {cores|core|cores} of {programs,} {programs|program|programs} in {builds,} {builds|build|builds}[ on {hosts,} {hosts|host|hosts}]: {used,} bytes used, {leaked,} leaked.\n"
		"{failed,} could not be analysed, {incomplete,} only in part.",
		{ "cores", VALUE_COUNT }, { "programs", VALUE_COUNT }, { "builds", VALUE_COUNT },
		{ "hosts", VALUE_COUNT }, { "used", VALUE_BYTES }, { "leaked", VALUE_BYTES },
		{ "failed", VALUE_COUNT }, { "incomplete", VALUE_COUNT }),
	  "SELECT * FROM fleet LIMIT ?1" },
	{ "Leaks", "The same leak has the same fingerprint on each host and in each build.",
	  TABLE("fleet leak", NULL, { "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES },
		{ "most", VALUE_BYTES }, { "cores", VALUE_COUNT }, { "share", VALUE_SHARE },
		{ "hosts", VALUE_COUNT }, { "builds", VALUE_COUNT }, { "roots", VALUE_COUNT },
		{ "program", VALUE_TEXT }, { "size", VALUE_BYTES }, { "kind", VALUE_TEXT },
		{ "allocated by", VALUE_TEXT, true }, { "most in", VALUE_TEXT, true }),
	  "SELECT * FROM fleet_leak ORDER BY bytes DESC, fingerprint LIMIT ?1" },
	{ "Builds",
	  "In the order of their first cores; used and leaked bytes are averages of a core.",
	  TABLE("fleet build", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "first", VALUE_TEXT }, { "cores", VALUE_COUNT }, { "hosts", VALUE_COUNT },
		{ "used", VALUE_BYTES }, { "leaked", VALUE_BYTES }, { "new leaks", VALUE_COUNT }),
	  "SELECT program, build, strftime('%Y-%m-%d %H:%M', first, 'unixepoch'), cores, hosts, used,"
	  " leaked, new_leaks FROM fleet_build b ORDER BY program, b.first, build LIMIT ?1" },
	{ "Leaks by the build that brought them",
	  "The first build that has the leak; 'until' is the last one, if later ones do not have it.",
	  TABLE("brought leak", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "cores", VALUE_COUNT },
		{ "until", VALUE_TEXT }, { "kind", VALUE_TEXT }),
	  "SELECT l.* FROM brought_leak l JOIN numbered_build USING (program, build)"
	  " ORDER BY program, number, bytes DESC, fingerprint LIMIT ?1" },
	{ "Outliers",
	  "Cores that use more than twice the median of their program, and the kind that exceeds its average most.",
	  TABLE("outlier", NULL, { "used", VALUE_BYTES }, { "median", VALUE_BYTES },
		{ "program", VALUE_TEXT }, { "build", VALUE_TEXT }, { "host", VALUE_TEXT },
		{ "kind", VALUE_TEXT }, { "core", VALUE_TEXT }),
	  "SELECT * FROM outlier ORDER BY 1.0 * used / median DESC, core LIMIT ?1" },
	{ "Common kinds",
	  "Kinds in use; counts and bytes are averages of the cores of a program that have them.",
	  TABLE("common kind", NULL, { "program", VALUE_TEXT }, { "share of cores", VALUE_SHARE },
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "most", VALUE_BYTES },
		{ "kind", VALUE_TEXT }),
	  "SELECT * FROM common_kind ORDER BY bytes DESC, program, kind LIMIT ?1" },
	{ "Use of memory", "Averages of the cores of a program.",
	  TABLE("common use", NULL, { "program", VALUE_TEXT }, { "memory", VALUE_TEXT },
		{ "use", VALUE_TEXT }, { "mapped", VALUE_BYTES }, { "resident", VALUE_BYTES }),
	  "SELECT * FROM common_use ORDER BY resident DESC, program, memory, use LIMIT ?1" },
	{ "Doubtful cores", "Cores that could not be analysed, or only in part.",
	  TABLE("doubtful core", NULL, { "core", VALUE_TEXT }, { "host", VALUE_TEXT },
		{ "why", VALUE_TEXT }),
	  "SELECT d.* FROM doubtful_core d JOIN core c ON c.path = d.core"
	  " ORDER BY error IS NULL, path LIMIT ?1" },
};

struct error *fleet_report(struct store *store, const struct fleet_question *question,
			   struct report *report)
{
	static const struct table section =
		TABLE("section", "\n{title}", { "title", VALUE_TEXT }, { "command", VALUE_TEXT },
		      { "text", VALUE_TEXT });
	char limit[NUMBER_SIZE];
	const char *const values[] = { limit }, *const no_limit[] = { "-1" };
	int64_t count;

	limit[format_decimal(question->limit, limit)] = '\0';
	TRY(choose(store, "core", question->select, question->select_count));
	TRY(check_some(store, "core", question->select_count ? "is selected" : "is in the file"));
	TRY(store_run(store, fleet_tables));
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		_cleanup_(free) char *counting =
			format_text("SELECT count(*) FROM (%s)", parts[i].query);

		TRY_MEMORY(counting);
		TRY(store_number(store, counting, no_limit, 1, &count));
		if (count == 0)
			continue;
		report_single(report, &section, parts[i].title, ABSENT, parts[i].text);
		TRY(store_report(store, parts[i].query, values, 1, &parts[i].table, report));
		rows_left_out(report, "rows", (uint64_t)count, question->limit);
	}
	return NULL;
}

/* Leaks that no core of the baseline has, of cores that can be relied on. */
#define NEW_LEAKS                                                                                \
	"FROM leak l JOIN core c ON c.id = l.core WHERE c.error IS NULL AND NOT c.incomplete"    \
	" AND NOT EXISTS (SELECT 1 FROM leak other JOIN accepted ON accepted.id = other.core"    \
	" WHERE other.fingerprint = l.fingerprint) GROUP BY l.fingerprint HAVING count(DISTINCT" \
	" c.id) >= CAST(?1 AS INTEGER)"

static const struct table leak_table = TABLE(
	"new leak",
	"New leak {fingerprint}: {kind}, {bytes,} bytes in {cores,} {cores|core|cores}[ on {hosts,} {hosts|host|hosts}][, allocated by {allocated by}];\n"
	"    first in build {build}, most in {most in}",
	{ "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT }, { "cores", VALUE_COUNT },
	{ "hosts", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "allocated by", VALUE_TEXT },
	{ "build", VALUE_TEXT }, { "most", VALUE_BYTES }, { "most in", VALUE_TEXT });

static const char LEAKS[] =
	"SELECT fingerprint, kind, count(DISTINCT c.id), nullif(count(DISTINCT host), 0), sum(bytes),"
	" allocated_by, (SELECT CASE build WHEN build_id THEN substr(build_id, 1, 12) ELSE build END"
	" FROM leak first JOIN core ON id = first.core WHERE first.fingerprint = l.fingerprint"
	" ORDER BY time LIMIT 1), max(bytes), path " NEW_LEAKS
	" ORDER BY sum(bytes) DESC, fingerprint LIMIT ?2";

static const struct table much_table =
	TABLE("leaked too much", "{core} leaked {bytes,} bytes", { "core", VALUE_TEXT },
	      { "host", VALUE_TEXT }, { "build", VALUE_TEXT }, { "bytes", VALUE_BYTES });

#define MUCH "FROM core WHERE leaked_bytes > CAST(?1 AS INTEGER)"

struct fleet_verdict {
	int64_t leaks, much, doubtful, cores;
};

static struct error *write_findings(struct store *store, const struct fleet_question *question,
				    struct report *report, struct fleet_verdict *ret)
{
	char least[NUMBER_SIZE], most[NUMBER_SIZE], limit[NUMBER_SIZE];
	const char *const of_leaks[] = { least, limit };
	const char *const of_cores[] = { most, limit };

	least[format_decimal(question->least_cores, least)] = '\0';
	most[format_decimal(question->most_leaked, most)] = '\0';
	limit[format_decimal(question->limit, limit)] = '\0';
	TRY(store_number(store, "SELECT count(*) FROM (SELECT 1 " NEW_LEAKS ")", of_leaks, 1,
			 &ret->leaks));
	TRY(store_number(store, "SELECT count(*) FROM core", NULL, 0, &ret->cores));
	TRY(store_number(store, "SELECT count(*) FROM core WHERE error IS NOT NULL OR incomplete",
			 NULL, 0, &ret->doubtful));
	TRY(store_report(store, LEAKS, of_leaks, 2, &leak_table, report));
	if (!question->has_most_leaked)
		return NULL;
	TRY(store_number(store, "SELECT count(*) " MUCH, of_cores, 1, &ret->much));
	return store_report(store,
			    "SELECT path, host, build, leaked_bytes " MUCH
			    " ORDER BY leaked_bytes DESC, path LIMIT ?2",
			    of_cores, 2, &much_table, report);
}

static struct error *judge(const struct fleet_verdict *verdict, struct report *report)
{
	static const struct table table = TABLE(
		"gate",
		"Gate {outcome}: {leaks,} new {leaks|leak|leaks}. {cores,} {cores|core|cores} judged; {doubtful,} could not be analysed, or only in part.",
		{ "outcome", VALUE_TEXT }, { "leaks", VALUE_COUNT }, { "cores", VALUE_COUNT },
		{ "doubtful", VALUE_COUNT });
	bool failed = verdict->leaks > 0 || verdict->much > 0;

	report_single(report, &table,
		      failed		  ? "failed"
		      : verdict->doubtful ? "incomplete"
					  : "passed",
		      (uint64_t)verdict->leaks, (uint64_t)verdict->cores,
		      (uint64_t)verdict->doubtful);
	if (failed)
		return error_create(ERROR_FOUND, "the gate failed");
	return verdict->doubtful
		       ? error_create(ERROR_NOT_SUPPORTED,
				      "the gate cannot decide: %" PRId64
				      " of the cores could not be analysed, or only in part",
				      verdict->doubtful)
		       : NULL;
}

/* Without a selection, all cores but those of the baseline are judged. */
static struct error *choose_both(struct store *store, const struct fleet_question *question)
{
	TRY(choose(store, "accepted", question->baseline, question->baseline_count));
	if (question->baseline_count == 0)
		TRY(store_run(store, "DELETE FROM accepted"));
	else
		TRY(check_some(store, "accepted", "matches the baseline"));
	TRY(choose(store, "core", question->select, question->select_count));
	if (question->select_count == 0)
		TRY(store_run(store, "DELETE FROM core WHERE id IN (SELECT id FROM accepted)"));
	return check_some(store, "core",
			  question->select_count ? "is selected" : "is left to judge");
}

struct error *fleet_gate(struct store *store, const struct fleet_question *question,
			 struct report *report)
{
	struct fleet_verdict verdict = { 0 };

	TRY(choose_both(store, question));
	TRY(write_findings(store, question, report, &verdict));
	return judge(&verdict, report);
}
