#include "analyzer/gate/recorded.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"
#include "analyzer/capture/recorder.h"
#include "analyzer/runtimes/module_data.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

static const struct module *find_recorder(const struct analysis *analysis)
{
	const struct program *program = analysis_program(analysis);

	list_for_each(module, program->modules, program->module_count)
		if (strstr(module_file_name(module), RECORDER_FILE))
			return module;
	return NULL;
}

bool recorded_is_there(const struct analysis *analysis)
{
	return find_recorder(analysis);
}

static bool is_magic(struct view *view, uint64_t place, uint64_t word, void *data)
{
	char magic[sizeof(((struct recorder_header *)0)->magic)];

	return view_read(view, place, magic, sizeof(magic)) &&
	       memcmp(magic, RECORDER_MAGIC, sizeof(magic)) == 0;
}

/* Why the recorder, which was to be preloaded, is not there. */
static const char *reason(const struct analysis *analysis)
{
	const struct image *image = analysis_image(analysis);

	if (image_auxiliary(image, AT_PHDR, 0) && !image_auxiliary(image, AT_BASE, 0))
		return "the program is static, so that the recorder cannot be preloaded";
	if (image_auxiliary(image, AT_SECURE, 0))
		return "the program is set-user-id, so that the recorder is not preloaded";
	return "the recorder did not run in the program";
}

struct error *recorded_open(struct analysis *analysis, struct recorded *ret)
{
	const struct image *image = analysis_image(analysis);
	const struct module *module;
	struct recorder_header header;
	uint64_t place = 0;

	TRY(analysis_need(analysis, STAGE_DEBUG));
	module = find_recorder(analysis);
	if (!module)
		return error_create(ERROR_NOT_SUPPORTED, "%s", reason(analysis));
	place = module_data_search_in(image, module, is_magic, NULL);
	if (!place || !image_read(image, place, &header, sizeof(header)) ||
	    header.version != RECORDER_VERSION)
		return error_create(ERROR_NOT_SUPPORTED, "the recorder did not start");
	if (!header.is_called)
		return error_create(
			ERROR_NOT_SUPPORTED,
			"no call of malloc() came to the recorder, as in programs with a malloc of their own");
	*ret = (struct recorded){
		.analysis = analysis,
		.view.image = image,
		.folder = ~header.folder,
		.stacks = ~header.stacks,
		.lost = header.lost,
	};
	return NULL;
}

struct error *recorded_open_notes(struct analysis *analysis, struct recorded *ret)
{
	struct recorded notes = { .analysis = analysis };

	TRY(analysis_need(analysis, STAGE_HEAP));
	TRY(heaps_find_noting(analysis_heaps(analysis), &notes.noting, &notes.owner));
	if (!notes.noting)
		return NULL;
	TRY(analysis_need(analysis, STAGE_DEBUG));
	*ret = notes;
	return NULL;
}

uint64_t recorded_stack(struct recorded *recorded, uint64_t address)
{
	uint64_t plane, number = recorder_plane(address);
	uint32_t place;

	if (recorded->noting)
		return recorded->noting->calls_of(recorded->owner, address);
	if (!recorded->analysis ||
	    !view_word(&recorded->view, recorded->folder + number * sizeof(plane), &plane) ||
	    !plane ||
	    !view_read(&recorded->view, ~plane + recorder_place(address) * sizeof(place), &place,
		       sizeof(place)))
		return 0;
	return place & ~RECORDER_MARK;
}

/* The calls up to the outermost of an interpreter's language; 0: there is none. */
static size_t count_to_script(const struct backtrace *calls)
{
	size_t count = calls->count;

	while (count > 0 && !calls->frames[count - 1].is_script)
		count--;
	return count;
}

