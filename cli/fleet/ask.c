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

/* Keep in the table what fits the pattern. */
static struct error *narrow(struct store *store, const char *table, const char *pattern)
{
	size_t size = strcspn(pattern, "=");
	_cleanup_(free) char *name = strndup(pattern, size);
	_cleanup_(free) char *change =
		format_text("DELETE FROM %s WHERE NOT ifnull(%s, 0)", table, FITS);
	const char *const values[] = { name, pattern + size + 1 };

	TRY_MEMORY(name && change);
	return store_change(store, change, values, COUNT_OF(values));
}

/* The cores that fit all of the patterns, as a table. */
static struct error *choose(struct store *store, const char *table, struct word_list patterns)
{
	_cleanup_(free) char *make =
		format_text("CREATE TEMP TABLE %s AS SELECT * FROM main.core", table);

	TRY_MEMORY(make);
	TRY(store_run(store, make));
	for (size_t i = 0; i < patterns.count; i++)
		TRY(narrow(store, table, patterns.list[i]));
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

/* The answers that a section belongs to. */
enum { IN_REPORT = 1, IN_DIFF = 2, OF_LEAK = 4 };

/* A section of an answer: each has one table. ?1 is the limit, ?2 what was asked for. */
static const struct part {
	unsigned int answers;
	const char *title, *text;
	struct table table;
	const char *query;
} parts[] = {
	{ IN_REPORT, "Fleet", NULL,
	  TABLE("fleet",
		"{cores,} {cores|core|cores} of {programs,} {programs|program|programs} in {builds,} {builds|build|builds}[ on {hosts,} {hosts|host|hosts}]: {used,} bytes used, {leaked,} leaked.\n"
		"{failed,} could not be analysed, {incomplete,} only in part[; the {left out,} {left out|core is|cores are} left out below].[ {copies,} {copies|is a copy|are copies}.]",
		{ "cores", VALUE_COUNT }, { "programs", VALUE_COUNT }, { "builds", VALUE_COUNT },
		{ "hosts", VALUE_COUNT }, { "used", VALUE_BYTES }, { "leaked", VALUE_BYTES },
		{ "failed", VALUE_COUNT }, { "incomplete", VALUE_COUNT },
		{ "left out", VALUE_COUNT }, { "copies", VALUE_COUNT }),
	  "SELECT * FROM fleet LIMIT ?1" },
	{ IN_REPORT, "Leaks",
	  "The same leak has the same fingerprint on each host and in each build.",
	  TABLE("fleet leak", NULL, { "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES },
		{ "most", VALUE_BYTES }, { "cores", VALUE_COUNT }, { "share", VALUE_SHARE },
		{ "hosts", VALUE_COUNT }, { "builds", VALUE_COUNT }, { "roots", VALUE_COUNT },
		{ "program", VALUE_TEXT }, { "size", VALUE_BYTES }, { "kind", VALUE_TEXT },
		{ "allocated by", VALUE_TEXT, true }, { "most in", VALUE_TEXT, true },
		{ "first build", VALUE_TEXT, true }, { "last build", VALUE_TEXT, true }),
	  "SELECT * FROM fleet_leak ORDER BY bytes DESC, fingerprint LIMIT ?1" },
	{ IN_REPORT, "Builds",
	  "In the order of their first cores; hours of uptime, used and leaked bytes are averages of a core.",
	  TABLE("fleet build", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "first", VALUE_TEXT }, { "cores", VALUE_COUNT }, { "hosts", VALUE_COUNT },
		{ "hours", VALUE_COUNT }, { "used", VALUE_BYTES }, { "leaked", VALUE_BYTES },
		{ "new leaks", VALUE_COUNT }),
	  "SELECT program, build, strftime('%Y-%m-%d %H:%M', first, 'unixepoch'), cores, hosts, hours, used,"
	  " leaked, new_leaks FROM fleet_build b ORDER BY program, b.first, build LIMIT ?1" },
	{ IN_REPORT, "Leaks by the build that brought them",
	  "The first build that has the leak; 'until' is the last one, if later ones do not have it.",
	  TABLE("brought leak", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "cores", VALUE_COUNT },
		{ "until", VALUE_TEXT }, { "kind", VALUE_TEXT }),
	  "SELECT l.* FROM brought_leak l JOIN numbered_build USING (program, build)"
	  " ORDER BY program, number, bytes DESC, fingerprint LIMIT ?1" },
	{ IN_DIFF, "Builds", "Used and leaked bytes are averages of a core.",
	  TABLE("fleet build", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "cores", VALUE_COUNT }, { "hosts", VALUE_COUNT }, { "used", VALUE_BYTES },
		{ "leaked", VALUE_BYTES }),
	  "SELECT program, build, cores, hosts, used, leaked FROM numbered_build"
	  " ORDER BY program, number LIMIT ?1" },
	{ IN_DIFF, "Leaks that differ", "Leaks that only one of the two builds has.",
	  TABLE("leak that differs", NULL, { "program", VALUE_TEXT }, { "only in", VALUE_TEXT },
		{ "fingerprint", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "cores", VALUE_COUNT },
		{ "kind", VALUE_TEXT }, { "allocated by", VALUE_TEXT, true },
		{ "most in", VALUE_TEXT, true }),
	  "SELECT program, first_build, fingerprint, bytes, cores, kind, allocated_by, most_in"
	  " FROM fleet_leak WHERE builds = 1 ORDER BY bytes DESC, fingerprint LIMIT ?1" },
	{ IN_REPORT | IN_DIFF, "Growth by the build that brought it",
	  "Kinds of which the median core has more, beyond what the cores of one build differ by; 'low' is what three quarters of the cores have, 'former high' what three quarters of the former build's do not exceed.",
	  TABLE("growth", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "former build", VALUE_TEXT }, { "former", VALUE_BYTES },
		{ "median", VALUE_BYTES }, { "former high", VALUE_BYTES }, { "low", VALUE_BYTES },
		{ "cores", VALUE_COUNT }, { "kind", VALUE_TEXT },
		{ "allocated by", VALUE_TEXT, true }, { "hours", VALUE_COUNT, true },
		{ "former hours", VALUE_COUNT, true }),
	  "SELECT program, build, former_build, former, median, former_high, low, cores, kind, allocated_by, hours,"
	  " former_hours FROM growth"
	  " ORDER BY median - former DESC, program, build, kind LIMIT ?1" },
	{ IN_REPORT, "Growth by hours of uptime",
	  "Kinds of which the cores of one build have more, the older the process, by more than hosts differ; the last two columns are hours.",
	  TABLE("uptime growth", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "bytes per hour", VALUE_BYTES }, { "kind", VALUE_TEXT }, { "cores", VALUE_COUNT },
		{ "allocated by", VALUE_TEXT, true }, { "youngest", VALUE_COUNT },
		{ "oldest", VALUE_COUNT }),
	  "SELECT program, build, bytes_per_hour, kind, cores, allocated_by, youngest, oldest FROM uptime_growth"
	  " ORDER BY bytes_per_hour DESC, program, build, kind LIMIT ?1" },
	{ IN_REPORT, "Outliers",
	  "Cores that use more than twice the median of their build, and the kind that exceeds its average most.",
	  TABLE("outlier", NULL, { "used", VALUE_BYTES }, { "median", VALUE_BYTES },
		{ "program", VALUE_TEXT }, { "build", VALUE_TEXT }, { "host", VALUE_TEXT },
		{ "kind", VALUE_TEXT }, { "core", VALUE_TEXT }),
	  "SELECT * FROM outlier ORDER BY 1.0 * used / median DESC, core LIMIT ?1" },
	{ IN_REPORT, "Common kinds",
	  "Kinds in use; counts and bytes are averages of the cores of a program that have them.",
	  TABLE("common kind", NULL, { "program", VALUE_TEXT }, { "share of cores", VALUE_SHARE },
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "most", VALUE_BYTES },
		{ "kind", VALUE_TEXT }),
	  "SELECT * FROM common_kind ORDER BY bytes DESC, program, kind LIMIT ?1" },
	{ IN_REPORT, "Use of memory", "Averages of the cores of a program.",
	  TABLE("common use", NULL, { "program", VALUE_TEXT }, { "memory", VALUE_TEXT },
		{ "use", VALUE_TEXT }, { "mapped", VALUE_BYTES }, { "resident", VALUE_BYTES }),
	  "SELECT * FROM common_use ORDER BY resident DESC, program, memory, use LIMIT ?1" },
	{ IN_REPORT, "Days", "Used and leaked bytes are averages of a core.",
	  TABLE("trend", NULL, { "program", VALUE_TEXT }, { "day", VALUE_TEXT },
		{ "cores", VALUE_COUNT }, { "used", VALUE_BYTES }, { "leaked", VALUE_BYTES }),
	  "SELECT program, date(day, 'unixepoch'), cores, used, leaked FROM trend"
	  " ORDER BY program, day DESC LIMIT ?1" },
	{ IN_REPORT, "Doubtful cores", "Cores that could not be analysed, or only in part.",
	  TABLE("doubtful core", NULL, { "core", VALUE_TEXT }, { "host", VALUE_TEXT },
		{ "why", VALUE_TEXT }),
	  "SELECT * FROM doubtful_core ORDER BY core LIMIT ?1" },
	{ OF_LEAK, "Leak", NULL,
	  TABLE("fleet leak",
		"{fingerprint}: {kind} of {program}[, allocated by {allocated by}]\n"
		"{bytes,} bytes in {cores,} {cores|core|cores}[ on {hosts,} {hosts|host|hosts}], first in build {first build}, last in {last build}",
		{ "fingerprint", VALUE_TEXT }, { "program", VALUE_TEXT }, { "kind", VALUE_TEXT },
		{ "allocated by", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "cores", VALUE_COUNT },
		{ "hosts", VALUE_COUNT }, { "first build", VALUE_TEXT },
		{ "last build", VALUE_TEXT }),
	  "SELECT fingerprint, program, kind, allocated_by, bytes, cores, hosts, first_build,"
	  " last_build FROM fleet_leak WHERE fingerprint GLOB ?2 || '*' ORDER BY 1, 2 LIMIT ?1" },
	{ OF_LEAK, "Builds that have it", NULL,
	  TABLE("leaking build", NULL, { "program", VALUE_TEXT }, { "build", VALUE_TEXT },
		{ "of cores", VALUE_COUNT }, { "cores", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "most", VALUE_BYTES }),
	  "SELECT b.program, b.build, b.cores, count(DISTINCT l.core), sum(l.bytes), max(l.bytes)"
	  " FROM leak l JOIN analysed a ON a.id = l.core JOIN numbered_build b USING (program, build)"
	  " WHERE l.fingerprint GLOB ?2 || '*' GROUP BY b.program, b.number"
	  " ORDER BY b.program, b.number LIMIT ?1" },
	{ OF_LEAK, "Cores that leak most",
	  "'heapcore CORE path ADDRESS' shows more of the allocation.",
	  TABLE("leaking core", NULL, { "bytes", VALUE_BYTES }, { "host", VALUE_TEXT },
		{ "build", VALUE_TEXT }, { "address", VALUE_TEXT }, { "core", VALUE_TEXT }),
	  "SELECT l.bytes, a.host, a.build, l.address, a.path FROM leak l JOIN analysed a"
	  " ON a.id = l.core WHERE l.fingerprint GLOB ?2 || '*' ORDER BY l.bytes DESC, a.path LIMIT ?1" },
};

