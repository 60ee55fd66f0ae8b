/*
 * A program with containers of every kind of the C++ library, kept by static
 * memory, the stack, the heap, and each other; and with what the C library
 * allocates for itself.
 *
 *	containers [LIBRARY...]
 *
 * Into the file that $HEAPCORE_TRUTH names it writes a line for each
 * allocation: the name of a pattern, and an address in the allocation. The
 * last line is "ready"; then it waits for its core to be taken. The libraries
 * are loaded, and their variable `local`, if they have one, is touched.
 */
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static FILE *truth;

static void tell(const char *pattern, const volatile void *address)
{
	fprintf(truth, "%s %lx\n", pattern, (unsigned long)address);
}

/* Whether what the container points at first is apart from itself. */
template <typename Container>
static const void *first_word(const Container &container)
{
	const void *word;

	memcpy(&word, (const void *)&container, sizeof(word));
	return word;
}

template <typename Container>
static bool is_inside(const Container &container, const void *address)
{
	auto start = (const char *)&container;

	return address >= start && address < start + sizeof(container);
}

template <typename Value> static void look_into(const Value &) {}

static void look_into(const std::string &string)
{
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
	if (string.capacity() > 0)
		tell("COWStringBody", string.data());
#else
	if (!is_inside(string, string.data()))
		tell("LongString", string.data());
#endif
}

/* All are declared before any is defined: they hold each other. */
template <typename A, typename B> static void look_into(const std::pair<A, B> &);
template <typename T> static void look_into(const std::vector<T> &);
template <typename T> static void look_into(const std::list<T> &);
template <typename T> static void look_into(const std::forward_list<T> &);
template <typename T> static void look_into(const std::deque<T> &);
template <typename T> static void look_into(const std::set<T> &);
template <typename T> static void look_into(const std::shared_ptr<T> &);
template <typename T> static void look_into(const std::unordered_set<T> &);
template <typename K, typename V> static void look_into(const std::map<K, V> &);
template <typename K, typename V>
static void look_into(const std::multimap<K, V> &);
template <typename K, typename V>
static void look_into(const std::unordered_map<K, V> &);
static void look_into(const std::vector<bool> &);

template <typename Container>
static void look_at_all(const char *pattern, const Container &container)
{
	for (auto &element : container) {
		if (pattern)
			tell(pattern, &element);
		look_into(element);
	}
}

template <typename Container> static void look_at_hash(const Container &table)
{
	const void *buckets = first_word(table);

	if (buckets && !is_inside(table, buckets))
		tell("UnorderedMapOrSetBuckets", buckets);
	look_at_all("UnorderedMapOrSetNode", table);
}

template <typename A, typename B>
static void look_into(const std::pair<A, B> &pair)
{
	look_into(pair.first);
	look_into(pair.second);
}

template <typename T> static void look_into(const std::vector<T> &vector)
{
	if (vector.capacity())
		tell("VectorBody", vector.data());
	look_at_all(nullptr, vector);
}

static void look_into(const std::vector<bool> &vector)
{
#ifdef __GLIBCXX__
	/* That of libc++ is not told from other things. */
	if (vector.capacity())
		tell("VectorBody", first_word(vector));
#endif
}

template <typename T> static void look_into(const std::list<T> &list)
{
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
	/* Without a count in it, it is not told from other rings. */
	look_at_all(nullptr, list);
#else
	look_at_all("ListNode", list);
#endif
}

template <typename T> static void look_into(const std::forward_list<T> &list)
{
	look_at_all("ForwardListNode", list);
}

template <typename T> static void look_into(const std::deque<T> &deque)
{
	if (first_word(deque))
		tell("DequeMap", first_word(deque));
	look_at_all("DequeBlock", deque);
#ifdef __GLIBCXX__
	/* There is always one, and one for what comes next. */
	const void *block;

	memcpy(&block, (const char *)&deque + 7 * sizeof(void *), sizeof(block));
	tell("DequeBlock", block);
#endif
}

template <typename T> static void look_into(const std::set<T> &set)
{
	look_at_all("MapOrSetNode", set);
}

template <typename K, typename V>
static void look_into(const std::map<K, V> &map)
{
	look_at_all("MapOrSetNode", map);
}

template <typename K, typename V>
static void look_into(const std::multimap<K, V> &map)
{
	look_at_all("MapOrSetNode", map);
}

template <typename T> static void look_into(const std::unordered_set<T> &set)
{
	look_at_hash(set);
}

template <typename K, typename V>
static void look_into(const std::unordered_map<K, V> &map)
{
	look_at_hash(map);
}

/* Two pointers: to the object, and to the control block. */
template <typename T> static void look_into(const std::shared_ptr<T> &pointer)
{
	const void *words[2];

	memcpy(words, (const void *)&pointer, sizeof(words));
	if (words[1])
		tell("SharedPtrControlBlock", words[1]);
	if (pointer)
		look_into(*pointer);
}

struct large {
	long number;
	char text[300];
};

static std::string text(int number, size_t length)
{
	return std::string(length, (char)('a' + number % 26));
}

