#include "analyzer/classify/control_block.h"

#include <stddef.h>
#include <string.h>

/* Not a type of the language, as int, which would say less. */
static bool is_class(const char *mangled)
{
	return *mangled && strchr("0123456789NSZ", *mangled);
}

/*
 * libstdc++, <bits/shared_ptr_base.h>; libc++, <__memory/shared_ptr.h>. The counts, of which libc++
 * has two of 64 bits, come first.
 */
uint32_t control_block_object(const char *mangled)
{
	static const struct {
		const char *name;
		uint32_t object;
	} known[] = {
		{ "St23_Sp_counted_ptr_inplaceI", 16 },	 { "St19_Sp_counted_deleterI", 0 },
		{ "St15_Sp_counted_ptrI", 0 },		 { "NSt3__120__shared_ptr_emplaceI", 24 },
		{ "NSt3__120__shared_ptr_pointerI", 0 },
	};

	size_t length;

	mangled += *mangled == '*';
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		length = strlen(known[i].name);
		if (strncmp(mangled, known[i].name, length) != 0)
			continue;
		mangled += length;
		mangled += *mangled == 'K';
		return is_class(mangled) ? known[i].object : 0;
	}
	return NO_CONTROL_BLOCK;
}

/* The first argument of the template. */
char *control_block_shared(const char *full)
{
	const char *start = strchr(full, '<');
	unsigned int depth = 0;
	size_t length = 0;

	if (!start++)
		return NULL;
	for (; start[length]; length++) {
		char letter = start[length];

		if (depth == 0 && (letter == ',' || letter == '>'))
			break;
		depth += strchr("<({[", letter) != NULL;
		depth -= depth > 0 && strchr(">)}]", letter) != NULL;
	}
	if (length == 0 || !start[length])
		return NULL;
	if (strncmp(start, "const ", strlen("const ")) == 0) {
		start += strlen("const ");
		length -= strlen("const ");
	}
	if (length > strlen(" const") &&
	    strncmp(start + length - strlen(" const"), " const", strlen(" const")) == 0)
		length -= strlen(" const");
	return strndup(start, length);
}