/* A table that was asked for is written without rows, too. */
static bool is_wanted(const struct report *report, const struct table *table)
{
	const char *wanted = report->choice ? report->choice->wanted : NULL;

	return wanted && table_has_name(table->name, wanted);
}

static struct error *write_parts(struct store *store, unsigned int answer,
				 const struct fleet_question *question, struct report *report)
{
	static const struct table section =
		TABLE("section", "\n{title}", { "title", VALUE_TEXT }, { "command", VALUE_TEXT },
		      { "text", VALUE_TEXT });
	char limit[NUMBER_SIZE];
	const char *const values[] = { limit, question->words[0] };
	const char *const no_limit[] = { "-1", question->words[0] };
	int64_t count;

	limit[format_decimal(question->limit, limit)] = '\0';
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		size_t value_count = strstr(parts[i].query, "?2") ? 2 : 1;
		_cleanup_(free) char *counting =
			format_text("SELECT count(*) FROM (%s)", parts[i].query);

		TRY_MEMORY(counting);
		if (!(parts[i].answers & answer))
			continue;
		TRY(store_number(store, counting, no_limit, value_count, &count));
		if (count == 0 && !is_wanted(report, &parts[i].table))
			continue;
		report_single(report, &section, parts[i].title, ABSENT, parts[i].text);
		TRY(store_report(store, parts[i].query, values, value_count, &parts[i].table,
				 report));
		rows_left_out(report, "rows", (uint64_t)count, question->limit);
	}
	return NULL;
}

