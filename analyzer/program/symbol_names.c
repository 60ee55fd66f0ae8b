#include "analyzer/program/symbol_names.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

/*
 * A file has one of all symbols and one of those for the loader; more of them are not looked at.
 * Names of a damaged file may all end in the same long text, so only their beginnings are hashed.
 */
enum { MOST_TABLES = 4, MOST_SYMBOLS = 1 << 24, MOST_HASHED = 256 };

/* A table of the file; symbols whose names have the same hash, or nearly, are linked. */
struct table {
	Elf_Data *symbols;
	const char *texts;
	size_t text_size; /* up to the end of the last one */
	size_t count;
	uint32_t mask;
	uint32_t *first; /* by hash; 0: there is none */
	uint32_t *next;	 /* by symbol */
};

struct symbol_names {
	pthread_mutex_t mutex;
	const struct image_file *file;
	bool read;
	Elf *elf;
	struct table tables[MOST_TABLES];
	size_t count;
};

struct symbol_names *symbol_names_create(const struct image_file *file)
{
	struct symbol_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	pthread_mutex_init(&names->mutex, NULL);
	names->file = file;
	return names;
}

void symbol_names_destroy(struct symbol_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->count; i++) {
		free(names->tables[i].first);
		free(names->tables[i].next);
	}
	elf_end(names->elf);
	pthread_mutex_destroy(&names->mutex);
	free(names);
}

static const char *name_of(const struct table *table, const GElf_Sym *symbol)
{
	return symbol->st_name < table->text_size ? table->texts + symbol->st_name : NULL;
}

static uint32_t hash_of(const struct table *table, const char *name)
{
	return (uint32_t)XXH3_64bits(name, strnlen(name, MOST_HASHED)) & table->mask;
}

/* From the last to the first, so that each list is in the file's order. */
static void link_symbols(struct table *table)
{
	GElf_Sym symbol;

	for (size_t i = table->count - 1; i > 0; i--) {
		unsigned int type;
		const char *name;
		uint32_t hash;

		if (!gelf_getsym(table->symbols, (int)i, &symbol))
			continue;
		type = GELF_ST_TYPE(symbol.st_info);
		if (type != STT_FUNC && type != STT_OBJECT)
			continue;
		name = name_of(table, &symbol);
		if (!name)
			continue;
		hash = hash_of(table, name);
		table->next[i] = table->first[hash];
		table->first[hash] = (uint32_t)i;
	}
}

static void find_texts(Elf_Scn *section, struct table *table)
{
	const Elf_Data *data = elf_getdata(section, NULL);

	if (!data || !data->d_buf)
		return;
	table->texts = data->d_buf;
	table->text_size = data->d_size;
	while (table->text_size > 0 && table->texts[table->text_size - 1] != '\0')
		table->text_size--;
}

static void add_table(struct symbol_names *names, Elf_Scn *section, size_t texts)
{
	size_t size = gelf_fsize(names->elf, ELF_T_SYM, 1, EV_CURRENT);
	struct table table = { .symbols = elf_getdata(section, NULL) };

	table.count = size && table.symbols ? table.symbols->d_size / size : 0;
	if (table.count == 0 || table.count > MOST_SYMBOLS || names->count == MOST_TABLES)
		return;
	while (table.mask < table.count)
		table.mask = table.mask << 1 | 1;
	table.first = calloc((size_t)table.mask + 1, sizeof(*table.first));
	table.next = calloc(table.count, sizeof(*table.next));
	find_texts(elf_getscn(names->elf, texts), &table);
	if (!table.first || !table.next) {
		free(table.first);
		free(table.next);
		return;
	}
	link_symbols(&table);
	names->tables[names->count++] = table;
}

static void read_tables(struct symbol_names *names)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	names->read = true;
	if (elf_version(EV_CURRENT) == EV_NONE)
		return;
	/* Opened for reading, it is not written to: the mapping is read-only. */
	names->elf = elf_memory((char *)(uintptr_t)names->file->bytes, names->file->size);
	while (names->elf && (section = elf_nextscn(names->elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			add_table(names, section, header.sh_link);
}

/* Returns whether to go on. */
static bool search_table(const struct table *table, const char *name,
			 bool (*visit)(void *data, const GElf_Sym *symbol), void *data)
{
	for (uint32_t i = table->first[hash_of(table, name)]; i != 0; i = table->next[i]) {
		const char *found;
		GElf_Sym symbol;

		if (!gelf_getsym(table->symbols, (int)i, &symbol))
			continue;
		found = name_of(table, &symbol);
		if (found && strcmp(found, name) == 0 && !visit(data, &symbol))
			return false;
	}
	return true;
}

void symbol_names_visit(struct symbol_names *names, const char *name, size_t most,
			bool (*visit)(void *data, const GElf_Sym *symbol), void *data)
{
	pthread_mutex_lock(&names->mutex);
	if (!names->read)
		read_tables(names);
	for (size_t i = 0; i < names->count; i++)
		if (names->tables[i].count <= most &&
		    !search_table(&names->tables[i], name, visit, data))
			break;
	pthread_mutex_unlock(&names->mutex);
}
