#include "analyzer/account/bill_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/program/tls.h"

#include <elf.h>

/* Rows of the bill, behind those of heaps. */
enum row {
	ROW_STACKS_USED,
	ROW_STACKS_TOUCHED,
	ROW_STACKS_UNTOUCHED,
	ROW_STACKS_LOCKED,
	ROW_STACKS_HUGE,
	ROW_STACKS_ZEROS,
	ROW_GUARD,
	ROW_FIBERS_USED,
	ROW_FIBERS_TOUCHED,
	ROW_FIBERS_UNTOUCHED,
	ROW_FINISHED,
	ROW_UNJOINED,
	ROW_CODE,
	ROW_CONSTANTS,
	ROW_DATA,
	ROW_FILES,
	ROW_SHARED,
	ROW_KERNEL,
	ROW_LOADER,
	ROW_GIVEN_BACK,
	ROWS,
};

static const char OTHER_MEMORY[] = "other memory";

static const struct {
	const char *group, *name;
} row_names[] = {
	[ROW_STACKS_USED] = { "stacks", "in use, with TLS" },
	[ROW_STACKS_TOUCHED] = { "stacks", "unused now, was used" },
	[ROW_STACKS_UNTOUCHED] = { "stacks", "never used" },
	[ROW_STACKS_LOCKED] = { "stacks", "unused zeros, locked" },
	[ROW_STACKS_HUGE] = { "stacks", "unused zeros, in huge pages" },
	[ROW_STACKS_ZEROS] = { "stacks", "unused zeros" },
	[ROW_GUARD] = { "stacks", "guard pages" },
	[ROW_FIBERS_USED] = { "stacks", "fibers: in use" },
	[ROW_FIBERS_TOUCHED] = { "stacks", "fibers: was used" },
	[ROW_FIBERS_UNTOUCHED] = { "stacks", "fibers: never used" },
	[ROW_FINISHED] = { "stacks", "of ended threads" },
	[ROW_UNJOINED] = { "stacks", "of threads never joined" },
	[ROW_CODE] = { "modules", "code" },
	[ROW_CONSTANTS] = { "modules", "read-only data" },
	[ROW_DATA] = { "modules", "data" },
	[ROW_FILES] = { "files", "mapped" },
	[ROW_SHARED] = { "files", "shared memory" },
	[ROW_KERNEL] = { "kernel", "vdso, vvar" },
	[ROW_LOADER] = { OTHER_MEMORY, "TLS and loader" },
	[ROW_GIVEN_BACK] = { OTHER_MEMORY, "given back by MADV_FREE" },
};

/* State shared by the steps that make the bill. */
struct maker {
	struct bill *bill;
	struct analysis *analysis;
	const struct image *image;
	const struct program *program;
	struct ledger *ledger;
	row_number rows[ROWS];
	struct stack_account fibers; /* all of them */
	uint64_t vdso;		     /* or 0 */
	struct unknowns unknowns;
	/* The runtime's pages that are being claimed. */
	const struct object_pages *pages;
	const struct named_range *memory; /* likewise */
	size_t memory_count;
	size_t pages_first; /* of its rows */
	row_number counted; /* the part of a stack that was counted last, from 1 on */
	bool is_more;	    /* it goes on */
};

static struct error *add_rows(struct maker *maker)
{
	for (size_t i = 0; i < ROWS; i++)
		TRY(ledger_add_row(maker->ledger, row_names[i].group, row_names[i].name,
				   &maker->rows[i]));
	return NULL;
}

/* Count a part, or more of it, in a stack's account and in a row. */
static void count(struct maker *maker, struct amount *amount, enum row row, struct extent_sum sum)
{
	struct amount more = { !maker->is_more, sum.mapped, sum.resident };

	if (sum.mapped == 0)
		return;
	amount_add(amount, more);
	ledger_add_amount(maker->ledger, maker->rows[row], more);
}

