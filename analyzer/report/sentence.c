#include "analyzer/report/sentence.h"

#include "analyzer/report/values.h"

#include <assert.h>
#include <ctype.h>

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

/* Compile "name|one|many}", or "name|count}". */
static void compile_plural(const struct table *table, struct part *part, const char *choices)
{
	const char *many = choices + strcspn(choices, "|}") + 1;

	if (many[-1] == '}') {
		part->kind = PART_NOUN;
		part->count = find_column(table, choices, (size_t)(many - 1 - choices));
		return;
	}

	part->one = choices;
	part->one_length = (size_t)(many - 1 - choices);
	part->text = many;
	part->length = strcspn(many, "}");
}

/* If "({name,}) bytes" follows, perhaps behind a blank, it is the same value: return its end. */
static const char *sum_end(const char *text, const char *name, size_t length)
{
	static const char tail[] = ",}) bytes";

	text += *text == ' ';
	if (strncmp(text, "({", 2) != 0 || strncmp(text + 2, name, length) != 0 ||
	    strncmp(text + 2 + length, tail, strlen(tail)) != 0)
		return NULL;
	return text + 2 + length + strlen(tail);
}

/* Compile {name}, {name,} or {name|one|many}; returns what is behind it. */
static const char *compile_value(const struct table *table, const char *text, bool prefixed,
				 struct sentence *sentence)
{
	const char *end = strchr(text, '}') + 1, *whole;
	size_t length = strcspn(text, ",|}");
	struct part *part = add_part(sentence, text[length] == '|'   ? PART_PLURAL
					       : text[length] == ',' ? PART_GROUPED
								     : PART_VALUE);

	part->column = find_column(table, text, length);
	part->value_kind = table->columns[part->column].kind;
	part->prefixed = prefixed;
	if (part->kind == PART_PLURAL)
		compile_plural(table, part, text + length + 1);
	whole = prefixed ? sum_end(end, text, length) : NULL;
	if (!whole)
		return end;
	part->kind = PART_SUM;
	part->text = end;
	part->length = (size_t)(strchr(end, '{') - end);
	return whole;
}

/* Leaves out an 0x that belongs to the value behind it. */
static const char *compile_literal(const char *text, struct sentence *sentence, bool *ret_prefixed)
{
	struct part *part = add_part(sentence, PART_LITERAL);
	size_t length = strcspn(text, "{[]");
	bool prefixed = text[length] == '{' && isalpha((unsigned char)text[length + 1]) &&
			length >= 2 && memcmp(text + length - 2, "0x", 2) == 0;

	part->text = text;
	part->length = length - (prefixed ? 2 : 0);
	*ret_prefixed = prefixed;
	return text + length;
}

