# fish completion for heapcore(1), which knows itself what a word may become.
function __heapcore_complete
    set -l words (commandline --tokenize --cut-at-cursor --current-process)
    set -l found ($words[1] --complete $words[2..-1] (commandline --current-token --cut-at-cursor) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline --current-token --cut-at-cursor)
    end
end
complete --command heapcore --no-files --arguments '(__heapcore_complete)'
