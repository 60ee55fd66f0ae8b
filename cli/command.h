/*
 * The contract of a command, as typed at the prompt.
 *
 * Each file of commands/ defines one struct command; the build collects them. The one struct drives
 * parsing, help, completion and the manual page. A switch can be written `--name VALUE`,
 * `--name=VALUE` or, as users of older tools do, `/name VALUE` in any letter case and without
 * dashes inside.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

#include <argp.h>

/* The kinds of words that a command takes, for completion and help. */
enum word_kind {
	WORD_NONE,
	WORD_SET,    /* a set and what it takes, then one word to narrow it */
	WORD_NAMING, /* a new name and `=`, then as WORD_SET */
	WORD_ADDRESS,
	WORD_NUMBER,
	WORD_COMMAND,
	WORD_FILE,
	WORD_SWITCH, /* on or off */
	WORD_CHOICE, /* one of the command's choices, then what it takes */
};

/* The front end that runs a command; only cli/ knows what is in it. */
struct session;

/*
 * The key of an option that needs no code: which field of the arguments its value goes to, and
 * with KEEP_GIVEN, which bool behind that says that there was one. Keys have 23 bits for argp.
 *
 *	{ "log", KEEP(TEXT, struct run_options, log_path), "FILE", 0, "Write to FILE", 0 },
 *	{ "quiet", 'q', NULL, BY_LETTER(KEEP(FLAG, struct run_options, quiet)), "Report errors", 0
 *},
 *
 * An option that argp knows by its letter has that as its key, and the rest among its flags.
 */
enum {
	KEEP_FLAG,
	KEEP_TEXT,
	KEEP_COUNT,
	KEEP_SIZE,
	KEEP_ADDRESS,
	KEEP_TIME,
	KEEP_CHOICE, /* an enum in the order of the option's argument, as "auto|always|never" */
	KEEP_LIST,   /* a struct word_list, of which it is the next */
};
enum { KEPT = 1 << 22, KIND_SHIFT = 19, GIVEN_SHIFT = 12, LETTER_SHIFT = 8 };

#define KEEP(kind, type, member) \
	(KEPT | KEEP_##kind << KIND_SHIFT | FIELD_BITS(offsetof(type, member), GIVEN_SHIFT))
#define KEEP_GIVEN(kind, type, member, given)                                                 \
	(KEEP(kind, type, member) |                                                           \
	 FIELD_BITS(offsetof(type, given) - offsetof(type, member), KIND_SHIFT - GIVEN_SHIFT) \
		 << GIVEN_SHIFT)
#define BY_LETTER(keep) ((keep) << LETTER_SHIFT)
/* The number, which must fit; a larger one does not compile. */
#define FIELD_BITS(number, bits) \
	((int)(number) + 0 * (int)sizeof(char[(number) >> (bits) == 0 ? 1 : -1]))

/* The values of an option that may be repeated; the list is owned, its words are borrowed. */
struct word_list {
	const char **list;
	size_t count;
};

/* The release() of arguments that begin with a struct word_list. */
void word_list_release(void *arguments);

struct command {
	const char *name;
	const char *summary; /* one line, a sentence without its full stop */
	const char *words;   /* as "SET [SIGNATURE]", for the usage line */
	const char *example;
	const char *description; /* further paragraphs of help, or NULL */
	const char *table;	 /* the main one of those it writes; NULL: the first */
	enum word_kind word;
	/*
	 * A list as "on|off": of WORD_CHOICE; of WORD_SET, what may precede the set. "EXPORT": a
	 * format of exports.
	 */
	const char *choices;
	const struct argp_option *options;     /* its switches, or NULL */
	const struct argp_option *own_options; /* beside options that others share; or NULL */
	bool hears_kept;		       /* parse() also sees options that KEEP() keeps */
	/*
	 * KEEP() of each of its words, with 0 behind the last; a LIST is all that are left. Those
	 * that words has in front of the first bracket must be there.
	 */
	const int *keep_words;

	/*
	 * Take a switch (key is its option's) or, with key 0, the next word that keep_words leave.
	 * At the end it is called once with key ARGP_KEY_END and no value, to complain about what
	 * is missing. value is borrowed for the command's lifetime. NULL: there is nothing to take.
	 */
	struct error *(*parse)(int key, const char *value, void *arguments);
	/*
	 * Show what is largest first, and only the first count, unless something else was asked
	 * for: returns whether that is so. Called where a person reads along; or NULL.
	 */
	bool (*shorten)(void *arguments, uint64_t count);
	bool sums_up; /* its lines are sums: in a pipe and a file, too, the largest are enough */
	bool stands_alone;     /* `heapcore NAME` needs no core, unless a file has that name */
	size_t arguments_size; /* of the struct that parse fills in, zeroed before */
	void (*release)(void *arguments); /* frees what parse took; or NULL */

	/* Its answer tells contents of memory, whatever is left out of it. */
	bool tells_content;
	/* Its text has the findings, in lines that fit a terminal. */
	bool tells_findings;
	enum stage needs; /* built before run; sets build their own */

	struct error *(*run)(struct analysis *analysis, const void *arguments,
			     struct report *report);
	/*
	 * Write what is left to say of a core that cannot be opened or analysed; or NULL. Nothing
	 * is known of it but its path.
	 */
	void (*fail)(const char *path, const struct error *why, struct report *report);
	/* Instead of run, for what acts on the session itself (redirect) and needs no core. */
	struct error *(*control)(struct session *session, const void *arguments,
				 struct report *report);
};

extern const struct command *const commands[]; /* NULL at the end */

static inline bool command_needs_core(const struct command *command)
{
	return command->run;
}
