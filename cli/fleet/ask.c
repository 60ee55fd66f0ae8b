/*
 * What a fleet's file tells: queries, each of which is a table of the report.
 *
 * The cores that are asked for are copied to a table 'chosen', those of a baseline to 'accepted'.
 */
#include "analyzer/base/text.h"
#include "cli/fleet/fleet.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

/* Whether a core's NAME fits PATTERN. */
#define FITS                                                                                  \
	"CASE ?1 WHEN 'host' THEN host GLOB ?2"                                               \
	" WHEN 'build' THEN build GLOB ?2 OR build_id GLOB ?2 WHEN 'program' THEN program"    \
	" GLOB ?2 ELSE EXISTS (SELECT 1 FROM tag WHERE tag.core = id AND name = ?1 AND value" \
	" GLOB ?2) END"

/* The cores that fit all of the patterns, as a table. */
static struct error *choose(struct store *store, const char *table, const char *const *patterns,
			    size_t count)
{
	_cleanup_(free) char *make =
		format_text("CREATE TEMP TABLE %s AS SELECT * FROM core", table);
	_cleanup_(free) char *narrow =
		format_text("DELETE FROM %s WHERE NOT ifnull(%s, 0)", table, FITS);

	if (!make || !narrow)
		return &error_no_memory;
	TRY(store_run(store, make));
	for (size_t i = 0; i < count; i++) {
		size_t size = strcspn(patterns[i], "=");
		_cleanup_(free) char *name = strndup(patterns[i], size);
		const char *const values[] = { name, patterns[i] + size + 1 };

		if (!name)
			return &error_no_memory;
		TRY(store_change(store, narrow, values, COUNT_OF(values)));
	}
	return NULL;
}

/* That there are some: a mistyped name must not pass for a good one. */
static struct error *check_some(struct store *store, const char *table, const char *what)
{
	_cleanup_(free) char *query = format_text("SELECT count(*) FROM %s", table);
	int64_t count = 0;

	if (!query)
		return &error_no_memory;
	TRY(store_number(store, query, NULL, 0, &count));
	return count ? NULL : error_create(ERROR_USAGE, "no core %s", what);
}

/* Builds of a program are numbered by the time of the first core; averages are by program. */
static const char PREPARATIONS[] =
	"UPDATE chosen SET program = ifnull(program, '?'), build = ifnull(build, '?');"
	"CREATE TEMP TABLE build AS SELECT program, build, count(*) AS cores,"
	" count(DISTINCT host) AS hosts, min(time) AS first, sum(used_bytes) / count(*) AS used_bytes,"
	" sum(leaked_bytes) / count(*) AS leaked_bytes,"
	" row_number() OVER (PARTITION BY program ORDER BY min(time), build) AS number"
	" FROM chosen WHERE error IS NULL GROUP BY program, build;"
	"CREATE TEMP TABLE brought AS SELECT program, fingerprint, max(l.bytes) AS most, l.kind,"
	" l.size,"
	" allocated_by, c.path, min(b.number) AS number, max(b.number) AS last, sum(roots) AS roots,"
	" sum(l.bytes) AS bytes, count(DISTINCT c.id) AS cores, count(DISTINCT host) AS hosts,"
	" count(DISTINCT c.build) AS builds FROM leak l JOIN chosen c ON c.id = l.core"
	" JOIN build b USING (program, build) GROUP BY program, fingerprint;"
	"CREATE TEMP TABLE program AS SELECT program, count(*) AS cores, max(number) AS builds"
	" FROM chosen JOIN build USING (program, build) WHERE error IS NULL GROUP BY program;"
	"CREATE TEMP TABLE usual AS SELECT program, kind, count(*) AS holders, sum(count) AS count,"
	" sum(bytes) AS bytes, max(bytes) AS most, sum(bytes) / program.cores AS average FROM kind"
	" JOIN chosen ON id = core JOIN program USING (program) GROUP BY program, kind;"
	"CREATE UNIQUE INDEX temp.usual_kind ON usual (program, kind);";

