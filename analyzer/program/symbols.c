#include "analyzer/program/symbols.h"

#include "analyzer/image/mapped_file.h"
#include "analyzer/program/symbol_names.h"

#include <gelf.h>
#include <string.h>

/* The symbols of that type and name that a module defines, or takes from others. */
struct search {
	const char *const *names;
	unsigned int type; /* STT_... */
	bool defined;
	bool first;	/* end with the first one found */
	bool anywhere;	/* else only those that cover value */
	uint64_t value; /* of the last one found; an address in the file */
	size_t most;	/* symbols of a table that is searched; 0: any number */
	bool found;	/* the name that is being looked for */
};

static bool visit_symbol(void *data, const GElf_Sym *symbol)
{
	struct search *search = data;

	if ((symbol->st_shndx != SHN_UNDEF) != search->defined ||
	    GELF_ST_TYPE(symbol->st_info) != search->type ||
	    !(search->anywhere || search->value - symbol->st_value < symbol->st_size))
		return true;
	search->found = true;
	if (search->first)
		search->value = symbol->st_value;
	return false;
}

/* Returns a bit for each name. */
static uint64_t search_file(const struct module *module, struct search *search)
{
	uint64_t found = 0;

	for (unsigned int i = 0; module->names && search->names[i]; i++) {
		search->found = false;
		symbol_names_visit(module->names, search->names[i],
				   search->most ? search->most : SIZE_MAX, visit_symbol, search);
		found |= (uint64_t)search->found << i;
	}
	return found;
}

uint64_t module_defines(const struct module *module, const char *const names[])
{
	struct search search = { names, STT_FUNC, .defined = true, .anywhere = true };

	return search_file(module, &search);
}

uint64_t module_needs(const struct module *module, const char *const names[])
{
	struct search search = { names, STT_FUNC, .anywhere = true };

	return search_file(module, &search);
}

uint64_t module_functions_at(const struct module *module, uint64_t address,
			     const char *const names[])
{
	struct search search = { names, STT_FUNC, true, .value = address - module->bias };

	return search_file(module, &search);
}

static bool find(const struct module *module, unsigned int type, const char *name,
		 uint64_t *ret_address)
{
	struct search search = { (const char *const[]){ name, NULL }, type, true, true, true };

	if (!search_file(module, &search))
		return false;
	*ret_address = module->bias + search.value;
	return true;
}

bool module_find_variable(const struct module *module, const char *name, uint64_t *ret_address)
{
	return find(module, STT_OBJECT, name, ret_address);
}

bool module_find_function(const struct module *module, const char *name, uint64_t *ret_address)
{
	return find(module, STT_FUNC, name, ret_address);
}

enum { MOST_TAGS = 256, MOST_CHAIN = 1 << 12, MOST_SYMBOLS = 1 << 17, HASH_HEADER = 16 };

/* The tables that a module's dynamic section points to. */
struct exports {
	const struct image *image;
	const struct module *module;
	uint64_t hashes, symbols, strings;
};

/* The loader has made addresses of them, unless the section cannot be written. */
static uint64_t address_in(const struct module *module, uint64_t value)
{
	return value < module->start ? value + module->bias : value;
}

static bool find_exports(struct exports *exports)
{
	struct module_headers headers;
	const Elf64_Phdr *dynamic = NULL;
	Elf64_Dyn tag;

	if (image_word_size(exports->image) == sizeof(uint64_t) &&
	    module_headers_read(exports->image, exports->module->start, &headers))
		dynamic = module_headers_find(&headers, PT_DYNAMIC);
	for (uint64_t i = 0; dynamic && i < MOST_TAGS; i++) {
		uint64_t *wanted;

		if (!image_read(exports->image, headers.bias + dynamic->p_vaddr + i * sizeof(tag),
				&tag, sizeof(tag)) ||
		    tag.d_tag == DT_NULL)
			break;
		wanted = tag.d_tag == DT_GNU_HASH ? &exports->hashes
			 : tag.d_tag == DT_SYMTAB ? &exports->symbols
			 : tag.d_tag == DT_STRTAB ? &exports->strings
						  : NULL;
		if (wanted)
			*wanted = address_in(exports->module, tag.d_un.d_ptr);
	}
	return exports->hashes && exports->symbols && exports->strings;
}

static bool is_symbol(const struct exports *exports, uint32_t number, const char *name)
{
	char text[64];
	Elf64_Sym symbol;
	size_t size = strlen(name) + 1;

	return size <= sizeof(text) &&
	       image_read(exports->image, exports->symbols + number * sizeof(symbol), &symbol,
			  sizeof(symbol)) &&
	       image_read(exports->image, exports->strings + symbol.st_name, text, size) &&
	       memcmp(text, name, size) == 0;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* DT_GNU_HASH: | buckets | first symbol | words of the filter | shift | filter | buckets | chains |
 */
bool module_exports(const struct image *image, const struct module *module, const char *name)
{
	struct exports exports = { image, module };
	uint32_t head[HASH_HEADER / sizeof(uint32_t)], hash = hash_of(name), number, other;
	uint64_t buckets;

	if (!find_exports(&exports) || !image_read(image, exports.hashes, head, sizeof(head)) ||
	    head[0] == 0)
		return false;
	buckets = exports.hashes + sizeof(head) + head[2] * sizeof(uint64_t);
	if (!image_read_u32(image, buckets + hash % head[0] * sizeof(number), &number) ||
	    number < head[1])
		return false;
	for (uint32_t i = 0; i < MOST_CHAIN; i++, number++) {
		uint64_t chain = buckets + sizeof(number) * (head[0] + (uint64_t)number - head[1]);

		if (!image_read_u32(image, chain, &other))
			return false;
		if ((other | 1) == (hash | 1) && is_symbol(&exports, number, name))
			return true;
		if (other & 1)
			return false;
	}
	return false;
}

/* Give up on a program with more symbols than one with an interpreter has: that takes long. */
static bool is_defined_in(const struct module *module, const char *name)
{
	struct search search = {
		(const char *const[]){ name, NULL },
		STT_FUNC,
		.defined = true,
		.anywhere = true,
		.most = MOST_SYMBOLS,
	};

	return search_file(module, &search);
}

bool program_has_symbol(const struct program *program, const char *name)
{
	uint64_t entry = image_auxiliary(program->image, AT_ENTRY, 0);

	list_for_each(module, program->modules, program->module_count)
		if (module_exports(program->image, module, name) ||
		    (entry - module->start < module->end - module->start &&
		     is_defined_in(module, name)))
			return true;
	return false;
}

bool program_has_code(const struct program *program, const char *part, const char *name)
{
	return program_has_module(program, part) || program_has_symbol(program, name);
}
