#include "cli/live/gate_words.h"

#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"

#include <string.h>

/* How many words an option of the mode takes up that begins with word, or 0. */
static size_t own_places(const struct argp_option *option, const char *word)
{
	size_t length = strcspn(word + 2, "=");

	for (; option->name; option++) {
		bool short_one = option->key < 256 && word[1] == option->key;

		if (short_one)
			return option->arg && !word[2] ? 2 : 1;
		if (word[1] == '-' && strlen(option->name) == length &&
		    strncmp(option->name, word + 2, length) == 0)
			return option->arg && !word[2 + length] ? 2 : 1;
	}
	return 0;
}

int gate_words_divide(const struct argp_option *own, int count, char **arguments,
		      struct gate_words *words)
{
	const struct command *gate = command_find("gate");
	int i = 1;

	while (i < count && arguments[i][0] == '-') {
		size_t places = own_places(own, arguments[i]), other = 0;

		if (strcmp(arguments[i], "--") == 0)
			return i + 1;
		if (!places && gate)
			other = switch_places(gate, arguments[i]);
		for (size_t n = places + other ? places + other : 1; n > 0 && i < count; n--, i++) {
			if (other)
				words->gate[words->gate_count++] = arguments[i];
			else
				words->own[words->own_count++] = arguments[i];
		}
	}
	return i;
}
