# Texts that the program carries: embed_text(NAME FILE HEADER) writes a source with const char NAME[],
# which ends with a zero and which the header declares, and leaves its path in EMBEDDED_NAME.
function(read_bytes file ret)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
	file(READ ${file} bytes HEX)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
	string(REGEX REPLACE "(................................................................................)"
		"\\1\n" bytes "${bytes}")
	set(${ret} "${bytes}" PARENT_SCOPE)
endfunction()

function(embed_text name file header)
	read_bytes(${file} bytes)
	set(source ${CMAKE_BINARY_DIR}/embedded/${name}.c)
	file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include \"@header@\"

const char @name@[] = {
@bytes@0
};
")
	set(EMBEDDED_${name} ${source} PARENT_SCOPE)
endfunction()

# Files of a page: embed_files(NAME STRUCT HEADER FILE...) writes const struct STRUCT NAME[] of
# { path, type, text }, by which a server knows them.
function(embed_files name struct header)
	set(type_.html text/html)
	set(type_.css text/css)
	set(type_.js text/javascript)
	set(texts "")
	set(entries "")
	set(number 0)
	foreach(file IN LISTS ARGN)
		read_bytes(${file} bytes)
		get_filename_component(path ${file} NAME)
		get_filename_component(ending ${file} LAST_EXT)
		string(APPEND texts "static const char text_${number}[] = {\n${bytes}0\n};\n")
		string(APPEND entries
			"\t{ \"/${path}\", \"${type_${ending}}; charset=utf-8\", text_${number} },\n")
		math(EXPR number "${number} + 1")
	endforeach()
	set(source ${CMAKE_BINARY_DIR}/embedded/${name}.c)
	file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include \"@header@\"

@texts@
const struct @struct@ @name@[] = {
@entries@	{ 0 },
};
")
	set(EMBEDDED_${name} ${source} PARENT_SCOPE)
endfunction()
