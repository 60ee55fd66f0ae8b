#include "analyzer/report/kept_row.h"

#include <stdlib.h>
#include <string.h>

void kept_row_take(struct kept_row *row, const struct report *report, const struct value *value)
{
	size_t column = report->column;

	row->table = report->table;
	row->values[column] = *value;
	if (report->table->columns[column].kind != VALUE_TEXT || !value->present)
		return;
	row->texts[column] = strdup(value->text);
	row->failed |= !row->texts[column];
}

void kept_row_clear(struct kept_row *row)
{
	for (size_t i = 0; i < MAXIMUM_COLUMNS; i++)
		free(row->texts[i]);
	*row = (struct kept_row){ .failed = row->failed };
}

static const size_t NO_COLUMN = SIZE_MAX;

static size_t find(const struct kept_row *row, const char *column)
{
	for (size_t i = 0; row->table && i < row->table->column_count; i++)
		if (strcmp(row->table->columns[i].name, column) == 0)
			return !row->values[i].present ? NO_COLUMN : i;
	return NO_COLUMN;
}

const char *kept_row_text(const struct kept_row *row, const char *column)
{
	size_t number = find(row, column);

	return number == NO_COLUMN || !row->texts[number] ? "" : row->texts[number];
}

uint64_t kept_row_number(const struct kept_row *row, const char *column)
{
	size_t number = find(row, column);

	return number == NO_COLUMN ? 0 : row->values[number].number;
}
