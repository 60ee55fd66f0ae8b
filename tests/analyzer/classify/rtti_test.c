#include "analyzer/classify/rtti.h"

#include "tests/analyzer/image/core_builder.h"

/*
 * Type information as compilers lay it out, in a process of its own. Each vtable has its address
 * point at a multiple of 0x100 and 0x10 more, each type_info is 0x80 behind that multiple.
 */
enum {
	START = 0x10000,
	SIZE = 0x4000,
	LIBRARY_CLASS = START,
	LIBRARY_SINGLE = START + 0x100,
	LIBRARY_MULTIPLE = START + 0x200,
	TYPE_INFO = START + 0x300, /* std::type_info, the base of all */
	OWN = START + 0x1000,	   /* the classes of a test, 0x100 each */
	NAMES = START + 0x3000,
};

enum { VTABLE = 0x10, TYPE = 0x80 };

struct process {
	struct core core;
	struct findings findings;
	struct image *image;
	uint64_t next_name;
};

static void set_type(struct process *process, uint64_t address, uint64_t kind, const char *name)
{
	core_set(&process->core, address + 8, address + TYPE);
	core_set(&process->core, address + TYPE, kind + VTABLE);
	core_set(&process->core, address + TYPE + 8, process->next_name);
	strcpy((char *)core_at(&process->core, process->next_name, strlen(name) + 1), name);
	process->next_name += strlen(name) + 1;
}

static void set_base(struct process *process, uint64_t address, uint64_t base)
{
	core_set(&process->core, address + TYPE + 16, base + TYPE);
}

static void process_init(struct process *process)
{
	*process = (struct process){ .next_name = NAMES };
	core_init(&process->core);
	core_add(&process->core, START, SIZE, RIGHT_READ);
	set_type(process, TYPE_INFO, LIBRARY_CLASS, "St9type_info");
	set_type(process, LIBRARY_CLASS, LIBRARY_SINGLE, "N10__cxxabiv117__class_type_infoE");
	set_type(process, LIBRARY_SINGLE, LIBRARY_SINGLE, "N10__cxxabiv120__si_class_type_infoE");
	set_type(process, LIBRARY_MULTIPLE, LIBRARY_SINGLE,
		 "N10__cxxabiv121__vmi_class_type_infoE");
	set_base(process, LIBRARY_CLASS, TYPE_INFO);
	set_base(process, LIBRARY_SINGLE, LIBRARY_CLASS);
	set_base(process, LIBRARY_MULTIPLE, LIBRARY_CLASS);
}

static void process_open(struct process *process)
{
	core_write_file(&process->core);
	assert_no_error(image_open(process->core.path, &process->findings, &process->image));
}

static void process_deinit(struct process *process)
{
	if (process->image)
		image_close(process->image);
	findings_deinit(&process->findings);
	core_deinit(&process->core);
}
DEFINE_DEINIT(process_deinit, struct process)

static void assert_class(const struct process *process, uint64_t address, const char *mangled)
{
	_cleanup_(free) char *name = NULL;
	struct budget budget = { 1000 };

	assert_int_equal(rtti_type(process->image, address + VTABLE, &budget), address + TYPE);
	name = rtti_name(process->image, address + TYPE, &budget);
	assert_string_equal(name, mangled);
}

static void assert_no_class(const struct process *process, uint64_t address)
{
	struct budget budget = { 1000 };

	assert_int_equal(rtti_type(process->image, address + VTABLE, &budget), 0);
}

TEST(classes_are_known_without_symbols)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	set_type(&process, OWN, LIBRARY_CLASS, "4Base");
	set_type(&process, OWN + 0x100, LIBRARY_SINGLE, "7Derived");
	set_base(&process, OWN + 0x100, OWN);
	set_type(&process, OWN + 0x200, LIBRARY_CLASS, "*N12_GLOBAL__N_16HiddenE");
	process_open(&process);
	assert_class(&process, OWN, "4Base");
	assert_class(&process, OWN + 0x100, "7Derived");
	assert_class(&process, OWN + 0x200, "N12_GLOBAL__N_16HiddenE");
	assert_no_class(&process, OWN + 0x300);
	assert_no_class(&process, OWN - VTABLE - 1);
	assert_no_class(&process, 0);
	assert_no_class(&process, UINT64_MAX - VTABLE);
}

TEST(kinds_of_types_that_are_no_classes_are_told_apart)
{
	enum { LIBRARY_ENUM = START + 0x400 };
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	set_type(&process, LIBRARY_ENUM, LIBRARY_SINGLE, "N10__cxxabiv116__enum_type_infoE");
	set_base(&process, LIBRARY_ENUM, TYPE_INFO);
	set_type(&process, OWN, LIBRARY_ENUM, "6Colour");
	process_open(&process);
	assert_no_class(&process, OWN);
}

