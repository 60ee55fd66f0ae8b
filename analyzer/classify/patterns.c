#include "analyzer/classify/patterns.h"

#include "analyzer/base/sort.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/classify/cxx.h"
#include "analyzer/classify/scan.h"

/* Of few allocations. */
struct known {
	allocation_id id;
	pattern_number number;
	uint64_t owner;
};

struct patterns {
	struct scan_input input; /* patterns and owners: NULL until known */
	struct memory numbers;	 /* pattern_number, by allocation */
	struct memory owners;	 /* uint64_t, by allocation; once asked for */
	struct known *known;	 /* by id; those of all, if they are known, count */
	size_t known_count;
};

struct error *patterns_create(const struct image *image, const struct program *program,
			      const struct allocation_index *index, const struct roots *roots,
			      const struct bitmap *only, const struct runtimes *runtimes,
			      struct memory_account *account, struct progress *progress,
			      struct patterns **ret)
{
	struct patterns *patterns = calloc(1, sizeof(*patterns));

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
		.runtimes = runtimes,
		.account = account,
		.progress = progress,
		.cxx = cxx_find(image, program),
	};
	*ret = patterns;
	return NULL;
}

void patterns_keep_words(struct patterns *patterns, struct kept_words *words)
{
	patterns->input.kept = words;
}

static struct error *make_room(struct patterns *patterns, struct memory *memory, size_t size)
{
	size_t count = allocation_count(patterns->input.index);

	return memory_resize(memory, (count + 1) * size);
}

/* Into the memory that the patterns have, or are to have from now on. */
static struct error *scan(struct patterns *patterns, enum scan_aim aim)
{
	struct scan_input input = patterns->input;
	struct error *error;

	input.patterns = patterns->numbers.bytes;
	input.owners = patterns->owners.bytes;
	error = scan_memory(&input, aim);
	if (!error)
		patterns->input = input;
	return error;
}

struct error *patterns_find(struct patterns *patterns)
{
	struct error *error;

	if (patterns->input.patterns)
		return NULL;
	error = make_room(patterns, &patterns->numbers, sizeof(pattern_number));
	if (!error)
		error = scan(patterns, SCAN_PATTERNS);
	if (error)
		memory_release(&patterns->numbers);
	return error;
}

struct error *patterns_find_owners(struct patterns *patterns)
{
	bool known = patterns->input.patterns;
	struct error *error;

	if (patterns->input.owners)
		return NULL;
	error = make_room(patterns, &patterns->owners, sizeof(uint64_t));
	if (!error && !known)
		error = make_room(patterns, &patterns->numbers, sizeof(pattern_number));
	if (!error)
		error = scan(patterns, known ? SCAN_OWNERS : SCAN_BOTH);
	if (!error && !known)
		error = scan(patterns, SCAN_LATE_OWNERS);
	if (!error)
		return NULL;
	patterns->input.owners = NULL;
	memory_release(&patterns->owners);
	if (!known) {
		patterns->input.patterns = NULL;
		memory_release(&patterns->numbers);
	}
	return error;
}

DEFINE_COMPARE(compare_known, struct known, ASCENDING(id))

static const struct known *find_known(const struct patterns *patterns, allocation_id id)
{
	const struct known key = { .id = id };

	return patterns->known ? bsearch(&key, patterns->known, patterns->known_count, sizeof(key),
					 compare_known)
			       : NULL;
}

bool patterns_can_find_few(const struct patterns *patterns)
{
	return scan_is_local(&patterns->input);
}

bool patterns_know(const struct patterns *patterns, allocation_id id)
{
	return find_known(patterns, id);
}

bool patterns_lead_on(const struct patterns *patterns, struct reader *reader, allocation_id source)
{
	return scan_leads_on(&patterns->input, reader, source);
}

static struct error *keep_few(struct patterns *patterns, const struct few_claims *few)
{
	size_t count = patterns->known_count + few->count;
	struct known *known = reallocarray(patterns->known, count, sizeof(*known));

	if (!known)
		return &error_no_memory;
	patterns->known = known;
	for (size_t i = 0; i < few->count; i++) {
		struct known *one = &known[patterns->known_count++];

		one->id = few->ids[i];
		one->number = reader_take_claim(few->claims[i], &one->owner);
	}
	SORT(known, count, compare_known);
	return NULL;
}

struct error *patterns_find_few(struct patterns *patterns, const allocation_id *ids, size_t count,
				const struct bitmap *sources)
{
	_cleanup_(free) uint64_t *claims = calloc(count + 1, sizeof(*claims));
	const struct few_claims few = { ids, claims, count };
	struct scan_input input = patterns->input;
	struct error *error;

	if (!claims)
		return &error_no_memory;
	input.sources = sources;
	input.few = &few;
	error = scan_memory(&input, SCAN_BOTH);
	return error ? error : keep_few(patterns, &few);
}

