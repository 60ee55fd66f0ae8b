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

#define PART(part_kind, ...)                                                               \
	{                                                                                  \
		.runtime = &runtime_php, .inspect = inspect, .kind = PHP_PART_##part_kind, \
		.least_size = 8, .pointerless = true, __VA_ARGS__                          \
	}

/* It names itself. */
#define MARKED(...) PART(__VA_ARGS__, .strength = STRENGTH_MARKED)

const struct classifier classifier_php_class =
	MARKED(CLASS, .name = "PhpClass", .summary = "a class of PHP", .role = "the class");

const struct classifier classifier_php_code =
	MARKED(CODE, .name = "PhpCode", .summary = "compiled code of PHP: operations of a function",
	       .role = "the code of the function");

const struct classifier classifier_php_function =
	MARKED(FUNCTION, .name = "PhpFunction", .summary = "a function or method of PHP",
	       .role = "a function of the class");

const struct classifier classifier_php_member =
	MARKED(MEMBER, .name = "PhpMember",
	       .summary = "PHP's record of a member or constant of a class, or of arguments",
	       .role = "a description of members or arguments");

const struct classifier classifier_php_names = MARKED(
	NAMES, .name = "PhpVariableNames", .summary = "the names of a function's variables in PHP",
	.role = "the names of the function's variables");

/* Other shapes say more. */
const struct classifier classifier_php_part =
	PART(OTHER, .name = "PhpPart", .strength = STRENGTH_TEXT,
	     .summary = "memory reachable only from PHP's engine, a class, a function or an object",
	     .role = "a part of it");

const struct classifier classifier_php_table =
	MARKED(TABLE, .name = "PhpTable",
	       .summary = "a table of PHP's engine, or of one of its classes", .role = "a table");
