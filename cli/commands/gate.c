#include "analyzer/account/hidden.h"
#include "analyzer/account/likely_held.h"
#include "analyzer/account/unexplained.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/diff/diff.h"
#include "analyzer/gate/baseline.h"
#include "analyzer/gate/leak_stacks.h"
#include "analyzer/gate/suppressions.h"
#include "cli/command.h"
#include "cli/commands/gate_annotations.h"
#include "cli/commands/gate_growth.h"
#include "cli/commands/gate_options.h"
#include "cli/commands/gate_stacks.h"
#include "cli/live/gate_self_check.h"
#include "cli/views/anchor_row.h"
#include "cli/views/diff_rows.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <sys/stat.h>

/* A limit, and what there is. */
struct gate_check {
	const struct gate_limit *limit;
	uint64_t value;
	bool is_nothing; /* nothing is of its kind, so that may be mistyped */
};

static bool check_failed(const struct gate_check *check)
{
	return check->value > check->limit->limit;
}

enum { SHOWN_BYTES = 32 };

/* The example's first bytes, where somebody has to look into it. */
static struct value example_contents(struct analysis *analysis, const struct leak_kind *kind,
				     struct memory_view *view, const struct report *report)
{
	const struct selection selection = { .ascii = true,
					     .has_show_up_to = true,
					     .show_up_to = SHOWN_BYTES };

	*view = rows_view(analysis, kind->address, kind->size, &selection);
	return VALUE_IF(leak_counts(kind) && !report->no_content, view);
}