/* The claims of a layer have the number of the stack, and the part of it, as their row. */
enum { PARTS = 4, PART_GUARD = 0, PART_BELOW = 1, PART_USED = 2, PART_ZEROS = 3 };

/* True if a fully resident huge page overlaps [start, end). */
static bool has_huge_page(const struct maker *maker, uint64_t start, uint64_t end)
{
	enum { HUGE_PAGE = 1 << 21 };

	for (uint64_t at = start & ~(uint64_t)(HUGE_PAGE - 1); at < end; at += HUGE_PAGE) {
		size_t hint = 0;

		if (residency_sum(maker->bill->residency, at, at + HUGE_PAGE, &hint).resident ==
		    HUGE_PAGE)
			return true;
	}
	return false;
}

/* Guess why pages that no call has used are resident. */
static enum row row_of_zeros(const struct maker *maker, uint64_t start, uint64_t end)
{
	const struct residency *residency = maker->bill->residency;
	const struct smaps_area *area = smaps_find(&residency->smaps, start);

	if (area && area->locked)
		return ROW_STACKS_LOCKED;
	if (area ? area->huge > 0 : has_huge_page(maker, start, end))
		return ROW_STACKS_HUGE;
	return ROW_STACKS_ZEROS;
}

/* The row of what is used is followed by those of what is below, touched or never. */
static void count_part(struct maker *maker, struct stack_account *account, enum row used,
		       row_number part, uint64_t start, uint64_t end)
{
	size_t hint = 0;
	struct extent_sum sum = residency_sum(maker->bill->residency, start, end, &hint);

	if (part == PART_USED) {
		count(maker, &account->used, used, sum);
		return;
	}
	if (part == PART_ZEROS)
		count(maker, &account->zeros, row_of_zeros(maker, start, end),
		      (struct extent_sum){ sum.resident, sum.resident });
	else
		count(maker, &account->touched, used + 1,
		      (struct extent_sum){ sum.resident, sum.resident });
	count(maker, &account->untouched, used + 2,
	      (struct extent_sum){ sum.mapped - sum.resident, 0 });
}

static struct error *count_stack(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct maker *maker = data;
	struct stack_account *account = &maker->bill->stacks[number / PARTS];
	size_t hint = 0;
	struct extent_sum sum = residency_sum(maker->bill->residency, start, end, &hint);

	maker->is_more = maker->counted == number + 1;
	maker->counted = number + 1;
	if (number % PARTS == PART_GUARD)
		count(maker, &account->guard, ROW_GUARD, sum);
	else if (stack_has_ended(account->stack))
		count(maker, &account->touched,
		      account->stack->kind == STACK_UNJOINED ? ROW_UNJOINED : ROW_FINISHED, sum);
	else
		count_part(maker, account, ROW_STACKS_USED, number % PARTS, start, end);
	return NULL;
}

/*
 * The first page in [start, end), which is below a stack pointer, that is not all zeros: the
 * deepest call has left something there. Pages below are resident for other reasons.
 */
static uint64_t end_of_zeros(const struct image *image, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t data = image_next_data(image, start), there;
		const uint8_t *bytes;

		start = data > start ? page_below(data) : start;
		bytes = start < end ? image_bytes(image, start, &there) : NULL;
		if (!bytes)
			return end;
		there = MIN(there, PAGE);
		if (!bytes_are_zero(bytes, there))
			return start;
		start += there;
	}
	return end;
}

/* Claim what is below a stack pointer, for the stack or fiber with that number. */
static struct error *claim_below(struct maker *maker, uint64_t start, uint64_t end, row_number row)
{
	uint64_t used = end_of_zeros(maker->image, start, end);

	TRY(ledger_claim(maker->ledger, start, used, row + PART_ZEROS));
	return ledger_claim(maker->ledger, used, end, row + PART_BELOW);
}

