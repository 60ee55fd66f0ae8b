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

/* Whether the first group that a meta of the area names, names the meta. */
static bool is_area(struct search *search, uint64_t area)
{
	uint64_t back;

	for (unsigned int i = 0; i < (AREA_BYTES - AREA_HEAD) / META_BYTES; i++) {
		uint64_t meta = area + AREA_HEAD + META_BYTES * (uint64_t)i, group;

		if (!view_word(&search->view, meta + 16, &group))
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
	uint64_t secret, words[SECRET_WORDS];

	if (heap->head || word < PAGE || word % AREA_BYTES != 0 ||
	    !view_word(&search->view, word, &secret) || secret == 0 ||
	    !view_read(&search->groups, where - sizeof(words), words, sizeof(words)))
		return NULL;
	for (unsigned int i = 0; i < SECRET_WORDS; i++)
		if (words[i] == secret && is_area(search, word)) {
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
