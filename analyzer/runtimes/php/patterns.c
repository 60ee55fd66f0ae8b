/*
 * Patterns of the parts of PHP's engine, see parts.c: the runtime finds them before there are
 * patterns.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/php/space.h"

extern const struct runtime runtime_php;

static void inspect(struct reader *reader, const struct subject *subject)
{
	const struct php *php = (const struct php *)runtimes_space(reader->runtimes, &runtime_php);

	if (php && php->parts.items[subject->id] == reader_kind(reader))
		reader_claim(reader, subject->id,
			     php->owned.items[address_map_find(&php->owners, subject->id)].owner);
}

#define PART(part_kind, ...)                                                       \
	.runtime = &runtime_php, .inspect = inspect, .kind = PHP_PART_##part_kind, \
	.least_size = 8, .pointerless = true, __VA_ARGS__

/* It names itself. */
#define MARKED(...) PART(__VA_ARGS__, .strength = STRENGTH_MARKED)

CLASSIFIER(php_class, "PhpClass", "a class of PHP", "the class", MARKED(CLASS));
CLASSIFIER(php_code, "PhpCode", "compiled code of PHP: operations of a function",
	   "the code of the function", MARKED(CODE));
CLASSIFIER(php_function, "PhpFunction", "a function or method of PHP", "a function of the class",
	   MARKED(FUNCTION));
CLASSIFIER(php_member, "PhpMember",
	   "PHP's record of a member or constant of a class, or of arguments",
	   "a description of members or arguments", MARKED(MEMBER));
CLASSIFIER(php_names, "PhpVariableNames", "the names of a function's variables in PHP",
	   "the names of the function's variables", MARKED(NAMES));

/* Other shapes say more. */
CLASSIFIER(php_part, "PhpPart",
	   "memory reachable only from PHP's engine, a class, a function or an object",
	   "a part of it", PART(OTHER, .strength = STRENGTH_TEXT));
CLASSIFIER(php_table, "PhpTable", "a table of PHP's engine, or of one of its classes", "a table",
	   MARKED(TABLE));
