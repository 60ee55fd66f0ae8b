/*
 * Preloaded into a program: keeps address, size and callers of each living allocation.
 *
 * The table is at a fixed address, so that sites.py reads it out of the stopped process. It is
 * left out of cores and its memory is no allocation: the program's heap is as without it, and
 * nothing in the core tells of it. A child after fork() goes on with a copy.
 *
 *	| header | buckets: number of the first entry | entries, linked by number |
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

enum { FRAMES = 12, SKIPPED = 2, BUCKET_BITS = 22 };

#define TABLE_ADDRESS 0x200000000000
#define MOST_ENTRIES  (UINT32_C(1) << 23)

struct entry {
	uint64_t address; /* 0: of no allocation any more */
	uint64_t size;
	uint64_t next; /* of the same bucket, or unused; 0: none */
	uint64_t frames[FRAMES];
};

struct table {
	uint64_t count; /* of entries, with number 0, which stands for none */
	uint64_t unused;
	uint64_t entry_offset;
	uint32_t buckets[1 << BUCKET_BITS];
	struct entry entries[];
};

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static struct table *table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool busy __attribute__((tls_model("initial-exec")));

static void lock_table(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void create_table(void)
{
	size_t size = sizeof(struct table) + MOST_ENTRIES * sizeof(struct entry);
	void *memory =
		mmap((void *)TABLE_ADDRESS, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise(memory, size, MADV_DONTDUMP);
	table = memory;
	table->count = 1;
	table->entry_offset = offsetof(struct table, entries);
	pthread_atfork(lock_table, unlock_table, unlock_table);
}

static uint32_t *find_bucket(uint64_t address)
{
	return &table->buckets[(address * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - BUCKET_BITS)];
}

struct unwinding {
	uint64_t *frames;
	int count;
};

static _Unwind_Reason_Code keep_frame(struct _Unwind_Context *context, void *data)
{
	struct unwinding *unwinding = data;
	int number = unwinding->count++ - SKIPPED;

	if (number >= 0)
		unwinding->frames[number] = _Unwind_GetIP(context);
	return number + 1 < FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

__attribute__((noinline)) static void add(void *block, size_t size)
{
	int saved_errno = errno;

	if (!block || !table || busy)
		return;
	busy = true;

	struct entry entry = { .address = (uint64_t)block, .size = size };
	struct unwinding unwinding = { entry.frames, 0 };
	uint64_t number = 0;

	_Unwind_Backtrace(keep_frame, &unwinding);
	lock_table();
	if (table->unused) {
		number = table->unused;
		table->unused = table->entries[number].next;
	} else if (table->count < MOST_ENTRIES) {
		number = table->count++;
	}
	if (number) {
		uint32_t *bucket = find_bucket(entry.address);

		entry.next = *bucket;
		table->entries[number] = entry;
		*bucket = (uint32_t)number;
	}
	unlock_table();
	busy = false;
	errno = saved_errno;
}

static void drop(void *block)
{
	uint64_t number, previous = 0;
	uint32_t *bucket;

	if (!block || !table || busy)
		return;
	busy = true;
	lock_table();
	bucket = find_bucket((uint64_t)block);
	for (number = *bucket; number; number = table->entries[number].next) {
		struct entry *entry = &table->entries[number];

		if (entry->address == (uint64_t)block) {
			if (previous)
				table->entries[previous].next = entry->next;
			else
				*bucket = (uint32_t)entry->next;
			memset(entry, 0, sizeof(*entry));
			entry->next = table->unused;
			table->unused = number;
			break;
		}
		previous = number;
	}
	unlock_table();
	busy = false;
}

void *malloc(size_t size)
{
	void *block = __libc_malloc(size);

	add(block, size);
	return block;
}

void *calloc(size_t count, size_t size)
{
	void *block = __libc_calloc(count, size);

	add(block, count * size);
	return block;
}

void *realloc(void *old, size_t size)
{
	void *block;

	drop(old);
	block = __libc_realloc(old, size);
	add(block, size);
	return block;
}

void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;
	void *block;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	drop(old);
	block = __libc_realloc(old, bytes);
	add(block, bytes);
	return block;
}

void *memalign(size_t alignment, size_t size)
{
	void *block = __libc_memalign(alignment, size);

	add(block, size);
	return block;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = __libc_memalign(alignment, size);

	add(block, size);
	return block;
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *block = __libc_memalign(alignment, size);

	if (!block)
		return ENOMEM;
	add(block, size);
	*ret = block;
	return 0;
}

void free(void *block)
{
	drop(block);
	__libc_free(block);
}
