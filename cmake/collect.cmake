# Things that come in kinds: each file of a folder that defines a
#	const struct KIND KIND_NAME
# with NAME the file's, is put into the array
#	const struct KIND *const ARRAY[]
# in order of name, NULL at the end. Adding one adds one file and edits none.
# The generated source is left in COLLECTED_ARRAY.
function(collect_kind kind array header folder)
	file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
	set(declarations "")
	set(entries "")
	foreach(file IN LISTS files)
		file(STRINGS ${file} definition
			REGEX "^const struct ${kind} ${kind}_[a-z0-9_]+ = ")
		if(NOT definition)
			continue()
		endif()
		get_filename_component(name ${file} NAME_WE)
		string(APPEND declarations
			"extern const struct ${kind} ${kind}_${name};\n")
		string(APPEND entries "\t&${kind}_${name},\n")
	endforeach()
	set(source ${CMAKE_BINARY_DIR}/collected/${array}.c)
	file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include \"@header@\"

@declarations@
const struct @kind@ *const @array@[] = {
@entries@	NULL,
};
")
	set(COLLECTED_${array} ${source} PARENT_SCOPE)
endfunction()
