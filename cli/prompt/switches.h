/*
 * The switches of a command, in either spelling.
 *
 *	--show-up-to 16    --show-up-to=16    /showUpTo 16
 *	--show-ascii                          /showAscii true
 *
 * A command's argp_option table names them; one without the name of a value is a flag, and one
 *whose name is a letter can be written `-o`. Names are compared without regard to case and dashes.
 *Behind a
 * `--` there are only words.
 */
#pragma once

#include "cli/command.h"

/* Switches that every command that looks at a dump has. */
extern const struct argp_option common_options[];

/* Values of the common switches; NULL: not given. Borrowed from the words. */
struct common_switches {
	bool chap;	    /* set before: all sizes are hexadecimal */
	const char *format; /* of the output */
	const char *table;  /* the only one to be written */
	const char *suffix; /* of the file's name while `redirect` is on */
};

/*
 * Hand the count words behind the command's name to its parse(). arguments are the command's own,
 * zeroed; they are to be released also after an error.
 */
struct error *switches_parse(const struct command *command, char *const *words, size_t count,
			     void *arguments, struct common_switches *common);

/*
 * The rest of an argp parser: keep the value of an option with KEEP() in what the state has as its
 * input. ARGP_ERR_UNKNOWN if the key is no such option's.
 */
error_t switch_take(const struct argp_option *options, int key, const char *value,
		    struct argp_state *state);

/* Let argp say what is wrong, and end the program; 0 if nothing is. */
error_t switch_refuse(struct argp_state *state, struct error *error);

/* The option that word, with its `--` or `/`, stands for, or NULL. */
const struct argp_option *switch_find(const struct command *command, const char *word);

/*
 * How many words the switch takes up that begins with word: 2 if its value is the next one, else 1;
 * 0 if word is no switch of the command.
 */
size_t switch_places(const struct command *command, const char *word);

/* True if the option is a switch, neither a heading nor hidden. */
bool switch_is_shown(const struct argp_option *option);

/* True if the switch writes or reads a file, or runs a program: only people may use it. */
bool switch_reaches_out(const struct argp_option *option);

/* An option's name as older tools spell it: "/showupto". */
enum { SLASHED_SIZE = 64 };
void switch_spell_slashed(const char *name, char ret[static SLASHED_SIZE]);
