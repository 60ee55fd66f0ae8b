# What `cmake --install` installs, and the package that cpack makes of it: see
# scripts/package.
include(GNUInstallDirs)
# The zsh of Debian has another folder for what packages bring.
set(ZSH_COMPLETIONS_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING
	"Where zsh finds completions")
set(packaging ${CMAKE_SOURCE_DIR}/packaging)

install(TARGETS heapcore RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${MANUAL_PAGE}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING
	REGEX "\\.(md|svg|png)$")
install(FILES docs/heapcore.schema.json ${packaging}/heapcore.gdb
	DESTINATION ${CMAKE_INSTALL_DATADIR}/heapcore)
install(FILES ${packaging}/heapcore-watch@.service DESTINATION lib/systemd/system)
install(FILES ${packaging}/completions/heapcore.bash RENAME heapcore
	DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${packaging}/completions/_heapcore DESTINATION ${ZSH_COMPLETIONS_DIR})
install(FILES ${packaging}/completions/heapcore.fish
	DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# Logs of changes, as Debian's policy wants them.
foreach(pair docs/CHANGELOG.md:changelog packaging/debian/changelog:changelog.Debian)
	string(REGEX MATCH "^(.*):(.*)$" pair ${pair})
	set(compressed ${CMAKE_BINARY_DIR}/${CMAKE_MATCH_2}.gz)
	add_custom_command(OUTPUT ${compressed}
		COMMAND gzip -9cn ${CMAKE_SOURCE_DIR}/${CMAKE_MATCH_1} > ${compressed}
		DEPENDS ${CMAKE_SOURCE_DIR}/${CMAKE_MATCH_1} VERBATIM)
	list(APPEND logs ${compressed})
endforeach()
add_custom_target(logs ALL DEPENDS ${logs})
install(FILES ${logs} DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The libraries of a static heapcore are in itself, so its package is for any system.
set(CPACK_GENERATOR DEB)
if(STATIC)
	set(CPACK_GENERATOR RPM)
endif()
set(CPACK_PACKAGE_CONTACT "The developers of heapcore <developers@heapcore.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded by name when it is needed, so dpkg-shlibdeps does not see it.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcapstone${CAPSTONE_MAJOR}, libmicrohttpd12t64 | libmicrohttpd12")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS gdb)
file(READ ${packaging}/debian/control control)
string(REGEX MATCH "\nDescription: ([^\n]*)\n (.*)\n$" control "${control}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${CMAKE_MATCH_1}")
string(REPLACE "\n " "\n" CPACK_DEBIAN_PACKAGE_DESCRIPTION "${CMAKE_MATCH_2}")
set(CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_DEBIAN_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_ARCHITECTURE ${MACHINE})
set(CPACK_RPM_PACKAGE_LICENSE GPL-3.0-or-later)
set(CPACK_RPM_PACKAGE_AUTOREQPROV OFF)
# The same bytes, wherever and whenever it is packed; rpmbuild cannot strip what another machine runs.
set(CPACK_RPM_SPEC_MORE_DEFINE
"%define debug_package %{nil}
%define __os_install_post %{nil}
%define _build_id_links none
%define _buildhost heapcore.example
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1")
# Folders of other packages.
foreach(folder lib lib/systemd lib/systemd/system share/man share/man/man1 share/zsh
		share/zsh/site-functions share/bash-completion share/bash-completion/completions
		share/fish share/fish/vendor_completions.d)
	list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${folder})
endforeach()
include(CPack)
