#include "allocators/v8/v8.h"

#include "analyzer/base/macros.h"
#include "analyzer/program/symbols.h"

enum { VIEW_BUFFER = 24, SHORT_FEEDBACK = 48, LONG_FEEDBACK = 56 };

/* A type with a name that debuggers know. */
struct known_type {
	const char *symbol;
	enum v8_rule rule;
	const char *label;
};

static const struct known_type types[] = {
	{ "v8dbg_type_FixedDoubleArray__FIXED_DOUBLE_ARRAY_TYPE", V8_DOUBLES, "(numbers)" },
	{ "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE", V8_BYTES, "(bytes)" },
	{ "v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE", V8_BYTECODE, "(bytecode)" },
	{ "v8dbg_type_EmbedderDataArray__EMBEDDER_DATA_ARRAY_TYPE", V8_ARRAY, "(array)" },
	{ "v8dbg_type_PropertyArray__PROPERTY_ARRAY_TYPE", V8_PROPERTIES, "(properties)" },
	{ "v8dbg_type_WeakFixedArray__WEAK_FIXED_ARRAY_TYPE", V8_ARRAY, "(weak array)" },
	{ "v8dbg_type_WeakArrayList__WEAK_ARRAY_LIST_TYPE", V8_LIST, "(weak array)" },
	{ "v8dbg_type_DescriptorArray__DESCRIPTOR_ARRAY_TYPE", V8_DESCRIPTORS, "(object shape)" },
	{ "v8dbg_type_StrongDescriptorArray__STRONG_DESCRIPTOR_ARRAY_TYPE", V8_DESCRIPTORS,
	  "(object shape)" },
	{ "v8dbg_type_FeedbackVector__FEEDBACK_VECTOR_TYPE", V8_FEEDBACK, "(feedback)" },
	{ "v8dbg_type_FeedbackCell__FEEDBACK_CELL_TYPE", V8_UNKNOWN, "(feedback)" },
	{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", V8_UNKNOWN,
	  "(function data)" },
	{ "v8dbg_type_PreparseData__PREPARSE_DATA_TYPE", V8_UNKNOWN, "(function data)" },
	{ "v8dbg_type_UncompiledDataWithPreparseData__UNCOMPILED_DATA_WITH_PREPARSE_DATA_TYPE",
	  V8_UNKNOWN, "(function data)" },
	{ "v8dbg_type_UncompiledDataWithoutPreparseData__UNCOMPILED_DATA_WITHOUT_PREPARSE_DATA_TYPE",
	  V8_UNKNOWN, "(function data)" },
	{ "v8dbg_type_Script__SCRIPT_TYPE", V8_UNKNOWN, "(script)" },
	{ "v8dbg_type_Code__CODE_TYPE", V8_UNKNOWN, "(code)" },
	{ "v8dbg_type_CodeDataContainer__CODE_DATA_CONTAINER_TYPE", V8_UNKNOWN, "(code)" },
	{ "v8dbg_type_Symbol__SYMBOL_TYPE", V8_UNKNOWN, "(symbol)" },
	{ "v8dbg_type_PropertyCell__PROPERTY_CELL_TYPE", V8_UNKNOWN, "(variable)" },
	{ "v8dbg_type_Cell__CELL_TYPE", V8_UNKNOWN, "(variable)" },
	/* Up to V8 11, the numbers of these types are between the others'. */
	{ "v8dbg_type_ArrayList__ARRAY_LIST_TYPE", V8_LIST, "(array)" },
	{ "v8dbg_type_ClosureFeedbackCellArray__CLOSURE_FEEDBACK_CELL_ARRAY_TYPE", V8_ARRAY,
	  "(feedback)" },
	{ "v8dbg_type_ObjectBoilerplateDescription__OBJECT_BOILERPLATE_DESCRIPTION_TYPE",
	  V8_UNKNOWN, "(array)" },
	{ "v8dbg_type_ScriptContextTable__SCRIPT_CONTEXT_TABLE_TYPE", V8_UNKNOWN, "(array)" },
	{ "v8dbg_type_RegExpMatchInfo__REG_EXP_MATCH_INFO_TYPE", V8_UNKNOWN, "(array)" },
	{ "v8dbg_type_TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE", V8_ARRAY, "(array)" },
	{ "v8dbg_type_ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE", V8_ARRAY, "(array)" },
	{ "v8dbg_type_TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY_TYPE", V8_ARRAY,
	  "(weak array)" },
	{ "v8dbg_type_ProtectedWeakFixedArray__PROTECTED_WEAK_FIXED_ARRAY_TYPE", V8_ARRAY,
	  "(weak array)" },
	{ "v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE", V8_BYTES, "(bytes)" },
	{ "v8dbg_type_BytecodeWrapper__BYTECODE_WRAPPER_TYPE", V8_UNKNOWN, "(bytecode)" },
	{ "v8dbg_type_CodeWrapper__CODE_WRAPPER_TYPE", V8_UNKNOWN, "(code)" },
};

