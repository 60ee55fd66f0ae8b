// Memory of a program in C++ that somebody arranged so that looking at each
// thing once would look at one large thing each time:
//
//	hostile_classes names	objects with a vtable each, all of one type
//				with a long name
//	hostile_classes tables	empty hash tables that share their buckets
//	hostile_classes vector	a vector that holds many allocations
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

struct plain {
	virtual ~plain() = default;
};

static void *keep_names()
{
	const size_t count = 200000, length = 16000;
	size_t size = count * 16 + length + 4096;
	auto memory = (char *)mmap(nullptr, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	auto words = (uint64_t *)(memory + (length + 64) / 8 * 8), type = words;
	auto objects = (uint64_t **)calloc(count, sizeof(void *));
	plain object;
	auto vtable = *(uint64_t ***)&object;

	memset(memory, 'a', length);
	memcpy(memory, "15990", 5);
	type[0] = *vtable[-1];
	type[1] = (uint64_t)memory;
	words += 2;
	for (size_t i = 0; i < count; i++, words += 2) {
		words[1] = (uint64_t)type;
		objects[i] = (uint64_t *)malloc(24);
		*objects[i] = (uint64_t)(words + 2);
	}
	mprotect(memory, size, PROT_READ);
	return objects;
}

static void *keep_tables()
{
	const size_t count = 1000000, bucket_count = 5000000;
	auto tables = (uint64_t **)calloc(count, sizeof(void *));
	auto buckets = (uint64_t *)calloc(bucket_count, 8);
	const float load = 1;

	for (size_t i = 0; i < count; i++) {
		tables[i] = (uint64_t *)calloc(5, 8);
		tables[i][0] = (uint64_t)buckets;
		tables[i][1] = bucket_count;
		memcpy(&tables[i][4], &load, sizeof(load));
	}
	return tables;
}

static void *keep_vector()
{
	const size_t count = 400000;
	auto vector = new std::vector<void *>;

	for (size_t i = 0; i < count; i++)
		vector->push_back(calloc(1, 24));
	return vector;
}

int main(int, char **arguments)
{
	const std::string kind = arguments[1];
	void *volatile kept = kind == "names"	 ? keep_names()
			      : kind == "tables" ? keep_tables()
						 : keep_vector();

	printf("%p\n", kept);
	fflush(stdout);
	pause();
}
