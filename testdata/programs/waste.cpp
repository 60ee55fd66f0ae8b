/*
 * A program that wastes memory in every way that `waste` knows of, and keeps
 * it all by static memory.
 *
 * Into the file that $HEAPCORE_TRUTH names it writes what there is, with sizes
 * as malloc_usable_size() and the containers tell them:
 *
 *	duplicate ADDRESS	holds the same as one at a lower address
 *	single ADDRESS		does not
 *	zero ADDRESS		holds nothing but zeros
 *	waste KIND TYPE BYTES	so much in all allocations of that type
 *	tail ADDRESS BYTES	so much of zeros in whole pages at its end
 *
 * The last line is "ready"; then it waits for its core to be taken.
 */
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <malloc.h>
#include <string>
#include <unistd.h>
#include <unordered_set>
#include <vector>

enum { KEPT = 512, PAGE = 4096 };

static FILE *truth;
static char *kept[KEPT];
static size_t kept_count;

static std::string strings[40];
static std::vector<long> vectors[12];
static std::deque<long> deques[3];
static std::unordered_set<long> tables[2];

static char *keep(void *block)
{
	if (!block || kept_count == KEPT)
		abort();
	return kept[kept_count++] = (char *)block;
}

static void tell(const char *word, const void *block)
{
	fprintf(truth, "%s %lx\n", word, (unsigned long)block);
}

static void tell_waste(const char *kind, const char *type, size_t bytes)
{
	fprintf(truth, "waste %s %s %zu\n", kind, type, bytes);
}

/* All of the block that can be used; the same for the same seed. */
static void fill(char *block, unsigned int seed)
{
	size_t size = malloc_usable_size(block);

	for (size_t i = 0; i < size; i++) {
		seed = seed * 1103515245 + 12345;
		block[i] = (char)(1 + (seed >> 16) % 255);
	}
}

/* Those from first on hold the same. */
static void tell_copies(size_t first)
{
	std::sort(kept + first, kept + kept_count);
	for (size_t i = first; i < kept_count; i++)
		tell(i > first ? "duplicate" : "single", kept[i]);
}

static void make_copies(size_t size, size_t count, unsigned int seed)
{
	size_t first = kept_count;

	for (size_t i = 0; i < count; i++)
		fill(keep(malloc(size)), seed);
	tell_copies(first);
}

/* They differ in their last byte only. */
static void make_singles(size_t size, unsigned int seed)
{
	for (int i = 1; i <= 20; i++) {
		char *block = keep(malloc(size));

		fill(block, seed);
		block[malloc_usable_size(block) - 1] ^= (char)i;
		tell("single", block);
	}
}

static void make_zeros(size_t size, size_t count)
{
	for (size_t i = 0; i < count; i++)
		tell("zero", keep(calloc(1, size)));
}

/* What is used ends where a page does, if it is to. */
static void make_tail(size_t size, size_t used, bool to_page)
{
	char *block = keep(calloc(1, size));

	if (to_page)
		used -= ((uintptr_t)block + used) % PAGE;
	uintptr_t zeros = ((uintptr_t)block + used + PAGE - 1) / PAGE * PAGE;

	memset(block, 'x', used);
	tell("single", block);
	fprintf(truth, "tail %lx %zu\n", (unsigned long)block,
		(size_t)((uintptr_t)block + malloc_usable_size(block) - zeros));
}

/* What is behind the end of a text is what was there before. */
static void make_texts(const char *text, size_t count)
{
	size_t first = kept_count, size = strlen(text) + 1;
	std::vector<char *> dirty;
	size_t slack = 0;

	for (size_t i = 0; i < count; i++) {
		dirty.push_back((char *)malloc(size));
		fill(dirty.back(), 1000 + i);
	}
	for (char *block : dirty)
		free(block);
	for (size_t i = 0; i < count; i++) {
		char *block = (char *)memcpy(keep(malloc(size)), text, size);

		slack += malloc_usable_size(block) - size;
	}
	tell_copies(first);
	tell_waste("slack", "text", slack);
	tell_waste("duplicates", "text", (count - 1) * size);
}

