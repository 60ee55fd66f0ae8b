# Packages of other suites of Debian, to be sourced by the scripts that test with
# them, and the options that these have in common. The packages are fetched by
# apt with a configuration of its own, and unpacked into a cache directory: the
# system stays as it is.
#
# Its user sets:
#	root		the directory of the sources
#	cache		where to keep them: cache/SUITE becomes the root of a suite
#	packages	what to unpack there
#	sources		source packages to unpack there, as they are upstream
#	dependencies	true: and all that these need (false by default)
#	architecture	whose packages they are, as Debian calls it (amd64 by default)
#	suites		those that are meant if the caller names none
#	what		what a suite is fetched for, in a word
# and defines run_suite, which is called with the name of each suite that could
# be fetched and the options of the test. The rest is test_suites "$@".
# shellcheck shell=bash
# shellcheck disable=SC2154 # The user sets them.

keyrings=(/usr/share/keyrings/debian-archive-keyring.gpg
	/usr/share/keyrings/debian-archive-removed-keys.gpg)
fallback_mirror=http://deb.debian.org/debian/
allow_missing=false
fetch_only=false
dependencies=${dependencies:-false}
architecture=${architecture:-amd64}
[ -v sources ] || sources=()
named=()
test_options=()

# The mirrors that may have a suite: what this system is set up for, and the
# archive of old suites beside it.
print_mirrors()
{
	local mirror
	# shellcheck disable=SC2016 # It is apt-get that expands these.
	mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' \
		'Identifier: Packages' 2>/dev/null |
		sed -n 's/^Debian //p' | head -n 1)
	mirror=${mirror:-$fallback_mirror}
	echo "$mirror"
	echo "${mirror%/debian/}/debian-archive/debian/"
}

# Download the packages of suite from mirror into the directory apt.
download()
{
	local suite=$1 mirror=$2 apt=$3 keyring
	local options=(
		-o "Dir::State=$apt" -o "Dir::Cache=$apt"
		-o "Dir::State::status=$apt/status"
		-o "Dir::Etc::sourcelist=$apt/sources.list"
		-o Dir::Etc::sourceparts=- -o Dir::Etc::preferencesparts=-
		-o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
		-o APT::Sandbox::User= -o Acquire::Languages=none
		-o Acquire::Check-Valid-Until=false -o Acquire::Retries=3
		-o APT::Update::Error-Mode=any -q
	)

	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	: >"$apt/status"
	keyring=$(IFS=, && echo "${keyrings[*]}")
	printf "%s [signed-by=$keyring] $mirror $suite main\n" deb deb-src \
		>"$apt/sources.list"
	(
		cd "$apt"
		apt-get "${options[@]}" update
		if [ ${#sources[@]} -gt 0 ]; then
			apt-get "${options[@]}" --download-only source \
				"${sources[@]}"
		elif $dependencies; then
			apt-get "${options[@]}" --yes --download-only \
				--no-install-recommends install "${packages[@]}"
			mv archives/*.deb .
		else
			apt-get "${options[@]}" download "${packages[@]}"
		fi
	)
}

# Make of the unpacked packages a root that a compiler can take for the
# system's: no link may lead out of it.
close_root()
{
	local directory=$1 name link target

	for name in lib lib32 lib64; do
		if [ ! -e "$directory/$name" ]; then
			ln -s "usr/$name" "$directory/$name"
		fi
	done
	find "$directory" -type l -lname '/*' | while read -r link; do
		target=$(readlink "$link")
		ln -sfn "$directory$target" "$link"
	done
}

# Make links that lead to the directory relative, so that it can be a root elsewhere.
relate_links()
{
	find "$1" -type l -lname "$1/*" | while read -r link; do
		ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$(readlink "$link")")" "$link"
	done
}

# Unpack what is in the directory apt into a root.
unpack()
{
	local apt=$1 directory=$2 package

	for package in "$apt"/*.deb "$apt"/*.orig.tar.*[2z]; do
		case $package in
		*'*'*) ;;
		*.deb) dpkg -x "$package" "$directory" ;;
		*) tar -xf "$package" -C "$directory" --strip-components=1 ;;
		esac
	done
}

# Have the packages of a suite at cache/SUITE; false if they cannot be had, and
# then cache/SUITE.log says why.
fetch()
{
	local suite=$1 target=$cache/$1 mirror package
	local work=$cache/.$1.$$

	if [ -e "$target/complete" ]; then
		return 0
	fi
	mkdir -p "$cache"
	for mirror in $(print_mirrors); do
		rm -rf "$work"
		if download "$suite" "$mirror" "$work/apt" \
			>"$cache/$suite.log" 2>&1; then
			mkdir "$work/root"
			unpack "$work/apt" "$work/root"
			rm -rf "$target"
			mv "$work/root" "$target"
			close_root "$target"
			touch "$target/complete"
			rm -rf "$work"
			return 0
		fi
	done
	rm -rf "$work"
	return 1
}

usage()
{
	sed -n '3,/^$/s/^# \?//p' "$0"
}

parse_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		--allow-missing) allow_missing=true ;;
		--fetch-only) fetch_only=true ;;
		--cache)
			cache=${2:?--cache needs a directory}
			shift
			;;
		-h | --help)
			usage
			exit
			;;
		--)
			shift
			test_options=("$@")
			break
			;;
		-*)
			echo "$0: there is no option $1" >&2
			exit 2
			;;
		*) named+=("$1") ;;
		esac
		shift
	done
	if [ ${#named[@]} -gt 0 ]; then
		suites=("${named[@]}")
	fi
}

test_suites()
{
	local suite status=0

	parse_options "$@"
	cache=$(realpath -m "$cache")
	for suite in "${suites[@]}"; do
		if ! fetch "$suite"; then
			echo "MISSING: no $what of $suite; see" \
				"$cache/$suite.log" >&2
			$allow_missing || status=1
		elif $fetch_only; then
			echo "$cache/$suite"
		else
			run_suite "$suite" "${test_options[@]}" || status=1
		fi
	done
	return $status
}
