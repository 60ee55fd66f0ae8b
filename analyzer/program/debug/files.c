#include "analyzer/program/debug/files.h"

#include <elfutils/libdwelf.h>
#include <string.h>

static const char SYSTEM_FOLDER[] = "/usr/lib/debug";

void debug_file_close(struct debug_file *file)
{
	elf_end(file->elf);
	cleanup_close(&file->fd);
	free(file->path);
	*file = (struct debug_file){ .fd = -1 };
}

/* No build-id, if id is empty. */
static bool has_build_id(Elf *elf, const struct build_id *id)
{
	const void *bytes;
	ssize_t size = elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &bytes) : -1;

	return size >= 0 && (size_t)size == id->size &&
	       (size == 0 || memcmp(bytes, id->bytes, id->size) == 0);
}

bool debug_file_open(const char *sysroot, const char *path, const struct build_id *id,
		     struct debug_file *ret)
{
	if (id->size == 0 || path[0] != '/')
		return false;
	return debug_file_adopt(file_open_below(sysroot, path), path, id, ret);
}

bool debug_file_adopt(int fd, const char *path, const struct build_id *id, struct debug_file *ret)
{
	struct debug_file file = { .fd = fd };

	if (fd >= 0 && elf_version(EV_CURRENT) != EV_NONE)
		file.elf = elf_begin(file.fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	if (file.elf && has_build_id(file.elf, id))
		file.path = strdup(path);
	if (!file.path) {
		debug_file_close(&file);
		return false;
	}
	*ret = file;
	return true;
}

/* Open the file whose path the format makes. */
static bool __attribute__((format(printf, 4, 5)))
open_path(const char *sysroot, const struct build_id *id, struct debug_file *ret,
	  const char *format, ...)
{
	_cleanup_(free) char *path = FORMATTED(format);

	return path && debug_file_open(sysroot, path, id, ret);
}

static bool find_by_id(const char *sysroot, const char *folder, const struct build_id *id,
		       struct debug_file *ret)
{
	char digits[2 * sizeof(id->bytes) + 1];

	if (id->size < 2)
		return false;
	for (size_t i = 0; i < id->size; i++)
		snprintf(digits + 2 * i, 3, "%02x", id->bytes[i]);
	return open_path(sysroot, id, ret, "%s/.build-id/%.2s/%s.debug", folder, digits,
			 digits + 2);
}

/* The folder of a path, "" for the root's. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strndup(path, slash ? (size_t)(slash - path) : 0);
}

/* In one of the folders that hold nothing but such files. */
static bool find_in(const char *sysroot, const char *folder, const char *place, const char *name,
		    const struct build_id *id, struct debug_file *ret)
{
	if (find_by_id(sysroot, folder, id, ret))
		return true;
	return name && (open_path(sysroot, id, ret, "%s/%s/%s", folder, place, name) ||
			open_path(sysroot, id, ret, "%s//%s", folder, name));
}

/* The user's folder is one of this machine, whatever the sysroot. */
static char *user_folder(const struct debug_options *options)
{
	return options->debug_directory ? realpath(options->debug_directory, NULL) : NULL;
}

bool debug_file_find_separate(const struct debug_options *options, const struct debug_file *main,
			      const struct build_id *id, struct debug_file *ret)
{
	_cleanup_(free) char *place = main->path ? folder_of(main->path) : NULL;
	_cleanup_(free) char *user = user_folder(options);
	GElf_Word checksum;
	const char *name = main->elf ? dwelf_elf_gnu_debuglink(main->elf, &checksum) : NULL;

	if (!place || (name && strchr(name, '/')))
		name = NULL;
	if (user && find_in(NULL, user, place ? place : "", name, id, ret))
		return true;
	if (name && (open_path(options->sysroot, id, ret, "%s//%s", place, name) ||
		     open_path(options->sysroot, id, ret, "%s/.debug/%s", place, name)))
		return true;
	return find_in(options->sysroot, SYSTEM_FOLDER, place ? place : "", name, id, ret);
}

/* Read a section .gnu_debugaltlink: a path, followed by a build-id. */
static const char *shared_link(Elf *elf, struct build_id *ret)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_section_find(elf, ".gnu_debugaltlink", &header);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	const char *path;
	size_t length;

	if (!data || !data->d_buf)
		return NULL;
	path = data->d_buf;
	length = strnlen(path, data->d_size);
	if (length + 1 >= data->d_size || data->d_size - length - 1 > sizeof(ret->bytes))
		return NULL;
	ret->size = data->d_size - length - 1;
	memcpy(ret->bytes, path + length + 1, ret->size);
	return path;
}

bool debug_file_shares(const struct debug_file *file, const char *link)
{
	struct build_id id;
	const char *path = file->elf ? shared_link(file->elf, &id) : NULL;

	return path && strcmp(path, link) == 0;
}

bool debug_file_find_shared(const struct debug_options *options, const struct debug_file *file,
			    struct debug_file *ret)
{
	_cleanup_(free) char *place = file->path ? folder_of(file->path) : NULL;
	_cleanup_(free) char *user = user_folder(options);
	struct build_id id = { .size = 0 };
	const char *path = file->elf ? shared_link(file->elf, &id) : NULL;

	if (!path || !place)
		return false;
	if (user && find_by_id(NULL, user, &id, ret))
		return true;
	if (find_by_id(options->sysroot, SYSTEM_FOLDER, &id, ret))
		return true;
	if (path[0] == '/')
		return debug_file_open(options->sysroot, path, &id, ret);
	/* Only what is in the user's folder is not below the sysroot. */
	return open_path(options->sysroot, &id, ret, "%s//%s", place, path) ||
	       (user && strncmp(place, user, strlen(user)) == 0 &&
		open_path(NULL, &id, ret, "%s//%s", place, path));
}

/* Old compressed sections are called .zdebug_... */
static bool is_called(const char *name, const char *wanted)
{
	if (strncmp(name, ".zdebug_", 8) == 0)
		return strcmp(name + 8, wanted + strlen(".debug_")) == 0;
	return strcmp(name, wanted) == 0;
}

Elf_Scn *debug_section_find(Elf *elf, const char *wanted, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name =
			gelf_getshdr(section, ret) ? elf_strptr(elf, names, ret->sh_name) : NULL;

		if (name && is_called(name, wanted))
			break;
	}
	return section;
}

struct cursor debug_section(Dwarf *dwarf, const char *wanted)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_section_find(dwarf_getelf(dwarf), wanted, &header);
	Elf_Data *data =
		section && header.sh_type != SHT_NOBITS ? elf_rawdata(section, NULL) : NULL;

	if (!data || !data->d_buf)
		return (struct cursor){ NULL, NULL };
	return (struct cursor){ data->d_buf, (const uint8_t *)data->d_buf + data->d_size };
}
