#include "analyzer/program/debug/names.h"

#include "analyzer/base/macros.h"
#include "tests/assertions.h"

#include <string.h>

static void assert_name(const char *raw, const char *shown)
{
	struct name_pool pool = { 0 };

	assert_string_equal(name_demangle(&pool, raw), shown);
	name_pool_deinit(&pool);
}

TEST(methods_of_crystal_are_shown_as_in_the_source)
{
	assert_name("*Cat@Animal::new<String, Int32>:Cat", "Cat::new");
	assert_name("*Fiber#resume:Nil", "Fiber#resume");
	assert_name("*Channel(Mouse)@Channel(T)#receive:Mouse", "Channel(Mouse)#receive");
	assert_name("*Hash(String, Array(Int32))@Hash(K, V)#[]?<String>:(Int32 | Nil)",
		    "Hash(String, Array(Int32))#[]?");
	assert_name("*wait_deep<Channel(Mouse), Int32>:Nil", "wait_deep");
	assert_name("*Crystal::Scheduler::reschedule:Nil", "Crystal::Scheduler::reschedule");
}

TEST(operators_of_crystal_keep_their_names)
{
	assert_name("*IO+@IO#<<<String>:IO+", "IO+#<<");
	assert_name("*Int32@Comparable(T)#<=><Int32>:Int32", "Int32#<=>");
	assert_name("*Int32#<<Int32>:Bool", "Int32#<");
	assert_name("*Array(Int32)@Array(T)#==<Array(Int32)>:Bool", "Array(Int32)#==");
}

TEST(blocks_of_crystal_are_told_by_their_place)
{
	assert_name("~procProc(Nil)@/usr/lib/crystal/lib/kernel.cr:552",
		    "(block at kernel.cr:552)");
	assert_name("~proc2Proc(Fiber, Nil)@app.cr:12", "(block at app.cr:12)");
	assert_name("~procProc(Nil)", "~procProc(Nil)");
}

TEST(what_only_begins_so_is_left_as_it_is)
{
	assert_name("main", "main");
	assert_name("~match<Animal>", "~match<Animal>");
	assert_name("*", "*");
	assert_name("*Foo(Bar", "Foo(Bar");
}

TEST(names_of_cxx_are_demangled)
{
	assert_name("_ZN3foo3barEv", "foo::bar()");
	assert_name("_ZN4shop5cacheB5cxx11E", "shop::cache");
	assert_name("_ZN4shop4nameB5cxx11B3oldEi", "shop::name(int)");
}

TEST(names_of_rust_are_demangled)
{
	assert_name("_ZN4core3ptr4drop17h0123456789abcdefE", "core::ptr::drop");
	assert_name("_RNvC7mycrate3foo", "mycrate::foo");
}

/* Each argument is a pair of the one before: the last has 2^25 parts. */
TEST(a_name_beyond_measure_is_left_as_it_is)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char raw[512] = "_Z1f1AI1BS0_E";

	for (const char *digit = digits + 1; digit < digits + 25; digit++)
		sprintf(raw + strlen(raw), "S_IS%c_S%c_E", *digit, *digit);
	assert_name(raw, raw);
}

TEST(functions_of_the_library_of_cxx_are_known_by_their_names)
{
	static const char *const of_library[] = {
		"std::vector<int>::push_back(int const&)",
		"std::__detail::_MakeUniq<Conn>::__single_object std::make_unique<Conn>()",
		"void std::sort<int*>(int*, int*)",
		"__gnu_cxx::new_allocator<Conn>::allocate(unsigned long, void const*)",
		"std::ostream& std::operator<< <char>(std::ostream&, char const*)",
		"decltype (f(1)) std::forward_it<int>(int)",
		"_ZSt11make_uniqueI4ConnJEENSt8__detail9_MakeUniqIT_E15__single_objectEDpOT0_",
		"_ZNSt15__new_allocatorI4ConnE8allocateEmPKv",
		"_ZNK9__gnu_cxx16__aligned_membufI4ConnE7_M_addrEv",
	};
	static const char *const of_program[] = {
		"main",
		"open_conn(bool)",
		"std::unique_ptr<Conn> app::make<Conn>(std::vector<int>)",
		"std::string const& (anonymous namespace)::name<int>()",
		"decltype (std::declval<int>()) app::read<int>(int)",
		"app::Log::operator<<(std::string const&)",
		"operator new(unsigned long)",
		"std::function<void (int)> app::handler<int>()",
		"void app::run<std::string>(std::string)::{lambda(int)#1}::operator()(int) const",
		"(anonymous namespace)::std_like()",
		"stdio::open()",
		"_Z4makeI4ConnESt10unique_ptrIT_St14default_deleteIS2_EEv",
		"a(<(",
		"",
	};

	for (size_t i = 0; i < COUNT_OF(of_library); i++)
		if (!name_is_of_library(of_library[i]))
			fail_msg("%s", of_library[i]);
	for (size_t i = 0; i < COUNT_OF(of_program); i++)
		if (name_is_of_library(of_program[i]))
			fail_msg("%s", of_program[i]);
}