/* A section of the report: each has one table. ?1 is the limit. */
static const struct part {
	const char *title, *text;
	struct table table;
	const char *query;
} parts[] = {
	{ "The fleet", NULL,
	  TABLE("fleet",
		"{cores,} {cores|core|cores} of {programs,} {programs|program|programs} in {builds,} {builds|build|builds} on {hosts,} {hosts|host|hosts}: {used,} bytes used, {leaked,} leaked.\n"
		"{failed,} could not be analysed, {incomplete,} not well enough to rely on the answers.",
		{ "cores", VALUE_COUNT }, { "programs", VALUE_COUNT }, { "builds", VALUE_COUNT },
		{ "hosts", VALUE_COUNT }, { "used", VALUE_BYTES }, { "leaked", VALUE_BYTES },
		{ "failed", VALUE_COUNT }, { "incomplete", VALUE_COUNT }),
	  "SELECT count(*), (SELECT count(*) FROM program), (SELECT count(*) FROM build),"
	  " count(DISTINCT host), ifnull(sum(used_bytes), 0), ifnull(sum(leaked_bytes), 0),"
	  " count(error), sum(incomplete) FROM chosen LIMIT ?1" },
	{ "Leaks", "The same leak has the same fingerprint on each host and in each build.",
	  TABLE("fleet leak", NULL, { "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES },
		{ "most", VALUE_BYTES }, { "cores", VALUE_COUNT }, { "share", VALUE_SHARE },
		{ "hosts", VALUE_COUNT }, { "builds", VALUE_COUNT }, { "roots", VALUE_COUNT },
		{ "program", VALUE_TEXT }, { "size", VALUE_BYTES }, { "kind", VALUE_TEXT },
		{ "allocated by", VALUE_TEXT, true }, { "most in", VALUE_TEXT, true }),
	  "SELECT fingerprint, bytes, most, b.cores, 1.0 * b.cores / p.cores, hosts, b.builds, roots,"
	  " program, size, kind, allocated_by, path FROM brought b JOIN program p USING (program)"
	  " ORDER BY bytes DESC, fingerprint LIMIT ?1" },
	{ "Builds", "In the order of their first cores; bytes are averages of a core.",
	  TABLE("fleet build", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "first", VALUE_TEXT }, { "cores", VALUE_COUNT }, { "hosts", VALUE_COUNT },
		{ "used", VALUE_BYTES }, { "leaked", VALUE_BYTES }, { "new leaks", VALUE_COUNT }),
	  "SELECT program, build, strftime('%Y-%m-%d %H:%M', first, 'unixepoch'), cores, hosts,"
	  " used_bytes, leaked_bytes, (SELECT count(*) FROM brought WHERE brought.program ="
	  " build.program AND brought.number = build.number) FROM build ORDER BY program, number"
	  " LIMIT ?1" },
	{ "Which build brought which leak",
	  "The first build that has it; 'until' is the last one, where later ones do not have it.",
	  TABLE("brought leak", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "cores", VALUE_COUNT },
		{ "until", VALUE_TEXT }, { "kind", VALUE_TEXT }),
	  "SELECT program, build, fingerprint, bytes, brought.cores, (SELECT build FROM build last"
	  " WHERE last.program = brought.program AND last.number = brought.last AND last.number <"
	  " program.builds), kind FROM brought JOIN build USING (program, number) JOIN program USING"
	  " (program) ORDER BY program, number, bytes DESC, fingerprint LIMIT ?1" },
	{ "Outliers",
	  "Cores that use more than twice the median of their program, and the kind that is furthest above its average.",
	  TABLE("outlier", NULL, { "used", VALUE_BYTES }, { "median", VALUE_BYTES },
		{ "program", VALUE_TEXT }, { "build", VALUE_TEXT }, { "host", VALUE_TEXT },
		{ "kind", VALUE_TEXT }, { "core", VALUE_TEXT }),
	  "WITH placed AS (SELECT program, used_bytes, row_number() OVER (PARTITION BY program"
	  " ORDER BY used_bytes) AS place, count(*) OVER (PARTITION BY program) AS cores FROM chosen"
	  " WHERE error IS NULL), middle AS MATERIALIZED (SELECT program, sum(used_bytes) / count(*)"
	  " AS median FROM placed WHERE cores > 2 AND place IN ((cores + 1) / 2, (cores + 2) / 2)"
	  " GROUP BY program) SELECT used_bytes, median, program, build, host, (SELECT kind.kind FROM"
	  " kind JOIN usual ON usual.program = c.program AND usual.kind = kind.kind WHERE core = c.id"
	  " ORDER BY kind.bytes - average DESC LIMIT 1), path FROM chosen c JOIN middle USING (program) WHERE used_bytes > 2 * median"
	  " ORDER BY 1.0 * used_bytes / median DESC, path LIMIT ?1" },
	{ "What all have", "Kinds in use, with averages of the cores of a program that have them.",
	  TABLE("common kind", NULL, { "program", VALUE_TEXT }, { "share of cores", VALUE_SHARE },
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "most", VALUE_BYTES },
		{ "kind", VALUE_TEXT }),
	  "SELECT program, 1.0 * holders / cores, count / holders, bytes / holders, most, kind FROM usual"
	  " JOIN program USING (program) ORDER BY bytes DESC, kind LIMIT ?1" },
	{ "What memory is used for", "Averages of the cores of a program.",
	  TABLE("common use", NULL, { "program", VALUE_TEXT }, { "memory", VALUE_TEXT },
		{ "use", VALUE_TEXT }, { "mapped", VALUE_BYTES }, { "resident", VALUE_BYTES }),
	  "SELECT program, memory, use, sum(bill.mapped) / cores, sum(bill.resident) / cores FROM bill"
	  " JOIN chosen ON id = core JOIN program USING (program) GROUP BY program, memory, use"
	  " ORDER BY sum(bill.resident) DESC, memory, use LIMIT ?1" },
	{ "What to doubt", "Cores that could not be analysed, or not well enough.",
	  TABLE("doubtful core", NULL, { "core", VALUE_TEXT }, { "host", VALUE_TEXT },
		{ "why", VALUE_TEXT }),
	  "SELECT path, host, ifnull(error, (SELECT message FROM finding WHERE core = id AND"
	  " finding.incomplete LIMIT 1)) FROM chosen WHERE error IS NOT NULL OR incomplete"
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
	TRY(choose(store, "chosen", question->select, question->select_count));
	TRY(check_some(store, "chosen", "is selected"));
	TRY(store_run(store, PREPARATIONS));
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		_cleanup_(free) char *counting =
			format_text("SELECT count(*) FROM (%s)", parts[i].query);

		if (!counting)
			return &error_no_memory;
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
	"FROM leak l JOIN chosen c ON c.id = l.core WHERE c.error IS NULL AND NOT c.incomplete"  \
	" AND NOT EXISTS (SELECT 1 FROM leak other JOIN accepted ON accepted.id = other.core"    \
	" WHERE other.fingerprint = l.fingerprint) GROUP BY l.fingerprint HAVING count(DISTINCT" \
	" c.id) >= CAST(?1 AS INTEGER)"

static const struct table leak_table = TABLE(
	"new leak",
	"New leak {fingerprint}: {kind}, in {cores,} {cores|core|cores} on {hosts,} {hosts|host|hosts}, {bytes,} bytes[, allocated by {allocated by}];\n"
	"    since build {build}, most in {most in}",
	{ "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT }, { "cores", VALUE_COUNT },
	{ "hosts", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "allocated by", VALUE_TEXT },
	{ "build", VALUE_TEXT }, { "most", VALUE_BYTES }, { "most in", VALUE_TEXT });

static const char LEAKS[] =
	"SELECT fingerprint, kind, count(DISTINCT c.id), count(DISTINCT host), sum(bytes),"
	" allocated_by, (SELECT build FROM leak first JOIN chosen ON id = first.core WHERE"
	" first.fingerprint = l.fingerprint ORDER BY time LIMIT 1), max(bytes), path " NEW_LEAKS
	" ORDER BY sum(bytes) DESC, fingerprint LIMIT ?2";

static const struct table much_table =
	TABLE("leaked too much", "{core} leaked {bytes,} bytes", { "core", VALUE_TEXT },
	      { "host", VALUE_TEXT }, { "build", VALUE_TEXT }, { "bytes", VALUE_BYTES });

#define MUCH "FROM chosen WHERE leaked_bytes > CAST(?1 AS INTEGER)"

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
	TRY(store_number(store, "SELECT count(*) FROM chosen", NULL, 0, &ret->cores));
	TRY(store_number(store, "SELECT count(*) FROM chosen WHERE error IS NOT NULL OR incomplete",
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
		"Gate {outcome}: {leaks,} new {leaks|leak|leaks} in {cores,} {cores|core|cores}; {doubtful,} could not be analysed well enough.",
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
	return verdict->doubtful ? error_create(ERROR_NOT_SUPPORTED,
						"the gate cannot tell: %" PRId64
						" of the cores could not be analysed well enough",
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
		TRY(check_some(store, "accepted", "fits the baseline"));
	TRY(choose(store, "chosen", question->select, question->select_count));
	if (question->select_count == 0)
		TRY(store_run(store, "DELETE FROM chosen WHERE id IN (SELECT id FROM accepted)"));
	return check_some(store, "chosen", "is left to judge");
}

struct error *fleet_gate(struct store *store, const struct fleet_question *question,
			 struct report *report)
{
	struct fleet_verdict verdict = { 0 };

	TRY(choose_both(store, question));
	TRY(write_findings(store, question, report, &verdict));
	return judge(&verdict, report);
}
