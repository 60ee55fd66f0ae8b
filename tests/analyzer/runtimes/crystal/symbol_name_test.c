#include "analyzer/runtimes/crystal/symbol_name.h"

#include "tests/assertions.h"

static void assert_parts(const char *text, const char *type, const char *owner, const char *method,
			 const char *result)
{
	struct symbol_name name;

	assert_true(symbol_name_parse(text, &name));
	assert_string_equal(name.type, type);
	assert_string_equal(name.owner, owner);
	assert_string_equal(name.method, method);
	assert_string_equal(name.result, result);
	symbol_name_deinit(&name);
}

TEST(constructors_tell_what_they_make)
{
	assert_parts("*Coin::new<Float64>:Coin", "Coin", "Coin", "new", "Coin");
	assert_parts("*Cat@Animal::new<String, Int32>:Cat", "Cat", "Animal", "new", "Cat");
	assert_parts("*Channel::UseDefault::new:Channel::UseDefault", "Channel::UseDefault",
		     "Channel::UseDefault", "new", "Channel::UseDefault");
	assert_parts("*Char::Reader::new:pos<String, Int32>:Char::Reader", "Char::Reader",
		     "Char::Reader", "new", "Char::Reader");
}

TEST(generic_types_keep_their_arguments)
{
	assert_parts("*Hash(String, Int32)@Hash(K, V)::new:block<Nil>:Hash(String, Int32)",
		     "Hash(String, Int32)", "Hash(K, V)", "new", "Hash(String, Int32)");
	assert_parts("*Array(Proc(Int32, Nil))@Array(T)::new<Int32>:Array(Proc(Int32, Nil))",
		     "Array(Proc(Int32, Nil))", "Array(T)", "new", "Array(Proc(Int32, Nil))");
}

TEST(marks_of_derived_types_are_no_part_of_a_name)
{
	struct symbol_name name;

	assert_parts("*Array(Animal+)@Array(T)::new:Array(Animal+)", "Array(Animal)", "Array(T)",
		     "new", "Array(Animal)");
	assert_true(symbol_name_parse("*Animal+@Animal#name:String", &name));
	assert_true(name.is_virtual);
	assert_true(name.of_object);
	assert_string_equal(name.type, "Animal");
	symbol_name_deinit(&name);
}

TEST(operators_and_what_returns_a_union_are_read)
{
	assert_parts("*Foo#get<(Int32 | Nil)>:(Foo | Nil)", "Foo", "Foo", "get", "(Foo | Nil)");
	assert_parts("*Foo::open<Tuple(Int32, Foo::Bar)>:Foo::Bar", "Foo", "Foo", "open",
		     "Foo::Bar");
}

TEST(other_symbols_are_no_methods)
{
	static const char *const others[] = {
		"main",	     "",	 "*",	     "*puts<String>:Nil",
		"~match<A>", "*::new:A", "*Foo(Bar", "*Foo(Bar::new",
	};
	struct symbol_name name;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(symbol_name_parse(others[i], &name));
}
