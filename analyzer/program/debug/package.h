/*
 * Names the package with the debug information of an installed program.
 *
 * Debian's dpkg keeps the paths of each package's files in a list of its own. Where there are no
 * such lists, as with RPM, nobody but the package manager knows.
 */
#pragma once

/*
 * The package, as "redis-tools-dbgsym", for the program at path below sysroot, to be freed; NULL:
 * not known.
 */
char *debug_package_of(const char *sysroot, const char *path);