/* The file may be called otherwise, as an application that is made of it. */
static bool is_node(const struct program *program, const struct module *module)
{
	return strstr(module->path, "node") ||
	       module_exports(program->image, module, "node_module_register");
}

static bool find_module(const struct program *program, const struct module **ret)
{
	uint64_t address;

	for (size_t i = 0; i < program->module_count; i++) {
		*ret = &program->modules[i];
		if (is_node(program, *ret) &&
		    module_find_variable(*ret, "v8dbg_type_Map__MAP_TYPE", &address))
			return true;
	}
	return false;
}

/* The module that says it, and what is to visit the places, if anything is. */
struct search {
	const struct image *image;
	const struct module *module;
	program_range_visitor *visit;
	void *data;
	struct error *error;
};

static bool read_number(struct search *search, const char *name, uint32_t *ret)
{
	uint64_t address;

	if (!module_find_variable(search->module, name, &address))
		return false;
	if (search->visit && !search->error)
		search->error = search->visit(search->data, address, sizeof(*ret));
	return image_read_u32(search->image, address, ret);
}

/* Names that say a member's type, too, which differs between versions: up to V8 11, 12, 13. */
struct changed_number {
	const char *names[3];
	uint32_t *ret;
};

static bool read_changed(struct search *search, const struct changed_number *number)
{
	for (size_t i = 0; i < COUNT_OF(number->names) && number->names[i]; i++)
		if (read_number(search, number->names[i], number->ret))
			return true;
	return false;
}

/* The number of a type that has a rule. */
static bool read_type(struct search *search, const char *name, uint32_t *ret)
{
	return read_number(search, name, ret) && *ret + 1 < V8_TYPES;
}

/* V8 13 does not say which type free memory has: the one before holes. It counts words there. */
static bool read_free_type(struct search *search, struct v8_layout *ret)
{
	ret->free_unit = 1;
	if (read_type(search, "v8dbg_type_FreeSpace__FREE_SPACE_TYPE", &ret->free_type))
		return true;
	ret->free_unit = V8_WORD;
	return read_type(search, "v8dbg_type_Hole__HOLE_TYPE", &ret->free_type) &&
	       ret->free_type-- > 0;
}

static void set(struct v8_layout *layout, uint32_t type, enum v8_rule rule, const char *label)
{
	layout->rules[type] = (uint8_t)rule;
	layout->labels[type] = label;
}

/* Types that debuggers are not told of stand between those that they are. */
static bool add_arrays(struct search *search, struct v8_layout *layout)
{
	uint32_t first, end, weak, embedder;

	if (!read_type(search, "v8dbg_type_FixedArray__FIXED_ARRAY_TYPE", &first) ||
	    !read_type(search, "v8dbg_type_ByteArray__BYTE_ARRAY_TYPE", &end) ||
	    !read_type(search, "v8dbg_type_WeakFixedArray__WEAK_FIXED_ARRAY_TYPE", &weak) ||
	    !read_type(search, "v8dbg_type_EmbedderDataArray__EMBEDDER_DATA_ARRAY_TYPE",
		       &embedder) ||
	    first > end || layout->last_context >= V8_TYPES)
		return false;
	for (uint32_t type = first; type < end; type++)
		set(layout, type, V8_ARRAY, "(array)");
	for (uint32_t type = layout->first_context; type <= layout->last_context; type++)
		set(layout, type, V8_ARRAY, "(context)");
	set(layout, weak + 1, V8_ARRAY, "(object shape)");   /* TransitionArray */
	set(layout, embedder + 1, V8_UNKNOWN, "(feedback)"); /* FeedbackMetadata */
	return true;
}

