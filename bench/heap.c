/*
 * A program with a large heap of which the truth is known.
 *
 *	heap [--one-large | --arrays] [COUNT]
 *
 * It makes COUNT allocations (ten million if not said) that stay, and others in between that it
 * frees. It then tells on standard output what an exact analyzer must find, says "ready", and waits
 * for its core to be taken:
 *
 *	used COUNT BYTES	leaked COUNT BYTES
 *	leakroots COUNT		references COUNT
 *	ready
 *
 * The allocations form families: lists, trees, and arrays of pointers. The head of an anchored
 * family is held by a member of an earlier one or by the table of anchors; nobody holds the head of
 * a leaked family. Half of the members are neighbours in memory, half stand anywhere, as in a
 * program that has run for a while. The same COUNT always gives the same heap.
 *
 * What a member holds, in words:
 *
 *	| kind | next or left | previous or right | head | other | data ...
 *	| kind | element | element | element ...		(an array)
 *
 * Every other word is data which cannot be taken for an address. No copy of a pointer may be left
 * behind, or what is leaked would not be: the pointers that the program itself needs are in
 * mappings of their own, gone before it is ready, and masked, so that no register or stack slot
 * keeps one either.
 */

#include <cpuid.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef COLLECTED
#include <gc.h>

/* malloc()'s leaks are garbage here. */
#define LEAKED "garbage"

static void heap_open(void)
{
	GC_INIT();
	/* It does not see the masked addresses, and would free all at once. */
	GC_disable();
}

static void *heap_allocate(size_t size)
{
	return GC_MALLOC(size);
}

static void heap_free(void *block)
{
	GC_FREE(block);
}

static size_t heap_size(void *block)
{
	return GC_size(block);
}
#else
#define LEAKED "leaked"

static void heap_open(void)
{
}

static void *heap_allocate(size_t size)
{
	return malloc(size);
}

static void heap_free(void *block)
{
	free(block);
}

static size_t heap_size(void *block)
{
	return malloc_usable_size(block);
}
#endif

enum {
	WORD_KIND,
	WORD_NEXT,
	WORD_PREVIOUS,
	WORD_HEAD,
	WORD_OTHER,
	WORD_LEFT = WORD_NEXT,
	WORD_RIGHT = WORD_PREVIOUS,
	LEAST_WORDS = WORD_PREVIOUS + 1, /* glibc gives no less */
};

enum {
	ONE_LEAKED_IN = 20,
	ONE_FREED_IN = 12,
	ONE_SHORT_LIVED_IN = 8,
	ONE_ARRAY_IN = 64,
	ONE_ANCHOR_IN = 64,
	ONE_LONG_LIST_IN = 32768,
	LONG_LIST_COUNT = 50000,
	SHORT_LIVED_COUNT = 128,
	VACANCY_COUNT = 256,
	ANCHOR_COUNT = 4096,
	ARRAYS = 8,
	ARRAY_POINTERS = 8000000,
	SCRUBBED_BYTES = 1 << 20,
};

static const uint64_t MASK = 0xa5a5a5a5a5a5a5a5;
static const size_t LARGE_BYTES = (size_t)512 << 20;

/* The first word of an object points at its kind, as at a table of methods. */
struct kind {
	const char *name;
};
static const struct kind kind_account = { "account" };
static const struct kind kind_order = { "order" };
static const struct kind kind_page = { "page" };
static const struct kind kind_session = { "session" };

/* Nobody reads them, so without volatile nobody would write them. */
static uintptr_t *volatile anchors[ANCHOR_COUNT];
static uintptr_t *volatile large;
static uintptr_t *volatile arrays[ARRAYS];

enum shape { SHAPE_LIST, SHAPE_DOUBLE_LIST, SHAPE_RING, SHAPE_TREE };

struct truth {
	uint64_t used_count, used_bytes;
	uint64_t leaked_count, leaked_bytes;
	uint64_t leak_root_count, reference_count;
};

struct builder {
	uint32_t count;
	uint32_t freed_count;
	uint64_t *allocations; /* the masked address of each */
	uint64_t *freed;
	uint32_t *anchored; /* in the order in which they are linked */
	uint32_t *leaked;
	uint32_t anchored_count, leaked_count;
	uint32_t anchor_count;
	uint32_t vacancies[VACANCY_COUNT]; /* members with room for a head */
	uint32_t vacancy_count;
	struct truth truth;
};

