#include "analyzer/report/sentence.h"

#include "analyzer/report/values.h"

#include <assert.h>

static struct part *add_part(struct sentence *sentence, enum part_kind kind)
{
	struct part *part = &sentence->parts[sentence->count++];

	assert(sentence->count <= MAXIMUM_PARTS);
	*part = (struct part){ .kind = kind };
	return part;
}

static size_t find_column(const struct table *table, const char *name, size_t length)
{
	for (size_t i = 0; i < table->column_count; i++) {
		const char *column = table->columns[i].name;

		if (strncmp(column, name, length) == 0 && !column[length])
			return i;
	}
	assert(!"a sentence names a column that is not in its table");
	return 0;
}

/* Compile the bracket of {[} or {]}; returns what is behind that. */
static const char *compile_bracket(const char *text, struct sentence *sentence)
{
	struct part *part = add_part(sentence, PART_LITERAL);

	part->text = text;
	part->length = 1;
	assert(text[1] == '}');
	return text + 2;
}

/* Compile {name} or {name,}; returns what is behind it. */
static const char *compile_value(const struct table *table, const char *text,
				 struct sentence *sentence)
{
	const char *end = strchr(text, '}');
	size_t length = (size_t)(end - text);
	bool grouped = end[-1] == ',';
	struct part *part = add_part(sentence, grouped ? PART_GROUPED : PART_VALUE);

	part->column = find_column(table, text, length - grouped);
	part->value_kind = table->columns[part->column].kind;
	return end + 1;
}

static const char *compile_literal(const char *text, struct sentence *sentence)
{
	struct part *part = add_part(sentence, PART_LITERAL);

	part->text = text;
	part->length = strcspn(text, "{[]");
	return text + part->length;
}

static void end_optional(struct sentence *sentence, size_t begin)
{
	struct part *optional = &sentence->parts[begin];

	optional->end = sentence->count;
	for (size_t i = begin + 1; i < sentence->count; i++) {
		const struct part *part = &sentence->parts[i];

		/* What an inner one needs is not needed here. */
		if (part->kind == PART_OPTIONAL)
			i = part->end - 1;
		else if (part->kind != PART_LITERAL)
			optional->needed |= UINT32_C(1) << part->column;
	}
}

void sentence_compile(const struct table *table, struct sentence *ret)
{
	const char *text = table->sentence;
	size_t optional[DEEPEST_OPTIONAL];
	size_t depth = 0;

	ret->count = 0;
	while (*text) {
		if (*text == '{' && (text[1] == '[' || text[1] == ']')) {
			text = compile_bracket(text + 1, ret);
		} else if (*text == '{') {
			text = compile_value(table, text + 1, ret);
		} else if (*text == '[') {
			assert(depth < DEEPEST_OPTIONAL);
			optional[depth++] = ret->count;
			add_part(ret, PART_OPTIONAL);
			text++;
		} else if (*text == ']') {
			assert(depth > 0);
			end_optional(ret, optional[--depth]);
			text++;
		} else {
			text = compile_literal(text, ret);
		}
	}
}

static bool any_absent(uint32_t columns, const struct value *values)
{
	for (; columns; columns &= columns - 1)
		if (!values[__builtin_ctz(columns)].present)
			return true;
	return false;
}

void sentence_write(const struct sentence *sentence, struct writer *writer,
		    const struct value *values)
{
	for (size_t i = 0; i < sentence->count; i++) {
		const struct part *part = &sentence->parts[i];

		if (part->kind == PART_LITERAL) {
			writer_bytes(writer, part->text, part->length);
		} else if (part->kind != PART_OPTIONAL) {
			if (values[part->column].present)
				value_write(writer, part->value_kind, part->kind == PART_GROUPED,
					    &values[part->column]);
		} else if (any_absent(part->needed, values)) {
			i = part->end - 1;
		}
	}
	writer_put(writer, '\n');
}
