#include "analyzer/classify/type_names.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/list.h"
#include "analyzer/program/debug/names.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

enum { DEEPEST_TEMPLATE = 64, KNOWN_ARGUMENTS = 5, LONGEST = 1000 };

/*
 * A template whose last arguments have defaults. In these A and B stand for the first and second
 * argument.
 */
struct known_template {
	const char *name;
	size_t required;
	const char *defaults[3];
};

#define ALLOCATOR      "std::allocator<A>"
#define PAIR_ALLOCATOR "std::allocator<std::pair<A const, B>>"

static const struct known_template templates[] = {
	{ "std::basic_string", 1, { "std::char_traits<A>", ALLOCATOR } },
	{ "std::basic_string_view", 1, { "std::char_traits<A>" } },
	{ "std::vector", 1, { ALLOCATOR } },
	{ "std::deque", 1, { ALLOCATOR } },
	{ "std::list", 1, { ALLOCATOR } },
	{ "std::forward_list", 1, { ALLOCATOR } },
	{ "std::set", 1, { "std::less<A>", ALLOCATOR } },
	{ "std::multiset", 1, { "std::less<A>", ALLOCATOR } },
	{ "std::map", 2, { "std::less<A>", PAIR_ALLOCATOR } },
	{ "std::multimap", 2, { "std::less<A>", PAIR_ALLOCATOR } },
	{ "std::unordered_set", 1, { "std::hash<A>", "std::equal_to<A>", ALLOCATOR } },
	{ "std::unordered_multiset", 1, { "std::hash<A>", "std::equal_to<A>", ALLOCATOR } },
	{ "std::unordered_map", 2, { "std::hash<A>", "std::equal_to<A>", PAIR_ALLOCATOR } },
	{ "std::unordered_multimap", 2, { "std::hash<A>", "std::equal_to<A>", PAIR_ALLOCATOR } },
	{ "std::stack", 1, { "std::deque<A>" } },
	{ "std::queue", 1, { "std::deque<A>" } },
	{ "std::priority_queue", 1, { "std::vector<A>", "std::less<A>" } },
	{ "std::unique_ptr", 1, { "std::default_delete<A>" } },
	{ "std::basic_regex", 1, { "std::regex_traits<A>" } },
	{ "std::basic_ios", 1, { "std::char_traits<A>" } },
	{ "std::basic_streambuf", 1, { "std::char_traits<A>" } },
	{ "std::basic_istream", 1, { "std::char_traits<A>" } },
	{ "std::basic_ostream", 1, { "std::char_traits<A>" } },
	{ "std::basic_iostream", 1, { "std::char_traits<A>" } },
	{ "std::basic_filebuf", 1, { "std::char_traits<A>" } },
	{ "std::basic_ifstream", 1, { "std::char_traits<A>" } },
	{ "std::basic_ofstream", 1, { "std::char_traits<A>" } },
	{ "std::basic_fstream", 1, { "std::char_traits<A>" } },
	{ "std::basic_stringbuf", 1, { "std::char_traits<A>", ALLOCATOR } },
	{ "std::basic_istringstream", 1, { "std::char_traits<A>", ALLOCATOR } },
	{ "std::basic_ostringstream", 1, { "std::char_traits<A>", ALLOCATOR } },
	{ "std::basic_stringstream", 1, { "std::char_traits<A>", ALLOCATOR } },
};

/* The characters whose instances of "basic_" templates have a name. */
static const struct character {
	const char *type, *prefix;
	bool strings_only;
} characters[] = {
	{ "char", "", false },	     { "wchar_t", "w", false },	  { "char8_t", "u8", true },
	{ "char16_t", "u16", true }, { "char32_t", "u32", true },
};

/* The rest of the name, and its short form so far. */
struct shortener {
	const char *text;
	char *output; /* zero at its end only when done */
	size_t length;
};

static bool shorten(struct shortener *shortener, char closing, unsigned int depth);

static void put(struct shortener *shortener, const char *text, size_t length)
{
	memcpy(shortener->output + shortener->length, text, length);
	shortener->length += length;
}

static bool is_name_letter(char letter)
{
	unsigned char byte = (unsigned char)letter;

	return isalnum(byte) || letter == '_' || letter == '$' || byte >= 0x80;
}

/* The start of the qualified name at the end of the output. */
static size_t name_start(const struct shortener *shortener)
{
	size_t start = shortener->length;

	while (start > 0 && (is_name_letter(shortener->output[start - 1]) ||
			     shortener->output[start - 1] == ':'))
		start--;
	return start;
}

