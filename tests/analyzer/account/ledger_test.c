#include "analyzer/account/ledger.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t LOW = 0x10000, HIGH = 0x20000;

/* A process with two pages at LOW, of which one is zeros, and one at HIGH. */
struct mapped {
	struct core core;
	struct findings findings;
	struct image *image;
	struct memory_account account;
	struct progress progress;
	struct residency *residency;
	struct ledger *ledger;
	row_number rows[3];
};

static void mapped_init(struct mapped *mapped)
{
	*mapped = (struct mapped){ 0 };
	core_init(&mapped->core);
	core_add(&mapped->core, LOW, 2 * PAGE, RIGHTS_RW);
	core_set(&mapped->core, LOW + 8, 1);
	core_add(&mapped->core, HIGH, PAGE, RIGHTS_RW);
	core_set(&mapped->core, HIGH + 8, 1);
}

static void mapped_open(struct mapped *mapped)
{
	core_write_file(&mapped->core);
	assert_no_error(image_open(mapped->core.path, &mapped->findings, &mapped->image));
	assert_no_error(residency_create(mapped->image, &mapped->account, &mapped->progress,
					 &mapped->residency));
	assert_no_error(
		ledger_create(mapped->image, mapped->residency, &mapped->account, &mapped->ledger));
	for (size_t i = 0; i < 3; i++)
		assert_no_error(ledger_add_row(mapped->ledger, "group", "name", &mapped->rows[i]));
}

static void mapped_deinit(struct mapped *mapped)
{
	ledger_destroy(mapped->ledger);
	residency_destroy(mapped->residency);
	image_close(mapped->image);
	core_deinit(&mapped->core);
	findings_deinit(&mapped->findings);
	assert_int_equal(mapped->account.used, 0);
}
DEFINE_DEINIT(mapped_deinit, struct mapped)

static void claim(struct mapped *mapped, uint64_t start, uint64_t end, size_t row)
{
	assert_no_error(ledger_claim(mapped->ledger, start, end, mapped->rows[row]));
}

static void settle(struct mapped *mapped)
{
	assert_no_error(ledger_settle(mapped->ledger, NULL, NULL));
}

static uint64_t bytes_of(const struct mapped *mapped, size_t row)
{
	return ledger_row(mapped->ledger, mapped->rows[row])->amount.mapped;
}

TEST(what_a_layer_claims_is_gone_for_the_next)
{
	_cleanup_(mapped_deinit) struct mapped mapped;

	mapped_init(&mapped);
	mapped_open(&mapped);
	claim(&mapped, LOW + 0x100, LOW + 0x200, 0);
	settle(&mapped);
	claim(&mapped, LOW, LOW + PAGE, 1);
	settle(&mapped);
	claim(&mapped, LOW, LOW + PAGE, 2);
	settle(&mapped);
	assert_int_equal(bytes_of(&mapped, 0), 0x100);
	assert_int_equal(bytes_of(&mapped, 1), PAGE - 0x100);
	assert_int_equal(bytes_of(&mapped, 2), 0);
}

TEST(of_claims_that_overlap_the_lower_one_counts)
{
	_cleanup_(mapped_deinit) struct mapped mapped;

	mapped_init(&mapped);
	mapped_open(&mapped);
	claim(&mapped, LOW + 0x80, LOW + 0x400, 1);
	claim(&mapped, LOW, LOW + 0x100, 0);
	claim(&mapped, LOW + 0x90, LOW + 0xa0, 2);
	settle(&mapped);
	assert_int_equal(bytes_of(&mapped, 0), 0x100);
	assert_int_equal(bytes_of(&mapped, 1), 0x300);
	assert_int_equal(bytes_of(&mapped, 2), 0);
}

TEST(only_what_is_mapped_counts)
{
	_cleanup_(mapped_deinit) struct mapped mapped;

	mapped_init(&mapped);
	mapped_open(&mapped);
	claim(&mapped, 0, UINT64_MAX, 0);
	settle(&mapped);
	assert_int_equal(bytes_of(&mapped, 0), 3 * PAGE);
	assert_int_equal(ledger_total(mapped.ledger).resident, 2 * PAGE);
}

static struct error *add_rest(void *data, row_number row, uint64_t start, uint64_t end)
{
	*(uint64_t *)data += end - start;
	assert_true(start >= (start < HIGH ? LOW : HIGH));
	assert_true(end <= (start < HIGH ? LOW + 2 * PAGE : HIGH + PAGE));
	return NULL;
}

TEST(rest_is_what_nobody_claimed)
{
	_cleanup_(mapped_deinit) struct mapped mapped;
	uint64_t rest = 0;

	mapped_init(&mapped);
	mapped_open(&mapped);
	claim(&mapped, LOW + 0x100, LOW + 0x200, 0);
	claim(&mapped, LOW + 0x1800, HIGH + 0x80, 1);
	settle(&mapped);
	assert_no_error(ledger_rest(mapped.ledger, add_rest, &rest));
	assert_int_equal(rest, 3 * PAGE - 0x100 - 0x800 - 0x80);
	assert_int_equal(rest + ledger_total(mapped.ledger).mapped, 3 * PAGE);
}

/* As heapcore notes it: "SMAP", by "HEAPCORE". */
static void note_smaps(struct mapped *mapped, const char *text)
{
	core_add_note(&mapped->core, "HEAPCORE", 0x534d4150, text, strlen(text));
}

TEST(smaps_tell_how_much_was_resident)
{
	_cleanup_(mapped_deinit) struct mapped mapped;

	mapped_init(&mapped);
	note_smaps(&mapped, "00010000-00012000 rw-p 00000000 00:00 0 \n"
			    "Size:                  8 kB\n"
			    "Rss:                   8 kB\n"
			    "VmFlags: rd wr\n"
			    "00020000-00021000 rw-s 00000000 00:00 0 \n"
			    "Rss:                   0 kB\n");
	mapped_open(&mapped);
	assert_int_equal(mapped.residency->source, RESIDENCY_SMAPS);
	claim(&mapped, LOW, HIGH, 0);
	claim(&mapped, HIGH, HIGH + PAGE, 1);
	settle(&mapped);
	assert_int_equal(ledger_row(mapped.ledger, mapped.rows[0])->amount.resident, 2 * PAGE);
	assert_int_equal(ledger_row(mapped.ledger, mapped.rows[1])->amount.resident, 0);
}

TEST(smaps_that_make_no_sense_do_no_harm)
{
	_cleanup_(mapped_deinit) struct mapped mapped;

	mapped_init(&mapped);
	note_smaps(
		&mapped,
		"00020000-00021000 rw-p\nRss: 18446744073709551615\n00010000-00012000\nzz-\n10-10\nRss:\n\n-");
	mapped_open(&mapped);
	claim(&mapped, 0, UINT64_MAX, 0);
	settle(&mapped);
	assert_int_equal(ledger_total(mapped.ledger).mapped, 3 * PAGE);
	assert_true(ledger_total(mapped.ledger).resident <= 3 * PAGE);
}