TEST(names_that_cannot_be_are_no_classes)
{
	static const char *const names[] = { "", "*", "Base", "4Ba se", "i" };
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	for (uint64_t i = 0; i < 5; i++)
		set_type(&process, OWN + i * 0x100, LIBRARY_CLASS, names[i]);
	process_open(&process);
	for (uint64_t i = 0; i < 5; i++)
		assert_no_class(&process, OWN + i * 0x100);
}

TEST(a_name_that_is_not_there_leaves_the_shape)
{
	_cleanup_(process_deinit) struct process process;
	struct budget budget = { 1000 };

	process_init(&process);
	set_type(&process, OWN, LIBRARY_CLASS, "4Base");
	core_set(&process.core, OWN + TYPE + 8, START + SIZE);
	core_set(&process.core, LIBRARY_CLASS + TYPE + 8, START + SIZE);
	process_open(&process);
	assert_int_equal(rtti_type(process.image, OWN + VTABLE, &budget), OWN + TYPE);
	assert_null(rtti_name(process.image, OWN + TYPE, &budget));
}

TEST(bases_inside_of_an_object_come_before_its_top)
{
	static const struct {
		int64_t offset;
		bool is_vtable;
	} cases[] = {
		{ 0, true },   { -8, true },	     { -4096, true }, { 8, false },
		{ -4, false }, { INT64_MIN, false }, { -1, false },   { -(1L << 40), false }
	};
	_cleanup_(process_deinit) struct process process;
	struct budget budget = { 10000 };

	process_init(&process);
	for (uint64_t i = 0; i < 8; i++) {
		set_type(&process, OWN + i * 0x100, LIBRARY_CLASS, "4Base");
		core_set(&process.core, OWN + i * 0x100, (uint64_t)cases[i].offset);
	}
	process_open(&process);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(rtti_type(process.image, OWN + i * 0x100 + VTABLE, &budget) != 0,
				 cases[i].is_vtable);
}

struct seen {
	uint64_t bases[64];
	size_t count;
};

static bool see_base(void *data, uint64_t base)
{
	struct seen *seen = data;

	if (seen->count < 64)
		seen->bases[seen->count++] = base;
	return false;
}

TEST(all_bases_are_found)
{
	_cleanup_(process_deinit) struct process process;
	struct seen seen = { 0 };
	uint64_t multiple = OWN + 0x300;
	struct budget budget = { 1000 };

	process_init(&process);
	set_type(&process, OWN, LIBRARY_CLASS, "4Base");
	set_type(&process, OWN + 0x100, LIBRARY_SINGLE, "4Left");
	set_base(&process, OWN + 0x100, OWN);
	set_type(&process, OWN + 0x200, LIBRARY_CLASS, "5Right");
	set_type(&process, multiple, LIBRARY_MULTIPLE, "4Both");
	core_set(&process.core, multiple + TYPE + 16, UINT64_C(2) << 32);
	core_set(&process.core, multiple + TYPE + 24, OWN + 0x100 + TYPE);
	core_set(&process.core, multiple + TYPE + 40, OWN + 0x200 + TYPE);
	process_open(&process);
	assert_false(rtti_find_base(process.image, multiple + TYPE, see_base, &seen, &budget));
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.bases[0], OWN + 0x100 + TYPE);
	assert_int_equal(seen.bases[1], OWN + TYPE);
	assert_int_equal(seen.bases[2], OWN + 0x200 + TYPE);
}

/* A class derived from itself, twice at each step. */
TEST(the_search_for_bases_ends)
{
	_cleanup_(process_deinit) struct process process;
	struct seen seen = { 0 };
	struct budget budget = { UINT64_MAX };

	process_init(&process);
	set_type(&process, OWN, LIBRARY_MULTIPLE, "4Ring");
	core_set(&process.core, OWN + TYPE + 16, UINT64_C(0xffffffff) << 32);
	core_set(&process.core, OWN + TYPE + 24, OWN + TYPE);
	core_set(&process.core, OWN + TYPE + 40, OWN + TYPE);
	process_open(&process);
	assert_false(rtti_find_base(process.image, OWN + TYPE, see_base, &seen, &budget));
	assert_int_equal(seen.count, 64);
	budget.left = 1000;
	seen.count = 0;
	assert_false(rtti_find_base(process.image, OWN + TYPE, see_base, &seen, &budget));
	assert_in_range(seen.count, 1, 32);
}

/* So any number of types may have one long name. */
TEST(no_name_is_read_without_budget)
{
	_cleanup_(process_deinit) struct process process;
	struct budget budget = { 1000 };
	size_t times = 0;

	process_init(&process);
	set_type(&process, OWN, LIBRARY_CLASS, "20ANameOfTwentyLetters");
	process_open(&process);
	while (times < 1000 && rtti_type(process.image, OWN + VTABLE, &budget))
		times++;
	assert_in_range(times, 1, 1000 / 22);
	assert_null(rtti_name(process.image, OWN + TYPE, &budget));
}