static bool is_inline_namespace(const char *name, size_t length)
{
	static const char *const names[] = { "__cxx11", "__1", "_V2" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
			return true;
	return false;
}

/* Copy the name of an operator, whose letters are no brackets. */
static void take_operator(struct shortener *shortener)
{
	static const char *const operators[] = { "<=>", "<<=", ">>=", "->*", "<<", ">>",
						 "<=",	">=",  "->",  "()",  "<",  ">" };

	for (size_t i = 0; i < COUNT_OF(operators); i++) {
		size_t length = strlen(operators[i]);

		if (strncmp(shortener->text, operators[i], length) == 0) {
			put(shortener, operators[i], length);
			shortener->text += length;
			return;
		}
	}
}

static void take_identifier(struct shortener *shortener)
{
	const char *name = shortener->text;
	size_t length = 0, start = name_start(shortener);

	while (is_name_letter(name[length]))
		length++;
	shortener->text += length;
	if (is_inline_namespace(name, length) && strncmp(name + length, "::", 2) == 0 &&
	    shortener->length - start >= 5 && memcmp(shortener->output + start, "std::", 5) == 0) {
		shortener->text += 2;
		return;
	}
	put(shortener, name, length);
	if (length == 8 && memcmp(name, "operator", 8) == 0)
		take_operator(shortener);
}

/* Arguments of a template in the output; end[i] is behind the i-th. */
struct arguments {
	size_t name, start; /* of the template's name, of the first argument */
	size_t end[KNOWN_ARGUMENTS];
	size_t count;
};

static size_t argument_start(const struct arguments *arguments, size_t number)
{
	/* An argument begins behind a comma and a blank. */
	return number ? arguments->end[number - 1] + 2 : arguments->start;
}

/* True if the output from start to end is pattern, with A and B filled in. */
static bool is_default(const struct shortener *shortener, const struct arguments *arguments,
		       size_t number, const char *pattern)
{
	size_t place = argument_start(arguments, number);
	size_t end = arguments->end[number];

	for (; *pattern; pattern++) {
		size_t start = 0, length = 1;
		const char *expected = pattern;

		if ((*pattern == 'A' || *pattern == 'B') && !is_name_letter(pattern[1])) {
			start = argument_start(arguments, *pattern - 'A');
			length = arguments->end[*pattern - 'A'] - start;
			expected = shortener->output + start;
		}
		if (length > end - place ||
		    memcmp(shortener->output + place, expected, length) != 0)
			return false;
		place += length;
	}
	return place == end;
}

static const struct known_template *find_template(const char *name, size_t length)
{
	for (size_t i = 0; i < COUNT_OF(templates); i++)
		if (strlen(templates[i].name) == length &&
		    memcmp(templates[i].name, name, length) == 0)
			return &templates[i];
	return NULL;
}

/* Put a name in place of a "basic_" template of characters, if it has one. */
static bool rename_basic(struct shortener *shortener, size_t name, size_t name_length,
			 const char *argument, size_t argument_length)
{
	static const char basic[] = "std::basic_";
	const char *rest = shortener->output + name + sizeof(basic) - 1;
	char renamed[64];
	int length;

	if (name_length < sizeof(basic) ||
	    memcmp(shortener->output + name, basic, sizeof(basic) - 1) != 0)
		return false;
	list_for_each(character, characters, COUNT_OF(characters)) {
		if (strlen(character->type) != argument_length ||
		    memcmp(character->type, argument, argument_length) != 0 ||
		    (character->strings_only && strncmp(rest, "string<", 7) != 0 &&
		     strncmp(rest, "string_view<", 12) != 0))
			continue;
		length = snprintf(renamed, sizeof(renamed), "std::%s%.*s", character->prefix,
				  (int)(name_length - sizeof(basic) + 1), rest);
		shortener->length = name;
		put(shortener, renamed, (size_t)length);
		return true;
	}
	return false;
}

/* Leave out what are defaults, and end the argument list. */
static void end_arguments(struct shortener *shortener, struct arguments *arguments)
{
	size_t name_length = arguments->start - 1 - arguments->name;
	const struct known_template *known =
		find_template(shortener->output + arguments->name, name_length);

	while (known && arguments->count > known->required) {
		size_t last = arguments->count - 1;
		size_t number = last - known->required;

		if (number >= COUNT_OF(known->defaults) || !known->defaults[number] ||
		    !is_default(shortener, arguments, last, known->defaults[number]))
			break;
		arguments->count = last;
		shortener->length = arguments->end[last - 1];
	}
	if (known && arguments->count == 1 &&
	    rename_basic(shortener, arguments->name, name_length,
			 shortener->output + arguments->start,
			 arguments->end[0] - arguments->start))
		return;
	put(shortener, ">", 1);
}

/* A template's arguments, the text being behind their '<'. */
static bool take_arguments(struct shortener *shortener, unsigned int depth)
{
	struct arguments arguments = { .name = name_start(shortener) };
	bool more;

	put(shortener, "<", 1);
	arguments.start = shortener->length;
	do {
		size_t end;

		if (!shorten(shortener, '>', depth + 1))
			return false;
		more = *shortener->text++ == ',';
		end = shortener->length;
		if (arguments.count < KNOWN_ARGUMENTS)
			arguments.end[arguments.count] = end;
		arguments.count++;
		if (more)
			put(shortener, ", ", 2);
	} while (more);
	/* With this many arguments, leave out none. */
	if (arguments.count > KNOWN_ARGUMENTS)
		put(shortener, ">", 1);
	else
		end_arguments(shortener, &arguments);
	return true;
}

/* Copy brackets other than a template's, up to the closing one. */
static bool take_brackets(struct shortener *shortener, unsigned int depth)
{
	char closing = *shortener->text == '(' ? ')' : *shortener->text == '[' ? ']' : '}';

	put(shortener, shortener->text++, 1);
	for (;;) {
		if (!shorten(shortener, closing, depth + 1))
			return false;
		put(shortener, shortener->text, 1);
		if (*shortener->text++ == closing)
			return true;
		put(shortener, " ", 1);
	}
}

static bool follows_name(const struct shortener *shortener)
{
	return shortener->length > 0 && is_name_letter(shortener->output[shortener->length - 1]);
}

/* Blanks are needed between words only. */
static void take_blanks(struct shortener *shortener)
{
	shortener->text += strspn(shortener->text, " ");
	if (shortener->length == 0 || !*shortener->text || strchr(">,)]", *shortener->text) ||
	    strchr("<([ ", shortener->output[shortener->length - 1]))
		return;
	put(shortener, " ", 1);
}

/*
 * Shorten up to a comma or the closing bracket, which stay in the text; '\0' closes the whole.
 * False if brackets do not match.
 */
static bool shorten(struct shortener *shortener, char closing, unsigned int depth)
{
	if (depth > DEEPEST_TEMPLATE)
		return false;
	for (;;) {
		char letter = *shortener->text;

		if (letter == closing || (letter == ',' && closing))
			return true;
		if (letter == '\0')
			return false;
		if (letter == ' ') {
			take_blanks(shortener);
		} else if (is_name_letter(letter)) {
			take_identifier(shortener);
		} else if (letter == '<' && follows_name(shortener)) {
			shortener->text++;
			if (!take_arguments(shortener, depth))
				return false;
		} else if (strchr("([{", letter)) {
			if (!take_brackets(shortener, depth))
				return false;
		} else if (strncmp(shortener->text, "->", 2) == 0) {
			put(shortener, "->", 2);
			shortener->text += 2;
		} else {
			put(shortener, shortener->text++, 1);
		}
	}
}

/*
 * Leave the beginning of what nobody reads to its end, and a hash of all of it, for those of others
 * may begin the same. A name is shown with each of its objects, of which a dump can have any
 * number.
 */
static void cut(char *name, size_t length)
{
	enum { HASH_SIZE = sizeof("...#0123456789abcdef") };
	uint64_t hash = XXH3_64bits(name, length);

	snprintf(name + LONGEST + 1 - HASH_SIZE, HASH_SIZE, "...#%016" PRIx64, hash);
}

char *short_name(const char *name)
{
	/* Blanks behind commas are all that may be more than in the name. */
	struct shortener shortener = { .text = name };
	_cleanup_(free) char *output = malloc(2 * strlen(name) + 1);

	if (!output)
		return NULL;
	shortener.output = output;
	if (!shorten(&shortener, '\0', 0)) {
		shortener.length = strlen(name);
		memcpy(output, name, shortener.length);
	}
	output[shortener.length] = '\0';
	if (shortener.length > LONGEST)
		cut(output, shortener.length);
	return take(output);
}

char *demangle_type(const char *mangled)
{
	static const char prefix[] = "typeinfo for ";
	_cleanup_(free) char *symbol = NULL, *text = NULL;

	if (asprintf(&symbol, "_ZTI%s", mangled) < 0) {
		symbol = NULL;
		return NULL;
	}
	text = demangle_symbol(symbol);
	if (!text || strncmp(text, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	return strdup(text + sizeof(prefix) - 1);
}

/* False for types of the language, such as int, which would say less. */
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
	for (size_t i = 0; i < COUNT_OF(known); i++) {
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
