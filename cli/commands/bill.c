#include "analyzer/account/bill.h"
#include "analyzer/account/pinned.h"
#include "analyzer/base/sort.h"
#include "cli/command.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_ROWS = 6 };

struct bill_arguments {
	bool all;
};

static void write_row(struct report *report, const char *group, const char *name,
		      struct amount amount, struct amount total)
{
	report_row(report, group, name, value_nonzero(amount.count), amount.mapped, amount.resident,
		   rows_share(amount.resident, total.resident));
}

static void write_uses(const struct bill *bill, struct report *report)
{
	static const struct table table =
		TABLE("use", NULL, { "memory", VALUE_TEXT }, { "use", VALUE_TEXT },
		      { "count", VALUE_COUNT }, { "mapped", VALUE_BYTES },
		      { "resident", VALUE_BYTES }, { "of resident", VALUE_SHARE });
	struct amount total = ledger_total(bill->ledger);

	report_begin_table(report, &table);
	for (size_t i = 0; i < ledger_row_count(bill->ledger); i++) {
		const struct ledger_row *row = ledger_row(bill->ledger, (row_number)i);

		if (row->amount.mapped || row->amount.count ||
		    strcmp(row->group, BILL_UNEXPLAINED) == 0)
			write_row(report, row->group, row->name, row->amount, total);
	}
	total.count = 0;
	write_row(report, "total", "", total, total);
	report_end_table(report);
}

/* Explain in one sentence why more is resident than is in use. */
static void write_heaps(const struct bill *bill, const struct heaps *heaps, struct report *report)
{
	static const struct table table = TABLE(
		"heaps",
		"\nResident: {resident,} bytes. Allocations in use have {used,}[, garbage {garbage,}],\nfree memory in heaps {free,}, overhead of heaps {overhead,}.",
		{ "resident", VALUE_BYTES }, { "used", VALUE_BYTES }, { "garbage", VALUE_BYTES },
		{ "free", VALUE_BYTES }, { "overhead", VALUE_BYTES });
	struct heap_shares shares = bill_heap_shares(bill, heaps);

	report_single(report, &table, ledger_total(bill->ledger).resident, shares.used,
		      value_nonzero(shares.garbage), shares.free, shares.overhead);
}

/* True if packing the core lost which pages were resident. */
static bool is_lost(const struct image *image)
{
	struct image_origin origin = image->origin;

	return origin.unpacked && !origin.by_debugger;
}

#define RESIDENCY_TABLE(sentence)                                                            \
	TABLE("residency", sentence, { "told by", VALUE_TEXT }, { "resident", VALUE_BYTES }, \
	      { "zeros", VALUE_BYTES }, { "most", VALUE_BYTES }, { "of files", VALUE_BYTES })

/* Say how residency is known. */
static void write_residency(const struct bill *bill, const struct image *image,
			    struct report *report)
{
	static const struct table tables[] = {
		[RESIDENCY_SMAPS] = RESIDENCY_TABLE(
			"Resident is what the kernel reported for each mapping when the core was made."),
		[RESIDENCY_HOLES] = RESIDENCY_TABLE(
			"Residency is read from the holes of the core; {of files,} bytes of files may not have been resident."),
		[RESIDENCY_ZEROS] = RESIDENCY_TABLE(
			"Residency is estimated from page contents: at most {most,} bytes. Pages of zeros\ncount as absent, pages of files as resident."),
	};
	static const struct table lost = RESIDENCY_TABLE(
		"A packed core, or one from a pipe, has no holes. Residency is estimated from page\ncontents: at most {most,} bytes. Pages of zeros count as absent, pages of files as resident.");
	static const char *const names[] = {
		[RESIDENCY_SMAPS] = "smaps",
		[RESIDENCY_HOLES] = "holes",
		[RESIDENCY_ZEROS] = "contents",
	};
	enum residency_source source = bill->residency->source;
	uint64_t resident = ledger_total(bill->ledger).resident;
	uint64_t zeros = bill->residency->doubt;

	report_begin_table(report,
			   source == RESIDENCY_ZEROS && is_lost(image) ? &lost : &tables[source]);
	report_row(report, names[source], resident, zeros,
		   source == RESIDENCY_ZEROS ? resident + zeros : resident,
		   bill->residency->assumed);
	report_end_table(report);
}

/* A row of one of the tables below. */
struct part {
	const char *name;
	struct value label;
	struct amount all;
	uint64_t details[3]; /* mapped bytes of all, by what they are used for */
	size_t number;
};

DEFINE_COMPARE(compare_parts, struct part, DESCENDING(all.resident), DESCENDING(all.mapped),
	       ASCENDING(number))

static void write_part(struct report *report, const struct part *part)
{
	report_row(report, part->name, part->label, part->all.mapped, part->all.resident,
		   part->details[0], part->details[1], part->details[2]);
}

/* The largest parts, and what the others have together; nothing of a single one. */
static void write_parts(struct report *report, const struct table *table, struct part *parts,
			size_t count, size_t most)
{
	struct part others = { 0 };
	char name[32];

	if (count < 2)
		return;
	SORT(parts, count, compare_parts);
	report_begin_table(report, table);
	for (size_t i = 0; i < count; i++) {
		if (i < most) {
			write_part(report, &parts[i]);
			continue;
		}
		amount_add(&others.all, parts[i].all);
		for (size_t j = 0; j < COUNT_OF(others.details); j++)
			others.details[j] += parts[i].details[j];
	}
	if (count > most) {
		snprintf(name, sizeof(name), "%zu more", count - most);
		others.name = name;
		write_part(report, &others);
	}
	report_end_table(report);
}