/* Containers of each kind, of a size and of none. */
struct collection {
	std::string short_text, long_text, reserved_text;
	std::vector<int> numbers;
	std::vector<bool> flags;
	std::vector<std::string> texts;
	std::vector<char> empty_but_reserved;
	std::vector<large> larges;
	std::list<int> list;
	std::list<std::string> list_of_texts;
	std::forward_list<long> forward_list;
	std::forward_list<std::string> forward_list_of_texts;
	std::deque<int> deque;
	std::deque<large> deque_of_larges;
	std::set<int> set;
	std::set<std::string> set_of_texts;
	std::map<int, std::string> map;
	std::multimap<std::string, double> multimap;
	std::map<std::string, std::vector<std::string>> nested;
	std::unordered_set<long> unordered_set;
	std::unordered_map<std::string, int> unordered_map;
	std::unordered_map<int, std::list<std::string>> nested_hash;
	std::shared_ptr<int> shared_number;
	std::shared_ptr<std::string> shared_text;
	std::shared_ptr<large> shared_large;
	std::unordered_map<int, int> no_map;
	std::vector<int> no_vector;
	std::list<int> no_list;
	std::map<int, int> no_tree;
	std::string no_text;

	explicit collection(int size);
	void look() const;
};

collection::collection(int size)
	: short_text("short"), long_text(text(size, 40 + size)),
	  shared_number(new int(size)),
	  shared_text(std::make_shared<std::string>(text(size, 77))),
	  shared_large(new large, [](large *pointer) { delete pointer; })
{
	reserved_text = "in a large buffer";
	reserved_text.reserve(1000);
	empty_but_reserved.reserve(48 + size);
	for (int i = 0; i < size; i++) {
		numbers.push_back(i);
		flags.push_back(i % 3 == 0);
		texts.push_back(text(i, i * 5));
		larges.emplace_back();
		list.push_back(i);
		list_of_texts.push_front(text(i, 30 + i));
		forward_list.push_front(i);
		forward_list_of_texts.push_front(text(i, 50));
		deque.push_back(i);
		deque_of_larges.emplace_front();
		set.insert(i * 7 % 101);
		set_of_texts.insert(text(i, 20 + i));
		map[i * 13 % 97] = text(i, i);
		multimap.emplace(text(i % 3, 33), i);
		unordered_set.insert(i * 1000003L);
		unordered_map[text(i, 16 + i)] = i;
		for (int j = 0; j < i % 5; j++) {
			nested[text(i, 25)].push_back(text(j, 40));
			nested_hash[i].push_back(text(j, 4 + 20 * j));
		}
	}
}

void collection::look() const
{
	look_into(short_text);
	look_into(long_text);
	look_into(reserved_text);
	look_into(numbers);
	look_into(flags);
	look_into(texts);
	look_into(empty_but_reserved);
	look_into(larges);
	look_into(list);
	look_into(list_of_texts);
	look_into(forward_list);
	look_into(forward_list_of_texts);
	look_into(deque);
	look_into(deque_of_larges);
	look_into(set);
	look_into(set_of_texts);
	look_into(map);
	look_into(multimap);
	look_into(nested);
	look_into(unordered_set);
	look_into(unordered_map);
	look_into(nested_hash);
	look_into(shared_number);
	look_into(shared_text);
	look_into(shared_large);
}

static collection *made_statically;
static std::map<std::string, collection *> by_name;
static std::string static_text = text(3, 90);

static void *wait_in_thread(void *argument)
{
	tell("ThreadVector", ((void **)pthread_self())[1]);
	pthread_barrier_wait((pthread_barrier_t *)argument);
	for (;;)
		pause();
}

static void start_thread()
{
	static pthread_barrier_t barrier;
	pthread_t thread;

	pthread_barrier_init(&barrier, nullptr, 2);
	if (pthread_create(&thread, nullptr, wait_in_thread, &barrier))
		exit(1);
	pthread_barrier_wait(&barrier);
}

/* A library's thread-local variables are allocated when first touched. */
static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	char *local;

	if (!library)
		exit(1);
	tell("LinkMap", library);
	local = (char *)dlsym(library, "local");
	if (!local)
		return;
	*local = 1;
	tell("ThreadLocalBlock", local);
}

static void use_libc(int count, char **libraries)
{
	FILE *file = fopen("/proc/self/status", "r");

	if (!file || getc(file) == EOF)
		exit(1);
	tell("StdioFile", file);
	tell("StdioBuffer", file->_IO_buf_base);
	tell("DirectoryStream", opendir("/"));
	for (int i = 0; i < count; i++)
		load(libraries[i]);
	start_thread();
}

/* What is gone leaves its shape behind. */
__attribute__((noinline)) static void use_and_free()
{
	collection gone(30);

	gone.look();
}

/* Not to be told by it: who comes and goes is of no interest. */
static void make_and_free()
{
	FILE *kept = truth;

	truth = fopen("/dev/null", "w");
	if (!truth)
		exit(1);
	use_and_free();
	fclose(truth);
	truth = kept;
}

int main(int argc, char **argv)
{
	const char *path = getenv("HEAPCORE_TRUTH");
	collection on_stack(9);

	truth = fopen(path ? path : "truth", "w");
	if (!truth)
		return 1;
	make_and_free();
	made_statically = new collection(40);
	by_name[text(1, 70)] = new collection(5);
	by_name["short"] = new collection(21);
	use_libc(argc - 1, argv + 1);
	made_statically->look();
	on_stack.look();
	look_at_all("MapOrSetNode", by_name);
	for (auto &pair : by_name)
		pair.second->look();
	look_into(static_text);
	fputs("ready\n", truth);
	fclose(truth);
	for (;;)
		pause();
}
