/*
 * Patterns of names: * stands for any text.
 */
#ifndef ANALYZER_GATE_WILDCARD_H
#define ANALYZER_GATE_WILDCARD_H

#include <stdbool.h>

/* Whether all of text is as the pattern says. */
bool wildcard_matches(const char *pattern, const char *text);

/*
 * The same as LeakSanitizer has it: somewhere in the text, unless ^ begins or $ ends the pattern.
 */
bool wildcard_found(const char *pattern, const char *text);

#endif
