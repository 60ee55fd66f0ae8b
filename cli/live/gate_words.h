/*
 * Command lines whose options are those of a mode, and the switches of the command `gate`.
 */
#pragma once

#include <argp.h>
#include <stddef.h>

/* Both lists have room for all arguments and begin with a name; their words are borrowed. */
struct gate_words {
	char **own; /* of the mode */
	size_t own_count;
	char **gate;
	size_t gate_count;
};

/*
 * Put each option to the list it belongs to; returns where the first other word is, behind a `--`
 * if there is one. What belongs to nobody is the mode's to complain of.
 */
int gate_words_divide(const struct argp_option *own, int count, char **arguments,
		      struct gate_words *words);
