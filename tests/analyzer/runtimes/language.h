/*
 * A process of a language in a little world (world.h): the data of its module, and a heap, whose
 * blocks are laid out as words.
 *
 *	language_init(&language, "/usr/bin/php8.2");
 *	text = language_add(&language, STRING, 0, 5, language_word("cache"));
 *	language_set(&language, LANGUAGE_DATA + 0x100, text);
 *	language_open(&language, &runtime_php);	from here on, nothing is added
 */
#pragma once

#include "analyzer/runtimes/object_paths.h"

#include "tests/analyzer/world.h"

static const uint64_t LANGUAGE_MODULE = 0x7f0000000000, LANGUAGE_DATA = LANGUAGE_MODULE + PAGE,
		      LANGUAGE_HEAP = 0x555500000000;

enum { LANGUAGE_DATA_SIZE = 32 * PAGE, LANGUAGE_HEAP_SIZE = 1 << 20, LANGUAGE_ALIGNMENT = 16 };

struct language {
	struct world world;
	uint64_t next;	       /* where the next block begins */
	struct runtimes *list; /* of the language alone */
	struct debug *debug;
	struct object_paths *paths;
	struct bitmap anchored; /* everything is */
	char text[256];
};

static inline void language_init(struct language *language, const char *module)
{
	*language = (struct language){ .next = LANGUAGE_HEAP };
	world_init(&language->world);
	core_add_module(&language->world.core, LANGUAGE_MODULE, LANGUAGE_DATA_SIZE, module);
	world_add_heap(&language->world, LANGUAGE_HEAP, LANGUAGE_HEAP_SIZE);
}

static inline void language_deinit(struct language *language)
{
	if (language->paths)
		object_paths_destroy(language->paths);
	bitmap_deinit(&language->anchored);
	if (language->list)
		runtimes_destroy(language->list);
	if (language->debug)
		debug_destroy(language->debug);
	world_deinit(&language->world);
}
DEFINE_DEINIT(language_deinit, struct language)

/* A block of zeros; no two touch. */
static inline uint64_t language_allocate(struct language *language, uint64_t size)
{
	uint64_t start = language->next;

	world_add_block(&language->world, (struct block){ start, size, BLOCK_USED });
	language->next += (size / LANGUAGE_ALIGNMENT + 2) * LANGUAGE_ALIGNMENT;
	return start;
}

static inline void language_set_words(struct language *language, uint64_t address,
				      const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		core_set(&language->world.core, address + 8 * i, words[i]);
}

/* The words from address on become these. */
#define language_set(language, address, ...)                                     \
	language_set_words(language, address, (const uint64_t[]){ __VA_ARGS__ }, \
			   COUNT_OF(((const uint64_t[]){ __VA_ARGS__ })))

static inline uint64_t language_add_words(struct language *language, const uint64_t *words,
					  size_t count)
{
	uint64_t start = language_allocate(language, 8 * count);

	language_set_words(language, start, words, count);
	return start;
}

/* A block of these words; returns its address. */
#define language_add(language, ...)                                     \
	language_add_words(language, (const uint64_t[]){ __VA_ARGS__ }, \
			   COUNT_OF(((const uint64_t[]){ __VA_ARGS__ })))

/* Text at address, and the zero behind it. */
static inline void language_set_text(struct language *language, uint64_t address, const char *text)
{
	memcpy(core_at(&language->world.core, address, strlen(text) + 1), text, strlen(text) + 1);
}

/* Two numbers of 32 bits in a word. */
static inline uint64_t language_pair(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

/* Find the language, its memory and its objects. */
static inline void language_open(struct language *language, const struct runtime *runtime)
{
	const struct runtime *kinds[] = { runtime, NULL };
	struct world *world = &language->world;
	const struct debug_options options = { 0 };
	const struct named_range *ranges;
	size_t count;

	world_open(world);
	world_find_program(world);
	assert_no_error(debug_create(world->image, world->program, &options, &world->findings,
				     &language->debug));
	assert_no_error(
		runtimes_create(kinds,
				&(struct runtime_context){ world->image, world->program,
							   world->index, &world->account, NULL },
				&language->list));
	assert_no_error(runtimes_find_objects(language->list, language->debug));
	assert_int_equal(runtime_count(language->list), 1);
	ranges = runtimes_memory(language->list, 0, &count);
	for (size_t i = 1; i < count; i++)
		assert_true(ranges[i - 1].range.end <= ranges[i].range.start);
}

static inline allocation_id language_find(const struct language *language, uint64_t address)
{
	return allocation_find(language->world.index, address);
}

/* The use of the language's own memory at address, or "none". */
static inline const char *language_range(const struct language *language, uint64_t address)
{
	size_t count;
	const struct named_range *ranges = runtimes_memory(language->list, 0, &count);

	for (size_t i = 0; i < count; i++)
		if (address >= ranges[i].range.start && address < ranges[i].range.end)
			return ranges[i].name;
	return "none";
}

/* The name of the class of the object in the block at address, or "none". */
static inline const char *language_class(const struct language *language, uint64_t address)
{
	uint64_t class = runtimes_class_of(language->list, language_find(language, address));
	enum class_name_kind kind;

	return class ? runtimes_class_name(language->list, class, &kind) : "none";
}

/* How the program reaches the object in the block at address, or "none"; until the next call. */
static inline const char *language_path(struct language *language, uint64_t address)
{
	struct world *world = &language->world;
	const struct object_paths_input input = {
		language->list,	     world->image,    world->index,
		&language->anchored, &world->account, &world->progress,
	};

	if (!language->paths) {
		assert_no_error(bitmap_init(&language->anchored, allocation_count(world->index),
					    &world->account));
		for (size_t i = 0; i < allocation_count(world->index); i++)
			bitmap_set(&language->anchored, i);
		assert_no_error(object_paths_create(&input, &language->paths));
	}
	return object_paths_tell(language->paths, language_find(language, address), true,
				 language->text, sizeof(language->text))
		       ? language->text
		       : "none";
}