/* The end of the stack's guard, where the thread's usable memory begins. */
static uint64_t end_of_guard(const struct image *image, const struct stack *stack)
{
	uint64_t address = stack->start;
	const struct region *region;

	while (address < stack->end && (region = image_find(image, address)) && region->rights == 0)
		address = region->end;
	return address < stack->end ? address : stack->start;
}

static struct error *claim_stack(struct maker *maker, size_t number, const struct stack *stack)
{
	uint64_t guard = end_of_guard(maker->image, stack);
	uint64_t live = stack->live > guard ? stack->live : guard;
	row_number row = (row_number)(number * PARTS);

	TRY(ledger_claim(maker->ledger, stack->start, guard, row + PART_GUARD));
	if (stack_has_ended(stack))
		return ledger_claim(maker->ledger, guard, stack->end, row + PART_USED);
	TRY(claim_below(maker, guard, live, row));
	return ledger_claim(maker->ledger, live, stack->end, row + PART_USED);
}

static struct error *add_stacks(struct maker *maker)
{
	struct bill *bill = maker->bill;

	bill->stack_count = maker->program->stack_count;
	bill->stacks = calloc(bill->stack_count + 1, sizeof(*bill->stacks));
	TRY_MEMORY(bill->stacks);
	for (size_t i = 0; i < bill->stack_count; i++) {
		bill->stacks[i].stack = &maker->program->stacks[i];
		TRY(claim_stack(maker, i, bill->stacks[i].stack));
	}
	return ledger_settle(bill->ledger, count_stack, maker);
}

static struct error *count_fiber(void *data, row_number part, uint64_t start, uint64_t end)
{
	struct maker *maker = data;

	maker->is_more = false;
	count_part(maker, &maker->fibers, ROW_FIBERS_USED, part, start, end);
	return NULL;
}

static struct error *add_fibers(struct maker *maker)
{
	const struct fibers *fibers;

	TRY(analysis_need(maker->analysis, STAGE_FIBERS));
	fibers = analysis_fibers(maker->analysis);
	array_for_each(fiber, fibers) {
		TRY(claim_below(maker, fiber->start, fiber->live, 0));
		TRY(ledger_claim(maker->ledger, fiber->live, fiber->end, PART_USED));
	}
	return ledger_settle(maker->ledger, count_fiber, maker);
}

/*
 * Claim the variables of threads that are on no stack: the loader has made room for those of the
 * main thread, in whole pages, and all on them is the loader's.
 */
static struct error *add_thread_variables(struct maker *maker)
{
	const struct program *program = maker->program;

	list_for_each(thread, program->threads, program->thread_count) {
		struct memory_range range;

		if (!thread_has_control_block(program, thread))
			continue;
		range = thread_static_memory(program, thread);
		if (!program_find_module(program, range.end))
			TRY(ledger_claim(maker->ledger, page_below(range.start),
					 page_above(range.end), maker->rows[ROW_LOADER]));
	}
	return ledger_settle(maker->ledger, NULL, NULL);
}

/* The row of that name from first on, added if there is none. */
static struct error *find_row(struct ledger *ledger, size_t first, const char *name,
			      row_number *ret)
{
	for (size_t i = first; i < ledger_row_count(ledger); i++) {
		*ret = (row_number)i;
		if (strcmp(ledger_row(ledger, *ret)->name, name) == 0)
			return NULL;
	}
	return ledger_add_row(ledger, OTHER_MEMORY, name, ret);
}

static struct error *claim_page(const struct maker *maker, uint64_t page, uint64_t size)
{
	const struct object_pages *pages = maker->pages;
	row_number row;

	TRY(find_row(maker->ledger, maker->pages_first,
		     pages->use ? pages->use(maker->image, page) : pages->name, &row));
	return ledger_claim(maker->ledger, page, page + size, row);
}

