#include "analyzer/account/bill_parts.h"

/* The rows of stacks. */
enum stack_row {
	ROW_USED,
	ROW_TOUCHED,
	ROW_UNTOUCHED,
	ROW_GUARD,
	ROW_FIBERS,
	ROW_FIBERS_TOUCHED,
	ROW_FIBERS_UNTOUCHED,
	ROW_FINISHED,
	STACK_ROWS,
};

static const char *const row_names[] = {
	[ROW_USED] = "in use, with TLS",
	[ROW_TOUCHED] = "below, once used",
	[ROW_UNTOUCHED] = "below, never touched",
	[ROW_GUARD] = "guard pages",
	[ROW_FIBERS] = "fibers: in use",
	[ROW_FIBERS_TOUCHED] = "fibers: once used",
	[ROW_FIBERS_UNTOUCHED] = "fibers: never touched",
	[ROW_FINISHED] = "of ended threads",
};

/* The claims of a layer are numbered so: the stack, and the part of it. */
enum { PARTS = 4, PART_GUARD = 0, PART_BELOW = 1, PART_USED = 2 };

struct stacks {
	struct bill *bill;
	row_number rows[STACK_ROWS];
};

static struct extent_sum sum_of(const struct stacks *stacks, uint64_t start, uint64_t end)
{
	size_t hint = 0;

	return residency_sum(stacks->bill->residency, start, end, &hint);
}

/* Count a part in a stack's account and in a row. */
static void count(struct stacks *stacks, struct amount *amount, enum stack_row row,
		  struct extent_sum sum)
{
	struct amount more = { 1, sum.mapped, sum.resident };

	if (sum.mapped == 0)
		return;
	amount_add(amount, more);
	ledger_add_amount(stacks->bill->ledger, stacks->rows[row], more);
}

/* What is below the stack pointer, by whether it was ever touched. */
static void count_below(struct stacks *stacks, struct stack_account *account, struct extent_sum sum,
			enum stack_row touched, enum stack_row untouched)
{
	count(stacks, &account->touched, touched,
	      (struct extent_sum){ sum.resident, sum.resident });
	count(stacks, &account->untouched, untouched,
	      (struct extent_sum){ sum.mapped - sum.resident, 0 });
}

static struct error *count_stack(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct stacks *stacks = data;
	struct stack_account *account = &stacks->bill->stacks[number / PARTS];
	/* glibc keeps those that vanished for later threads as well. */
	bool finished =
		account->stack->kind == STACK_FINISHED || account->stack->kind == STACK_VANISHED;
	struct extent_sum sum = sum_of(stacks, start, end);

	if (number % PARTS == PART_GUARD)
		count(stacks, &account->guard, ROW_GUARD, sum);
	else if (finished)
		count(stacks, &account->touched, ROW_FINISHED, sum);
	else if (number % PARTS == PART_USED)
		count(stacks, &account->used, ROW_USED, sum);
	else
		count_below(stacks, account, sum, ROW_TOUCHED, ROW_UNTOUCHED);
	return NULL;
}

/* Where the memory begins that the stack's thread may use. */
static uint64_t end_of_guard(const struct image *image, const struct stack *stack)
{
	uint64_t address = stack->start;
	const struct region *region;

	while (address < stack->end && (region = image_find(image, address)) && region->rights == 0)
		address = region->end;
	return address < stack->end ? address : stack->start;
}

static struct error *claim_stack(struct stacks *stacks, const struct image *image, size_t number)
{
	const struct stack *stack = stacks->bill->stacks[number].stack;
	uint64_t guard = end_of_guard(image, stack);
	uint64_t live = stack->live > guard ? stack->live : guard;
	row_number row = (row_number)(number * PARTS);
	struct ledger *ledger = stacks->bill->ledger;
	struct error *error = ledger_claim(ledger, stack->start, guard, row + PART_GUARD);

	if (!error)
		error = ledger_claim(ledger, guard, live, row + PART_BELOW);
	if (!error)
		error = ledger_claim(ledger, live, stack->end, row + PART_USED);
	return error;
}

static struct error *count_stacks(struct stacks *stacks, const struct analysis *analysis)
{
	const struct program *program = analysis_program(analysis);
	size_t total = program_stack_count(program);
	struct bill *bill = stacks->bill;
	struct error *error = NULL;

	bill->stacks = calloc(total + 1, sizeof(*bill->stacks));
	if (!bill->stacks)
		return &error_no_memory;
	bill->stack_count = total;
	for (size_t i = 0; i < total && !error; i++) {
		bill->stacks[i].stack = program_stack(program, i);
		error = claim_stack(stacks, analysis_image(analysis), i);
	}
	return error ? error : ledger_settle(bill->ledger, count_stack, stacks);
}

static struct error *count_fiber(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct stacks *stacks = data;
	struct stack_account account = { 0 };
	struct extent_sum sum = sum_of(stacks, start, end);

	if (number == PART_USED)
		count(stacks, &account.used, ROW_FIBERS, sum);
	else
		count_below(stacks, &account, sum, ROW_FIBERS_TOUCHED, ROW_FIBERS_UNTOUCHED);
	return NULL;
}

static struct error *count_fibers(struct stacks *stacks, struct analysis *analysis)
{
	struct ledger *ledger = stacks->bill->ledger;
	const struct fibers *fibers;
	struct error *error = analysis_need(analysis, STAGE_FIBERS);

	if (error)
		return error;
	fibers = analysis_fibers(analysis);
	for (size_t i = 0; i < fiber_count(fibers) && !error; i++) {
		const struct fiber *fiber = fiber_at(fibers, i);

		error = ledger_claim(ledger, fiber->start, fiber->live, PART_BELOW);
		if (!error)
			error = ledger_claim(ledger, fiber->live, fiber->end, PART_USED);
	}
	return error ? error : ledger_settle(ledger, count_fiber, stacks);
}

struct error *bill_add_stacks(struct bill *bill, struct analysis *analysis)
{
	struct stacks stacks = { .bill = bill };
	struct error *error = NULL;

	for (size_t i = 0; i < STACK_ROWS && !error; i++)
		error = ledger_add_row(bill->ledger, "stacks", row_names[i], &stacks.rows[i]);
	if (!error)
		error = count_stacks(&stacks, analysis);
	return error ? error : count_fibers(&stacks, analysis);
}
