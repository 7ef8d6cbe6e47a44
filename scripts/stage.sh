# Sourced by the scripts beside it: named stages with their times, and one way to fail.
#
#   stage NAME COMMAND...   announce, run, note the time; the first failure ends the script
#   skip NAME WHY           note that a stage did not run
#   summary                 the table of times (printed on failure too)
#   fail MESSAGE            one clear line on standard error, exit 1

stage_lines=()

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

stage() {
    local name=$1 begin=$SECONDS status=0
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" || status=$?
    local word=ok
    ((status == 0)) || word=FAILED
    stage_lines+=("$(printf '  %-12s %-7s %4d s' "$name" "$word" $((SECONDS - begin)))")
    if ((status != 0)); then
        summary
        fail "stage '$name' failed (exit code $status); run it alone: $*"
    fi
}

skip() {
    printf '\n== %s: skipped: %s\n' "$1" "$2"
    stage_lines+=("$(printf '  %-12s %-7s        %s' "$1" skipped "$2")")
}

summary() {
    printf '\n== times\n'
    printf '%s\n' "${stage_lines[@]}"
    printf '  %-12s %-7s %4d s\n' all '' "$SECONDS"
}
