/*
 * Objects of C++ that are lost, or are in use by a pointer to a part of them.
 *
 *	objects CASE leak|clean
 */
#include "testdata/programs/gate/cases.h"

#include <any>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace
{

const std::string text(60, 't');

/* Make one, and forget it without deleting it. */
template <typename T, typename... Arguments>
T *make(bool leak, Arguments &&...arguments)
{
	auto object =
		std::make_unique<T>(std::forward<Arguments>(arguments)...);
	T *lost = object.get();

	if (leak)
		(void)object.release();
	return leak ? lost : nullptr;
}

void lose_list(bool leak)
{
	make<std::list<int>>(leak, 9, 7);
}

void lose_set(bool leak)
{
	make<std::set<std::string>>(
		leak, std::set<std::string>{ text, text + "2", text + "3" });
}

void lose_table(bool leak)
{
	make<std::unordered_map<int, std::string>>(
		leak, std::unordered_map<int, std::string>{ { 1, text },
							    { 2, text } });
}

void lose_deque(bool leak)
{
	make<std::deque<int>>(leak, 1000, 3);
}

void lose_function(bool leak)
{
	std::string copy = text;

	make<std::function<size_t()>>(
		leak, [copy, leak] { return copy.size() + leak; });
}

void lose_any(bool leak)
{
	make<std::any>(leak, std::vector<std::string>(3, text));
}

void lose_stream(bool leak)
{
	if (auto *stream = make<std::ostringstream>(leak))
		*stream << text << text;
}

/* No virtual destructor: what the derived class has is never destroyed. */
struct base {
	long number = 1;
};

struct derived : base {
	std::string name = text;
};

void lose_member(bool leak)
{
	auto *object = new derived;

	if (leak)
		delete static_cast<base *>(object);
	else
		delete object;
}

/* Two owners who do not know of each other, and nobody else does. */
struct owner {
	std::shared_ptr<owner> other;
	std::vector<int> values = std::vector<int>(20, 1);
};

void lose_weak(bool leak)
{
	auto one = std::make_shared<owner>();
	std::weak_ptr<owner> weak = one;

	if (leak)
		one->other = one;
}

/* An exception that is kept is an object of malloc(). */
std::exception_ptr *raised;

void lose_exception(bool leak)
{
	raised = new std::exception_ptr;
	try {
		throw std::runtime_error(text);
	} catch (...) {
		*raised = std::current_exception();
	}
	if (!leak)
		delete raised;
	raised = nullptr;
	forget();
}

struct one {
	virtual ~one() = default;
	long first = 1;
};

struct two {
	virtual ~two() = default;
	long second = 2;
};

struct both : one, two {
	long third = 3;
};

/* Only a pointer to the second base is left: valgrind knows such ones. */
two *volatile second;

void keep_base(bool leak)
{
	second = new both;
	if (leak)
		second = nullptr;
}

struct counted {
	~counted()
	{
		number++;
	}
	long number = 0;
};

/* A pointer to an array stands behind the number of its members. */
counted *volatile array;

void keep_array(bool leak)
{
	array = new counted[5];
	if (leak)
		array = nullptr;
}

/* The pointer of a string is to its characters, behind nothing. */
std::string *volatile kept_text;

void keep_string(bool leak)
{
	kept_text = new std::string(text);
	if (leak)
		kept_text = nullptr;
}

thread_local std::vector<std::string> of_thread;

void lose_by_static(bool leak)
{
	static auto *all = new std::vector<std::string *>;

	all->push_back(new std::string(text));
	of_thread.push_back(text);
	if (leak)
		all->back() = nullptr;
}

/* Nobody catches it: the program ends by abort(). */
void by_exception(bool leak)
{
	auto *lost = new std::string(text);

	if (!leak)
		delete lost;
	lost = nullptr;
	forget();
	throw std::runtime_error(text);
}

} // namespace

const struct leak_case cases[] = {
	{ "list", lose_list },	       { "set", lose_set },
	{ "table", lose_table },       { "deque", lose_deque },
	{ "function", lose_function }, { "any", lose_any },
	{ "stream", lose_stream },     { "member", lose_member },
	{ "weak", lose_weak },	       { "exception", lose_exception },
	{ "base", keep_base },	       { "array", keep_array },
	{ "string", keep_string },     { "static", lose_by_static },
	{ "uncaught", by_exception },  { nullptr, nullptr },
};
