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

# Build with what tests leave of the processors; finish_build shows it, and ends with its status.
build_meanwhile() {
	log=$1.log
	{
		renice -n 10 "$BASHPID" >/dev/null
		build "$@"
	} >"$log" 2>&1 &
	build_job=$!
}

finish_build() {
	local status=0

	wait "$build_job" || status=$?
	cat "$log"
	return $status
}

# run_tests DIRECTORY [OPTION OF ctest]...
# More at once than there are processors: tests wait for programs, and for each other's.
run_tests() {
	local directory=$1
	shift

	step "Testing in $directory"
	(cd "$directory" && ctest --output-on-failure --no-tests=error \
		--parallel $(($(nproc) + 2)) "$@") || failed+=("the tests in $directory")
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