/* Make the tables of the cores that are chosen. */
static struct error *make_tables(struct store *store, const struct fleet_question *question)
{
	if (question->with_doubtful)
		TRY(store_run(store, "UPDATE core SET incomplete = 0"));
	return store_run(store, fleet_tables);
}

static struct error *choose_and_make(struct store *store, const struct fleet_question *question)
{
	TRY(choose(store, "core", question->select));
	TRY(check_some(store, "core", question->select.count ? "is selected" : "is in the file"));
	return make_tables(store, question);
}

struct error *fleet_report(struct store *store, const struct fleet_question *question,
			   struct report *report)
{
	TRY(choose_and_make(store, question));
	return write_parts(store, IN_REPORT, question, report);
}

/* Metrics of a family follow each other, behind its type. JSON quotes as OpenMetrics does. */
static const char METRICS[] =
	"WITH metric (family, program, name, text, kind, value) AS ("
	" SELECT 'cores', program, 'build', build, NULL, cores FROM numbered_build"
	" UNION ALL SELECT 'used_bytes', program, 'build', build, NULL, used FROM numbered_build"
	" UNION ALL SELECT 'leaked_bytes', program, 'build', build, NULL, leaked FROM numbered_build"
	" UNION ALL SELECT * FROM (SELECT 'leak_bytes', program, 'fingerprint', fingerprint, kind, bytes"
	"  FROM fleet_leak ORDER BY bytes DESC, fingerprint LIMIT ?1)"
	" UNION ALL SELECT 'growth_bytes', program, 'build', build, kind, median - former FROM growth"
	" UNION ALL SELECT 'growth_bytes_per_hour', program, 'build', build, kind, bytes_per_hour FROM uptime_growth)"
	"SELECT CASE place WHEN 1 THEN 'heapcore_fleet_' || family || '{program=' || json_quote(program) || ',' ||"
	" name || '=' || json_quote(text) || CASE WHEN kind IS NULL THEN '' ELSE ',kind=' || json_quote(kind) END || '} ' || value"
	" ELSE '# TYPE heapcore_fleet_' || family || ' gauge' END FROM (SELECT 1 AS place, * FROM metric"
	" UNION ALL SELECT DISTINCT 0, family, 0, 0, 0, 0, 0 FROM metric) ORDER BY family, place, program, text";