static struct error *claim_pages(void *data, row_number row, uint64_t start, uint64_t end)
{
	const struct maker *maker = data;
	const struct region *region = image_find(maker->image, start);
	uint64_t least = maker->pages->alignment[0];
	uint64_t at = (start + least - 1) & ~(least - 1);

	if (!region->bytes || region->mapping)
		return NULL;
	while (at < end) {
		uint64_t data_at = image_next_data(maker->image, at);
		uint64_t size;

		if (data_at - at >= least) {
			at = data_at & ~(least - 1);
			continue;
		}
		size = maker->pages->measure(maker->image, at);
		if (size > end - at)
			size = 0;
		if (size)
			TRY(claim_page(maker, at, size));
		at += size > least ? size : least;
	}
	return NULL;
}

/* Pages of objects that runtimes are sure of. */
static struct error *add_objects(struct maker *maker)
{
	const struct runtimes *runtimes = analysis_runtimes(maker->analysis);

	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		maker->pages = runtime_at(runtimes, i)->pages;
		if (!maker->pages || !maker->pages->is_certain)
			continue;
		maker->pages_first = ledger_row_count(maker->ledger);
		TRY(ledger_rest(maker->ledger, claim_pages, maker));
		TRY(ledger_settle(maker->ledger, NULL, NULL));
	}
	return NULL;
}

/* Claim the runtime's own memory in a range that no other part has claimed. */
static struct error *claim_memory(void *data, row_number rest, uint64_t start, uint64_t end)
{
	const struct maker *maker = data;

	size_t first = LIST_ABOVE(maker->memory, maker->memory_count, range.end, start);

	for (size_t i = first; i < maker->memory_count && maker->memory[i].range.start < end; i++) {
		const struct memory_range *range = &maker->memory[i].range;
		uint64_t from = range->start > start ? range->start : start;
		uint64_t to = range->end < end ? range->end : end;
		row_number row;

		if (from >= to)
			continue;
		TRY(find_row(maker->ledger, maker->pages_first, maker->memory[i].name, &row));
		TRY(ledger_claim(maker->ledger, from, to, row));
	}
	return NULL;
}

static struct error *add_memory(struct maker *maker)
{
	const struct runtimes *runtimes = analysis_runtimes(maker->analysis);

	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		maker->memory = runtimes_memory(runtimes, i, &maker->memory_count);
		if (!maker->memory_count)
			continue;
		maker->pages_first = ledger_row_count(maker->ledger);
		TRY(ledger_rest(maker->ledger, claim_memory, maker));
		TRY(ledger_settle(maker->ledger, NULL, NULL));
	}
	return NULL;
}

