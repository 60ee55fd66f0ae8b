# Texts that the program carries: embed_text(NAME FILE HEADER) writes a source with const char NAME[],
# which ends with a zero and which the header declares, and leaves its path in EMBEDDED_NAME.
function(embed_text name file header)
	set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
	file(READ ${file} bytes HEX)
	string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
	string(REGEX REPLACE "(................................................................................)"
		"\\1\n" bytes "${bytes}")
	set(source ${CMAKE_BINARY_DIR}/embedded/${name}.c)
	file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
"#include \"@header@\"

const char @name@[] = {
@bytes@0
};
")
	set(EMBEDDED_${name} ${source} PARENT_SCOPE)
endfunction()