size_t recorded_count_own(const struct backtrace *calls)
{
	static const char *const starts[] = { "__libc_start_call_main", "__libc_start_main",
					      "start_thread" };

	for (size_t i = count_to_script(calls); i < calls->count; i++) {
		const char *function = calls->frames[i].function;

		if (function && strcmp(function, "main") == 0)
			return i + 1;
		for (size_t j = 0; function && j < COUNT_OF(starts); j++)
			if (strcmp(function, starts[j]) == 0)
				return i;
	}
	return calls->count;
}

/* A call of an interpreter's language, which stands among the stacks, as calls of machine code. */
static struct error *read_script(const struct recorded *recorded, uint64_t place, struct frame *ret)
{
	const struct image *image = analysis_image(recorded->analysis);
	struct debug *debug = analysis_debug(recorded->analysis);
	struct {
		uint64_t count, line;
		char text[RECORDER_SCRIPT_TEXT + 2]; /* two texts end in it */
	} call = { 0 };
	const uint64_t at = recorded->stacks + (place & ~RECORDER_SCRIPT) * sizeof(uint64_t);

	if (!image_read_u64(image, at, &call.count) || call.count < 2 ||
	    call.count > 1 + RECORDER_SCRIPT_TEXT / sizeof(uint64_t) ||
	    !image_read(image, at, &call, (call.count + 1) * sizeof(uint64_t)))
		return error_create(ERROR_NOT_SUPPORTED, "the recorder's stacks are damaged");
	ret->is_script = true;
	ret->source = debug_keep(debug, call.line ? format_text("%s:%" PRIu64, call.text, call.line)
						  : strdup(call.text));
	ret->function = debug_keep(debug, strdup(call.text + strlen(call.text) + 1));
	return ret->source && ret->function ? NULL : &error_no_memory;
}

/* Append the calls up to the next of the other sort; sets how many words they are. */
static struct error *append_alike(const struct recorded *recorded, const uint64_t *words,
				  size_t count, struct backtrace *calls, size_t *ret)
{
	struct backtrace native = { 0 };
	struct frame script = { 0 };
	struct error *error;

	*ret = 1;
	if (words[0] & RECORDER_SCRIPT) {
		TRY(read_script(recorded, words[0], &script));
		return backtrace_append(calls, &script, 1);
	}
	while (*ret < count && !(words[*ret] & RECORDER_SCRIPT))
		++*ret;
	TRY(debug_calls_at(analysis_debug(recorded->analysis), words, *ret, &native));
	error = backtrace_append(calls, native.frames, native.count);
	free(native.frames);
	return error;
}

static struct error *read_noted(const struct recorded *recorded, uint64_t calls,
				struct backtrace *ret)
{
	uint64_t addresses[RECORDER_DEPTH];
	size_t count = recorded->noting->read_calls(recorded->owner, calls, addresses,
						    COUNT_OF(addresses));

	TRY(debug_calls_at(analysis_debug(recorded->analysis), addresses, count, ret));
	ret->count = recorded_count_own(ret);
	return NULL;
}

struct error *recorded_calls(const struct recorded *recorded, uint64_t stack, struct backtrace *ret)
{
	const struct image *image = analysis_image(recorded->analysis);
	uint64_t words[RECORDER_DEPTH + 1], at = recorded->stacks + stack * sizeof(*words);
	struct backtrace calls = { 0 };
	struct error *error = NULL;
	size_t alike;

	if (recorded->noting)
		return read_noted(recorded, stack, ret);
	if (stack >= RECORDER_STACK_WORDS || !image_read_u64(image, at, words) ||
	    words[0] > RECORDER_DEPTH ||
	    !image_read(image, at, words, (words[0] + 1) * sizeof(*words)))
		return error_create(ERROR_NOT_SUPPORTED, "the recorder's stacks are damaged");
	for (size_t i = 1; i <= words[0] && !error; i += alike)
		error = append_alike(recorded, words + i, words[0] + 1 - i, &calls, &alike);
	if (error) {
		free(calls.frames);
		return error;
	}
	calls.count = recorded_count_own(&calls);
	*ret = calls;
	return NULL;
}
