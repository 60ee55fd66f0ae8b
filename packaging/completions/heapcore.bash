# bash completion for heapcore(1), which knows itself what a word may become.
_heapcore()
{
	local words word part

	# bash would split words at = and :.
	read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
	[[ ${COMP_LINE:0:COMP_POINT} != *[[:blank:]] ]] || words+=('')
	word=${words[-1]}
	mapfile -t COMPREPLY < <("${words[0]}" --complete "${words[@]:1}" 2>/dev/null)
	# It only replaces what stands behind the last of these.
	part=${word%"${word##*[=:]}"}
	COMPREPLY=("${COMPREPLY[@]#"$part"}")
}
complete -o default -F _heapcore heapcore
