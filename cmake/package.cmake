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

set(CPACK_GENERATOR DEB)
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
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "what the memory of a process is, from its core")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"heapcore loads the core of a process, walks the heap of glibc's malloc and
that of the Boehm collector, and says what leaked, what the memory is and who
holds it. The program needs no rebuild, no preload and no restart, and may be
stripped. A gate fails builds that leak.")
include(CPack)
