#include "analyzer/classify/patterns.h"

#include "analyzer/classify/classifier.h"
#include "analyzer/classify/scan.h"

struct patterns {
	struct scan_input input;
	struct memory numbers; /* pattern_number, by allocation */
	struct memory owners;  /* uint64_t, by allocation; once asked for */
};

/* Whether the last part of the path begins with name. */
static bool is_called(const char *path, const char *name)
{
	const char *last = strrchr(path, '/');

	last = last ? last + 1 : path;
	return strncmp(last, name, strlen(name)) == 0;
}

/* Whether the module holds the text. */
static bool module_holds(const struct image *image, const struct module *module,
			 const char *text)
{
	uint64_t address = module->start, size;

	while (address < module->end) {
		const struct region *region = image_find(image, address);
		const uint8_t *bytes = image_bytes(image, address, &size);

		if (!region)
			return false;
		if (bytes && size > module->end - address)
			size = module->end - address;
		if (bytes && memmem(bytes, size, text, strlen(text)))
			return true;
		address = region->end;
	}
	return false;
}

/*
 * Which libraries of C++ are loaded or linked into the program, which is the
 * first of the modules. In the latter case they are told by names of types:
 * what every type_info is made of, and the namespace of libc++.
 */
static unsigned int find_cxx(const struct image *image,
			     const struct program *program)
{
	size_t count = program_module_count(program);
	const struct module *first;
	unsigned int found = 0;

	for (size_t i = 0; i < count; i++) {
		const char *path = program_module(program, i)->path;

		if (is_called(path, "libstdc++"))
			found |= LIBSTDCXX;
		else if (is_called(path, "libc++."))
			found |= LIBCXX;
	}
	if (found || count == 0)
		return found;
	first = program_module(program, 0);
	if (!module_holds(image, first, "N10__cxxabiv117__class_type_infoE"))
		return 0;
	return module_holds(image, first, "NSt3__1") ? LIBCXX : LIBSTDCXX;
}

struct error *patterns_create(const struct image *image,
			      const struct program *program,
			      const struct allocation_index *index,
			      const struct roots *roots,
			      const struct bitmap *only, struct debug *debug,
			      struct memory_account *account,
			      struct progress *progress, struct patterns **ret)
{
	_cleanup_(patterns_destroy) struct patterns *patterns =
		calloc(1, sizeof(*patterns));
	struct error *error;

	if (!patterns)
		return &error_no_memory;
	patterns->numbers.account = account;
	patterns->owners.account = account;
	patterns->input = (struct scan_input){
		.image = image,
		.program = program,
		.index = index,
		.roots = roots,
		.only = only,
		.account = account,
		.progress = progress,
		.cxx = find_cxx(image, program),
	};
	error = memory_resize(&patterns->numbers, allocation_count(index) + 1);
	if (error)
		return error;
	patterns->input.patterns = patterns->numbers.bytes;
	error = scan_memory(&patterns->input);
	if (error)
		return error;
	*ret = take(patterns);
	return NULL;
}

void patterns_destroy(struct patterns *patterns)
{
	memory_release(&patterns->numbers);
	memory_release(&patterns->owners);
	free(patterns);
}

pattern_number patterns_of(const struct patterns *patterns, allocation_id id)
{
	return patterns->input.patterns[id];
}

const char *pattern_name(pattern_number number)
{
	return classifiers[number - 1]->name;
}

const char *pattern_summary(pattern_number number)
{
	return classifiers[number - 1]->summary;
}

const char *pattern_name_at(size_t number)
{
	return classifiers[number] ? classifiers[number]->name : NULL;
}

pattern_number pattern_find(const char *name)
{
	for (size_t i = 0; classifiers[i]; i++)
		if (strcmp(classifiers[i]->name, name) == 0)
			return (pattern_number)(i + 1);
	return NO_PATTERN;
}

struct error *patterns_find_owners(struct patterns *patterns)
{
	struct error *error;

	if (patterns->input.owners)
		return NULL;
	error = memory_resize(&patterns->owners,
			      (allocation_count(patterns->input.index) + 1) *
				      sizeof(uint64_t));
	if (error)
		return error;
	patterns->input.owners = patterns->owners.bytes;
	error = scan_memory(&patterns->input);
	if (error) {
		patterns->input.owners = NULL;
		memory_release(&patterns->owners);
	}
	return error;
}

static void init_reader(const struct patterns *patterns, struct reader *reader)
{
	const struct scan_input *input = &patterns->input;

	reader_init(reader, input->image, input->program, input->index);
	reader->cxx = input->cxx;
	reader->steps = allocation_count(input->index);
}

static struct memory_range range_of(const struct patterns *patterns,
				    allocation_id id)
{
	uint64_t start = allocation_start(patterns->input.index, id);

	return (struct memory_range){
		start, start + allocation_size(patterns->input.index, id)
	};
}

bool patterns_tell(const struct patterns *patterns, allocation_id id,
		   struct pattern_facts *ret)
{
	pattern_number number = patterns_of(patterns, id);
	const struct classifier *classifier;
	struct reader reader;

	if (number == NO_PATTERN)
		return false;
	classifier = classifiers[number - 1];
	*ret = (struct pattern_facts){
		.role = classifier->role,
		.owner =
			patterns->input.owners ? patterns->input.owners[id] : 0,
	};
	init_reader(patterns, &reader);
	if (classifier->tell && ret->owner)
		classifier->tell(&reader, range_of(patterns, id), ret);
	return true;
}

/* A short string keeps its text in itself, 16 bytes that it points at. */
static bool is_behind_short_text(struct reader *reader,
				 struct memory_range range, uint64_t address)
{
	uint64_t words[2]; /* the pointer to the text, and its length */

	if (address - range.start >= 24 &&
	    reader_words(reader, address - 24, 2, words) &&
	    words[0] == address - 8 && words[1] < 8)
		return true;
	return false;
}

bool patterns_is_tainted(const struct patterns *patterns, allocation_id source,
			 uint64_t offset, const char **ret_part)
{
	struct memory_range range = range_of(patterns, source);
	struct pattern_facts facts;
	const char *part = NULL;
	struct reader reader;

	init_reader(patterns, &reader);
	if (patterns_tell(patterns, source, &facts) && facts.dead &&
	    (offset < facts.live_start || offset >= facts.live_end))
		part = facts.dead;
	else if (is_behind_short_text(&reader, range, range.start + offset))
		part = "unused buffer of a short string";
	if (part && ret_part)
		*ret_part = part;
	return part != NULL;
}

struct error *patterns_find_taint(struct patterns *patterns,
				  allocation_id source, allocation_id target,
				  const char **ret_part)
{
	struct memory_range from = range_of(patterns, source);
	struct memory_range to = range_of(patterns, target);
	const char *part = NULL, *found = NULL;
	struct error *error = NULL;
	struct reader reader;
	uint64_t word;

	if (patterns_of(patterns, source) != NO_PATTERN)
		error = patterns_find_owners(patterns);
	if (error)
		return error;
	init_reader(patterns, &reader);
	for (uint64_t at = from.start; from.end - at >= 8; at += 8) {
		if (!reader_word(&reader, at, &word) ||
		    word - to.start >= range_size(to))
			continue;
		if (!patterns_is_tainted(patterns, source, at - from.start,
					 &part)) {
			*ret_part = NULL;
			return NULL;
		}
		found = part;
	}
	*ret_part = found;
	return NULL;
}
