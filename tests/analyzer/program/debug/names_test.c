#include "analyzer/program/debug/names.h"

#include "tests/assertions.h"

#include <string.h>

static void assert_name(const char *raw, const char *shown)
{
	struct name_pool pool = { 0 };

	assert_string_equal(name_demangle(&pool, raw), shown);
	name_pool_deinit(&pool);
}

static void test_methods_of_crystal_are_shown_as_in_the_source(void **state)
{
	assert_name("*Cat@Animal::new<String, Int32>:Cat", "Cat::new");
	assert_name("*Fiber#resume:Nil", "Fiber#resume");
	assert_name("*Channel(Mouse)@Channel(T)#receive:Mouse", "Channel(Mouse)#receive");
	assert_name("*Hash(String, Array(Int32))@Hash(K, V)#[]?<String>:(Int32 | Nil)",
		    "Hash(String, Array(Int32))#[]?");
	assert_name("*wait_deep<Channel(Mouse), Int32>:Nil", "wait_deep");
	assert_name("*Crystal::Scheduler::reschedule:Nil", "Crystal::Scheduler::reschedule");
}

static void test_operators_of_crystal_keep_their_names(void **state)
{
	assert_name("*IO+@IO#<<<String>:IO+", "IO+#<<");
	assert_name("*Int32@Comparable(T)#<=><Int32>:Int32", "Int32#<=>");
	assert_name("*Int32#<<Int32>:Bool", "Int32#<");
	assert_name("*Array(Int32)@Array(T)#==<Array(Int32)>:Bool", "Array(Int32)#==");
}

static void test_blocks_of_crystal_are_told_by_their_place(void **state)
{
	assert_name("~procProc(Nil)@/usr/lib/crystal/lib/kernel.cr:552",
		    "(block at kernel.cr:552)");
	assert_name("~proc2Proc(Fiber, Nil)@app.cr:12", "(block at app.cr:12)");
	assert_name("~procProc(Nil)", "~procProc(Nil)");
}

static void test_what_only_begins_so_is_left_as_it_is(void **state)
{
	assert_name("main", "main");
	assert_name("~match<Animal>", "~match<Animal>");
	assert_name("*", "*");
	assert_name("*Foo(Bar", "Foo(Bar");
}

static void test_names_of_cxx_are_demangled(void **state)
{
	assert_name("_ZN3foo3barEv", "foo::bar()");
}

static void test_names_of_rust_are_demangled(void **state)
{
	assert_name("_ZN4core3ptr4drop17h0123456789abcdefE", "core::ptr::drop");
	assert_name("_RNvC7mycrate3foo", "mycrate::foo");
}

/* Each argument is a pair of the one before: the last has 2^25 parts. */
static void test_a_name_beyond_measure_is_left_as_it_is(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char raw[512] = "_Z1f1AI1BS0_E";

	for (const char *digit = digits + 1; digit < digits + 25; digit++)
		sprintf(raw + strlen(raw), "S_IS%c_S%c_E", *digit, *digit);
	assert_name(raw, raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_methods_of_crystal_are_shown_as_in_the_source),
		cmocka_unit_test(test_operators_of_crystal_keep_their_names),
		cmocka_unit_test(test_blocks_of_crystal_are_told_by_their_place),
		cmocka_unit_test(test_what_only_begins_so_is_left_as_it_is),
		cmocka_unit_test(test_names_of_cxx_are_demangled),
		cmocka_unit_test(test_names_of_rust_are_demangled),
		cmocka_unit_test(test_a_name_beyond_measure_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