enum purpose {
	PURPOSE_SIZE,
	PURPOSE_FREED_SIZE,
	PURPOSE_SHORT_LIVED_SIZE,
	PURPOSE_FILL,
	PURPOSE_LEAKED,
	PURPOSE_ARRAY,
	PURPOSE_SHUFFLE,
	PURPOSE_SHAPE,
	PURPOSE_VACANCY,
	PURPOSE_OTHER,
	PURPOSE_ELEMENT,
};

/* A random number which depends on nothing but its arguments (splitmix64). */
static uint64_t random_of(enum purpose purpose, uint64_t number)
{
	uint64_t x = (number * 16 + purpose + 1) * 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void *map_table(size_t bytes)
{
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (table == MAP_FAILED)
		fail("mmap");
	return table;
}

static bool is_leaked(uint32_t id)
{
	uint32_t group = id / ONE_LEAKED_IN;

	return id % ONE_LEAKED_IN == random_of(PURPOSE_LEAKED, group) % ONE_LEAKED_IN;
}

static bool is_array(uint32_t id)
{
	return random_of(PURPOSE_ARRAY, id) % ONE_ARRAY_IN == 0;
}

/* Mostly small, some up to 600 bytes, few larger, and very few mmapped. */
static size_t size_of(uint64_t random)
{
	uint64_t choice = random % 50000, extent = random >> 32;

	if (choice == 0)
		return 160000 + extent % 50000;
	if (choice < 500)
		return 1024 + extent % 3072;
	if (choice < 5500)
		return 400 + extent % 200;
	if (choice < 20000)
		return 128 + extent % 272;
	return 16 + extent % 112;
}

/* Nearly any word of 4 bytes may be an address, but for those near the end of memory. */
static uintptr_t no_address(uint64_t word)
{
	return sizeof(uintptr_t) == 8 ? (uintptr_t)word : (uintptr_t)(word | 0xff000000);
}

/* Text, small numbers, fractions or nothing, over all that may be used. */
static void fill(uintptr_t *words, uint64_t random)
{
	size_t word_count = heap_size(words) / sizeof(*words);
	unsigned type = random & 3;

	for (size_t i = 0; i < word_count; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		switch (type) {
		case 0:
			words[i] = no_address(0x2020202020202020 | (random & 0x5f5f5f5f5f5f5f5f));
			break;
		case 1:
			words[i] = (uintptr_t)(random >> 44);
			break;
		case 2:
			words[i] = no_address(0x3ff0000000000000 | random >> 12);
			break;
		default:
			words[i] = 0;
			break;
		}
	}
}

static uint64_t allocate(size_t size, uint64_t random)
{
	size_t least = LEAST_WORDS * sizeof(uintptr_t);
	uintptr_t *words = heap_allocate(size < least ? least : size);

	if (!words)
		fail("allocate");
	fill(words, random);
	return (uintptr_t)words ^ MASK;
}

static void release(uint64_t masked)
{
	heap_free((void *)(uintptr_t)(masked ^ MASK));
}

static uintptr_t *words_of(const struct builder *builder, uint32_t id)
{
	return (uintptr_t *)(uintptr_t)(builder->allocations[id] ^ MASK);
}

static size_t word_count_of(const struct builder *builder, uint32_t id)
{
	return heap_size(words_of(builder, id)) / sizeof(uintptr_t);
}

static void set_kind(const struct builder *builder, uint32_t id, uint64_t random)
{
	static const struct kind *const kinds[] = {
		&kind_account,
		&kind_order,
		&kind_page,
		&kind_session,
	};

	/* Half of the objects have none. */
	if (random % 8 < 4)
		words_of(builder, id)[WORD_KIND] = (uintptr_t)kinds[random % 8];
}

/*
 * Make all allocations. The short-lived ones are reused at once, mostly; the others that will be
 * freed stay until the end, so that they leave gaps.
 */
static void allocate_all(struct builder *builder)
{
	uint64_t short_lived[SHORT_LIVED_COUNT] = { 0 };

	for (uint32_t id = 0; id < builder->count; id++) {
		uint64_t random = random_of(PURPOSE_SIZE, id);
		size_t size = size_of(random);

		if (is_array(id))
			size = 256 + (random >> 32) % 768;
		builder->allocations[id] = allocate(size, random_of(PURPOSE_FILL, id));
		set_kind(builder, id, random >> 16);

		if (id % ONE_FREED_IN == 0) {
			random = random_of(PURPOSE_FREED_SIZE, id);
			builder->freed[builder->freed_count++] = allocate(size_of(random), random);
		}
		if (id % ONE_SHORT_LIVED_IN == 0) {
			uint32_t turn = id / ONE_SHORT_LIVED_IN;
			uint64_t *slot = &short_lived[turn % SHORT_LIVED_COUNT];

			if (*slot)
				release(*slot);
			random = random_of(PURPOSE_SHORT_LIVED_SIZE, id);
			*slot = allocate(size_of(random) % 4096, random);
		}
	}
	for (size_t i = 0; i < SHORT_LIVED_COUNT; i++) {
		if (short_lived[i])
			release(short_lived[i]);
	}
}

/* Exchange every second id with any other one behind it. */
static void shuffle_half(uint32_t *ids, uint32_t count)
{
	for (uint32_t i = 0; i + 2 < count; i += 2) {
		uint64_t random = random_of(PURPOSE_SHUFFLE, i);
		uint32_t other = i + 2 + random % (count - i - 2);
		uint32_t id = ids[i];

		ids[i] = ids[other];
		ids[other] = id;
	}
}

static void choose_leaked(struct builder *builder)
{
	for (uint32_t id = 0; id < builder->count; id++) {
		if (is_leaked(id))
			builder->leaked[builder->leaked_count++] = id;
		else
			builder->anchored[builder->anchored_count++] = id;
	}
	shuffle_half(builder->leaked, builder->leaked_count);
	shuffle_half(builder->anchored, builder->anchored_count);
}

static void refer(struct builder *builder, uint32_t from, size_t word, uint32_t to)
{
	words_of(builder, from)[word] = (uintptr_t)words_of(builder, to);
	builder->truth.reference_count++;
}

static void link_family(struct builder *builder, const uint32_t *ids, uint32_t count,
			enum shape shape)
{
	for (uint32_t i = 1; i < count; i++) {
		if (shape == SHAPE_TREE) {
			refer(builder, ids[(i - 1) / 2], i % 2 ? WORD_LEFT : WORD_RIGHT, ids[i]);
			continue;
		}
		refer(builder, ids[i - 1], WORD_NEXT, ids[i]);
		if (shape == SHAPE_DOUBLE_LIST)
			refer(builder, ids[i], WORD_PREVIOUS, ids[i - 1]);
	}
	if (shape == SHAPE_RING && count > 1)
		refer(builder, ids[count - 1], WORD_NEXT, ids[0]);
}

/*
 * Make a family of the first ids and say how many those are. The first of them is its head, from
 * which all others can be reached.
 */
static uint32_t make_family(struct builder *builder, const uint32_t *ids, uint32_t available,
			    uint32_t wanted, enum shape shape)
{
	uint32_t count = wanted;

	if (is_array(ids[0]))
		count = word_count_of(builder, ids[0]);
	if (count > available)
		count = available;

	if (is_array(ids[0])) {
		for (uint32_t i = 1; i < count; i++)
			refer(builder, ids[0], i, ids[i]);
	} else {
		link_family(builder, ids, count, shape);
	}
	return count;
}

/* Let some members refer to any anchored allocation, or into its middle. */
static void refer_to_others(struct builder *builder, const uint32_t *ids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t random = random_of(PURPOSE_OTHER, ids[i]);
		uint32_t other = builder->anchored[(random >> 32) % builder->anchored_count];

		if (random % 4 || other == ids[i] || is_array(ids[i]) ||
		    word_count_of(builder, ids[i]) <= WORD_OTHER)
			continue;
		refer(builder, ids[i], WORD_OTHER, other);
		if (random % 32 == 0)
			words_of(builder, ids[i])[WORD_OTHER] +=
				heap_size(words_of(builder, other)) / 2;
	}
}

