# Sourced by the scripts beside it: named stages with their times, and one way to fail.
#
#   stage NAME COMMAND...   announce, run, note the time; the first failure ends the script
#   skip NAME WHY           note that a stage did not run
#   summary                 the table of times (printed on failure too)
#   fail MESSAGE            one clear line on standard error, exit 1

stage_lines=()

# Seconds that a stage may take on two cores from a clean clone; the table of CONTRIBUTING.md. Those of `make test` add up to
# 29 minutes, the others are of `make test-crash`, `make test-mpi`, `make test-native` and `make test-streams`. More is printed, and fails nothing: machines differ.
declare -A stage_budgets=(
    [setup]=40 [environments]=40 [format]=10 [clippy]=150 [package]=10 [docs]=40 ["private docs"]=30 ["program docs"]=10
    [release]=40 [programs]=220 ["test programs"]=330 [python]=120 [examples]=40 [tests]=570 [sanitize]=120
    [kill]=300 [power]=300 [faults]=300 [under_fire]=600
    ["all environments"]=600 [conformance]=3600
    [streams]=600 ["streams in C"]=120 ["streams in Fortran"]=60
    [interface]=120 [static]=120 [sanitizers]=120 [valgrind]=120
)

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

stage() {
    local name=$1 begin=$SECONDS status=0
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" || status=$?
    local word=ok took=$((SECONDS - begin)) over=
    ((status == 0)) || word=FAILED
    local budget=${stage_budgets[$name]:-0}
    ((budget == 0 || took <= budget)) || over=", over its budget of $budget s"
    stage_lines+=("$(printf '  %-13s %-7s %4d s%s' "$name" "$word" "$took" "$over")")
    if ((status != 0)); then
        summary
        fail "stage '$name' failed (exit code $status); run it alone: $*"
    fi
}

skip() {
    printf '\n== %s: skipped: %s\n' "$1" "$2"
    stage_lines+=("$(printf '  %-13s %-7s        %s' "$1" skipped "$2")")
}

summary() {
    printf '\n== times\n'
    printf '%s\n' "${stage_lines[@]}"
    printf '  %-13s %-7s %4d s\n' all '' "$SECONDS"
}