static void write_leaks(struct report *report, struct analysis *analysis,
			const struct leak_kinds *kinds)
{
	static const struct table table = TABLE(
		"leak",
		"Leak {fingerprint} ({verdict}, {state}): {roots,} x {label} of {size,} bytes[, {likely,} only likely][, {allowed,} in the baseline][, held by {held}][, suppressed by {rule}];\n"
		"    {allocations,} {allocations|allocation|allocations} lost in total ({bytes,} bytes), for example 0x{address}[\n    {type}, by {by}][\n    allocated by {allocated by}][\n    {contents}]",
		{ "fingerprint", VALUE_TEXT }, { "verdict", VALUE_TEXT }, { "state", VALUE_TEXT },
		{ "kind", VALUE_TEXT }, { "size", VALUE_BYTES }, { "roots", VALUE_COUNT },
		{ "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "address", VALUE_ADDRESS }, { "held", VALUE_TEXT }, { "allowed", VALUE_COUNT },
		{ "rule", VALUE_TEXT }, { "likely", VALUE_COUNT }, { "contents", VALUE_MEMORY },
		{ "label", VALUE_TEXT }, { "type", VALUE_TEXT }, { "typed", VALUE_COUNT },
		{ "by", VALUE_TEXT }, { "allocated by", VALUE_TEXT }, { "source", VALUE_TEXT },
		{ "calls", VALUE_TEXT, .reader = FOR_PROGRAMS });

	report_begin_table(report, &table);
	list_for_each(kind, kinds->list, kinds->count) {
		_cleanup_(free) char *label = leak_kind_label(kind);
		char buffer[FINGERPRINT_SIZE];
		struct memory_view view;

		if (leak_is_known(kind))
			continue;
		if (!label)
			report->error = &error_no_memory;

		report_row(report, fingerprint_text(kind->fingerprint, buffer),
			   kind->likely ? "likely" : "certain", leak_state_name(kind->state),
			   kind->name, kind->size, kind->roots, kind->allocations, kind->bytes,
			   kind->address, kind->held, VALUE_IF(kind->is_allowed, kind->allowed),
			   kind->rule,
			   VALUE_IF(kind->likely_roots > 0 && !kind->likely, kind->likely_roots),
			   example_contents(analysis, kind, &view, report), label ? label : "",
			   kind->type, VALUE_IF(kind->type, kind->typed_roots), kind->type_reason,
			   kind->allocated_by, kind->source, kind->calls);
	}
	report_end_table(report);
}

/* Write one row for the leaks of each cause, at the first kind with that cause. */
static void write_known(struct report *report, const struct leak_kinds *kinds)
{
	static const struct table table = TABLE(
		"known leak",
		"{count,} known {count|leak|leaks} of {owner} ({bytes,} bytes), shown by --no-known: {cause}",
		{ "owner", VALUE_TEXT }, { "cause", VALUE_TEXT }, { "count", VALUE_COUNT },
		{ "bytes", VALUE_BYTES });

	report_begin_table(report, &table);
	for (size_t i = 0; i < kinds->count; i++) {
		const struct leak_kind *kind = &kinds->list[i];
		struct set_total total = { 0 };
		bool is_first = true;

		for (size_t j = 0; leak_is_known(kind) && j < kinds->count; j++) {
			const struct leak_kind *other = &kinds->list[j];

			if (other->rule != kind->rule)
				continue;
			is_first &= j >= i;
			set_total_add(&total,
				      (struct set_total){ other->allocations, other->bytes });
		}
		if (leak_is_known(kind) && is_first)
			report_row(report, kind->known_owner, kind->known_cause, total.count,
				   total.bytes);
	}
	report_end_table(report);
}

static void write_shared(struct report *report, struct set_total shared, struct set_total counted)
{
	static const struct table table = TABLE(
		"shared",
		"{count,} more {count|allocation|allocations} ({bytes,} bytes) {count|is|are} shared by several leaks; {counted,} of them ({counted bytes,} bytes) {counted|is|are} included in the total.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "counted", VALUE_COUNT },
		{ "counted bytes", VALUE_BYTES });

	if (shared.count == 0)
		return;
	report_single(report, &table, shared.count, shared.bytes, counted.count, counted.bytes);
}

static void write_gone(struct report *report, const struct baseline *baseline)
{
	static const struct table table =
		TABLE("gone", "Gone: leak {fingerprint} of {kind}; the baseline accepts {roots,}.",
		      { "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT },
		      { "size", VALUE_BYTES }, { "roots", VALUE_COUNT });

	report_begin_table(report, &table);
	list_for_each(entry, baseline->list, baseline->count) {
		char buffer[FINGERPRINT_SIZE];

		if (entry->matched)
			continue;
		report_row(report, fingerprint_text(entry->fingerprint, buffer), entry->kind,
			   entry->size, entry->roots);
	}
	report_end_table(report);
}

static void write_unused(struct report *report, const struct suppressions *suppressions)
{
	static const struct table table =
		TABLE("unused rule", "Warning: the rule {rule} matches no leak ({file}:{line}).",
		      { "rule", VALUE_TEXT }, { "file", VALUE_TEXT }, { "line", VALUE_NUMBER });

	report_begin_table(report, &table);
	list_for_each(rule, suppressions->list, suppressions->count) {
		if (rule->matched)
			continue;
		report_row(report, rule->text, rule->path, rule->line);
	}
	report_end_table(report);
}

static char *check_rule(const struct gate_check *check)
{
	return format_text("%s %s", gate_measures[check->limit->measure].name, check->limit->typed);
}

/* It says so if nothing is of a class: a mistyped name must not pass for a good one. */
static char *check_what(const struct gate_check *check)
{
	const struct gate_limit *limit = check->limit;

	return format_text("%s%s%s", gate_measures[limit->measure].noun,
			   limit->name ? limit->name : "",
			   check->is_nothing ? " (nothing has that name)" : "");
}

static void write_checks(struct report *report, const struct gate_check *checks, size_t count)
{
	static const struct table table =
		TABLE("check", "Check {outcome} ({rule}): {value,} {what|value}, {limit,} allowed",
		      { "rule", VALUE_TEXT }, { "what", VALUE_TEXT }, { "limit", VALUE_COUNT },
		      { "value", VALUE_COUNT }, { "outcome", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++) {
		_cleanup_(free) char *rule = check_rule(&checks[i]);
		_cleanup_(free) char *what = check_what(&checks[i]);

		if (checks[i].limit->measure == MEASURE_GROWING)
			continue; /* its rows are there */
		if (!rule || !what)
			report->error = &error_no_memory;
		report_row(report, rule ? rule : "", what ? what : "", checks[i].limit->limit,
			   checks[i].value, check_failed(&checks[i]) ? "failed" : "passed");
	}
	report_end_table(report);
}

/* A run of the gate. */
struct gate {
	struct analysis *analysis;
	const struct gate_options *options;
	struct leak_kinds kinds;
	struct gate_growth growth; /* instead of leaks */
	struct suppressions suppressions;
	struct baseline baseline;
	struct set_total leaked; /* the leaks that count */
	struct leak_stacks stacks;
	struct diff *diff; /* with the older core, or NULL */
	uint64_t *old;	   /* the older core's values, by limit */
	struct gate_check *checks;
	size_t check_count;
};

static void gate_deinit(struct gate *gate)
{
	leak_kinds_deinit(&gate->kinds);
	gate_growth_deinit(&gate->growth);
	leak_stacks_deinit(&gate->stacks);
	suppressions_deinit(&gate->suppressions);
	baseline_deinit(&gate->baseline);
	if (gate->diff)
		diff_destroy(gate->diff);
	free(gate->old);
	free(gate->checks);
}
DEFINE_DEINIT(gate_deinit, struct gate)

static bool looks_for_growth(const struct gate *gate)
{
	return gate->options->growing.count;
}

/* Kinds that rules and the baseline are about. */
static struct leak_kinds *judged(struct gate *gate)
{
	return looks_for_growth(gate) ? &gate->growth.kinds : &gate->kinds;
}

static bool is_incomplete(const struct gate *gate)
{
	return findings_incomplete(analysis_findings(gate->analysis));
}

/* Read the files first, so that mistakes in them are reported before slow work begins. */
static struct error *read_files(struct gate *gate)
{
	const struct gate_options *options = gate->options;
	struct stat status;

	for (size_t i = 0; i < options->suppress.count; i++)
		TRY(suppressions_read(&gate->suppressions, options->suppress.list[i]));
	if (!options->baseline)
		return NULL;
	/* The first one is yet to be written. */
	if (options->update && lstat(options->baseline, &status) < 0)
		return NULL;
	return baseline_read(options->baseline, &gate->baseline);
}

static struct error *ratchet(struct gate *gate)
{
	if (!baseline_ratchet(&gate->baseline, judged(gate)))
		return NULL;
	return baseline_write(&gate->baseline, gate->options->baseline);
}

static struct error *count_class(struct analysis *analysis, const struct kind *kind, uint64_t *ret)
{
	const struct bitmap *used = allocation_used(analysis_index(analysis));
	_cleanup_(bitmap_deinit) struct bitmap members = { 0 };

	TRY(bitmap_init(&members, used->count, analysis_account(analysis)));
	bitmap_copy(&members, used);
	TRY(kind_narrow(analysis, kind, true, &members));
	*ret = bitmap_weight(&members);
	return NULL;
}

/* The limit's measure in a core, except for limits on leaks. */
static struct error *measure_size(struct analysis *analysis, const struct gate_limit *limit,
				  uint64_t *ret)
{
	const struct allocation_index *index;

	TRY(analysis_need(analysis, STAGE_HEAP));
	index = analysis_index(analysis);
	if (limit->name)
		return count_class(analysis, &limit->kind, ret);
	*ret = allocations_total(index, allocation_used(index)).bytes;
	return NULL;
}

static struct error *measure_older(void *data, struct analysis *older)
{
	struct gate *gate = data;
	const struct gate_options *options = gate->options;

	for (size_t i = 0; i < options->limit_count; i++)
		if (gate_measures[options->limits[i].measure].of_growth)
			TRY(measure_size(older, &options->limits[i], &gate->old[i]));
	return NULL;
}

static struct error *compare(struct gate *gate)
{
	const struct gate_options *options = gate->options;

	if (!options->compared)
		return NULL;
	gate->old = calloc(options->limit_count, sizeof(*gate->old));
	TRY_MEMORY(gate->old);
	return compare_cores(gate->analysis, &options->compared, 1, ASPECT_KIND, HOLDERS_NONE,
			     measure_older, gate, &gate->diff);
}

static struct error *measure(struct gate *gate, struct gate_check *check)
{
	const struct gate_limit *limit = check->limit;
	uint64_t now = 0, old = gate->old ? gate->old[limit - gate->options->limits] : 0;

	if (limit->measure == MEASURE_GROWING) {
		check->value = gate_growth_count(&gate->growth);
		return NULL;
	}
	if (gate_measures[limit->measure].of_leaks) {
		check->value =
			limit->measure == MEASURE_LEAKED ? gate->leaked.count : gate->leaked.bytes;
		return NULL;
	}
	TRY(measure_size(gate->analysis, limit, &now));
	check->value = now > old ? now - old : 0;
	check->is_nothing = limit->name && now == 0 && old == 0;
	return NULL;
}

static struct error *check_limits(struct gate *gate)
{
	const struct gate_options *options = gate->options;

	free(gate->checks);
	gate->check_count = 0;
	gate->checks = calloc(options->limit_count, sizeof(*gate->checks));
	TRY_MEMORY(gate->checks);
	gate->check_count = options->limit_count;
	for (size_t i = 0; i < gate->check_count; i++) {
		gate->checks[i].limit = &options->limits[i];
		TRY(measure(gate, &gate->checks[i]));
	}
	return NULL;
}

static struct error *look(struct gate *gate)
{
	const struct gate_options *options = gate->options;

	if (looks_for_growth(gate))
		TRY(gate_growth_find(gate->analysis, options->growing.list, options->growing.count,
				     &gate->growth));
	else
		TRY(leak_kinds_find(gate->analysis,
				    options->likely ? LEAKS_AND_LIKELY : LEAKS_CERTAIN,
				    &gate->kinds));
	suppressions_apply(&gate->suppressions, judged(gate), !options->no_known);
	baseline_compare(&gate->baseline, judged(gate));
	return NULL;
}

static struct error *judge(struct gate *gate)
{
	TRY(leak_kinds_count(gate->analysis, &gate->kinds, &gate->leaked));
	return check_limits(gate);
}

/* Make all that leaked the baseline, and judge by that. The old one says what is gone. */
static struct error *update(struct gate *gate)
{
	_cleanup_(baseline_deinit) struct baseline accepted = { 0 };

	TRY(baseline_accept(&gate->baseline, judged(gate), &accepted));
	TRY(baseline_write(&accepted, gate->options->baseline));
	baseline_compare(&accepted, judged(gate));
	return judge(gate);
}

static const struct gate_check *first_failed(const struct gate *gate)
{
	for (size_t i = 0; i < gate->check_count; i++)
		if (check_failed(&gate->checks[i]))
			return &gate->checks[i];
	return NULL;
}

static const char *outcome_of(const struct gate *gate)
{
	if (is_incomplete(gate))
		return "incomplete";
	return first_failed(gate) ? "failed" : "passed";
}

static void write_outcome(const struct gate *gate, struct report *report)
{
	static const struct table table = TABLE(
		"gate",
		"Gate {outcome}: {leaks,} {leaks|allocation|allocations} leaked ({bytes,} bytes); {suppressed,} suppressed, {known,} in the baseline.",
		{ "outcome", VALUE_TEXT }, { "leaks", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "suppressed", VALUE_COUNT }, { "known", VALUE_COUNT });
	uint64_t suppressed = 0, known = 0; /* allocations */

	list_for_each(kind, gate->kinds.list, gate->kinds.count) {
		if (leak_is_known(kind))
			continue;
		if (kind->state == LEAK_SUPPRESSED)
			suppressed += kind->allocations;
		else
			known += kind->allocations - leak_counted(kind).count;
	}
	report_single(report, &table, outcome_of(gate), gate->leaked.count, gate->leaked.bytes,
		      suppressed, known);
}

/* Write the kinds that grew most, because the limits may be about all of them. */
static void write_growth(const struct gate *gate, struct report *report)
{
	const struct diff_view view = { .diff = gate->diff, .limit = 10 };

	if (!gate->diff)
		return;
	diff_write_cores(report, &view);
	diff_write_kinds(report, &view);
}

/* Write the likely held leaks and the first examples, if likely leaks count. */
static void write_likely_held(const struct gate *gate, struct report *report)
{
	enum { SHOWN = 3 };
	const struct disguises *disguised;
	struct error *error = rows_likely_held(
		report, gate->analysis, analysis_leaked(gate->analysis), "leaked allocations");

	if (error) {
		report->error = error;
		return;
	}
	disguised = analysis_disguised(gate->analysis);
	if (disguised->list.count > 0 && !gate->options->likely)
		rows_text(
			report,
			"Allocations that are likely held count only with --likely. For example:");
	for (size_t i = 0; i < disguised->list.count && i < SHOWN; i++)
		anchor_write_likely(gate->analysis, disguised_at(disguised, i), report);
}

static void write_leak_tables(const struct gate *gate, struct report *report)
{
	struct set_total shared = leak_kinds_shared(&gate->kinds);
	struct set_total counted = gate->leaked;

	for (size_t i = 0; i < gate->kinds.count; i++) {
		struct set_total own = leak_counted(&gate->kinds.list[i]);

		counted.count -= own.count;
		counted.bytes -= own.bytes;
	}
	write_leaks(report, gate->analysis, &gate->kinds);
	gate_write_stacks(&gate->kinds, &gate->stacks, report);
	write_known(report, &gate->kinds);
	write_likely_held(gate, report);
	write_shared(report, shared, counted);
}

static void write_tables(const struct gate *gate, struct report *report)
{
	if (looks_for_growth(gate))
		gate_growth_write(&gate->growth, gate->analysis, report);
	else
		write_leak_tables(gate, report);
	write_gone(report, &gate->baseline);
	write_unused(report, &gate->suppressions);
	write_growth(gate, report);
	write_checks(report, gate->checks, gate->check_count);
}

/* Nothing was accepted, or dropped, that may only seem to be so. */
static struct error *cannot_tell(const struct gate *gate)
{
	static const char why[] = "the dump could not be analysed well enough";
	const struct gate_options *options = gate->options;

	if (options->update || options->ratchet)
		return error_create(ERROR_NOT_SUPPORTED,
				    "the gate cannot decide, so %s is unchanged: %s",
				    options->baseline, why);
	return error_create(ERROR_NOT_SUPPORTED, "the gate cannot decide: %s", why);
}

static struct error *conclude(const struct gate *gate)
{
	const struct gate_check *failed = first_failed(gate);
	_cleanup_(free) char *rule = NULL;

	if (is_incomplete(gate))
		return cannot_tell(gate);
	if (!failed)
		return NULL;
	rule = check_rule(failed);
	TRY_MEMORY(rule);
	return error_create(ERROR_FOUND, "the gate failed (%s)", rule);
}

/* Check completeness last: findings are complete only after all stages are built. */
static struct error *report_all(struct gate *gate, struct report *report)
{
	const struct gate_options *options = gate->options;
	bool may_write = !is_incomplete(gate);
	struct error *error = NULL;

	if (options->update && may_write)
		error = update(gate);
	if (error)
		return error;
	write_tables(gate, report);
	if (options->ratchet && may_write)
		error = ratchet(gate);
	if (looks_for_growth(gate))
		gate_growth_write_outcome(&gate->growth, outcome_of(gate), report);
	else
		write_outcome(gate, report);
	gate_annotate(&gate->kinds, stderr);
	return error ? error : conclude(gate);
}

static struct error *gate_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	_cleanup_(gate_deinit) struct gate gate = {
		.analysis = analysis,
		.options = arguments,
	};

	TRY(read_files(&gate));
	if (gate.options->self_check)
		TRY(gate_self_check(analysis_progress(analysis)));
	TRY(look(&gate));
	TRY(unexplained_note(analysis));
	TRY(hidden_note(analysis));
	TRY(compare(&gate));
	TRY(judge(&gate));
	if (looks_for_growth(&gate))
		return report_all(&gate, report);
	TRY(leak_kinds_find_types(analysis, &gate.kinds));
	if (gate.leaked.count && first_failed(&gate) && !is_incomplete(&gate))
		TRY(gate_find_stacks(analysis, &gate.kinds, &gate.stacks));
	return report_all(&gate, report);
}

/* Limit the stacks shown as text. */
static bool gate_shorten(void *arguments, uint64_t count)
{
	return true;
}

const struct command command_gate = {
	.name = "gate",
	.summary = "Fail if the program leaked more than is accepted",
	.example = "gate\n"
		   "gate --max-leaked-bytes 64K --likely\n"
		   "gate --max-used 512M --max-class app::Session=100\n"
		   "gate --compare older.core --max-growth 16M",
	.description =
		"Lists each kind of leak, most bytes first, with a fingerprint that is the same in other runs and builds: it is made of what the leak root is and what was lost with it. Then come the checks, and the verdict. All leaked allocations count, also those that only leaked ones refer to, except suppressed ones, those of the baseline, and, without '--likely', those that a pointer in disguise likely holds ('likelyheld'). With --compare, what grew is listed too, as by 'diff'. Exit status: 0 if the gate passed, 1 if it failed, 2 for wrong usage, 3 if the core could not be analysed well enough to decide.",
	.options = gate_switches,
	.parse = gate_options_parse,
	.shorten = gate_shorten,
	.sums_up = true,
	.arguments_size = sizeof(struct gate_options),
	.release = gate_options_release,
	.run = gate_run,
};
