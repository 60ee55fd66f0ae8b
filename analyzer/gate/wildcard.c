#include "analyzer/gate/wildcard.h"

#include <stddef.h>
#include <string.h>

/*
 * Each * first takes nothing; where what is behind it does not fit, it takes one letter more. Only
 * the last * need be tried again.
 */
static bool matches(const char *pattern, size_t size, const char *text, bool open_end)
{
	const char *end = pattern + size, *star = NULL, *retry = NULL;

	while (*text) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (pattern < end && *pattern == *text) {
			pattern++;
			text++;
		} else if (pattern == end && open_end) {
			return true;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool wildcard_matches(const char *pattern, const char *text)
{
	return matches(pattern, strlen(pattern), text, false);
}

bool wildcard_found(const char *pattern, const char *text)
{
	size_t size = strlen(pattern);
	bool from_start = pattern[0] == '^', to_end;

	pattern += from_start;
	size -= from_start;
	to_end = size > 0 && pattern[size - 1] == '$';
	size -= to_end;
	do {
		if (matches(pattern, size, text, !to_end))
			return true;
	} while (!from_start && *text++);
	return false;
}
