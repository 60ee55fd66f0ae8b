#include "analyzer/program/debug/lines.h"

#include "analyzer/program/debug/files.h"

#include <dwarf.h>

/* A unit's program, from its header. */
struct line_program {
	struct cursor line_texts, texts; /* the sections that names of version 5 are in */
	struct cursor folders, files, code;
	unsigned int version;
	size_t width; /* of offsets */
	size_t address_size;
	uint64_t smallest; /* of an instruction */
	int64_t line_base;
	uint64_t line_range;
	uint64_t first_opcode;	 /* of the special ones */
	const uint8_t *operands; /* of each standard opcode, how many */
};

/* The fields of an entry in a table of folders or files (version 5). */
struct entry_format {
	uint64_t count;
	struct cursor fields;
};

struct file_entry {
	const char *name;
	uint64_t folder;
};

static const char *text_at(struct cursor section, uint64_t offset)
{
	cursor_skip(&section, offset);
	return cursor_text(&section);
}

static void read_field(const struct line_program *program, struct cursor *cursor, uint64_t content,
		       uint64_t form, struct file_entry *entry)
{
	const char *text = NULL;
	uint64_t number = 0;

	switch (form) {
	case DW_FORM_string:
		text = cursor_text(cursor);
		break;
	case DW_FORM_line_strp:
		number = cursor_number(cursor, program->width);
		text = text_at(program->line_texts, number);
		break;
	case DW_FORM_strp:
		number = cursor_number(cursor, program->width);
		text = text_at(program->texts, number);
		break;
	case DW_FORM_udata:
		number = cursor_unsigned(cursor);
		break;
	case DW_FORM_data1:
		number = cursor_number(cursor, 1);
		break;
	case DW_FORM_data2:
		number = cursor_number(cursor, 2);
		break;
	case DW_FORM_data4:
		number = cursor_number(cursor, 4);
		break;
	case DW_FORM_data8:
		number = cursor_number(cursor, 8);
		break;
	case DW_FORM_data16:
		cursor_skip(cursor, 16);
		break;
	case DW_FORM_block:
		cursor_skip(cursor, cursor_unsigned(cursor));
		break;
	default: /* of unknown size: what follows cannot be read */
		cursor->at = cursor->end;
	}
	if (content == DW_LNCT_path)
		entry->name = text;
	else if (content == DW_LNCT_directory_index)
		entry->folder = number;
}

static struct entry_format read_format(struct cursor *cursor)
{
	struct entry_format format = { cursor_number(cursor, 1), *cursor };

	for (uint64_t i = 0; i < format.count; i++) {
		cursor_unsigned(cursor);
		cursor_unsigned(cursor);
	}
	format.fields.end = cursor->at;
	return format;
}

static struct file_entry read_entry(const struct line_program *program, struct entry_format format,
				    struct cursor *cursor)
{
	struct file_entry entry = { 0 };

	for (uint64_t i = 0; i < format.count; i++) {
		uint64_t content = cursor_unsigned(&format.fields);
		uint64_t form = cursor_unsigned(&format.fields);

		read_field(program, cursor, content, form, &entry);
	}
	return entry;
}

/* The number-th entry of a table; what is behind the table is left there. */
static struct file_entry find_entry(const struct line_program *program, struct cursor *cursor,
				    uint64_t number)
{
	struct entry_format format = read_format(cursor);
	uint64_t count = cursor_unsigned(cursor);
	struct file_entry found = { 0 };

	if (format.count == 0)
		return found;
	for (uint64_t i = 0; i < count && cursor_left(cursor); i++) {
		struct file_entry entry = read_entry(program, format, cursor);

		if (i == number)
			found = entry;
	}
	return found;
}

/* Before version 5, tables were lists of texts, from number 1 on. */
static struct file_entry find_old_file(struct cursor cursor, uint64_t number)
{
	struct file_entry entry = { 0 };

	for (uint64_t i = 1; i <= number && cursor_left(&cursor); i++) {
		entry.name = cursor_text(&cursor);
		if (!entry.name || !*entry.name)
			return (struct file_entry){ 0 };
		entry.folder = cursor_unsigned(&cursor);
		cursor_unsigned(&cursor); /* time */
		cursor_unsigned(&cursor); /* size */
	}
	return entry;
}

static const char *find_old_folder(struct cursor cursor, uint64_t number)
{
	const char *folder = NULL;

	for (uint64_t i = 1; i <= number; i++) {
		folder = cursor_text(&cursor);
		if (!folder || !*folder)
			return NULL;
	}
	return folder;
}

static bool find_file(const struct line_program *program, uint64_t number, struct source_line *ret)
{
	struct cursor folders = program->folders, files = program->files;
	struct file_entry entry;

	if (program->version >= 5)
		entry = find_entry(program, &files, number);
	else
		entry = find_old_file(files, number);
	if (!entry.name)
		return false;
	ret->file = entry.name;
	ret->folder = program->version >= 5 ? find_entry(program, &folders, entry.folder).name
					    : find_old_folder(folders, entry.folder);
	return true;
}

/* Read the tables of folders and files of versions before 5. */
static void read_old_tables(struct line_program *program, struct cursor *cursor)
{
	const char *text;

	program->folders = *cursor;
	do
		text = cursor_text(cursor);
	while (text && *text);
	program->files = *cursor;
}

