/*
 * The recorder: preloaded into a program, it notes the calls that lead to each allocation, until it
 * is freed. It is a shared object by itself and needs libc alone.
 *
 * It calls the allocator that the program would have without it, whichever that is, and takes
 * memory of its own from the kernel, so that the heap stays as it is.
 */
#include "analyzer/capture/recorder.h"
#include "cli/live/recorder/language.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

enum {
	STACK_SLOTS = 1 << 18, /* slots of the table that makes equal stacks one */
	EARLY_BYTES = 1 << 16, /* for what is allocated while the allocator is looked for */
	UNIT = 16,	       /* of early blocks, and of sizes */
	SIZES = 1 << 12,       /* times UNIT; larger ones are alike */
	OWN_FRAMES = 2,	       /* of the recorder, in each stack: malloc(), and what walks it */
	CACHED = 1024,	       /* stacks of a thread */
	WAYS = 4,	       /* of these that the same frame and caller may have */
	LARGEST_SPAN =
		1 << 20, /* longest distance from malloc()'s frame to a return address, in bytes */
};

struct recorder_header heapcore_recorder = { .version = RECORDER_VERSION };

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *block, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	int (*posix_memalign)(void **ret, size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	void (*free)(void *block);
	size_t (*usable)(void *block);
	void *(*dlopen)(const char *path, int flags);
} next;

static char early[EARLY_BYTES] __attribute__((aligned(UNIT)));
static size_t early_used;
static bool is_ready, has_sizes;
static uint8_t wanted[SIZES]; /* by usable size / UNIT */
static uint32_t *slots;	      /* position of each stack; 0: none */
static uint64_t stacks_lock, stack_count;
static uint64_t stack_words = 1; /* in use */

/* This thread is in the recorder: what it allocates there is not recorded. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

static void lock(uint64_t *word)
{
	while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(uint64_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

/* NULL: there is none. */
static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t *stacks(void)
{
	return (uint64_t *)~heapcore_recorder.stacks;
}

static uint64_t hash_word(uint64_t word)
{
	word *= UINT64_C(0x9e3779b97f4a7c15);
	return word ^ word >> 29;
}

static bool is_stack(uint64_t at, const uint64_t *frames, size_t count)
{
	const uint64_t *words = stacks() + at;

	return words[0] == count && memcmp(words + 1, frames, count * sizeof(*words)) == 0;
}

/* Find or add the stack with these return addresses; 0: the table is full. */
static uint64_t find_stack(const uint64_t *frames, size_t count)
{
	uint64_t hash = count, place, at;

	for (size_t i = 0; i < count; i++)
		hash = hash_word(hash ^ frames[i]);
	lock(&stacks_lock);
	place = hash % STACK_SLOTS;
	while (slots[place] && !is_stack(slots[place], frames, count))
		place = (place + 1) % STACK_SLOTS;
	at = slots[place];
	/* A quarter of the slots stays empty. */
	if (!at && stack_words + count < RECORDER_STACK_WORDS &&
	    stack_count < STACK_SLOTS / 4 * 3) {
		at = stack_words;
		stacks()[at] = count;
		memcpy(stacks() + at + 1, frames, count * sizeof(*frames));
		stack_words += count + 1;
		slots[place] = (uint32_t)at;
		stack_count++;
	}
	unlock(&stacks_lock);
	return at;
}

/* Addresses of code. */
struct extent {
	uint64_t start, size;
};

static const struct language *language; /* NULL: the program has none */
static struct extent interpreter, loop;

/* The calls of the language. */
struct script {
	uint64_t calls[RECORDER_DEPTH]; /* as words of a stack */
	bool is_first[RECORDER_DEPTH];
	size_t count;
};

static bool is_in(const struct extent *extent, uint64_t address)
{
	return address - extent->start < extent->size;
}

/* The room for a text: the ends of two must fit. */
static size_t room_in(const struct script_call *call)
{
	return call->size + 2 < RECORDER_SCRIPT_TEXT ? RECORDER_SCRIPT_TEXT - 2 - call->size : 0;
}

static void add_character(struct script_call *call, uint32_t character)
{
	static const uint32_t limits[] = { 0x80, 0x800, 0x10000, UINT32_MAX };
	unsigned int more = 0;

	while (character >= limits[more])
		more++;
	if (room_in(call) <= more)
		return;
	call->text[call->size++] = (char)(more ? 0x780 >> more | character >> 6 * more : character);
	while (more-- > 0)
		call->text[call->size++] = (char)(0x80 | (character >> 6 * more & 0x3f));
}