struct error *fleet_metrics(struct store *store, const struct fleet_question *question, FILE *out)
{
	char limit[NUMBER_SIZE];
	const char *const values[] = { limit };

	limit[format_decimal(question->limit, limit)] = '\0';
	TRY(choose_and_make(store, question));
	TRY(store_lines(store, METRICS, values, 1, out));
	return store_lines(store,
			   "SELECT '# TYPE heapcore_fleet_doubtful_cores gauge' UNION ALL SELECT"
			   " 'heapcore_fleet_doubtful_cores ' || (failed + incomplete) FROM fleet"
			   " UNION ALL SELECT '# EOF'",
			   NULL, 0, out);
}

struct error *fleet_show(struct store *store, const struct fleet_question *question,
			 struct report *report)
{
	int64_t count = 0;

	TRY(choose_and_make(store, question));
	TRY(store_number(store, "SELECT count(*) FROM fleet_leak WHERE fingerprint GLOB ?1 || '*'",
			 question->words, 1, &count));
	if (!count)
		return error_create(ERROR_USAGE, "no core has a leak '%s'", question->words[0]);
	return write_parts(store, OF_LEAK, question, report);
}

struct error *fleet_sql(struct store *store, const struct fleet_question *question,
			struct report *report)
{
	TRY(choose_and_make(store, question));
	return store_ask(store, question->words[0], report);
}