/* True if the kernel gives shared memory that name, which is no file on a disk. */
static bool is_shared_path(const char *path)
{
	static const char *const prefixes[] = {
		"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "/[aio]", "/anon_hugepage",
	};

	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static bool is_shared(const struct maker *maker, uint64_t address)
{
	const struct residency *residency = maker->bill->residency;
	const struct span *span = residency_above(residency, address);

	return span && span->shared;
}

/* [vdso] and what the kernel maps with it, and [vsyscall]. */
static bool is_of_kernel(const struct maker *maker, const struct region *region)
{
	enum { VVAR_REACH = 1 << 16 };
	const struct module *module = program_find_module(maker->program, region->start);

	if (region->start >> 63)
		return true;
	if (!maker->vdso || region->mapping)
		return false;
	if (module && module->start == maker->vdso)
		return true;
	return region->end <= maker->vdso && maker->vdso - region->end < VVAR_REACH &&
	       !(region->rights & (RIGHT_WRITE | RIGHT_EXECUTE)) && region->origin == REGION_ABSENT;
}

/* The row for memory from start on, in that region, that is not anonymous; ROWS if it is. */
static enum row row_of(const struct maker *maker, const struct region *region, uint64_t start)
{
	bool module = program_find_module(maker->program, start);

	if (is_of_kernel(maker, region))
		return ROW_KERNEL;
	if (!module && !region->mapping)
		return is_shared(maker, region->start) ? ROW_SHARED : ROWS;
	if (!module && (is_shared_path(region->mapping->path) ||
			(is_shared(maker, region->start) && (region->rights & RIGHT_WRITE))))
		return ROW_SHARED;
	if (!module)
		return ROW_FILES;
	if (region->rights & RIGHT_WRITE)
		return ROW_DATA;
	return region->rights & RIGHT_EXECUTE ? ROW_CODE : ROW_CONSTANTS;
}

/* True if the region continues the mapping of the unknown range at start. */
static bool continues(const struct unknown *unknown, const struct region *region, uint64_t start)
{
	return unknown->end == start && unknown->region->bytes && region->bytes &&
	       unknown->region->segment == region->segment;
}

static struct error *add_unknown(struct unknowns *unknowns, const struct region *region,
				 uint64_t start, uint64_t end)
{
	struct unknown *last = unknowns->items;

	if (unknowns->count > 0) {
		last += unknowns->count - 1;
		if (continues(last, region, start)) {
			last->end = end;
			return NULL;
		}
	}
	return array_append(unknowns, (struct unknown){ start, end, region });
}

static struct error *take_rest(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct maker *maker = data;
	const struct region *region = image_find(maker->image, start);
	const struct module *module = program_find_module(maker->program, start);
	enum row row = row_of(maker, region, start);

	if (row == ROWS)
		return add_unknown(&maker->unknowns, region, start, end);
	/* The last of a module's mappings may go on with others' memory. */
	if (row == ROW_DATA && !region->mapping && module && module->end < end) {
		ledger_count(maker->ledger, maker->rows[row], start, module->end);
		return add_unknown(&maker->unknowns, region, module->end, end);
	}
	ledger_count(maker->ledger, maker->rows[row], start, end);
	return NULL;
}

/*
 * How many resident bytes of [start, end) the program gave back by MADV_FREE. The kernel states a
 * sum for each mapping only; it counts in the mapping's first unknown pieces.
 */
static uint64_t find_lazily_free(struct maker *maker, uint64_t start, uint64_t end,
				 uint64_t resident)
{
	const struct smaps *smaps = &maker->bill->residency->smaps;
	uint64_t found = 0;

	for (size_t i = LIST_ABOVE(smaps->areas, smaps->count, end, start);
	     i < smaps->count && smaps->areas[i].start < end; i++) {
		uint64_t *left = &smaps->areas[i].lazily_free;
		uint64_t taken = *left < resident - found ? *left : resident - found;

		*left -= taken;
		found += taken;
	}
	return found;
}

/* Count an unknown, what is lazily free in a row of its own. */
static void count_unknown(struct maker *maker, row_number row, const struct unknown *unknown)
{
	size_t hint = 0;
	struct extent_sum sum =
		residency_sum(maker->bill->residency, unknown->start, unknown->end, &hint);
	uint64_t free = find_lazily_free(maker, unknown->start, unknown->end, sum.resident);

	if (free > 0)
		ledger_add_amount(maker->ledger, maker->rows[ROW_GIVEN_BACK],
				  (struct amount){ 1, free, free });
	if (sum.mapped > free)
		ledger_add_amount(maker->ledger, row,
				  (struct amount){ 1, sum.mapped - free, sum.resident - free });
}

/* True if nothing in the core can refer to what has no guess: all that could was looked through. */
static bool is_unreferenced(const struct maker *maker, enum bill_detail detail)
{
	if (detail < BILL_GUESSES || findings_incomplete(analysis_findings(maker->analysis)))
		return false;
	array_for_each(unknown, &maker->unknowns)
		if (!*unknown->guess)
			return true;
	return false;
}

/* Guesses that are alike share a row; what has none is unexplained. */
static struct error *add_unknowns(struct maker *maker, enum bill_detail detail)
{
	size_t first = ledger_row_count(maker->ledger);
	const struct unknown *unknowns = maker->unknowns.items;
	row_number row;

	for (size_t i = 0; i < maker->unknowns.count; i++) {
		if (!*unknowns[i].guess)
			continue;
		TRY(find_row(maker->ledger, first, unknowns[i].guess, &row));
		count_unknown(maker, row, &unknowns[i]);
	}
	TRY(ledger_add_row(maker->ledger, BILL_UNEXPLAINED,
			   is_unreferenced(maker, detail) ? "no pointer leads there" : "", &row));
	for (size_t i = 0; i < maker->unknowns.count; i++)
		if (!*unknowns[i].guess)
			count_unknown(maker, row, &unknowns[i]);
	return NULL;
}

static struct maker maker_of(struct bill *bill, struct analysis *analysis)
{
	return (struct maker){
		.bill = bill,
		.analysis = analysis,
		.image = analysis_image(analysis),
		.program = analysis_program(analysis),
		.ledger = bill->ledger,
		.vdso = image_auxiliary(analysis_image(analysis), AT_SYSINFO_EHDR, 0),
		.unknowns.memory.account = analysis_account(analysis),
	};
}

/* Count all but heaps that is certain, and find the unknown. */
static struct error *add_certain(struct maker *maker)
{
	struct error *(*const steps[])(struct maker * maker) = {
		add_rows, add_stacks, add_fibers, add_thread_variables, add_objects, add_memory,
	};

	for (size_t i = 0; i < COUNT_OF(steps); i++)
		TRY(steps[i](maker));
	return ledger_rest(maker->ledger, take_rest, maker);
}

/* All but heaps. */
static struct error *add_others(struct bill *bill, struct analysis *analysis,
				enum bill_detail detail)
{
	struct maker maker = maker_of(bill, analysis);
	struct error *error = add_certain(&maker);

	if (!error && detail >= BILL_GUESSES)
		error = bill_guess(&maker.unknowns, analysis);
	if (!error)
		error = add_unknowns(&maker, detail);
	array_release(&maker.unknowns);
	return error;
}

struct error *bill_find_unknowns(struct analysis *analysis, struct unknowns *ret)
{
	_cleanup_(bill_destroy) struct bill *bill = calloc(1, sizeof(*bill));
	struct error *error;
	struct maker maker;

	if (bill)
		bill->residency = calloc(1, sizeof(*bill->residency)); /* nothing is counted */
	TRY_MEMORY(bill && bill->residency);
	TRY(ledger_create(analysis_image(analysis), bill->residency, analysis_account(analysis),
			  &bill->ledger));
	TRY(bill_claim_heaps(bill->ledger, analysis_heaps(analysis)));
	maker = maker_of(bill, analysis);
	error = add_certain(&maker);
	array_swap(ret, &maker.unknowns);
	array_release(&maker.unknowns);
	return error;
}

struct error *bill_create(struct analysis *analysis, enum bill_detail detail, struct bill **ret)
{
	_cleanup_(bill_destroy) struct bill *bill = calloc(1, sizeof(*bill));
	struct memory_account *account = analysis_account(analysis);

	TRY_MEMORY(bill);
	TRY(residency_create(analysis_image(analysis), account, analysis_progress(analysis),
			     &bill->residency));
	TRY(ledger_create(analysis_image(analysis), bill->residency, account, &bill->ledger));
	TRY(bill_add_heaps(bill, analysis, detail == BILL_ARENAS));
	TRY(add_others(bill, analysis, detail));
	*ret = take(bill);
	return NULL;
}

void bill_destroy(struct bill *bill)
{
	if (bill->ledger)
		ledger_destroy(bill->ledger);
	if (bill->residency)
		residency_destroy(bill->residency);
	free(bill->heaps.arenas);
	free(bill->heaps.outside);
	free(bill->stacks);
	free(bill->arenas);
	free(bill);
}
