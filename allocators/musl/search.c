/*
 * Finding the heap: among the variables of libc, or of a static program, is the address of the
 * first meta area, which begins with the same secret number as these variables do.
 */
#include "allocators/musl/musl.h"

enum { SECRET_WORDS = 16 /* before the address */ };

struct search {
	struct musl_heap *heap;
	struct view view, groups;
};

/* True if the first group that a meta of the area points to points back to that meta. */
static bool is_area(struct search *search, uint64_t area)
{
	const struct image *image = search->heap->context.image;
	uint64_t back;

	for (uint64_t i = 0; i < most_metas(image); i++) {
		uint64_t meta = area + area_head(image) + meta_bytes(image) * i, group;

		if (!view_word(&search->view, meta + 2 * image_word_size(image), &group))
			return false;
		if (group)
			return view_word(&search->groups, group, &back) && back == meta;
	}
	return false;
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct musl_heap *heap = search->heap;
	const unsigned int size = image_word_size(heap->context.image);
	uint64_t secret;
	uint8_t before[SECRET_WORDS * sizeof(uint64_t)];

	/* The secret is random: the address of an object says nothing. */
	if (heap->head || word < PAGE || word % AREA_BYTES != 0 ||
	    !view_read(&search->view, word, &secret, sizeof(secret)) || secret == 0 ||
	    image_find(heap->context.image, secret) ||
	    !view_read(&search->groups, where - (uint64_t)SECRET_WORDS * size, before,
		       (size_t)SECRET_WORDS * size))
		return NULL;
	for (unsigned int i = 0; i + sizeof(secret) <= SECRET_WORDS * size; i += size)
		if (memcmp(before + i, &secret, sizeof(secret)) == 0 && is_area(search, word)) {
			heap->head = where;
			heap->secret = secret;
			return NULL;
		}
	return NULL;
}

struct error *musl_search(struct musl_heap *heap, bool *ret)
{
	const struct program *program = heap->context.program;
	struct search search = { .heap = heap,
				 .view = { heap->context.image },
				 .groups = { heap->context.image } };

	list_for_each(module, program->modules, program->module_count) {
		TRY(module_visit_words(heap->context.image, module, look, &search));
		if (!heap->head)
			continue;
		heap->module_start = module->start;
		heap->module_end = module->end;
		break;
	}
	*ret = heap->head != 0;
	return NULL;
}
