#include "analyzer/runtimes/crystal/guess.h"

#include "analyzer/base/sort.h"
#include "analyzer/runtimes/crystal/code.h"

/* Two are taken, if each makes objects in so many places. */
enum { MAKERS = 2, LEAST = 8, MOST_GUESSES = 4096 };

/* A function whose results get numbers stored into, and how often. */
struct guess {
	uint64_t function;
	size_t count;
};

static void count_guess(struct guess *guesses, size_t *count, uint64_t function)
{
	for (size_t i = 0; i < *count; i++)
		if (guesses[i].function == function) {
			guesses[i].count++;
			return;
		}
	if (*count < MOST_GUESSES)
		guesses[(*count)++] = (struct guess){ function, 1 };
}

static bool is_anything(const void *data, uint64_t function)
{
	return true;
}

DEFINE_COMPARE(compare_guesses, struct guess, DESCENDING(count))

struct error *guess_makers(struct makers *makers, const struct function_list *list)
{
	_cleanup_(code_reader_destroy) struct code_reader *reader = NULL;
	_cleanup_(free) struct guess *guesses = calloc(MOST_GUESSES, sizeof(*guesses));
	struct error *error =
		guesses ? code_reader_create(makers->image, is_anything, NULL, &reader)
			: &error_no_memory;
	size_t count = 0;

	for (size_t i = 0; !error && i < list->count; i++) {
		const struct made_object *made;
		size_t found = code_find_objects(reader, function_at(list, i)->start,
						 function_at(list, i)->end, &made);

		for (size_t j = 0; j < found; j++)
			if (made[j].store && made_object_has_type(&made[j]))
				count_guess(guesses, &count, made[j].maker);
	}
	if (error)
		return error;
	SORT(guesses, count, compare_guesses);
	for (size_t i = 0; i < count && i < MAKERS; i++)
		if (guesses[i].count >= LEAST)
			makers_add_guess(makers, guesses[i].function);
	return NULL;
}
