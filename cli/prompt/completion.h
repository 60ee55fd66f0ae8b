/*
 * What a word that is being typed may become.
 */
#ifndef CLI_PROMPT_COMPLETION_H
#define CLI_PROMPT_COMPLETION_H

#include "analyzer/heap/named_sets.h"

/* Offer these named sets, too, which are borrowed. */
void completion_use(const struct named_sets *sets);

/*
 * For readline, as its rl_attempted_completion_function: all that the word from start to end of its
 * line may become, in readline's form.
 */
char **complete_word(const char *word, int start, int end);

#endif