static void end_optional(struct sentence *sentence, size_t begin)
{
	struct part *optional = &sentence->parts[begin];

	optional->end = sentence->count;
	for (size_t i = begin + 1; i < sentence->count; i++) {
		const struct part *part = &sentence->parts[i];

		/* Values of an inner optional part are not required here. */
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
	bool prefixed = false;

	ret->table = table;
	ret->count = 0;
	while (*text) {
		if (*text == '{' && (text[1] == '[' || text[1] == ']')) {
			text = compile_bracket(text + 1, ret);
		} else if (*text == '{') {
			text = compile_value(table, text + 1, prefixed, ret);
			prefixed = false;
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
			text = compile_literal(text, ret, &prefixed);
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

static void write_hexadecimal(struct writer *writer, const struct value *value, bool prefixed)
{
	writer_text(writer, prefixed ? "0x" : "");
	writer_hexadecimal(writer, value->number);
}

/* The first word in the plural is the noun. */
static void write_singular(struct writer *writer, const char *noun)
{
	const char *end = noun;
	size_t cut = 1;

	do {
		end += *end == ' ';
		end += strcspn(end, " ,");
	} while (*end == ' ' && end[-1] != 's');
	if (end - noun > 4 && (memcmp(end - 4, "ches", 4) == 0 || memcmp(end - 4, "sses", 4) == 0))
		cut = 2;
	writer_bytes(writer, noun, (size_t)(end - noun) - cut);
	writer_text(writer, end);
}

/* As chap has it: as the sentence spells it. */
static void write_spelled(struct writer *writer, const struct part *part, const struct value *value)
{
	if (part->kind == PART_PLURAL) {
		writer_bytes(writer, part->text, part->length);
	} else if (part->kind == PART_SUM) {
		write_hexadecimal(writer, value, true);
		writer_bytes(writer, part->text, part->length);
		value_write(writer, VALUE_BYTES, true, value);
		writer_text(writer, ") bytes");
	} else {
		writer_text(writer, part->prefixed ? "0x" : "");
		value_write(writer, part->value_kind, part->kind == PART_GROUPED, value);
	}
}

/* "1,640 bytes", "1,640 bytes (1.6 KiB)". */
static void write_sum(struct writer *writer, uint64_t bytes, bool in_units)
{
	char units[NUMBER_SIZE];

	writer_grouped(writer, bytes);
	writer_text(writer, bytes == 1 ? " byte" : " bytes");
	if (in_units && bytes >= 1024)
		writer_format(writer, writer_text, " (%s)", in_largest_unit(bytes, units));
}

static void write_part(struct writer *writer, const struct part *part, const struct value *values,
		       bool in_units)
{
	const struct value *value = &values[part->column];
	bool grouped = part->kind == PART_GROUPED;

	if (part->kind == PART_NOUN && values[part->count].number == 1) {
		write_singular(writer, value->text);
	} else if (part->kind == PART_PLURAL && value->number == 1) {
		writer_bytes(writer, part->one, part->one_length);
	} else if (part->kind == PART_PLURAL) {
		writer_bytes(writer, part->text, part->length);
	} else if (part->kind == PART_SUM) {
		write_sum(writer, value->number, in_units);
	} else if (part->value_kind == VALUE_BYTES && !grouped) {
		value_write(writer, VALUE_BYTES, true, value);
		writer_text(writer, " (");
		write_hexadecimal(writer, value, true);
		writer_put(writer, ')');
	} else if (part->value_kind == VALUE_ADDRESS) {
		write_hexadecimal(writer, value, true);
	} else {
		value_write(writer, part->value_kind, grouped || part->value_kind == VALUE_COUNT,
			    value);
	}
}

void sentence_write(const struct sentence *sentence, struct writer *writer,
		    const struct value *values, struct sentence_style style)
{
	for (size_t i = 0; i < sentence->count; i++) {
		const struct part *part = &sentence->parts[i];
		const struct value *value = &values[part->column];
		const char *colour = NULL;

		if (part->kind == PART_LITERAL) {
			writer_bytes(writer, part->text, part->length);
		} else if (part->kind == PART_OPTIONAL) {
			if (any_absent(part->needed, values))
				i = part->end - 1;
		} else if (value->present && style.as_chap) {
			write_spelled(writer, part, value);
		} else if (value->present) {
			if (style.colour)
				colour = value_colour(&sentence->table->columns[part->column],
						      value);
			writer_text(writer, colour ? colour : "");
			write_part(writer, part, values, style.in_units);
			writer_text(writer, colour ? COLOUR_END : "");
		}
	}
	writer_put(writer, '\n');
}

char *sentence_text(const struct table *table, const struct value *values)
{
	struct writer writer = { 0 };
	struct sentence sentence;

	sentence_compile(table, &sentence);
	sentence_write(&sentence, &writer, values, (struct sentence_style){ 0 });
	if (!writer.failed) {
		writer.buffer[writer.used - 1] = '\0'; /* the end of the line */
		return writer.buffer;
	}
	writer_deinit(&writer);
	return NULL;
}