static bool find_layout(struct search *search, const struct program *program, struct v8_layout *ret)
{
	uint32_t type, place, prefix, first_name;
	bool is_early;

	*ret = (struct v8_layout){ 0 };
	if (!find_module(program, &search->module))
		return false;
	const struct {
		const char *name;
		uint32_t *ret;
	} numbers[] = {
		{ "v8dbg_type_Map__MAP_TYPE", &ret->map_type },
		{ "v8dbg_type_JSFunction__JS_FUNCTION_TYPE", &ret->function_type },
		{ "v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", &ret->shared_type },
		{ "v8dbg_FirstNonstringType", &ret->first_string_end },
		{ "v8dbg_type_HeapNumber__HEAP_NUMBER_TYPE", &ret->number_type },
		{ "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE", &ret->scope_type },
		{ "v8dbg_FirstContextType", &ret->first_context },
		{ "v8dbg_LastContextType", &ret->last_context },
		{ "v8dbg_StringRepresentationMask", &ret->representation },
		{ "v8dbg_SeqStringTag", &ret->sequential },
		{ "v8dbg_ConsStringTag", &ret->joined },
		{ "v8dbg_SlicedStringTag", &ret->sliced },
		{ "v8dbg_ThinStringTag", &ret->thin },
		{ "v8dbg_StringEncodingMask", &ret->encoding },
		{ "v8dbg_OneByteStringTag", &ret->one_byte },
		{ "v8dbg_class_String__length__int32_t", &ret->text_length },
		{ "v8dbg_class_SeqOneByteString__chars__char", &ret->text },
		{ "v8dbg_class_BytecodeArray__data__uintptr_t", &ret->bytecode },
		{ "v8dbg_class_JSFunction__shared__SharedFunctionInfo", &ret->shared },
		{ "v8dbg_class_JSFunction__context__Context", &ret->context },
		{ "v8dbg_bit_field3_number_of_own_descriptors_shift", &ret->count_shift },
		{ "v8dbg_bit_field3_number_of_own_descriptors_mask", &ret->count_mask },
		{ "v8dbg_bit_field3_is_dictionary_map_shift", &ret->dictionary_shift },
		{ "v8dbg_prop_location_mask", &ret->location_mask },
		{ "v8dbg_prop_index_shift", &ret->index_shift },
		{ "v8dbg_prop_index_mask", &ret->index_mask },
		{ "v8dbg_namedictionary_prefix_start_index", &ret->dictionary },
		{ "v8dbg_namedictionaryshape_prefix_size", &prefix },
		{ "v8dbg_type_JSGlobalObject__JS_GLOBAL_OBJECT_TYPE", &ret->global_type },
		{ "v8dbg_type_PropertyCell__PROPERTY_CELL_TYPE", &ret->cell_type },
		{ "v8dbg_type_Script__SCRIPT_TYPE", &ret->script_type },
		{ "v8dbg_class_Script__name__Object", &ret->script_name },
		{ "v8dbg_type_JSMap__JS_MAP_TYPE", &ret->hash_type },
		{ "v8dbg_type_JSSet__JS_SET_TYPE", &ret->set_type },
		{ "v8dbg_type_JSTypedArray__JS_TYPED_ARRAY_TYPE", &ret->typed_array_type },
		{ "v8dbg_type_JSArrayBuffer__JS_ARRAY_BUFFER_TYPE", &ret->array_buffer_type },
		{ "v8dbg_elements_dictionary_elements", &ret->dictionary_elements },
		{ "v8dbg_scopeinfo_idx_first_vars", &first_name },
	};
	const struct changed_number changed[] = {
		{ { "v8dbg_class_Map__constructor_or_back_pointer__Object",
		    "v8dbg_class_Map__constructor_or_back_pointer__Tagged_Object_" },
		  &ret->constructor },
		{ { "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object",
		    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
		    "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_" },
		  &ret->name },
		{ { "v8dbg_class_SharedFunctionInfo__script_or_debug_info__HeapObject",
		    "v8dbg_class_SharedFunctionInfo__raw_script__Tagged_Object_" },
		  &ret->script },
	};
	/* The first member of an ArrayBuffer, in the place of which a view has its buffer. */
	const struct changed_number buffer = {
		{ "v8dbg_class_JSArrayBuffer__detach_key__Object",
		  "v8dbg_class_JSArrayBuffer__detach_key__Tagged_Object_" },
		&ret->view_buffer,
	};
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (!read_number(search, numbers[i].name, numbers[i].ret))
			return false;
	for (size_t i = 0; i < COUNT_OF(changed); i++)
		if (!read_changed(search, &changed[i]))
			return false;
	/* V8 10 does not say it. */
	is_early = !read_changed(search, &buffer);
	if (is_early)
		ret->view_buffer = VIEW_BUFFER;
	read_number(search, "v8dbg_type_JSWeakMap__JS_WEAK_MAP_TYPE", &ret->weak_map_type);
	read_number(search, "v8dbg_type_JSWeakSet__JS_WEAK_SET_TYPE", &ret->weak_set_type);
	read_number(search, "v8dbg_type_JSWeakRef__JS_WEAK_REF_TYPE", &ret->weak_ref_type);
	read_number(search, "v8dbg_type_WeakCell__WEAK_CELL_TYPE", &ret->weak_cell_type);
	read_number(search, "v8dbg_type_JSPromise__JS_PROMISE_TYPE", &ret->promise_type);
	read_number(search, "v8dbg_type_JSMessageObject__JS_MESSAGE_OBJECT_TYPE",
		    &ret->message_type);
	read_number(search, "v8dbg_type_JSAsyncFunctionObject__JS_ASYNC_FUNCTION_OBJECT_TYPE",
		    &ret->async_type);
	read_number(search, "v8dbg_type_JSAsyncGeneratorObject__JS_ASYNC_GENERATOR_OBJECT_TYPE",
		    &ret->async_generator_type);
	read_number(search, "v8dbg_type_JSBoundFunction__JS_BOUND_FUNCTION_TYPE", &ret->bound_type);
	ret->scope_names = (1 + first_name) * V8_WORD;
	ret->dictionary += prefix;
	ret->count_shift &= 31;
	ret->index_shift &= 31;
	/* Maps are read at these places; pointers are not compressed. */
	if (!read_number(search, "v8dbg_class_Map__instance_type__uint16_t", &place) ||
	    place != 12 || !read_number(search, "v8dbg_TaggedSize", &place) || place != V8_WORD ||
	    !read_free_type(search, ret) || ret->first_string_end > V8_TYPES ||
	    !add_arrays(search, ret))
		return false;
	/* V8 11 added a word to FeedbackVectors, and V8 13 took one away. */
	ret->feedback = is_early || ret->free_unit != 1 ? SHORT_FEEDBACK : LONG_FEEDBACK;
	ret->rules[ret->free_type] = V8_FREE;
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (read_type(search, types[i].symbol, &type))
			set(ret, type, types[i].rule, types[i].label);
	if (ret->map_type < V8_TYPES)
		ret->labels[ret->map_type] = "(object shape)";
	if (ret->scope_type < V8_TYPES)
		ret->labels[ret->scope_type] = "(function data)";
	if (ret->global_type < V8_TYPES)
		ret->labels[ret->global_type] = "(global object)";
	if (ret->number_type < V8_TYPES)
		ret->labels[ret->number_type] = "(number)";
	for (type = 0; type < ret->first_string_end; type++)
		ret->labels[type] = "(string)";
	return true;
}

bool v8_find_layout(const struct image *image, const struct program *program, struct v8_layout *ret)
{
	struct search search = { .image = image };

	return find_layout(&search, program, ret);
}

struct error *v8_visit_layout(const struct image *image, const struct program *program,
			      program_range_visitor *visit, void *data)
{
	struct search search = { .image = image, .visit = visit, .data = data };
	struct v8_layout layout;

	find_layout(&search, program, &layout);
	return search.error;
}