/* The cores of both tables become those of two builds, of these names and in this order. */
static struct error *make_two_builds(struct store *store, const struct fleet_question *question,
				     const char *former, const char *later)
{
	static const char MARK[] = "UPDATE %s SET build = ?1, build_id = NULL, time = %d";
	_cleanup_(free) char *mark_former = format_text(MARK, "accepted", 0);
	_cleanup_(free) char *mark_later = format_text(MARK, "core", 1);

	TRY_MEMORY(mark_former && mark_later);
	TRY(store_change(store, mark_former, &former, 1));
	TRY(store_change(store, mark_later, &later, 1));
	TRY(store_run(
		store,
		"INSERT INTO core SELECT * FROM accepted WHERE id NOT IN (SELECT id FROM core)"));
	return make_tables(store, question);
}

/* Narrow a table to the cores of a build. */
static struct error *choose_build(struct store *store, const char *table, const char *build,
				  const struct fleet_question *question)
{
	_cleanup_(free) char *pattern = format_text("build=%s", build);
	_cleanup_(free) char *what = format_text("is of build '%s'", build);

	TRY_MEMORY(pattern && what);
	TRY(choose(store, table, question->select));
	TRY(narrow(store, table, pattern));
	return check_some(store, table, what);
}

struct error *fleet_diff(struct store *store, const struct fleet_question *question,
			 struct report *report)
{
	const char *former = question->words[0], *later = question->words[1];

	if (strcmp(former, later) == 0)
		return error_create(ERROR_USAGE, "both builds are '%s'", former);
	TRY(choose_build(store, "accepted", former, question));
	TRY(choose_build(store, "core", later, question));
	TRY(make_two_builds(store, question, former, later));
	return write_parts(store, IN_DIFF, question, report);
}

struct error *fleet_prune(struct store *store, const struct fleet_question *question, int64_t *ret)
{
	static const char OLDER[] =
		"DELETE FROM core WHERE coalesce(time, modified / 1e9) >= strftime('%s', 'now') - ?1";
	char seconds[NUMBER_SIZE];
	const char *const values[] = { seconds };

	seconds[format_decimal(question->older / 1000000000, seconds)] = '\0';
	TRY(choose(store, "core", question->select));
	if (question->older)
		TRY(store_change(store, OLDER, values, 1));
	if (question->missing)
		TRY(store_run(store, "DELETE FROM core WHERE NOT is_missing(path)"));
	TRY(store_number(store, "SELECT count(*) FROM core", NULL, 0, ret));
	TRY(store_run(store, "DELETE FROM main.core WHERE id IN (SELECT id FROM temp.core)"));
	return store_run(store, "VACUUM");
}

/*
 * Leaks that no core of the baseline has, of cores that can be relied on. ?1 is the build of the
 * cores that are judged.
 */
#define NEW_LEAKS                                                                               \
	"FROM leak l JOIN analysed a ON a.id = l.core JOIN main.core c ON c.id = l.core"        \
	" WHERE a.build = ?1"                                                                   \
	" AND l.fingerprint NOT IN (SELECT fingerprint FROM leak WHERE core IN (SELECT id FROM" \
	" accepted)) GROUP BY l.fingerprint HAVING count(DISTINCT c.id) >= CAST(?2 AS INTEGER)"