static bool read_program(Dwarf_Die *unit, struct line_program *ret)
{
	Dwarf *dwarf = dwarf_cu_getdwarf(unit->cu);
	struct cursor cursor = debug_section(dwarf, ".debug_line");
	struct line_program program = { .version = 0 };
	uint8_t address_size = 8;
	uint64_t length;
	Dwarf_Attribute attribute;
	Dwarf_Word offset;

	if (!dwarf_attr(unit, DW_AT_stmt_list, &attribute) ||
	    dwarf_formudata(&attribute, &offset) != 0)
		return false;
	cursor_skip(&cursor, offset);
	length = cursor_length(&cursor, &program.width);
	if (length > cursor_left(&cursor))
		return false;
	cursor.end = cursor.at + length;
	program.version = (unsigned int)cursor_number(&cursor, 2);
	if (program.version < 2 || program.version > 5)
		return false;
	if (program.version >= 5) {
		address_size = (uint8_t)cursor_number(&cursor, 1);
		cursor_skip(&cursor, 1);
	}
	program.address_size = address_size;
	length = cursor_number(&cursor, program.width);
	program.code = cursor;
	cursor_skip(&program.code, length);
	cursor.end = program.code.at;
	program.smallest = cursor_number(&cursor, 1);
	if (program.version >= 4)
		cursor_skip(&cursor, 1); /* of a very long instruction word */
	cursor_skip(&cursor, 1);	 /* default_is_stmt */
	program.line_base = (int64_t)cursor_number(&cursor, 1);
	if (program.line_base > INT8_MAX)
		program.line_base -= UINT8_MAX + 1;
	program.line_range = cursor_number(&cursor, 1);
	program.first_opcode = cursor_number(&cursor, 1);
	program.operands = cursor.at;
	if (program.line_range == 0 || program.first_opcode == 0 ||
	    program.first_opcode - 1 > cursor_left(&cursor) ||
	    (address_size != 4 && address_size != 8))
		return false;
	cursor_skip(&cursor, program.first_opcode - 1);
	if (program.version < 5) {
		read_old_tables(&program, &cursor);
	} else {
		program.line_texts = debug_section(dwarf, ".debug_line_str");
		program.texts = debug_section(dwarf, ".debug_str");
		program.folders = cursor;
		find_entry(&program, &cursor, UINT64_MAX);
		program.files = cursor;
	}
	*ret = program;
	return true;
}

/* The registers of the machine that runs the program. */
struct line_state {
	uint64_t address, file;
	int64_t line;
	bool ended; /* the sequence */
};

static const struct line_state FIRST_STATE = { 0, 1, 1, false };

static void run_extended(struct line_program *program, struct line_state *state)
{
	uint64_t size = cursor_unsigned(&program->code);
	struct cursor operand = program->code;

	if (size > cursor_left(&operand))
		size = cursor_left(&operand);
	operand.end = operand.at + size;
	cursor_skip(&program->code, size);
	switch (cursor_number(&operand, 1)) {
	case DW_LNE_end_sequence:
		state->ended = true;
		break;
	case DW_LNE_set_address:
		state->address = cursor_number(&operand, program->address_size);
		break;
	}
}

static void run_standard(struct line_program *program, uint64_t opcode, struct line_state *state)
{
	struct cursor *code = &program->code;

	switch (opcode) {
	case DW_LNS_copy:
		break;
	case DW_LNS_advance_pc:
		state->address += program->smallest * cursor_unsigned(code);
		break;
	case DW_LNS_advance_line:
		state->line += cursor_signed(code);
		break;
	case DW_LNS_set_file:
		state->file = cursor_unsigned(code);
		break;
	case DW_LNS_const_add_pc:
		state->address +=
			program->smallest * ((255 - program->first_opcode) / program->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		state->address += cursor_number(code, 2);
		break;
	default:
		for (uint8_t i = 0; i < program->operands[opcode - 1]; i++)
			cursor_unsigned(code);
	}
}

/* Run up to the next row. */
static bool run(struct line_program *program, struct line_state *state)
{
	while (cursor_left(&program->code)) {
		uint64_t opcode = cursor_number(&program->code, 1), step;

		if (opcode >= program->first_opcode) {
			step = opcode - program->first_opcode;
			state->address += program->smallest * (step / program->line_range);
			state->line += program->line_base + (int64_t)(step % program->line_range);
			return true;
		}
		if (opcode == 0)
			run_extended(program, state);
		else
			run_standard(program, opcode, state);
		if (opcode == DW_LNS_copy || state->ended)
			return true;
	}
	return false;
}

/* A row holds for the addresses up to that of the next one. */
bool source_line_find(Dwarf_Die *unit, uint64_t address, struct source_line *ret)
{
	struct line_program program;
	struct line_state row = FIRST_STATE, next = FIRST_STATE;
	bool started = false;

	if (!read_program(unit, &program))
		return false;
	while (run(&program, &next)) {
		if (started && row.address <= address && address < next.address) {
			ret->line = row.line > 0 ? (uint64_t)row.line : 0;
			return find_file(&program, row.file, ret);
		}
		started = !next.ended;
		if (next.ended)
			next = FIRST_STATE;
		row = next;
	}
	return false;
}

bool source_file_find(Dwarf_Die *unit, uint64_t number, struct source_line *ret)
{
	struct line_program program;

	return read_program(unit, &program) && find_file(&program, number, ret);
}
