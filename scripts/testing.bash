# shellcheck shell=bash
# What scripts/test and scripts/nightly share: targets are all unless they are set. A failure does not keep the rest from being
# tested, and is reported at the end.
failed=()

step() {
	echo "== $*"
}

build() {
	local directory=$1
	shift

	step "Building in $directory"
	cmake -S . -B "$directory" -DBUILD_TESTING=ON \
		-DBUILT_BY_TESTS="$PWD/build/built-by-tests" \
		-DWERROR="${CI:+ON}" "$@" >/dev/null
	cmake --build "$directory" --target "${targets[@]-all}"
}

# run_tests DIRECTORY [OPTION OF ctest]...
run_tests() {
	local directory=$1
	shift

	step "Testing in $directory"
	(cd "$directory" && ctest --output-on-failure --no-tests=error \
		--parallel "$(nproc)" "$@") || failed+=("the tests in $directory")
	[ ! "${CI-}" ] || scripts/unexpected-skips "$directory" ||
		failed+=("scripts/unexpected-skips $directory")
}

run() {
	step "$*"
	"$@" || failed+=("$*")
}

say_failures() {
	local what

	for what in "${failed[@]}"; do
		echo "$0: $what failed" >&2
	done
	[ ${#failed[@]} -eq 0 ]
}