/* Every fourth is the same, but for its capacity. */
static void make_strings(void)
{
	size_t spare = 0, slack = 0, duplicates = 0;
	std::vector<const void *> copies;

	for (int i = 0; i < 40; i++) {
		std::string &string = strings[i];

		string.reserve(60 + 7 * i);
		if (i % 4 == 0)
			string = "what all of them say, every time they are";
		else
			string = std::string(20 + i, (char)('a' + i % 26)) +
				 std::to_string(i);
		if (i % 4 == 0) {
			copies.push_back(string.data());
			duplicates += string.size() + 1;
		}
		spare += string.capacity() - string.size();
		slack += malloc_usable_size((void *)string.data()) -
			 string.capacity() - 1;
	}
	std::sort(copies.begin(), copies.end());
	for (const void *copy : copies)
		tell(copy == copies[0] ? "single" : "duplicate", copy);
	tell_waste("spare", "%LongString", spare);
	tell_waste("slack", "%LongString", slack);
	tell_waste("duplicates", "%LongString",
		   duplicates - strings[0].size() - 1);
}

/* The last one's elements are zeros. */
static void make_vectors(void)
{
	size_t spare = 0, slack = 0;

	for (int i = 0; i < 12; i++) {
		std::vector<long> &vector = vectors[i];

		vector.reserve(100 * (i + 1));
		for (int j = 0; j < 9 * (i + 1); j++)
			vector.push_back(i == 11 ? 0 : 1000 * i + j + 1);
		spare += 8 * (vector.capacity() - vector.size());
		slack += malloc_usable_size(vector.data()) -
			 8 * vector.capacity();
	}
	tell("zero", vectors[11].data());
	tell_waste("spare", "%VectorBody", spare);
	tell_waste("slack", "%VectorBody", slack);
	tell_waste("zeros", "%VectorBody", 8 * vectors[11].size());
}

/* libstdc++: the map and its size come first, blocks are of 512 bytes. */
static void make_deques(void)
{
	enum { BLOCK = 512 };
	size_t blocks_spare = 0, map_spare = 0;

	for (int i = 0; i < 3; i++) {
		size_t words[2], blocks;

		for (long j = 0; j < 500 * (i + 1) + 5; j++)
			deques[i].push_back(7 * j + i);
		memcpy(words, (const void *)&deques[i], sizeof(words));
		blocks = deques[i].size() * sizeof(long) / BLOCK + 1;
		blocks_spare +=
			blocks * BLOCK - deques[i].size() * sizeof(long);
		map_spare += 8 * (words[1] - blocks);
	}
	tell_waste("spare", "%DequeBlock", blocks_spare);
	tell_waste("spare", "%DequeMap", map_spare);
}

static void make_tables(void)
{
	size_t spare = 0;

	for (auto &table : tables) {
		for (long i = 0; i < 3000; i++)
			table.insert(i);
		for (long i = 0; i < 2900; i++)
			table.erase(i);
		spare += 8 * (table.bucket_count() -
			      (size_t)std::ceil((double)table.size() /
						table.max_load_factor()));
	}
	tell_waste("spare", "%UnorderedMapOrSetBuckets", spare);
}

int main()
{
	const char *path = getenv("HEAPCORE_TRUTH");

	truth = path ? fopen(path, "w") : stdout;
	if (!truth)
		return 1;
	make_copies(1000, 40, 1);
	make_copies(24, 50, 2);
	make_copies(300000, 3, 3);
	make_singles(1000, 4);
	make_singles(24, 5);
	make_zeros(2000, 17);
	make_zeros(24, 9);
	make_zeros(8 << 20, 1);
	make_tail(100000, 10000, false);
	make_tail(60000, 20000, true);
	make_tail(900000, 50000, false);
	make_texts(std::string(1203, 't').c_str(), 30);
	make_texts(std::string(1303, 'u').c_str(), 2);
	make_strings();
	make_vectors();
	make_deques();
	make_tables();
	fprintf(truth, "ready\n");
	fflush(truth);
	for (;;)
		pause();
}