/* Let the table or a member of an earlier family hold the head. */
static void anchor(struct builder *builder, uint32_t head, uint64_t random)
{
	bool vacant = builder->vacancy_count > 0;
	bool full = builder->anchor_count == ANCHOR_COUNT;

	if (!vacant || (!full && random % ONE_ANCHOR_IN == 0)) {
		if (full) {
			fputs("the table of anchors is full\n", stderr);
			exit(1);
		}
		anchors[builder->anchor_count++] = words_of(builder, head);
		return;
	}

	uint32_t *vacancy = &builder->vacancies[(random >> 32) % builder->vacancy_count];
	refer(builder, *vacancy, WORD_HEAD, head);
	*vacancy = builder->vacancies[--builder->vacancy_count];
}

/* Let some of the members hold the heads of later families. */
static void add_vacancies(struct builder *builder, const uint32_t *ids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (builder->vacancy_count == VACANCY_COUNT)
			return;
		if (random_of(PURPOSE_VACANCY, ids[i]) % 8 == 0 && !is_array(ids[i]) &&
		    word_count_of(builder, ids[i]) > WORD_HEAD)
			builder->vacancies[builder->vacancy_count++] = ids[i];
	}
}

static void link_anchored(struct builder *builder)
{
	uint32_t count;

	for (uint32_t i = 0; i < builder->anchored_count; i += count) {
		const uint32_t *ids = &builder->anchored[i];
		uint64_t random = random_of(PURPOSE_SHAPE, ids[0]);
		uint32_t wanted = 1 + (random >> 8) % 64;
		enum shape shape = random % 4;

		/* For analysers that recurse along a list. */
		if ((random >> 16) % ONE_LONG_LIST_IN == 0)
			wanted = LONG_LIST_COUNT;
		count = make_family(builder, ids, builder->anchored_count - i, wanted, shape);
		anchor(builder, ids[0], random);
		add_vacancies(builder, ids, count);
		refer_to_others(builder, ids, count);
	}
}