static const struct table leak_table = TABLE(
	"new leak",
	"New leak {fingerprint}: {kind}, {bytes,} bytes in {cores,} {cores|core|cores}[ on {hosts,} {hosts|host|hosts}][, allocated by {allocated by}];\n"
	"    first in build {build}, most in {most in}",
	{ "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT }, { "cores", VALUE_COUNT },
	{ "hosts", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "allocated by", VALUE_TEXT },
	{ "build", VALUE_TEXT }, { "most", VALUE_BYTES }, { "most in", VALUE_TEXT });

static const char LEAKS[] =
	"SELECT fingerprint, kind, count(DISTINCT c.id), nullif(count(DISTINCT c.host), 0), sum(bytes),"
	" allocated_by, (SELECT CASE m.build WHEN m.build_id THEN substr(m.build_id, 1, 12) ELSE m.build"
	" END FROM leak first JOIN analysed f ON f.id = first.core JOIN main.core m ON m.id = f.id"
	" WHERE f.build = ?1 AND first.fingerprint = l.fingerprint"
	" ORDER BY m.time LIMIT 1), max(bytes), a.path " NEW_LEAKS
	" ORDER BY sum(bytes) DESC, fingerprint LIMIT ?3";

static const struct table much_table =
	TABLE("leaked too much", "{core} leaked {bytes,} bytes", { "core", VALUE_TEXT },
	      { "host", VALUE_TEXT }, { "build", VALUE_TEXT }, { "bytes", VALUE_BYTES });

#define MUCH                                                             \
	"FROM analysed a JOIN main.core c USING (id) WHERE a.build = ?1" \
	" AND a.leaked_bytes > CAST(?2 AS INTEGER)"

/* In JUnit and SARIF, as what 'gate' says of growth. */
static const struct table growth_table = TABLE(
	"growing",
	"Growth of {holder}: the median core has {median,} bytes of {kind}, before {former,}; three quarters have at least {low,}, before at most {former high,}",
	{ "fingerprint", VALUE_TEXT }, { "holder", VALUE_TEXT }, { "kind", VALUE_TEXT },
	{ "state", VALUE_TEXT }, { "former", VALUE_BYTES }, { "median", VALUE_BYTES },
	{ "former high", VALUE_BYTES }, { "low", VALUE_BYTES }, { "cores", VALUE_COUNT });

#define GROWING "FROM growth WHERE build = ?1 AND median > former * (1 + ?2)"

/* Programs of which a build has too few cores for the view 'growth'. */
static const struct table unjudged_table = TABLE(
	"unjudged growth",
	"Growth of {program} is not judged: that takes three cores of each side, and there are {cores} to judge and {former} of the baseline.",
	{ "program", VALUE_TEXT }, { "cores", VALUE_COUNT }, { "former", VALUE_COUNT });

static const char UNJUDGED[] =
	"SELECT b.program, b.cores, coalesce(f.cores, 0) AS former FROM numbered_build b LEFT JOIN"
	" numbered_build f ON f.program = b.program AND f.build = ?2 WHERE b.build = ?1"
	" AND (b.cores < 3 OR coalesce(f.cores, 0) < 3) ORDER BY b.program LIMIT ?3";

struct fleet_verdict {
	int64_t leaks, much, growing, doubtful, cores;
	double most_doubtful;
};

/* The builds that cores become: those that are judged, and the others. */
static const char JUDGED[] = "judged", BASELINE[] = "baseline";

static struct error *write_findings(struct store *store, const struct fleet_question *question,
				    struct report *report, struct fleet_verdict *ret)
{
	char least[NUMBER_SIZE], most[NUMBER_SIZE], growth[NUMBER_SIZE], limit[NUMBER_SIZE];
	const char *const of_leaks[] = { JUDGED, least, limit };
	const char *const of_cores[] = { JUDGED, most, limit };
	const char *const of_kinds[] = { JUDGED, growth, limit };
	const char *const of_builds[] = { JUDGED, BASELINE, limit };

	snprintf(growth, sizeof(growth), "%.6f", question->most_growth);
	least[format_decimal(question->least_cores, least)] = '\0';
	most[format_decimal(question->most_leaked, most)] = '\0';
	limit[format_decimal(question->limit, limit)] = '\0';
	TRY(store_number(store, "SELECT count(*) FROM (SELECT 1 " NEW_LEAKS ")", of_leaks, 2,
			 &ret->leaks));
	TRY(store_number(store, "SELECT count(*) FROM counted WHERE build = ?1", of_leaks, 1,
			 &ret->cores));
	TRY(store_number(store,
			 "SELECT count(*) FROM counted WHERE build = ?1 AND"
			 " (error IS NOT NULL OR incomplete)",
			 of_leaks, 1, &ret->doubtful));
	TRY(store_report(store, LEAKS, of_leaks, 3, &leak_table, report));
	if (question->has_most_growth) {
		TRY(store_number(store, "SELECT count(*) " GROWING, of_kinds, 2, &ret->growing));
		TRY(store_report(
			store,
			"SELECT program || ' ' || kind, program, kind, 'new', former, median,"
			" former_high, low, cores " GROWING
			" ORDER BY median - former DESC, program, kind LIMIT ?3",
			of_kinds, 3, &growth_table, report));
		TRY(store_report(store, UNJUDGED, of_builds, 3, &unjudged_table, report));
	}
	if (!question->has_most_leaked)
		return NULL;
	TRY(store_number(store, "SELECT count(*) " MUCH, of_cores, 2, &ret->much));
	return store_report(store,
			    "SELECT a.path, a.host, c.build, a.leaked_bytes " MUCH
			    " ORDER BY a.leaked_bytes DESC, a.path LIMIT ?3",
			    of_cores, 3, &much_table, report);
}

static struct error *judge(const struct fleet_verdict *verdict, struct report *report)
{
	static const struct table table = TABLE(
		"gate",
		"Gate {outcome}: {leaks,} new {leaks|leak|leaks}[, growth of {growing,} {growing|kind|kinds}]. {cores,} {cores|core|cores} judged; {doubtful,} could not be analysed, or only in part.",
		{ "outcome", VALUE_TEXT }, { "leaks", VALUE_COUNT }, { "cores", VALUE_COUNT },
		{ "doubtful", VALUE_COUNT }, { "growing", VALUE_COUNT });
	bool failed = verdict->leaks > 0 || verdict->much > 0 || verdict->growing > 0;
	bool in_doubt = (double)verdict->doubtful > verdict->most_doubtful * (double)verdict->cores;

	report_single(report, &table,
		      failed	 ? "failed"
		      : in_doubt ? "incomplete"
				 : "passed",
		      (uint64_t)verdict->leaks, (uint64_t)verdict->cores,
		      (uint64_t)verdict->doubtful, value_nonzero((uint64_t)verdict->growing));
	if (failed)
		return error_create(ERROR_FOUND, "the gate failed");
	return in_doubt ? error_create(ERROR_NOT_SUPPORTED,
				       "the gate cannot decide: %" PRId64
				       " of the cores could not be analysed, or only in part",
				       verdict->doubtful)
			: NULL;
}

/* Without a selection, all cores but those of the baseline are judged. */
static struct error *choose_both(struct store *store, const struct fleet_question *question)
{
	TRY(choose(store, "accepted", question->baseline));
	if (question->baseline.count == 0)
		TRY(store_run(store, "DELETE FROM accepted"));
	else
		TRY(check_some(store, "accepted", "matches the baseline"));
	TRY(choose(store, "core", question->select));
	if (question->select.count == 0)
		TRY(store_run(store, "DELETE FROM core WHERE id IN (SELECT id FROM accepted)"));
	return check_some(store, "core",
			  question->select.count ? "is selected" : "is left to judge");
}

/* With a baseline, growth is judged: by default, no kind may be more than twice as much. */
static struct fleet_question with_growth(const struct fleet_question *question)
{
	struct fleet_question ret = *question;

	if (!question->has_most_growth && question->baseline.count > 0) {
		ret.has_most_growth = true;
		ret.most_growth = 1;
	}
	return ret;
}

struct error *fleet_gate(struct store *store, const struct fleet_question *given,
			 struct report *report)
{
	const struct fleet_question whole = with_growth(given), *question = &whole;
	struct fleet_verdict verdict = { .most_doubtful = question->most_doubtful };

	TRY(choose_both(store, question));
	if (question->has_most_growth && question->baseline.count == 0)
		return error_create(ERROR_USAGE, "--max-growth needs a --baseline");
	TRY(make_two_builds(store, question, BASELINE, JUDGED));
	TRY(write_findings(store, question, report, &verdict));
	return judge(&verdict, report);
}
