#include "analyzer/classify/taint_memory.h"

#include "analyzer/base/bitmap.h"
#include "analyzer/classify/reference_judge.h"

#include <stdlib.h>

enum {
	KEPT_SOURCES = 4,
	LARGE = 4096, /* bytes; smaller ones are sooner looked at again */
};

struct kept_source {
	allocation_id id;
	struct bitmap sound; /* what it refers to */
};

struct taint_memory {
	struct reference_judge judge;
	struct kept_source kept[KEPT_SOURCES];
	size_t oldest;
};

struct error *taint_memory_create(const struct patterns *patterns, struct memory_account *account,
				  struct taint_memory **ret)
{
	_cleanup_(taint_memory_destroy) struct taint_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return &error_no_memory;
	reference_judge_init(&memory->judge, patterns);
	for (size_t i = 0; i < KEPT_SOURCES; i++) {
		struct kept_source *kept = &memory->kept[i];
		struct error *error = bitmap_init(
			&kept->sound, allocation_count(memory->judge.reader.index), account);

		if (error)
			return error;
		kept->id = NO_ALLOCATION;
	}
	*ret = take(memory);
	return NULL;
}

void taint_memory_destroy(struct taint_memory *memory)
{
	for (size_t i = 0; i < KEPT_SOURCES; i++)
		bitmap_deinit(&memory->kept[i].sound);
	free(memory);
}

static struct error *add_target(void *data, allocation_id target)
{
	bitmap_set(data, target);
	return NULL;
}

static struct error *remove_target(void *data, allocation_id target)
{
	bitmap_clear(data, target);
	return NULL;
}

/* Both end with errors of visit only, which has none. */
static void keep(struct kept_source *kept, struct reference_judge *judge, allocation_id source)
{
	if (kept->id != NO_ALLOCATION) {
		reference_judge_set_source(judge, kept->id);
		reference_judge_visit_sound(judge, remove_target, &kept->sound);
	}
	reference_judge_set_source(judge, source);
	reference_judge_visit_sound(judge, add_target, &kept->sound);
	kept->id = source;
}

static const struct bitmap *sound_targets(struct taint_memory *memory, allocation_id source)
{
	struct kept_source *kept;

	for (size_t i = 0; i < KEPT_SOURCES; i++)
		if (memory->kept[i].id == source)
			return &memory->kept[i].sound;
	kept = &memory->kept[memory->oldest++ % KEPT_SOURCES];
	keep(kept, &memory->judge, source);
	return &kept->sound;
}

const char *taint_memory_find(struct taint_memory *memory, allocation_id source,
			      allocation_id target)
{
	struct reference_judge *judge = &memory->judge;

	if (allocation_size(judge->reader.index, source) >= LARGE &&
	    bitmap_get(sound_targets(memory, source), target))
		return NULL;
	reference_judge_set_source(judge, source);
	return reference_judge_find_taint(judge, target);
}