static void link_leaked(struct builder *builder)
{
	uint32_t count;

	for (uint32_t i = 0; i < builder->leaked_count; i += count) {
		const uint32_t *ids = &builder->leaked[i];
		uint64_t random = random_of(PURPOSE_SHAPE, ids[0]);
		uint32_t wanted = random % 8 < 3 ? 1 : 2 + (random >> 8) % 40;
		enum shape shape = (random >> 16) % 4;

		count = make_family(builder, ids, builder->leaked_count - i, wanted, shape);
		refer_to_others(builder, ids, count);
		builder->truth.leak_root_count++;
	}
}

/*
 * Leave free blocks in every kind of list that the allocator has. A large request sorts what was
 * freed before it.
 */
static void free_the_rest(struct builder *builder)
{
	for (uint32_t i = 0; i < builder->freed_count; i += 2)
		release(builder->freed[i]);
	release(allocate(20000, 0));
	for (uint32_t i = 1; i < builder->freed_count; i += 2)
		release(builder->freed[i]);
}

/* Large arrays of pointers to what is anchored anyway, in any order. */
static void add_arrays(struct builder *builder)
{
	for (uint64_t i = 0; i < ARRAYS; i++) {
		uintptr_t *words = heap_allocate(ARRAY_POINTERS * sizeof(*words));

		if (!words)
			fail("allocate");
		for (uint64_t j = 0; j < ARRAY_POINTERS; j++) {
			uint64_t random = random_of(PURPOSE_ELEMENT, i * ARRAY_POINTERS + j);

			words[j] = (uintptr_t)words_of(
				builder, builder->anchored[random % builder->anchored_count]);
		}
		arrays[i] = words;
		builder->truth.used_count++;
		builder->truth.used_bytes += heap_size(words);
		builder->truth.reference_count += ARRAY_POINTERS;
	}
}

static void measure(struct builder *builder)
{
	struct truth *truth = &builder->truth;

	for (uint32_t id = 0; id < builder->count; id++) {
		size_t size = heap_size(words_of(builder, id));

		truth->used_count++;
		truth->used_bytes += size;
		if (is_leaked(id)) {
			truth->leaked_count++;
			truth->leaked_bytes += size;
		}
	}
}

__attribute__((noinline)) static struct truth build(uint32_t count, bool with_arrays)
{
	struct builder builder = { .count = count };
	size_t id_bytes = count * sizeof(uint32_t);
	size_t address_bytes = count * sizeof(uint64_t);

	builder.allocations = map_table(address_bytes);
	builder.freed = map_table(address_bytes);
	builder.anchored = map_table(id_bytes);
	builder.leaked = map_table(id_bytes);

	allocate_all(&builder);
	choose_leaked(&builder);
	link_anchored(&builder);
	link_leaked(&builder);
	free_the_rest(&builder);
	measure(&builder);
	if (with_arrays)
		add_arrays(&builder);

	munmap(builder.allocations, address_bytes);
	munmap(builder.freed, address_bytes);
	munmap(builder.anchored, id_bytes);
	munmap(builder.leaked, id_bytes);
	return builder.truth;
}