void script_call_add(struct script_call *call, const void *text, size_t length, unsigned int width)
{
	const size_t most = length < room_in(call) ? length : room_in(call);

	for (size_t i = 0; width && i < most; i++) {
		uint32_t character = 0;

		memcpy(&character, (const char *)text + i * width, width);
		add_character(call, character);
	}
	if (!width) {
		memcpy(call->text + call->size, text, most);
		call->size += most;
	}
	call->text[call->size++] = '\0';
}

/* A call is noted like a stack. */
static bool add_call(void *data, const struct script_call *call)
{
	struct script *script = data;
	uint64_t words[1 + RECORDER_SCRIPT_TEXT / sizeof(uint64_t)], at;
	size_t count = 1 + (call->size + sizeof(*words) - 1) / sizeof(*words);

	words[count - 1] = 0;
	words[0] = call->line;
	memcpy(words + 1, call->text, call->size);
	at = find_stack(words, count);
	if (at) {
		script->calls[script->count] = RECORDER_SCRIPT | at;
		script->is_first[script->count++] = call->is_first;
	}
	return script->count < RECORDER_DEPTH;
}

static int find_interpreter(struct dl_phdr_info *module, size_t size, void *data)
{
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const struct extent found = { module->dlpi_addr + module->dlpi_phdr[i].p_vaddr,
					      module->dlpi_phdr[i].p_memsz };

		if (module->dlpi_phdr[i].p_type == PT_LOAD && is_in(&found, loop.start)) {
			interpreter = found;
			return 1;
		}
	}
	return 0;
}

/* Find the interpreter that the program was linked with. */
static void find_language(void)
{
	for (const struct language *const *at = languages; *at && !language; at++) {
		const Elf64_Sym *symbol = NULL;
		void *function = dlsym(RTLD_DEFAULT, (*at)->loop);
		Dl_info info;

		if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
		    !symbol || !(*at)->open())
			continue;
		loop = (struct extent){ (uint64_t)function, symbol->st_size };
		dl_iterate_phdr(find_interpreter, NULL);
		language = *at;
	}
}

