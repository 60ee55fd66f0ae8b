#include "analyzer/classify/type_names.h"

#include "analyzer/base/cleanup.h"

#include "tests/assertions.h"

#include <string.h>

#define CHARACTERS "std::char_traits<char>, std::allocator<char> "
#define STRING	   "std::__cxx11::basic_string<char, " CHARACTERS ">"

static void assert_short(const char *name, const char *expected)
{
	_cleanup_(free) char *once = short_name(name);
	_cleanup_(free) char *twice = once ? short_name(once) : NULL;

	assert_string_equal(once, expected);
	/* Short names stay as they are. */
	assert_string_equal(twice, expected);
}

TEST(strings_and_streams_have_their_usual_names)
{
	assert_short(STRING, "std::string");
	assert_short(
		"std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >",
		"std::wstring");
	assert_short(
		"std::basic_string<char16_t, std::char_traits<char16_t>, std::allocator<char16_t> >",
		"std::u16string");
	assert_short("std::basic_string<int, std::char_traits<int>, std::allocator<int> >",
		     "std::basic_string<int>");
	assert_short("std::__cxx11::basic_ostringstream<char, " CHARACTERS ">",
		     "std::ostringstream");
	assert_short("std::basic_ios<char16_t, std::char_traits<char16_t> >",
		     "std::basic_ios<char16_t>");
}

TEST(default_arguments_are_left_out)
{
	assert_short(
		"std::map<int, Foo, std::less<int>, std::allocator<std::pair<int const, Foo> > >",
		"std::map<int, Foo>");
	assert_short("std::set<Foo*, std::less<Foo*>, std::allocator<Foo*> >", "std::set<Foo*>");
	assert_short("std::unordered_map<" STRING ", int, std::hash<" STRING
		     " >, std::equal_to<" STRING " >, std::allocator<std::pair<" STRING
		     " const, int> > >",
		     "std::unordered_map<std::string, int>");
	assert_short(
		"std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> > > >",
		"std::vector<std::vector<int>>");
	assert_short("std::unique_ptr<Foo, std::default_delete<Foo> >", "std::unique_ptr<Foo>");
	assert_short("std::__1::list<int, std::__1::allocator<int> >", "std::list<int>");
}

TEST(other_arguments_stay)
{
	assert_short(
		"std::map<int, Foo, std::greater<int>, std::allocator<std::pair<int const, Foo> > >",
		"std::map<int, Foo, std::greater<int>>");
	assert_short("std::vector<int, pool<int> >", "std::vector<int, pool<int>>");
	assert_short("std::vector<int, std::allocator<long> >",
		     "std::vector<int, std::allocator<long>>");
	assert_short("mine::vector<int, std::allocator<int> >",
		     "mine::vector<int, std::allocator<int>>");
	assert_short("mine::__1::thing", "mine::__1::thing");
	assert_short(
		"std::_Sp_counted_ptr_inplace<Foo, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
		"std::_Sp_counted_ptr_inplace<Foo, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>");
}

TEST(names_within_names_are_shortened)
{
	assert_short("app::run(" STRING " const&,int)::{lambda(" STRING " )#1}",
		     "app::run(std::string const&, int)::{lambda(std::string)#1}");
	assert_short("std::function<void (" STRING ")>", "std::function<void (std::string)>");
	assert_short("(anonymous namespace)::Holder<" STRING " >",
		     "(anonymous namespace)::Holder<std::string>");
}

TEST(blanks_do_not_matter)
{
	assert_short("std::map< int,Foo >", "std::map<int, Foo>");
	assert_short("unsigned long", "unsigned long");
}

TEST(operators_are_no_brackets)
{
	assert_short("operator<(Foo, Foo)", "operator<(Foo, Foo)");
	assert_short("Foo::operator->() const", "Foo::operator->() const");
	assert_short("operator>>(std::vector<int, std::allocator<int> >&)",
		     "operator>>(std::vector<int>&)");
	assert_short("Bits<((3)>(2))>", "Bits<((3)>(2))>");
}

TEST(what_is_no_name_is_copied)
{
	char deep[1000];

	assert_short("", "");
	assert_short("std::vector<int,", "std::vector<int,");
	assert_short("a<b", "a<b");
	assert_short("a)b>c,d", "a)b>c,d");
	for (size_t i = 0; i + 2 < sizeof(deep); i += 2)
		memcpy(deep + i, "a<", 3);
	assert_short(deep, deep);
}

TEST(of_long_names_the_beginning_is_left)
{
	char name[5000];
	_cleanup_(free) char *first = NULL, *other = NULL, *again = NULL;

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	first = short_name(name);
	assert_int_equal(strlen(first), 1000);
	assert_int_equal(strspn(first, "a"), 980);
	again = short_name(first);
	assert_string_equal(again, first);
	name[4000] = 'b';
	other = short_name(name);
	assert_int_equal(strlen(other), 1000);
	assert_string_not_equal(other, first);
}

static void assert_type(const char *mangled, const char *expected)
{
	_cleanup_(free) char *name = demangle_type(mangled);

	assert_non_null(name);
	assert_string_equal(name, expected);
}

TEST(names_of_types_are_found)
{
	assert_type("3Foo", "Foo");
	assert_type("N3app7SessionE", "app::Session");
	assert_type("N12_GLOBAL__N_16HiddenE", "(anonymous namespace)::Hidden");
	assert_type("Z4mainE5Local", "main::Local");
	assert_type("6HolderIiE", "Holder<int>");
}

TEST(what_is_no_type_has_no_name)
{
	assert_null(demangle_type(""));
	assert_null(demangle_type("3Fo"));
	assert_null(demangle_type("%s%n"));
}

static void append_substitution(char *mangled, size_t number)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	sprintf(mangled + strlen(mangled), "S%c_E", digits[number]);
}

/*
 * Pairs of pairs: P<A, A>, then P of two of these, and so on. Each level takes six letters, and
 * doubles the name.
 */
static void make_pairs(size_t levels, char *ret)
{
	strcpy(ret, "1PI");
	for (size_t i = 1; i < levels; i++)
		strcat(ret, "S_I");
	strcat(ret, "1A");
	for (size_t i = 0; i < levels; i++)
		append_substitution(ret, i);
}

TEST(a_name_beyond_measure_is_none)
{
	char mangled[512];

	make_pairs(2, mangled);
	assert_type(mangled, "P<P<A, A>, P<A, A> >");
	make_pairs(10, mangled);
	free(demangle_type(mangled));
	make_pairs(36, mangled);
	assert_null(demangle_type(mangled));
}