__attribute__((noinline)) static void add_large(struct truth *truth)
{
	uintptr_t *words = heap_allocate(LARGE_BYTES);

	if (!words)
		fail("allocate");
	fill(words, 1);
	large = words;
	truth->used_count++;
	truth->used_bytes += heap_size(words);
}

/*
 * Overwrite the stack below: stale words from build() would count again once a later call's frame
 * covers them without writing all of it.
 */
__attribute__((noinline)) static void scrub_stack(void)
{
	char scrubbed[SCRUBBED_BYTES];

	memset(scrubbed, 0, sizeof(scrubbed));
	__asm__ volatile("" : : "r"(scrubbed) : "memory");
}

/*
 * Put all vector registers into their first state, where the processor can; a collector uses them
 * on addresses.
 */
static void clear_vector_registers(void)
{
	static const struct {
		uint8_t legacy[24];
		uint32_t mxcsr;
		uint8_t rest[1024 - 28];
	} state __attribute__((aligned(64))) = { .mxcsr = 0x1f80 };
	static const uint32_t x87_to_avx512 = 0xe7;
	unsigned int eax, ebx, ecx, edx;

	if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE))
#ifdef __i386__
		__asm__ volatile("xrstor %0"
#else
		__asm__ volatile("xrstor64 %0"
#endif
				 :
				 : "m"(state), "a"(x87_to_avx512), "d"(0)
				 : "memory");
}

/*
 * Say that the core may be taken, and wait, with nothing in the registers, which a call into libc
 * might fill.
 */
static void wait_for_core(void)
{
	static const char ready[] = "ready\n";
	long written = SYS_write;

#ifdef __i386__
	__asm__ volatile("int $0x80"
			 : "+a"(written)
			 : "b"(STDOUT_FILENO), "c"(ready), "d"(sizeof(ready) - 1)
			 : "memory");
	for (;;) {
		long number = SYS_pause;

		__asm__ volatile(
			"pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm2, %%xmm2\n\tpxor %%xmm3, %%xmm3\n\tint $0x80"
			: "+a"(number)
			: "D"(0), "S"(0), "d"(0), "b"(0), "c"(0)
			: "memory");
	}
#else
	__asm__ volatile("syscall"
			 : "+a"(written)
			 : "D"(STDOUT_FILENO), "S"(ready), "d"(sizeof(ready) - 1)
			 : "rcx", "r11", "memory");
	for (;;) {
		long number = SYS_pause;

		__asm__ volatile(
			"pxor %%xmm0, %%xmm0\n\tpxor %%xmm1, %%xmm1\n\tpxor %%xmm2, %%xmm2\n\tpxor %%xmm3, %%xmm3\n\tsyscall"
			: "+a"(number)
			: "D"(0), "S"(0), "d"(0), "b"(0)
			: "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
			  "xmm1", "xmm2", "xmm3", "memory");
	}
#endif
}

int main(int argc, char **argv)
{
	bool one_large = argc > 1 && strcmp(argv[1], "--one-large") == 0;
	bool with_arrays = argc > 1 && strcmp(argv[1], "--arrays") == 0;
	int operands = argc - one_large - with_arrays;
	unsigned long count = 10000000;
	char *end = "";

	if (operands > 1)
		count = strtoul(argv[argc - 1], &end, 10);
	if (operands > 2 || *end || count < ONE_LEAKED_IN || count % ONE_LEAKED_IN ||
	    count > UINT32_MAX / 2) {
		fprintf(stderr,
			"usage: %s [--one-large | --arrays] [COUNT]\n"
			"COUNT is a multiple of %d\n",
			argv[0], ONE_LEAKED_IN);
		return 2;
	}

	heap_open();
	struct truth truth = build(count, with_arrays);
	if (one_large)
		add_large(&truth);
	scrub_stack();

	/* Not by stdio, which would allocate a buffer. */
	dprintf(STDOUT_FILENO,
		"used %" PRIu64 " %" PRIu64 "\n" LEAKED " %" PRIu64 " %" PRIu64 "\n"
		"leakroots %" PRIu64 "\n"
		"references %" PRIu64 "\n",
		truth.used_count, truth.used_bytes, truth.leaked_count, truth.leaked_bytes,
		truth.leak_root_count, truth.reference_count);
	clear_vector_registers();
	wait_for_core();
}
