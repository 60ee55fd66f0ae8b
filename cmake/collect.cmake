# Things that come in kinds: each file of the folders that defines, at the start of a line,
#	const struct KIND KIND_NAME =	or	KIND(NAME, in capitals
# adds to the array
#	const struct KIND *const ARRAY[]
# which is in order of NAME, with NULL at the end. A folder may be a pattern. NAME is the file's, but
# a file may define several classifiers. Adding one adds one file and edits none. The generated source
# is left in COLLECTED_ARRAY, or with COLLECTED_AS set to PREFIX, in COLLECTED_PREFIXARRAY: a program
# that links that one uses it instead of the library's.
function(collect_kind kind array header)
	set(names "")
	string(TOUPPER ${kind} macro)
	foreach(folder IN LISTS ARGN)
		file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
		foreach(file IN LISTS files)
			file(STRINGS ${file} definitions
				REGEX "^(const struct ${kind} ${kind}_[a-z0-9_]+ =|${macro}\\([a-z0-9_]+,)")
			foreach(definition IN LISTS definitions)
				string(REGEX REPLACE "^(const struct ${kind} ${kind}_|${macro}\\()([a-z0-9_]+).*"
					"\\2" name "${definition}")
				list(APPEND names ${name})
			endforeach()
		endforeach()
	endforeach()
	list(SORT names)
	set(declarations "")
	set(entries "")
	foreach(name IN LISTS names)
		string(APPEND declarations
			"extern const struct ${kind} ${kind}_${name};\n")
		string(APPEND entries "\t&${kind}_${name},\n")
	endforeach()
	set(source ${CMAKE_BINARY_DIR}/collected/${COLLECTED_AS}${array}.c)
	file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include \"@header@\"

@declarations@
const struct @kind@ *const @array@[] = {
@entries@	NULL,
};
")
	set(COLLECTED_${COLLECTED_AS}${array} ${source} PARENT_SCOPE)
endfunction()