/* Add a plane to the folder, unless another thread was faster. */
static uint64_t add_plane(uint64_t *entry)
{
	uint64_t none = 0, plane = ~(uint64_t)map(RECORDER_PLACES * sizeof(uint32_t));

	if (~plane == 0)
		return 0;
	if (__atomic_compare_exchange_n(entry, &none, plane, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return plane;
	munmap((void *)~plane, RECORDER_PLACES * sizeof(uint32_t));
	return none;
}

/* The place that notes the stack of the block; NULL: there is no plane, or can be none. */
static inline uint32_t *place_of(uint64_t address, bool add)
{
	uint64_t *entry = (uint64_t *)~heapcore_recorder.folder + recorder_plane(address);
	uint64_t plane;

	plane = __atomic_load_n(entry, __ATOMIC_ACQUIRE);
	if (!plane && add)
		plane = add_plane(entry);
	return plane ? (uint32_t *)~plane + recorder_place(address) : NULL;
}

static void lose(void)
{
	__atomic_add_fetch(&heapcore_recorder.lost, 1, __ATOMIC_RELAXED);
}

static void insert(uint64_t address, uint64_t stack)
{
	uint32_t *place = place_of(address, true);

	if (place)
		*place = (uint32_t)stack | RECORDER_MARK;
	else
		lose();
}

/* The flag that says whether blocks of this many units are recorded. */
static uint8_t *wanted_at(size_t units)
{
	return &wanted[units < SIZES ? units : SIZES - 1];
}

static bool is_wanted(void *block)
{
	return !has_sizes || *wanted_at(next.usable(block) / UNIT);
}

/* Forget the block; returns its stack, or 0. */
static uint64_t forget(void *address)
{
	uint32_t *place = address && is_ready ? place_of((uint64_t)address, false) : NULL;
	uint64_t stack = place ? *place & ~RECORDER_MARK : 0;

	if (stack)
		*place = 0;
	return stack;
}

/*
 * A stack that was walked, with the places of its return addresses: as long as these stand there,
 * it is the same. To walk a stack takes a microsecond for every three calls, to look is nearly
 * nothing.
 */
struct walked {
	const void *frame; /* frame of malloc() */
	uint64_t script;   /* calls of the language, as a stack */
	uint64_t stack;	   /* 0: none */
	uint64_t count;
	const uint64_t *places[RECORDER_DEPTH];
	uint64_t words[RECORDER_DEPTH]; /* what stands there: addresses, perhaps signed */
};

struct walk {
	struct walked *walked;
	const struct script *script;
	size_t script_next;
	uint64_t words[RECORDER_DEPTH]; /* of the stack to be noted */
	size_t count;
	size_t skipped;
	bool is_odd; /* an address does not stand where it should, or on another stack, it seems */
	uint64_t stack, frame; /* of the inner call: its stack and frame pointer */
};

static pthread_key_t cache_key;
static __thread struct walked *cache __attribute__((tls_model("initial-exec")));

static void drop_cache(void *memory)
{
	cache = NULL;
	munmap(memory, CACHED * sizeof(struct walked));
}

static void add_word(struct walk *walk, uint64_t word)
{
	if (walk->count < RECORDER_DEPTH)
		walk->words[walk->count++] = word;
}

/* Add the language's calls that this loop of its interpreter made. */
static void add_script(struct walk *walk)
{
	const struct script *script = walk->script;
	bool is_last = false;

	for (; !is_last && walk->script_next < script->count; walk->script_next++) {
		is_last = script->is_first[walk->script_next];
		add_word(walk, script->calls[walk->script_next]);
	}
}

/* Add a call of machine code, unless the interpreter's own calls say nothing more. */
static void add_native(struct walk *walk, uint64_t address)
{
	const bool is_own = walk->script->count && is_in(&interpreter, address);

	if (is_own && walk->script_next < walk->script->count && is_in(&loop, address))
		add_script(walk);
	else if (!is_own || !walk->script_next)
		add_word(walk, address);
}

/* The word that holds this return address, or NULL. */
#ifdef __aarch64__
enum { FRAME_POINTER = 29, CODE_BITS = 48 };

/* The second one of the inner call's frame record, if that has one. */
static const uint64_t *find_place(struct _Unwind_Context *context, struct walk *walk)
{
	const uint64_t stack = _Unwind_GetCFA(context), record = walk->frame;
	const bool is_record = record >= walk->stack && record < stack && record % 8 == 0 &&
			       stack - record >= 2 * sizeof(record);

	walk->stack = stack;
	walk->frame = _Unwind_GetGR(context, FRAME_POINTER);
	return is_record ? (const uint64_t *)record + 1 : NULL;
}
#else
enum { CODE_BITS = 63 };

/* Just below the inner call's frame. */
static const uint64_t *find_place(struct _Unwind_Context *context, struct walk *walk)
{
	return (const uint64_t *)_Unwind_GetCFA(context) - 1;
}
#endif

/* True if the word is that address, which may be signed in the bits above. */
static bool is_address(uint64_t word, uint64_t address)
{
	return ((word ^ address) & ((UINT64_C(1) << CODE_BITS) - 1)) == 0;
}

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = data;
	struct walked *walked = walk->walked;
	const uint64_t *place = find_place(context, walk);
	uint64_t address = _Unwind_GetIP(context), word;

	if (walk->skipped < OWN_FRAMES) {
		walk->skipped++;
		return _URC_NO_REASON;
	}
	if (!address || walk->count == RECORDER_DEPTH)
		return _URC_END_OF_STACK;
	add_native(walk, address);
	if (walked->count == RECORDER_DEPTH) /* with the language's calls, these tell it apart */
		return _URC_NO_REASON;
	word = place ? *place : 0;
	walk->is_odd |= !is_address(word, address) ||
			(uint64_t)place - (uint64_t)walked->frame > LARGEST_SPAN;
	walked->places[walked->count] = place;
	walked->words[walked->count++] = word;
	return _URC_NO_REASON;
}

static bool is_same(const struct walked *walked, const void *frame, uint64_t script)
{
	bool same = walked->stack && walked->frame == frame && walked->script == script;

	for (uint64_t i = 0; same && i < walked->count; i++)
		same = *walked->places[i] == walked->words[i];
	return same;
}

/*
 * The cached stack that begins with this frame and caller and still stands, or else the one to
 * walk anew: wrappers of malloc are called from many places.
 */
static struct walked *find_walked(const void *frame, const void *caller, uint64_t script)
{
	static __thread unsigned int turn __attribute__((tls_model("initial-exec")));
	uint64_t hash = hash_word((uint64_t)frame ^ (uint64_t)caller ^ script);
	struct walked *set = &cache[hash % (CACHED / WAYS) * WAYS];

	for (size_t i = 0; i < WAYS; i++)
		if (is_same(&set[i], frame, script))
			return &set[i];
	set += turn++ % WAYS;
	set->stack = 0; /* this one does not stand */
	return set;
}

/* Returns the stack of malloc()'s caller, or 0. */
static __attribute__((noinline)) uint64_t take_stack(const void *frame, const void *caller)
{
	struct walked other, *walked = &other;
	struct script script;
	uint64_t calls = 0;
	struct walk walk;

	script.count = 0;
	if (language) {
		language->visit(add_call, &script);
		calls = script.count ? find_stack(script.calls, script.count) : 0;
	}
	if (!cache) {
		cache = map(CACHED * sizeof(*cache));
		pthread_setspecific(cache_key, cache);
	}
	if (cache)
		walked = find_walked(frame, caller, calls);
	if (cache && walked->stack)
		return walked->stack;
	walk = (struct walk){ .walked = walked, .script = &script };
	walked->count = walked->stack = 0;
	walked->frame = frame;
	walked->script = calls;
	_Unwind_Backtrace(add_frame, &walk);
	while (walk.script_next < script.count)
		add_script(&walk);
	if (walk.count == 0)
		return 0;
	walked->stack = find_stack(walk.words, walk.count);
	if (walk.is_odd)
		walked->frame = NULL;
	return walked->stack;
}

/* Note who allocated the block; it is inlined, so that stacks begin at a known depth. */
static inline __attribute__((always_inline)) void *record_any(void *block)
{
	uint64_t stack;

	if (!block || is_inside || !is_ready)
		return block;
	is_inside = true;
	stack = take_stack(__builtin_frame_address(0), __builtin_return_address(0));
	if (stack)
		insert((uint64_t)block, stack);
	else
		lose();
	is_inside = false;
	return block;
}

static void begin(void);

static inline __attribute__((always_inline)) void *record(void *block)
{
	if (!heapcore_recorder.is_called) {
		begin();
		heapcore_recorder.is_called = is_ready;
	}
	return block && is_wanted(block) ? record_any(block) : block;
}

static bool is_early(const void *block)
{
	return (const char *)block >= early && (const char *)block < early + EARLY_BYTES;
}

/* dlsym() allocates while the recorder starts, also what it keeps of failures. This memory is zero
 * and never freed. */
static void *allocate_early(size_t size)
{
	void *block = early + early_used;

	if (size > EARLY_BYTES - UNIT - early_used)
		return NULL;
	early_used += (size + UNIT - 1) / UNIT * UNIT;
	return block;
}

static void find_allocator(void)
{
#define FIND(name, symbol) next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, symbol)
	FIND(calloc, "calloc");
	FIND(realloc, "realloc");
	FIND(memalign, "memalign");
	FIND(aligned_alloc, "aligned_alloc");
	FIND(posix_memalign, "posix_memalign");
	FIND(valloc, "valloc");
	FIND(pvalloc, "pvalloc");
	FIND(free, "free");
	FIND(usable, "malloc_usable_size");
	FIND(dlopen, "dlopen");
	FIND(malloc, "malloc"); /* the last: that it is there says that all are */
#undef FIND
}

static bool has_allocator(void)
{
	static bool is_looking;

	if (next.malloc)
		return true;
	if (is_looking)
		return false;
	is_looking = true;
	find_language();
	find_allocator();
	is_looking = false;
	return next.malloc;
}

static void read_sizes(void)
{
	const char *text = getenv(RECORDER_SIZES);

	has_sizes = next.usable && text && *text;
	while (has_sizes && *text) {
		size_t units = strtoul(text, NULL, 10) / UNIT;

		/*
		 * malloc may add the rest of a free block to an allocation, so record the
		 * neighbouring sizes, too.
		 */
		*wanted_at(units) = *wanted_at(units + 1) = 1;
		if (units > 0)
			*wanted_at(units - 1) = 1;
		text += strcspn(text, ",");
		text += *text == ',';
	}
}

/* Only the thread that called fork() is there. */
static void begin_child(void)
{
	stacks_lock = 0;
}

/*
 * Constructors of libraries allocate before this one is called, so that the first allocation after
 * libc's own constructor calls it, too.
 */
static __attribute__((constructor)) void begin(void)
{
	static bool is_begun;

	if (is_begun || !environ || !has_allocator())
		return;
	is_begun = is_inside = true;
	if (pthread_key_create(&cache_key, drop_cache) != 0)
		return;
	read_sizes();
	slots = map(STACK_SLOTS * sizeof(*slots));
	heapcore_recorder.stacks = ~(uint64_t)map(RECORDER_STACK_WORDS * sizeof(uint64_t));
	heapcore_recorder.folder = ~(uint64_t)map(RECORDER_PLANES * sizeof(uint64_t));
	pthread_atfork(NULL, NULL, begin_child);
	is_inside = false;
	if (!slots || ~heapcore_recorder.stacks == 0 || ~heapcore_recorder.folder == 0)
		return;
	memcpy(heapcore_recorder.magic, RECORDER_MAGIC, sizeof(RECORDER_MAGIC));
	is_ready = true;
}

#pragma GCC visibility push(default)

void *malloc(size_t size)
{
	return has_allocator() ? record(next.malloc(size)) : allocate_early(size);
}

void *calloc(size_t count, size_t size)
{
	return has_allocator() ? record(next.calloc(count, size)) : allocate_early(count * size);
}

void free(void *block)
{
	if (is_early(block))
		return;
	forget(block);
	if (next.free)
		next.free(block);
}

void *realloc(void *block, size_t size)
{
	uint64_t stack;
	void *moved;

	if (is_early(block)) {
		moved = malloc(size);
		if (moved)
			memcpy(moved, block, size);
		return moved;
	}
	if (!has_allocator())
		return allocate_early(size);
	stack = forget(block);
	moved = next.realloc(block, size);
	if (!moved && size && stack)
		insert((uint64_t)block, stack);
	return record(moved);
}

/*
 * Aligned ones have different sizes in each run: what is cut off before them is at times too small.
 */
void *memalign(size_t alignment, size_t size)
{
	return has_allocator() ? record_any(next.memalign(alignment, size)) : NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return has_allocator() ? record_any(next.aligned_alloc(alignment, size)) : NULL;
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	int error = has_allocator() ? next.posix_memalign(ret, alignment, size) : ENOMEM;

	if (error == 0)
		record_any(*ret);
	return error;
}

void *valloc(size_t size)
{
	return has_allocator() ? record_any(next.valloc(size)) : NULL;
}

void *pvalloc(size_t size)
{
	return has_allocator() ? record_any(next.pvalloc(size)) : NULL;
}

/*
 * A library that is loaded with RTLD_DEEPBIND, as PHP loads its own, would call libc's malloc().
 * This ends in a jump: where to look for the library depends on who calls dlopen().
 */
void *dlopen(const char *path, int flags)
{
	return has_allocator() ? next.dlopen(path, flags & ~RTLD_DEEPBIND) : NULL;
}

/* libgc's function of that name, wherever libgc is loaded; NULL: it is not. */
static void *find_collector(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);
	void *library = function ? NULL : dlopen("libgc.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (library)
		function = dlsym(library, name);
	return function;
}

/*
 * Note who allocated an object of a collector. What it frees is not noted, as nobody asks for the
 * calls of free blocks. Objects do not leak, so they are not noted if only some sizes are.
 */
static inline __attribute__((always_inline)) void *record_object(void *object)
{
	return has_sizes ? object : record_any(object);
}

#define COLLECTOR(name, parameters, arguments, instead)                          \
	void *name parameters;                                                   \
	void *name parameters                                                    \
	{                                                                        \
		static void *(*function)parameters;                              \
                                                                                 \
		if (!function)                                                   \
			function = (__typeof__(function))find_collector(#name);  \
		return function ? record_object(function arguments) : (instead); \
	}

COLLECTOR(GC_malloc, (size_t size), (size), malloc(size))
COLLECTOR(GC_malloc_atomic, (size_t size), (size), malloc(size))
COLLECTOR(GC_malloc_uncollectable, (size_t size), (size), malloc(size))
COLLECTOR(GC_malloc_ignore_off_page, (size_t size), (size), malloc(size))
COLLECTOR(GC_malloc_atomic_ignore_off_page, (size_t size), (size), malloc(size))
COLLECTOR(GC_malloc_kind, (size_t size, int kind), (size, kind), malloc(size))
COLLECTOR(GC_generic_malloc, (size_t size, int kind), (size, kind), malloc(size))
COLLECTOR(GC_malloc_explicitly_typed, (size_t size, unsigned long type), (size, type), malloc(size))
COLLECTOR(GC_realloc, (void *object, size_t size), (object, size), realloc(object, size))

/* A list for the caller to allocate from: what is taken from it has no known calls. */
void GC_generic_malloc_many(size_t size, int kind, void **ret);
void GC_generic_malloc_many(size_t size, int kind, void **ret)
{
	static void (*function)(size_t size, int kind, void **ret);

	*ret = NULL;
	if (!function)
		function = (__typeof__(function))find_collector("GC_generic_malloc_many");
	if (function)
		function(size, kind, ret);
	for (void *object = *ret; object; object = *(void **)object)
		forget(object);
}

#pragma GCC visibility pop
