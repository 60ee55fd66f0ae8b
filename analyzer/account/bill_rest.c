#include "analyzer/account/bill_parts.h"

#include "analyzer/base/list.h"

#include <elf.h>
#include <string.h>

enum { VVAR_REACH = 1 << 16 };

enum rest_row {
	ROW_CODE,
	ROW_CONSTANTS,
	ROW_DATA,
	ROW_FILES,
	ROW_SHARED,
	ROW_KERNEL,
	REST_ROWS,
};

static const struct {
	const char *group, *name;
} row_names[] = {
	[ROW_CODE] = { "modules", "code" },
	[ROW_CONSTANTS] = { "modules", "read-only data" },
	[ROW_DATA] = { "modules", "data" },
	[ROW_FILES] = { "files", "mapped" },
	[ROW_SHARED] = { "files", "shared memory" },
	[ROW_KERNEL] = { "kernel", "vdso, vvar" },
};

struct rest {
	struct bill *bill;
	const struct program *program;
	uint64_t vdso; /* or 0 */
	row_number rows[REST_ROWS];
	struct unknowns unknowns;
};

static bool begins(const char *path, const char *prefix)
{
	return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* What the kernel names so is no file on a disk. */
static bool is_shared_path(const char *path)
{
	return begins(path, "/dev/shm/") || begins(path, "/memfd:") || begins(path, "/SYSV") ||
	       begins(path, "/dev/zero") || begins(path, "/[aio]") ||
	       begins(path, "/anon_hugepage");
}

static bool is_shared(const struct rest *rest, uint64_t address)
{
	const struct residency *residency = rest->bill->residency;
	size_t number = residency_above(residency, address);

	return number < residency_count(residency) && residency_spans(residency)[number].shared;
}

/* [vdso] and what the kernel maps with it, and [vsyscall]. */
static bool is_of_kernel(const struct rest *rest, const struct region *region)
{
	const struct module *module = program_find_module(rest->program, region->start);

	if (region->start >> 63)
		return true;
	if (!rest->vdso || region->mapping)
		return false;
	if (module && module->start == rest->vdso)
		return true;
	return region->end <= rest->vdso && rest->vdso - region->end < VVAR_REACH &&
	       !(region->rights & (RIGHT_WRITE | RIGHT_EXECUTE)) && region->origin == REGION_ABSENT;
}

/* The row for memory that is not anonymous; REST_ROWS if it is. */
static enum rest_row row_of(const struct rest *rest, const struct region *region)
{
	bool module = program_find_module(rest->program, region->start);

	if (is_of_kernel(rest, region))
		return ROW_KERNEL;
	if (!module && !region->mapping)
		return is_shared(rest, region->start) ? ROW_SHARED : REST_ROWS;
	if (!module && (is_shared_path(region->mapping->path) ||
			(is_shared(rest, region->start) && (region->rights & RIGHT_WRITE))))
		return ROW_SHARED;
	if (!module)
		return ROW_FILES;
	if (region->rights & RIGHT_WRITE)
		return ROW_DATA;
	return region->rights & RIGHT_EXECUTE ? ROW_CODE : ROW_CONSTANTS;
}

/* Whether the region, from start on, goes on with the mapping of the unknown.
 */
static bool continues(const struct unknown *unknown, const struct region *region, uint64_t start)
{
	return unknown->end == start && unknown->region->bytes && region->bytes &&
	       unknown->region->segment == region->segment;
}

static struct error *add_unknown(struct unknowns *unknowns, const struct region *region,
				 uint64_t start, uint64_t end)
{
	size_t count = unknowns->count;

	if (count > 0 && continues(&unknowns->list[count - 1], region, start)) {
		unknowns->list[count - 1].end = end;
		return NULL;
	}
	if (!LIST_GROW(unknowns->list, unknowns->count))
		return &error_no_memory;
	unknowns->list[unknowns->count++] =
		(struct unknown){ .start = start, .end = end, .region = region };
	return NULL;
}

static struct error *take_piece(void *data, const struct region *region, uint64_t start,
				uint64_t end)
{
	struct rest *rest = data;
	const struct module *module = program_find_module(rest->program, start);
	enum rest_row row = row_of(rest, region);

	/* The last of a module's mappings may go on with others' memory. */
	if (row == ROW_DATA && !region->mapping && module && module->end < end) {
		ledger_count(rest->bill->ledger, rest->rows[row], start, module->end);
		return add_unknown(&rest->unknowns, region, module->end, end);
	}
	if (row == REST_ROWS)
		return add_unknown(&rest->unknowns, region, start, end);
	ledger_count(rest->bill->ledger, rest->rows[row], start, end);
	return NULL;
}

/* The row of that name from first on, added if there is none. */
static struct error *find_row(struct ledger *ledger, size_t first, const char *group,
			      const char *name, row_number *ret)
{
	for (size_t i = first; i < ledger_row_count(ledger); i++) {
		*ret = (row_number)i;
		if (strcmp(ledger_row(ledger, *ret)->name, name) == 0)
			return NULL;
	}
	return ledger_add_row(ledger, group, name, ret);
}

/* What nobody knows, by guesses: those alike in one row. */
static struct error *add_guessed(struct rest *rest)
{
	struct ledger *ledger = rest->bill->ledger;
	size_t first = ledger_row_count(ledger);

	for (size_t i = 0; i < rest->unknowns.count; i++) {
		const struct unknown *unknown = &rest->unknowns.list[i];
		struct error *error;
		row_number row;

		if (!*unknown->guess)
			continue;
		error = find_row(ledger, first, "other memory", unknown->guess, &row);
		if (error)
			return error;
		ledger_count(ledger, row, unknown->start, unknown->end);
	}
	return NULL;
}

static struct error *add_unexplained(struct rest *rest)
{
	struct ledger *ledger = rest->bill->ledger;
	row_number row;
	struct error *error = ledger_add_row(ledger, BILL_UNEXPLAINED, "", &row);

	for (size_t i = 0; i < rest->unknowns.count && !error; i++) {
		const struct unknown *unknown = &rest->unknowns.list[i];

		if (!*unknown->guess)
			ledger_count(ledger, row, unknown->start, unknown->end);
	}
	return error;
}

/*
 * Claim the variables of threads that are on no stack: the loader has made room for those of the
 * main thread. It made whole pages, and all on them is its.
 */
static struct error *add_thread_variables(struct rest *rest, struct analysis *analysis)
{
	struct ledger *ledger = rest->bill->ledger;
	struct error *error = analysis_need(analysis, STAGE_DEBUG);
	row_number row;

	if (!error)
		error = ledger_add_row(ledger, "other memory", "TLS, and the loader's", &row);
	for (uint32_t i = 0; i < program_thread_count(rest->program) && !error; i++) {
		uint64_t start, end;

		if (!debug_static_tls(analysis_debug(analysis), i, &start, &end) ||
		    program_find_module(rest->program, end))
			continue;
		error = ledger_claim(ledger, page_below(start), page_above(end), row);
	}
	return error ? error : ledger_settle(ledger, NULL, NULL);
}

struct error *bill_add_rest(struct bill *bill, struct analysis *analysis)
{
	struct rest rest = {
		.bill = bill,
		.program = analysis_program(analysis),
		.vdso = image_auxiliary(analysis_image(analysis), AT_SYSINFO_EHDR, 0),
	};
	struct error *error = NULL;

	for (size_t i = 0; i < REST_ROWS && !error; i++)
		error = ledger_add_row(bill->ledger, row_names[i].group, row_names[i].name,
				       &rest.rows[i]);
	if (!error)
		error = add_thread_variables(&rest, analysis);
	if (!error)
		error = bill_add_objects(bill, analysis);
	if (!error)
		error = ledger_rest(bill->ledger, take_piece, &rest);
	if (!error)
		error = bill_guess(&rest.unknowns, analysis);
	if (!error)
		error = add_guessed(&rest);
	if (!error)
		error = add_unexplained(&rest);
	free(rest.unknowns.list);
	return error;
}
