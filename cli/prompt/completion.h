/* Completes the word that is being typed. */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "cli/prompt/lexer.h"

#include <argp.h>
#include <stdio.h>

/*
 * Offer its named sets, too, and where the symbols of modules may be read, classes, with the types
 * of STAGE_TYPES if that is built. The analysis is borrowed until NULL is used instead.
 */
void completion_use(struct analysis *analysis, bool reads_symbols);

/* Characters that end a word. */
extern const char completion_word_breaks[];

/*
 * For readline, as its rl_attempted_completion_function: all that the word from start to end of its
 * line may become, in readline's form.
 */
char **complete_word(const char *word, int start, int end);

/* All that the last word of an unfinished line may become, a line each. */
void completion_write_line(const char *text, FILE *out);

/*
 * For shells: all that the last word may become, a line each: of a command of the prompt; as one of
 * the options; or behind the text before, which it begins with, as one of the values "A|B". Nothing
 * is written where only files fit.
 */
void completion_write(const struct line *line, FILE *out);
void completion_write_options(const char *word, const struct argp_option *options, FILE *out);
void completion_write_values(const char *word, const char *before, const char *values, FILE *out);