static struct part sum_arena(struct arena arena, const struct arena_accounts *accounts)
{
	enum { USED, FREE, OVERHEAD };
	struct part part = { .name = arena.kind->name, .label = value_nonzero(arena.address) };

	for (size_t i = 0; i < ACCOUNT_RESERVED; i++) {
		bool overhead = i == ACCOUNT_HEADERS || i == ACCOUNT_BOOKKEEPING;

		amount_add(&part.all, accounts->amounts[i]);
		part.details[overhead		   ? OVERHEAD
			     : i < ACCOUNT_GARBAGE ? USED
						   : FREE] += accounts->amounts[i].mapped;
	}
	return part;
}

static struct error *write_arenas(const struct bill *bill, const struct heaps *heaps, size_t most,
				  struct report *report)
{
	static const struct table table = TABLE(
		"arena", NULL, { "arena", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		{ "bytes", VALUE_BYTES }, { "resident", VALUE_BYTES }, { "used", VALUE_BYTES },
		{ "free", VALUE_BYTES }, { "overhead", VALUE_BYTES });
	size_t total = heaps_arena_count(heaps), count = 0;
	_cleanup_(free) struct part *parts = calloc(total + 1, sizeof(*parts));

	TRY_MEMORY(parts);
	for (size_t i = 0; i < total; i++) {
		struct part part =
			sum_arena(heaps_arena(heaps, (arena_number)i), &bill->heaps.arenas[i]);

		part.number = i;
		if (part.all.mapped)
			parts[count++] = part;
	}
	write_parts(report, &table, parts, count, most);
	return NULL;
}

static struct part sum_stack(const struct program *program, const struct stack_account *account)
{
	const struct stack *stack = account->stack;
	struct part part = {
		.name = stack_kind_name(stack->kind),
		.label = VALUE_IF(stack->thread != NO_THREAD, program->threads[stack->thread].id),
		.all = account->used,
		.details = { account->used.mapped, account->touched.mapped,
			     account->untouched.mapped + account->zeros.mapped },
	};

	amount_add(&part.all, account->touched);
	amount_add(&part.all, account->zeros);
	amount_add(&part.all, account->untouched);
	amount_add(&part.all, account->guard);
	return part;
}

static struct error *write_stacks(const struct bill *bill, const struct program *program,
				  size_t most, struct report *report)
{
	static const struct table table = TABLE(
		"stack", NULL, { "stack", VALUE_TEXT }, { "thread", VALUE_NUMBER },
		{ "mapped", VALUE_BYTES }, { "resident", VALUE_BYTES }, { "in use", VALUE_BYTES },
		{ "once used", VALUE_BYTES, .heading = "was used" },
		{ "untouched", VALUE_BYTES, .heading = "never used" });
	_cleanup_(free) struct part *parts = calloc(bill->stack_count + 1, sizeof(*parts));

	TRY_MEMORY(parts);
	for (size_t i = 0; i < bill->stack_count; i++) {
		parts[i] = sum_stack(program, &bill->stacks[i]);
		parts[i].number = i;
	}
	write_parts(report, &table, parts, bill->stack_count, most);
	return NULL;
}

/* Free memory that cannot go back, for what is in use beside it. */
static struct error *write_pinned(struct analysis *analysis, struct report *report)
{
	static const struct table table = TABLE(
		"pinned",
		"{pinned,} free bytes of the heaps are pinned: they share pages with {allocations,} allocations in use;\n"
		"see 'fragmentation'.",
		{ "pinned", VALUE_BYTES }, { "allocations", VALUE_COUNT });
	uint64_t bytes, pinners;

	TRY(pinned_total(analysis, &bytes, &pinners));
	if (bytes == 0)
		return NULL;
	report_single(report, &table, bytes, pinners);
	return NULL;
}

static struct error *bill_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct bill_arguments *arguments = input;
	_cleanup_(bill_destroy) struct bill *bill = NULL;
	size_t most = arguments->all ? SIZE_MAX : MOST_ROWS;

	TRY(bill_create(analysis, arguments->all ? BILL_ARENAS : BILL_GUESSES, &bill));
	write_uses(bill, report);
	write_heaps(bill, analysis_heaps(analysis), report);
	write_residency(bill, analysis_image(analysis), report);
	TRY(write_pinned(analysis, report));
	TRY(write_arenas(bill, analysis_heaps(analysis), most, report));
	return write_stacks(bill, analysis_program(analysis), most, report);
}

static const struct argp_option options[] = {
	{ "all", KEEP(FLAG, struct bill_arguments, all), NULL, 0, "Show each arena and each stack",
	  0 },
	{ 0 },
};

const struct command command_bill = {
	.name = "bill",
	.summary = "Account for every byte of the process's memory",
	.example = "bill\n"
		   "bill --all   # each arena and each stack",
	.description =
		"Each mapped byte is counted in one row; the last row is all that the process has mapped. Resident is the part that was in memory, and so in the process's RSS; the bar shows each row's share of it. Free memory of a heap, and memory reserved for its growth, is unused, but no other process can have it.\n\n"
		"The owner of other anonymous memory is a guess, by its contents or by the variables that refer to it.",
	.options = options,
	.arguments_size = sizeof(struct bill_arguments),
	.needs = STAGE_HEAP,
	.run = bill_run,
};