struct error *patterns_save(const struct patterns *patterns, struct side_writer *writer)
{
	return side_writer_array(writer, SIDE_LEAKED_PATTERNS, patterns->input.patterns,
				 allocation_count(patterns->input.index));
}

static bool check_numbers(const pattern_number *numbers, size_t count)
{
	pattern_number highest = 0;
	size_t kinds = 0;

	while (classifiers[kinds])
		kinds++;
	for (size_t i = 0; i < count; i++)
		if (numbers[i] > highest)
			highest = numbers[i];
	return highest <= kinds;
}

struct error *patterns_load(struct side_file *file, const struct image *image,
			    const struct program *program, const struct allocation_index *index,
			    const struct roots *roots, const struct bitmap *only,
			    const struct runtimes *runtimes, struct memory_account *account,
			    struct progress *progress, struct patterns **ret)
{
	_cleanup_(patterns_destroy) struct patterns *patterns = NULL;
	size_t count = allocation_count(index);
	const void *numbers;
	struct error *error =
		side_file_take(file, SIDE_LEAKED_PATTERNS, count, sizeof(pattern_number), &numbers);

	if (!error && !check_numbers(numbers, count))
		error = error_create(ERROR_BAD_DUMP, "it is damaged");
	if (!error)
		error = patterns_create(image, program, index, roots, only, runtimes, account,
					progress, &patterns);
	if (error)
		return error;
	patterns->numbers = side_memory(numbers, count);
	patterns->input.patterns = patterns->numbers.bytes;
	*ret = take(patterns);
	return NULL;
}

void patterns_destroy(struct patterns *patterns)
{
	memory_release(&patterns->numbers);
	memory_release(&patterns->owners);
	free(patterns->known);
	free(patterns);
}

pattern_number patterns_of(const struct patterns *patterns, allocation_id id)
{
	const struct known *known;

	if (patterns->input.patterns)
		return patterns->input.patterns[id];
	known = find_known(patterns, id);
	return known ? known->number : NO_PATTERN;
}

const char *pattern_name(pattern_number number)
{
	return classifiers[number - 1]->name;
}

bool pattern_holds_object(pattern_number number)
{
	return classifiers[number - 1]->holds_object;
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

void patterns_init_reader(const struct patterns *patterns, struct reader *reader)
{
	const struct scan_input *input = &patterns->input;

	reader_init(reader, input->image, input->program, input->index);
	reader->cxx = input->cxx;
	reader->runtimes = input->runtimes;
	reader->steps = allocation_count(input->index);
}

static struct memory_range range_of(const struct patterns *patterns, allocation_id id)
{
	uint64_t start = allocation_start(patterns->input.index, id);

	return (struct memory_range){ start, start + allocation_size(patterns->input.index, id) };
}

uint64_t patterns_owner(const struct patterns *patterns, allocation_id id)
{
	const struct known *known;

	if (patterns->input.owners)
		return patterns->input.owners[id];
	known = find_known(patterns, id);
	return known ? known->owner : 0;
}

bool patterns_tell(const struct patterns *patterns, struct reader *reader, allocation_id id,
		   struct pattern_facts *ret)
{
	pattern_number number = patterns_of(patterns, id);
	const struct classifier *classifier;

	if (number == NO_PATTERN)
		return false;
	classifier = classifiers[number - 1];
	*ret = (struct pattern_facts){
		.role = classifier->role,
		.owner = patterns_owner(patterns, id),
	};
	reader->steps = allocation_count(reader->index);
	reader->number = number;
	if (classifier->tell && ret->owner)
		classifier->tell(reader, range_of(patterns, id), ret);
	return true;
}

static bool makes_sense(const struct pattern_extent *extent, uint64_t size)
{
	uint64_t most = extent->asked ? extent->asked : size;

	return most <= size && extent->spare <= most && extent->live_start <= extent->live_end &&
	       extent->live_end <= most;
}

bool patterns_measure(const struct patterns *patterns, struct reader *reader, allocation_id id,
		      struct pattern_extent *ret)
{
	pattern_number number = patterns_of(patterns, id);
	struct pattern_extent extent = { 0 };
	const struct classifier *classifier;
	struct memory_range range;
	uint64_t owner;

	if (number == NO_PATTERN)
		return false;
	owner = patterns_owner(patterns, id);
	classifier = classifiers[number - 1];
	if (!owner)
		return false;
	if (!classifier->measure)
		return false;
	range = range_of(patterns, id);
	reader->steps = allocation_count(reader->index);
	reader->number = number;
	if (!classifier->measure(reader, range, owner, &extent) ||
	    !makes_sense(&extent, range_size(range)))
		return false;
	*ret = extent;
	return true;
}
